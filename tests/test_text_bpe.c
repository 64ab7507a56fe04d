#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#include "core/json.h"
#include "text/bpe.h"
#include "text/unicode.h"

/* ---- small vocabularies ---- */

/* vocab.json of the 256 bytes (with "</w>" also, for CLIP) and then `more`, ids in this order. */
static void put_vocabulary(const text_folder *folder, bool clip, const char *const *more) {
    vlp_json *tokens = vlp_json_new_object();
    int64_t id = 0;
    for (int end = 0; end <= clip; end++)
        for (int byte = 0; byte < 256; byte++) {
            char token[16];
            int n = vlp_utf8_put(vlp_byte_char((uint8_t)byte), token);
            snprintf(token + n, sizeof token - (size_t)n, "%s", end ? "</w>" : "");
            vlp_json_set_int(tokens, token, id++);
        }
    for (; *more; more++) vlp_json_set_int(tokens, *more, id++);
    vlp_buf text = {0};
    assert_int_equal(vlp_json_dump(tokens, 0, &text), VLP_OK);
    text_folder_write(folder, "vocab.json", text.data, text.len);
    vlp_buf_free(&text);
    vlp_json_free(tokens);
}

#define MERGES "#version: 0.2\nl o\nlo w\ne r\nĠ low\nĠ lo\na a\n"
static const char *const roberta[] = {"lo",  "low",   "er",   "Ġlow",  "Ġlo",    "aa",
                                      "<s>", "<pad>", "</s>", "<unk>", "<mask>", NULL};

static text_folder roberta_folder(const char *config) {
    text_folder folder = text_folder_make();
    put_vocabulary(&folder, false, roberta);
    text_folder_put(&folder, "merges.txt", MERGES);
    if (config) text_folder_put(&folder, "tokenizer_config.json", config);
    return folder;
}

static vlp_tokenizer *open_roberta(const char *config) {
    text_folder folder = roberta_folder(config);
    vlp_tokenizer *tokenizer = text_folder_open(&folder);
    text_folder_remove(&folder);
    return tokenizer;
}

static void test_text_bpe__lowest_rank_first(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta(NULL);
    assert_string_equal(vlp_tokenizer_kind_name(t), "byte_bpe");
    text_check(t, false, "lower low slow", "low|er|Ġlow|Ġ|s|low");
    text_check(t, false, " lo", "Ġlo"); /* "l o" comes before "Ġ lo" */
    text_check(t, false, "aaaaa", "aa|aa|a");
    text_check(t, false, "é\xff", "Ã|©|ÿ"); /* every byte is kept */
    text_check_len(t, false, "\0a", 2, "Ā|a");
    vlp_tokenizer_free(t);
}

static void test_text_bpe__long_words_are_whole(void **state) {
    (void)state;
    enum { LEN = 30001 };
    vlp_tokenizer *t = open_roberta(NULL);
    char *text = malloc(LEN);
    int32_t *ids = malloc(LEN * sizeof *ids), aa = vlp_tokenizer_find(t, "aa");
    memset(text, 'a', LEN);
    assert_int_equal(vlp_tokenizer_encode(t, text, LEN, false, ids, LEN), LEN / 2 + 1);
    for (int i = 0; i < LEN / 2; i++) assert_int_equal(ids[i], aa);
    vlp_alloc_fail_at(1); /* in parts, then */
    int n = vlp_tokenizer_encode(t, text, LEN, false, ids, LEN);
    vlp_alloc_fail_at(0);
    assert_int_equal(n, LEN / 2 + 1);
    free(text);
    free(ids);
    vlp_tokenizer_free(t);
}

