/* PNG text chunks and caption cleaning never read outside their input. */
#include "tools/captions.h"
#include "tools/pngtext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static png_text text;
    static vlp_buf out;
    if (png_text_read(&text, data, len) != VLP_OK) return 0;
    char *copy = vlp_strndup((const char *)data, len);
    if (!copy) return 0;
    const char *inputs[] = {copy, text.title.data, text.description.data};
    for (size_t i = 0; i < VLP_COUNT(inputs); i++) {
        (void)caption_from_title(inputs[i], text.author.data, &out);
        (void)caption_from_stem(inputs[i], text.author.data, &out);
        (void)caption_from_sentence(inputs[i], &out);
        if (out.data) (void)caption_subject(out.data, &out);
        (void)caption_is_collection(inputs[i]);
        (void)caption_is_description(inputs[i]);
    }
    vlp_free(copy);
    return 0;
}
