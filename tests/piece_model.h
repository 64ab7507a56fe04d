/* SentencePiece models written by the tests themselves. Included after cmocka.h. */
#ifndef VLP_TESTS_PIECE_MODEL_H
#define VLP_TESTS_PIECE_MODEL_H

#include "tests/text_fixture.h"

#define SP "\xE2\x96\x81" /* U+2581 */

typedef struct {
    const char *piece;
    float score;
    int type; /* 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte */
} piece;

static inline void piece_put_bytes(vlp_buf *out, int field, const void *data, size_t len) {
    char head[4] = {(char)(field << 3 | 2), (char)(len & 0x7F), (char)(len >> 7), 0};
    if (len > 0x7F) head[1] = (char)(head[1] | (char)0x80);
    assert_true(len < 1 << 14);
    assert_int_equal(vlp_buf_append(out, head, len > 0x7F ? 3 : 2), VLP_OK);
    assert_int_equal(vlp_buf_append(out, data, len), VLP_OK);
}

static inline void piece_put_number(vlp_buf *out, int field, int value) {
    uint8_t bytes[4];
    size_t n = 0;
    for (unsigned key = (unsigned)field << 3; n == 0 || key; key >>= 7)
        bytes[n++] = (uint8_t)((key & 0x7F) | (key > 0x7F ? 0x80 : 0));
    bytes[n++] = (uint8_t)value;
    assert_int_equal(vlp_buf_append(out, bytes, n), VLP_OK);
}

typedef struct {
    int type; /* 1 unigram, 2 BPE */
    bool fallback, keep_spaces;
    const char *rules;
    size_t rules_len;
} shape;

static inline void piece_put_model(vlp_buf *out, const piece *pieces, shape is) {
    vlp_buf message = {0};
    for (; pieces->piece; pieces++) {
        char score[5] = {2 << 3 | 5, 0};
        memcpy(score + 1, &pieces->score, 4);
        vlp_buf_clear(&message);
        piece_put_bytes(&message, 1, pieces->piece, strlen(pieces->piece));
        assert_int_equal(vlp_buf_append(&message, score, 5), VLP_OK);
        piece_put_number(&message, 3, pieces->type);
        piece_put_bytes(out, 1, message.data, message.len);
    }
    vlp_buf_clear(&message);
    piece_put_number(&message, 3, is.type);
    piece_put_number(&message, 35, is.fallback);
    piece_put_bytes(out, 2, message.data, message.len);
    vlp_buf_clear(&message);
    if (is.rules) piece_put_bytes(&message, 2, is.rules, is.rules_len);
    piece_put_number(&message, 4, !is.keep_spaces);
    piece_put_bytes(out, 3, message.data, message.len);
    vlp_buf_free(&message);
}

static inline vlp_tokenizer *open_model(const piece *pieces, shape is, const char *config) {
    vlp_buf model = {0};
    piece_put_model(&model, pieces, is);
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "spiece.model", model.data, model.len);
    if (config) text_folder_put(&folder, "tokenizer_config.json", config);
    vlp_tokenizer *tokenizer = text_folder_open(&folder);
    text_folder_remove(&folder);
    vlp_buf_free(&model);
    return tokenizer;
}

#endif
