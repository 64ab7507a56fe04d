#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#define SP "\xE2\x96\x81" /* U+2581 */

/* ---- a writer of model files ---- */

typedef struct {
    const char *piece;
    float score;
    int type; /* 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte */
} piece;

static void put_bytes(vlp_buf *out, int field, const void *data, size_t len) {
    char head[4] = {(char)(field << 3 | 2), (char)(len & 0x7F), (char)(len >> 7), 0};
    if (len > 0x7F) head[1] = (char)(head[1] | (char)0x80);
    assert_true(len < 1 << 14);
    assert_int_equal(vlp_buf_append(out, head, len > 0x7F ? 3 : 2), VLP_OK);
    assert_int_equal(vlp_buf_append(out, data, len), VLP_OK);
}

static void put_number(vlp_buf *out, int field, int value) {
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

static void put_model(vlp_buf *out, const piece *pieces, shape is) {
    vlp_buf message = {0};
    for (; pieces->piece; pieces++) {
        char score[5] = {2 << 3 | 5, 0};
        memcpy(score + 1, &pieces->score, 4);
        vlp_buf_clear(&message);
        put_bytes(&message, 1, pieces->piece, strlen(pieces->piece));
        assert_int_equal(vlp_buf_append(&message, score, 5), VLP_OK);
        put_number(&message, 3, pieces->type);
        put_bytes(out, 1, message.data, message.len);
    }
    vlp_buf_clear(&message);
    put_number(&message, 3, is.type);
    put_number(&message, 35, is.fallback);
    put_bytes(out, 2, message.data, message.len);
    vlp_buf_clear(&message);
    if (is.rules) put_bytes(&message, 2, is.rules, is.rules_len);
    put_number(&message, 4, !is.keep_spaces);
    put_bytes(out, 3, message.data, message.len);
    vlp_buf_free(&message);
}

static vlp_tokenizer *open_model(const piece *pieces, shape is, const char *config) {
    vlp_buf model = {0};
    put_model(&model, pieces, is);
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "spiece.model", model.data, model.len);
    if (config) text_folder_write(&folder, "tokenizer_config.json", config, strlen(config));
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, folder.path) != VLP_OK) fail_msg("%s", vlp_error());
    text_folder_remove(&folder);
    vlp_buf_free(&model);
    return tokenizer;
}

/* The tokens joined by '|'. */
static void check(const vlp_tokenizer *t, bool special, const char *text, const char *expected) {
    int32_t ids[256];
    int n = special ? vlp_tokenizer_encode(t, text, strlen(text), true, ids, 256)
                    : vlp_tokenizer_encode_literal(t, text, strlen(text), ids, 256);
    vlp_buf joined = {0};
    assert_int_equal(vlp_buf_puts(&joined, ""), VLP_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            vlp_buf_printf(&joined, "%s%s", i ? "|" : "", vlp_tokenizer_token(t, ids[i])), VLP_OK);
    assert_string_equal(joined.data, expected);
    vlp_buf_free(&joined);
}

static const piece unigram[] = {{"<unk>", 0, 2}, {"<s>", 0, 3},      {"</s>", 0, 3},
                                {SP, -3, 1},     {"a", -2, 1},       {"b", -2.5f, 1},
                                {"ab", -4, 1},   {SP "a", -2.5f, 1}, {"ba", -9, 1},
                                {"<sep>", 0, 4}, {"é", -5, 1},       {NULL, 0, 0}};