static void test_text_bpe__roberta_surrounds_and_strips(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta(NULL);
    text_check(t, true, "low", "<s>|low|</s>");
    text_check(t, false, "a <mask> a", "a|<mask>|Ġ|a"); /* <mask> takes the space before it */
    text_check(t, false, "a <pad> a", "a|Ġ|<pad>|Ġ|a"); /* the others do not */
    int32_t ids[16];
    uint8_t types[16];
    int n = vlp_tokenizer_encode_pair(t, (vlp_text){"low", 3}, (vlp_text){"er", 2},
                                      VLP_TRUNCATE_LONGEST, ids, types, 16);
    int32_t cls = vlp_tokenizer_special(t).cls, sep = vlp_tokenizer_special(t).sep;
    assert_int_equal(n, 6);
    assert_true(ids[0] == cls && ids[2] == sep && ids[3] == sep && ids[5] == sep);
    for (int i = 0; i < n; i++) assert_int_equal(types[i], 0);
    assert_true(vlp_tokenizer_continues_word(t, vlp_tokenizer_find(t, "er")));
    assert_false(vlp_tokenizer_continues_word(t, vlp_tokenizer_find(t, "Ġlow")));
    assert_false(vlp_tokenizer_continues_word(t, vlp_tokenizer_find(t, "<mask>")));
    vlp_tokenizer_free(t);
}

static void test_text_bpe__a_space_is_put_in_front(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta("{\"add_prefix_space\": true}");
    text_check(t, false, "low low", "Ġlow|Ġlow");
    text_check(t, false, " low", "Ġlow");
    text_check(t, false, "", "");
    text_check(t, false, "<s>low", "Ġ|<s>|low");
    text_check(t, false, "<mask>low", "<mask>|low"); /* which swallows it */
    vlp_tokenizer_free(t);
}

static void test_text_bpe__decoding_repairs_utf8(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta(NULL);
    static const char text[] = "low  é🐶\nx<mask>x";
    int32_t ids[64];
    int n = vlp_tokenizer_encode(t, text, strlen(text), true, ids, 64);
    vlp_buf out = {0};
    assert_int_equal(vlp_tokenizer_decode(t, ids, n, false, &out), VLP_OK);
    assert_string_equal(out.data, "<s>low  é🐶\nx<mask>x</s>");
    vlp_buf_clear(&out);
    assert_int_equal(vlp_tokenizer_decode(t, ids, n, true, &out), VLP_OK);
    assert_string_equal(out.data, "low  é🐶\nxx");
    vlp_buf_clear(&out);
    const int32_t surrogate[] = {0xED, 0xA0, 0x80, 'x'}; /* no beginning of a character */
    assert_int_equal(vlp_tokenizer_decode(t, surrogate, 4, true, &out), VLP_OK);
    assert_string_equal(out.data, "\uFFFD\uFFFD\uFFFDx");
    vlp_buf_clear(&out);
    const int32_t cut[] = {0xF0, 0x9F, 'x', 0xE2, 0x28, 0xFF}; /* ids of bytes are bytes here */
    assert_int_equal(vlp_tokenizer_decode(t, cut, 6, true, &out), VLP_OK);
    assert_string_equal(out.data, "\uFFFDx\uFFFD(\uFFFD");
    vlp_buf_clear(&out);
    assert_int_equal(vlp_tokenizer_decode(t, cut, 0, true, &out), VLP_OK);
    assert_string_equal(out.data, "");
    vlp_buf_free(&out);
    vlp_tokenizer_free(t);
}

static void test_text_bpe__saved_opens_again(void **state) {
    (void)state;
    vlp_tokenizer *t =
        open_roberta("{\"add_prefix_space\": true, \"mask_token\": {\"content\": \"<mask>\", "
                     "\"lstrip\": true}}");
    text_check_saved(t);
    vlp_tokenizer_free(t);
}

static void test_text_bpe__added_tokens_follow(void **state) {
    (void)state;
    text_folder folder = roberta_folder(NULL);
    text_folder_put(&folder, "added_tokens.json", "{\"[ENC]\": 268, \"[DEC]\": 267}");
    vlp_tokenizer *t = text_folder_open(&folder);
    text_folder_remove(&folder);
    assert_int_equal(vlp_tokenizer_find(t, "[ENC]"), 268);
    text_check(t, false, "low[DEC]low", "low|[DEC]|low");
    folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(t, folder.path), VLP_OK);
    vlp_tokenizer *again = text_folder_open(&folder);
    text_check(again, false, "low[DEC]low", "low|[DEC]|low");
    text_folder_remove(&folder);
    vlp_tokenizer_free(t);
    vlp_tokenizer_free(again);
}

static void test_text_bpe__the_longest_added_token_wins(void **state) {
    (void)state;
    text_folder folder = roberta_folder(NULL);
    text_folder_put(&folder, "added_tokens.json", "{\"[EN\": 267, \"[ENC]\": 268}");
    vlp_tokenizer *t = text_folder_open(&folder);
    text_folder_remove(&folder);
    text_check(t, false, "low[ENC]low[ENa", "low|[ENC]|low|[EN|a");
    vlp_tokenizer_free(t);
}

