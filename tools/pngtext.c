#include "tools/pngtext.h"

#include <string.h>

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A chunk is "Keyword\0text"; the text goes to the keyword's buffer. */
static vlp_status take(png_text *out, const uint8_t *data, size_t len) {
    const struct {
        const char *keyword;
        vlp_buf *text;
    } wanted[] = {
        {"Title", &out->title}, {"Author", &out->author}, {"Description", &out->description}};
    for (size_t i = 0; i < VLP_COUNT(wanted); i++) {
        size_t n = strlen(wanted[i].keyword) + 1;
        if (len < n || memcmp(data, wanted[i].keyword, n) != 0) continue;
        vlp_buf_clear(wanted[i].text);
        return vlp_buf_append(wanted[i].text, data + n, strnlen((const char *)data + n, len - n));
    }
    return VLP_OK;
}

vlp_status png_text_read(png_text *out, const uint8_t *data, size_t len) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    vlp_buf *all[] = {&out->title, &out->author, &out->description};
    for (size_t i = 0; i < VLP_COUNT(all); i++) {
        vlp_buf_clear(all[i]);
        VLP_TRY(vlp_buf_puts(all[i], ""));
    }
    if (len < 8 || memcmp(data, signature, 8) != 0) return VLP_OK;
    for (size_t at = 8; len - at >= 12;) {
        size_t size = big_endian(data + at);
        if (size > len - at - 12) break;
        if (memcmp(data + at + 4, "tEXt", 4) == 0) VLP_TRY(take(out, data + at + 8, size));
        at += size + 12;
    }
    return VLP_OK;
}

void png_text_free(png_text *text) {
    vlp_buf_free(&text->title);
    vlp_buf_free(&text->author);
    vlp_buf_free(&text->description);
}