static void test_text_sentencepiece__the_best_path_wins(void **state) {
    (void)state;
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1}, NULL);
    assert_string_equal(vlp_tokenizer_kind_name(t), "sentencepiece");
    check(t, false, "", "");
    check(t, false, "  \t", SP "|<unk>"); /* without rules a tab is a character */
    check(t, false, "ab", SP "a|b");      /* -2.5 - 2.5 against -3 - 4 */
    check(t, false, "bab", SP "|b|ab");   /* -4 against -2 - 2.5; "ba" is worse */
    check(t, false, "  a   b ", SP "a|" SP "|b");
    check(t, false, "axxé", SP "a|<unk>|é"); /* neighbours are one unknown */
    check(t, false, "a<sep>b", SP "a|<sep>|b");
    check(t, false, "<s>", SP "|<unk>"); /* control pieces are not in texts */
    check(t, false, "\xff", SP "|<unk>");
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__bpe_merges_by_score(void **state) {
    (void)state;
    static const piece pieces[] = {{"<unk>", 0, 2}, {"<s>", 0, 3},  {"</s>", 0, 3}, {SP, -9, 1},
                                   {"a", -8, 1},    {"b", -7, 1},   {"c", -6, 1},   {"bc", -1, 1},
                                   {"ab", -2, 1},   {"abc", -3, 1}, {NULL, 0, 0}};
    vlp_tokenizer *t = open_model(pieces, (shape){.type = 2, .keep_spaces = true}, NULL);
    check(t, false, "abc", SP "|abc"); /* of a and bc */
    check(t, false, "abcb", SP "|abc|b");
    check(t, false, "bcab", SP "|bc|ab");
    check(t, false, "abab", SP "|ab|ab");
    check(t, false, " a", SP "|" SP "|a");
    check(t, false, "axyb", SP "|a|<unk>|b");
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__bytes_for_what_is_unknown(void **state) {
    (void)state;
    static char names[256][8];
    static piece pieces[256 + 8] = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
    for (int i = 0; i < 256; i++) {
        snprintf(names[i], sizeof names[i], "<0x%02X>", (unsigned)i);
        pieces[3 + i] = (piece){names[i], 0, 6};
    }
    pieces[259] = (piece){SP, -1, 1};
    pieces[260] = (piece){"a", -2, 1};
    pieces[261] = (piece){NULL, 0, 0};
    for (int type = 1; type <= 2; type++) {
        vlp_tokenizer *t = open_model(pieces, (shape){.type = type, .fallback = true}, NULL);
        check(t, false, "aé", SP "|a|<0xC3>|<0xA9>");
        check(t, true, "a", type == 2 ? "<s>|" SP "|a" : SP "|a"); /* as LLaMA's */
        int32_t ids[32];
        int n = vlp_tokenizer_encode(t, " a é\n", 6, false, ids, 32);
        vlp_buf out = {0};
        assert_int_equal(vlp_tokenizer_decode(t, ids, n, true, &out), VLP_OK);
        assert_string_equal(out.data, "a é\n");
        vlp_buf_clear(&out);
        assert_int_equal(vlp_tokenizer_decode(t, ids, n - 2, true, &out), VLP_OK);
        assert_string_equal(out.data, "a \uFFFD");
        vlp_buf_free(&out);
        vlp_tokenizer_free(t);
    }
}

static vlp_tokenizer *reopened(const vlp_tokenizer *t) {
    text_folder folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(t, folder.path), VLP_OK);
    vlp_tokenizer *again;
    if (vlp_tokenizer_open(&again, folder.path) != VLP_OK) fail_msg("%s", vlp_error());
    text_folder_remove(&folder);
    return again;
}

static void test_text_sentencepiece__t5_has_sentinels(void **state) {
    (void)state;
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1},
                                  "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 2}");
    assert_int_equal(vlp_tokenizer_size(t), 13);
    assert_int_equal(vlp_tokenizer_find(t, "<extra_id_0>"), 12);
    check(t, true, "a <extra_id_0> b</s>", SP "a|<extra_id_0>|" SP "|b|</s>|</s>");
    vlp_tokenizer *again = reopened(t);
    check(again, true, "a <extra_id_1>", SP "a|<extra_id_1>|</s>");
    vlp_tokenizer_free(again);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__saving_keeps_the_class(void **state) {
    (void)state;
    static const piece endless[] = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {NULL, 0, 0}};
    static const struct {
        const piece *pieces;
        const char *config, *tokens; /* of "a" */
        int size;
    } rows[] = {
        {endless, "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 4}", "<unk>", 6},
        {unigram, "{\"tokenizer_class\": \"LlamaTokenizer\"}", "<s>|" SP "a", 11},
        {unigram, "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": false}", SP "a",
         11},
        {unigram, NULL, SP "a", 11},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_tokenizer *t = open_model(rows[i].pieces, (shape){.type = 1}, rows[i].config);
        vlp_tokenizer *again = reopened(t);
        assert_int_equal(vlp_tokenizer_size(t), rows[i].size);
        assert_int_equal(vlp_tokenizer_size(again), rows[i].size);
        check(t, true, "a", rows[i].tokens);
        check(again, true, "a", rows[i].tokens);
        vlp_tokenizer_free(again);
        vlp_tokenizer_free(t);
    }
}