static void test_text_bpe__encoding_allocates_nothing(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta(NULL);
    text_check_allocates_nothing(t);
    vlp_tokenizer_free(t);
}

static void test_text_bpe__bad_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *vocab, *merges, *config, *added;
        const char *says;
    } rows[] = {
        {"[]", "", NULL, NULL, "vocab.json: an object"},
        {"{}", "", NULL, NULL, "vocab.json: no tokens"},
        {"{", "", NULL, NULL, "vocab.json:1"},
        {"{\"a\": 0, \"b\": 0}", "", NULL, NULL, "both have id 0"},
        {"{\"a\": 0, \"b\": 2}", "", NULL, NULL, "\"b\": its id is not a number"},
        {"{\"a\": 0, \"b\": \"x\"}", "", NULL, NULL, "\"b\": its id is not"},
        {"{\"a\": 0, \"\": 1}", "", NULL, NULL, "id 1: empty token"},
        {"{\"a\": 0}", "#version: 0.2\na b\n", NULL, NULL,
         "merges.txt:2: \"a b\": the second part is not"},
        {"{\"a\": 0}", "b a", NULL, NULL, "merges.txt:1: \"b a\": the first part"},
        {"{\"a\": 0}", "a a\n", NULL, NULL, "the joined token is not"},
        {"{\"a\": 0}", "a\n", NULL, NULL, "merges.txt:1: \"a\" is not two tokens"},
        {"{\"a\": 0}", "a a a\n", NULL, NULL, "is not two tokens"},
        {"{\"a\": 0}", "", "{\"add_prefix_space\": 1}", NULL,
         "json: add_prefix_space: true or false"},
        {"{\"a\": 0}", "", NULL, "{\"b\": 2}", "added_tokens.json: no token has id 1"},
        {"{\"a\": 0}", NULL, NULL, NULL, "vocab.json with merges.txt"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder folder = text_folder_make();
        text_folder_put(&folder, "vocab.json", rows[i].vocab);
        if (rows[i].merges) text_folder_put(&folder, "merges.txt", rows[i].merges);
        if (rows[i].config) text_folder_put(&folder, "tokenizer_config.json", rows[i].config);
        if (rows[i].added) text_folder_put(&folder, "added_tokens.json", rows[i].added);
        text_folder_refused(&folder, rows[i].says);
        text_folder_remove(&folder);
    }
}

static void test_text_bpe__every_failed_allocation_is_reported(void **state) {
    (void)state;
    text_folder folder = roberta_folder("{\"add_prefix_space\": true}"), saved = text_folder_make();
    int64_t failures = 0;
    for (vlp_status status = VLP_ERR_MEMORY; status != VLP_OK; failures += 7) {
        vlp_tokenizer *tokenizer;
        vlp_alloc_fail_at(failures + 1);
        status = vlp_tokenizer_open(&tokenizer, folder.path);
        if (status == VLP_OK) status = vlp_tokenizer_save(tokenizer, saved.path);
        vlp_alloc_fail_at(0);
        if (status != VLP_OK && status != VLP_ERR_MEMORY) fail_msg("%s", vlp_error());
        vlp_tokenizer_free(tokenizer);
    }
    assert_true(failures > 40);
    text_folder_remove(&folder);
    text_folder_remove(&saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_bpe__lowest_rank_first),
        cmocka_unit_test(test_text_bpe__long_words_are_whole),
        cmocka_unit_test(test_text_bpe__roberta_surrounds_and_strips),
        cmocka_unit_test(test_text_bpe__a_space_is_put_in_front),
        cmocka_unit_test(test_text_bpe__decoding_repairs_utf8),
        cmocka_unit_test(test_text_bpe__saved_opens_again),
        cmocka_unit_test(test_text_bpe__added_tokens_follow),
        cmocka_unit_test(test_text_bpe__the_longest_added_token_wins),
        cmocka_unit_test(test_text_bpe__encoding_allocates_nothing),
        cmocka_unit_test(test_text_bpe__bad_files_are_named),
        cmocka_unit_test(test_text_bpe__every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
