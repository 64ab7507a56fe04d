#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/piece_model.h"

static const piece unigram[] = {{"<unk>", 0, 2}, {"<s>", 0, 3},      {"</s>", 0, 3},
                                {SP, -3, 1},     {"a", -2, 1},       {"b", -2.5f, 1},
                                {"ab", -4, 1},   {SP "a", -2.5f, 1}, {"ba", -9, 1},
                                {"<sep>", 0, 4}, {"é", -5, 1},       {NULL, 0, 0}};

static void test_text_sentencepiece__the_best_path_wins(void **state) {
    (void)state;
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1}, NULL);
    assert_string_equal(vlp_tokenizer_kind_name(t), "sentencepiece");
    text_check(t, false, "", "");
    text_check(t, false, "  \t", SP "|<unk>"); /* without rules a tab is a character */
    text_check(t, false, "ab", SP "a|b");      /* -2.5 - 2.5 against -3 - 4 */
    text_check(t, false, "bab", SP "|b|ab");   /* -4 against -2 - 2.5; "ba" is worse */
    text_check(t, false, "  a   b ", SP "a|" SP "|b");
    text_check(t, false, "axxé", SP "a|<unk>|é"); /* neighbours are one unknown */
    text_check(t, false, "a<sep>b", SP "a|<sep>|b");
    text_check(t, false, "<s>", SP "|<unk>"); /* control pieces are not in texts */
    text_check(t, false, "\xff", SP "|<unk>");
    vlp_tokenizer_free(t);
}

/* As sentencepiece 0.1.97 decides: an unknown character costs 10 more than the worst piece, a
 * user-defined piece has -0.1 where all scores are negative, and of equals the longer one wins. */