static void test_text_sentencepiece__long_texts(void **state) {
    (void)state;
    enum { LEN = 20000 };
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1}, NULL);
    char *text = malloc(LEN);
    int32_t *ids = malloc(LEN * sizeof *ids);
    memset(text, 'a', LEN);
    assert_int_equal(vlp_tokenizer_encode(t, text, LEN, false, ids, LEN), LEN);
    int64_t before = vlp_alloc_count();
    assert_int_equal(vlp_tokenizer_encode(t, text, 1000, false, ids, LEN), 1000);
    assert_int_equal(vlp_alloc_count(), before); /* usual ones allocate nothing */
    vlp_alloc_fail_at(1);
    int n = vlp_tokenizer_encode(t, text, LEN, false, ids, LEN);
    vlp_alloc_fail_at(0);
    assert_true(n > 1000 && n < LEN); /* its beginning, then */
    free(text);
    free(ids);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__bad_models_are_named(void **state) {
    (void)state;
    static const piece none[] = {{"a", 0, 1}, {NULL, 0, 0}};
    static const piece twice[] = {{"<unk>", 0, 2}, {"a", 0, 1}, {"a", 0, 1}, {NULL, 0, 0}};
    static const struct {
        const piece *pieces;
        shape is;
        const char *config, *says;
    } rows[] = {
        {none, {.type = 1}, NULL, "spiece.model: no piece for what is unknown"},
        {twice, {.type = 1}, NULL, "spiece.model: piece 2: token \"a\" occurs twice"},
        {unigram, {.type = 3}, NULL, "model type 3"},
        {unigram, {.type = 1, .fallback = true}, NULL, "<0x00> is missing"},
        {unigram, {.type = 1, .rules = "abc", .rules_len = 3}, NULL, "rules are cut short"},
        {unigram, {.type = 1, .rules = "\4\4\0\0abcd", .rules_len = 8}, NULL, "rules are damaged"},
        {unigram,
         {.type = 1},
         "{\"tokenizer_class\": \"XLNetTokenizer\"}",
         "XLNetTokenizer is not"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_buf model = {0};
        put_model(&model, rows[i].pieces, rows[i].is);
        text_folder folder = text_folder_make();
        text_folder_write(&folder, "spiece.model", model.data, model.len);
        if (rows[i].config)
            text_folder_write(&folder, "tokenizer_config.json", rows[i].config,
                              strlen(rows[i].config));
        vlp_tokenizer *t;
        assert_int_not_equal(vlp_tokenizer_open(&t, folder.path), VLP_OK);
        assert_null(t);
        if (!strstr(vlp_error(), rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", vlp_error(), rows[i].says);
        text_folder_remove(&folder);
        vlp_buf_free(&model);
    }
}

static void test_text_sentencepiece__cut_files_are_refused(void **state) {
    (void)state;
    vlp_buf model = {0};
    put_model(&model, unigram, (shape){.type = 1});
    text_folder folder = text_folder_make();
    for (size_t len = 0; len < model.len; len += 3) {
        vlp_tokenizer *t;
        text_folder_write(&folder, "spiece.model", model.data, len);
        if (vlp_tokenizer_open(&t, folder.path) != VLP_OK) assert_true(strlen(vlp_error()) > 10);
        vlp_tokenizer_free(t); /* a cut between messages is a smaller model */
    }
    text_folder_remove(&folder);
    vlp_buf_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_sentencepiece__the_best_path_wins),
        cmocka_unit_test(test_text_sentencepiece__bpe_merges_by_score),
        cmocka_unit_test(test_text_sentencepiece__bytes_for_what_is_unknown),
        cmocka_unit_test(test_text_sentencepiece__t5_has_sentinels),
        cmocka_unit_test(test_text_sentencepiece__saving_keeps_the_class),
        cmocka_unit_test(test_text_sentencepiece__long_texts),
        cmocka_unit_test(test_text_sentencepiece__bad_models_are_named),
        cmocka_unit_test(test_text_sentencepiece__cut_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
