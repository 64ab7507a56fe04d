#include "train/model_folder.h"

#include "core/file.h"

enum { OWN_TOKENS = 2 }; /* that BLIP adds to BERT's vocabulary: [DEC], [ENC] */

/* Official ALBEF and BLIP keep their preprocessing in code: squashed to a square, CLIP's colours.
 */
static vlp_transform reference_transform(const vlp_model_config *config) {
    vlp_transform t = vlp_transform_defaults((int)config->vision.image_height);
    t.fit = VLP_FIT_SQUASH;
    t.exif_rotate = false;
    return t;
}

vlp_status vlp_model_folder_transform(vlp_transform *out, const char *folder,
                                      const vlp_model_config *config) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = vlp_path_join(&path, folder, "preprocessor_config.json");
    if (status == VLP_OK && !vlp_path_exists(path.data) && config->plain_temperature) {
        *out = reference_transform(config);
    } else {
        if (status == VLP_OK) status = vlp_json_load(&json, path.data);
        if (status == VLP_OK) status = vlp_transform_from_json(out, json, path.data);
    }
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static int64_t vocab_of(const vlp_model_config *c) {
    if (c->text.width == 0 && c->clip_text.width == 0) return c->decoder.vocab;
    return vlp_model_vocab(c);
}

static vlp_status agree(const vlp_model_folder *f, const char *folder) {
    const vlp_model_config *c = &f->model->config;
    int64_t size = vlp_tokenizer_size(f->tokenizer), more = vocab_of(c) - size;
    bool added = c->bos_id >= size && more >= 0 && more <= OWN_TOKENS;
    if (more != 0 && !added)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: the tokenizer has %lld tokens, config.json says %lld",
                        folder, (long long)size, (long long)vocab_of(c));
    if (f->transform.image_size != c->vision.image_height)
        return VLP_FAIL(
            VLP_ERR_FORMAT,
            "%s: preprocessor_config.json makes %d pixels a side, config.json wants %lld", folder,
            f->transform.image_size, (long long)c->vision.image_height);
    return VLP_OK;
}

vlp_status vlp_model_folder_open(vlp_model_folder *out, const char *folder) {
    *out = (vlp_model_folder){0};
    vlp_status status = vlp_model_open(&out->model, folder);
    if (status == VLP_OK) status = vlp_tokenizer_open(&out->tokenizer, folder);
    if (status == VLP_OK)
        status = vlp_model_folder_transform(&out->transform, folder, &out->model->config);
    if (status == VLP_OK) status = agree(out, folder);
    if (status != VLP_OK) vlp_model_folder_close(out);
    return status;
}

void vlp_model_folder_close(vlp_model_folder *f) {
    vlp_model_free(f->model);
    vlp_tokenizer_free(f->tokenizer);
    *f = (vlp_model_folder){0};
}