static void test_text_sentencepiece__close_decisions(void **state) {
    (void)state;
#define BEGIN                                                                                      \
    {"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}, {                                              \
        SP, -3, 1                                                                                  \
    }
    static const piece unknown[] = {
        BEGIN, {"xa", -20, 1}, {"b", -9.5f, 1}, {"ab", -0.1f, 1}, {NULL, 0, 0}};
    static const piece near[] = {
        BEGIN, {"a", -0.06f, 1}, {"b", -0.06f, 1}, {"ab", 0, 4}, {NULL, 0, 0}};
    static const piece beaten[] = {
        BEGIN, {"a", -0.01f, 1}, {"b", -0.01f, 1}, {"ab", 0, 4}, {NULL, 0, 0}};
    static const piece positive[] = {
        BEGIN, {"a", 0.4f, 1}, {"b", 0.2f, 1}, {"ab", 0, 4}, {NULL, 0, 0}};
    static const piece equal[] = {BEGIN, {"a", -1, 1}, {"b", -1, 1}, {"ab", -2, 1}, {NULL, 0, 0}};
    static const struct {
        const piece *pieces;
        const char *text, *tokens;
    } rows[] = {
        {unknown, "xab", SP "|xa|b"}, {near, "ab", SP "|ab"},  {beaten, "ab", SP "|a|b"},
        {positive, "ab", SP "|ab"},   {equal, "ab", SP "|ab"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_tokenizer *t = open_model(rows[i].pieces, (shape){.type = 1}, NULL);
        text_check(t, false, rows[i].text, rows[i].tokens);
        vlp_tokenizer_free(t);
    }
}

static void test_text_sentencepiece__control_pieces_say_nothing(void **state) {
    (void)state;
    static const int32_t ids[] = {1, 7, 2, 5}; /* <s> U+2581a </s> b */
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1}, NULL);
    vlp_buf out = {0};
    assert_int_equal(vlp_tokenizer_decode(t, ids, 4, false, &out), VLP_OK);
    assert_string_equal(out.data, "ab");
    vlp_buf_free(&out);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__bpe_merges_by_score(void **state) {
    (void)state;
    static const piece pieces[] = {{"<unk>", 0, 2}, {"<s>", 0, 3},  {"</s>", 0, 3}, {SP, -9, 1},
                                   {"a", -8, 1},    {"b", -7, 1},   {"c", -6, 1},   {"bc", -1, 1},
                                   {"ab", -2, 1},   {"abc", -3, 1}, {NULL, 0, 0}};
    vlp_tokenizer *t = open_model(pieces, (shape){.type = 2, .keep_spaces = true}, NULL);
    text_check(t, false, "abc", SP "|abc"); /* of a and bc */
    text_check(t, false, "abcb", SP "|abc|b");
    text_check(t, false, "bcab", SP "|bc|ab");
    text_check(t, false, "abab", SP "|ab|ab");
    text_check(t, false, " a", SP "|" SP "|a");
    text_check(t, false, "axyb", SP "|a|<unk>|b");
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece__equal_scores_merge_from_the_left(void **state) {
    (void)state;
    static const piece pieces[] = {BEGIN,         {"a", -8, 1},  {"b", -7, 1}, {"c", -6, 1},
                                   {"ab", -1, 1}, {"ca", -1, 1}, {NULL, 0, 0}};
    vlp_tokenizer *t = open_model(pieces, (shape){.type = 2}, NULL);
    text_check(t, false, "cab", SP "|ca|b");
    text_check(t, false, "abca", SP "|ab|ca");
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
        text_check(t, false, "aé", SP "|a|<0xC3>|<0xA9>");
        text_check(t, true, "a", type == 2 ? "<s>|" SP "|a" : SP "|a"); /* as LLaMA's */
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

static void test_text_sentencepiece__t5_has_sentinels(void **state) {
    (void)state;
    vlp_tokenizer *t = open_model(unigram, (shape){.type = 1},
                                  "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 2}");
    assert_int_equal(vlp_tokenizer_size(t), 13);
    assert_int_equal(vlp_tokenizer_find(t, "<extra_id_0>"), 12);
    text_check(t, true, "a <extra_id_0> b</s>", SP "a|<extra_id_0>|" SP "|b|</s>");
    vlp_tokenizer *again = text_reopened(t);
    text_check(again, true, "a <extra_id_1>", SP "a|<extra_id_1>|</s>");
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
        vlp_tokenizer *again = text_reopened(t);
        assert_int_equal(vlp_tokenizer_size(t), rows[i].size);
        assert_int_equal(vlp_tokenizer_size(again), rows[i].size);
        text_check(t, true, "a", rows[i].tokens);
        text_check(again, true, "a", rows[i].tokens);
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
         "{\"tokenizer_class\": \"BertTokenizer\"}",
         "tokenizer_config.json: tokenizer_class BertTokenizer is not"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_buf model = {0};
        piece_put_model(&model, rows[i].pieces, rows[i].is);
        text_folder folder = text_folder_make();
        text_folder_write(&folder, "spiece.model", model.data, model.len);
        if (rows[i].config) text_folder_put(&folder, "tokenizer_config.json", rows[i].config);
        text_folder_refused(&folder, rows[i].says);
        text_folder_remove(&folder);
        vlp_buf_free(&model);
    }
}

static void test_text_sentencepiece__cut_files_are_refused(void **state) {
    (void)state;
    vlp_buf model = {0};
    piece_put_model(&model, unigram, (shape){.type = 1});
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
        cmocka_unit_test(test_text_sentencepiece__close_decisions),
        cmocka_unit_test(test_text_sentencepiece__control_pieces_say_nothing),
        cmocka_unit_test(test_text_sentencepiece__bpe_merges_by_score),
        cmocka_unit_test(test_text_sentencepiece__equal_scores_merge_from_the_left),
        cmocka_unit_test(test_text_sentencepiece__bytes_for_what_is_unknown),
        cmocka_unit_test(test_text_sentencepiece__t5_has_sentinels),
        cmocka_unit_test(test_text_sentencepiece__saving_keeps_the_class),
        cmocka_unit_test(test_text_sentencepiece__long_texts),
        cmocka_unit_test(test_text_sentencepiece__bad_models_are_named),
        cmocka_unit_test(test_text_sentencepiece__cut_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
