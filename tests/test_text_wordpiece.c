#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#define CASED "{\"do_lower_case\": false}"
#define SPECIALS "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static const char vocab[] =
    SPECIALS "un\n##aff\n##able\n##a\na\ncafe\ncaf\n##é\nCAFE\n,\n.\n[\n]\nmask\n世\n界\n世##\n"
             "οδος\n#\n##ffa\nοδοσ\ndon\n'\nt\nx\n##x\nhello\n?\n`\nσ\n";

/* The tokens of text joined by spaces equal `expected`. */
static void check(const vlp_tokenizer *tokenizer, bool literal, const char *text, size_t len,
                  const char *expected) {
    int32_t ids[256];
    int n = literal ? vlp_tokenizer_encode_literal(tokenizer, text, len, ids, 256)
                    : vlp_tokenizer_encode(tokenizer, text, len, false, ids, 256);
    vlp_buf joined = {0};
    assert_int_equal(vlp_buf_puts(&joined, ""), VLP_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            vlp_buf_printf(&joined, "%s%s", i ? " " : "", vlp_tokenizer_token(tokenizer, ids[i])),
            VLP_OK);
    assert_string_equal(joined.data, expected);
    vlp_buf_free(&joined);
}

typedef struct {
    const char *text, *tokens;
} row;

static void check_rows(const char *config, bool literal, const row *rows, size_t count) {
    vlp_tokenizer *tokenizer = text_open(vocab, config);
    for (size_t i = 0; i < count; i++)
        check(tokenizer, literal, rows[i].text, strlen(rows[i].text), rows[i].tokens);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__longest_piece_first(void **state) {
    (void)state;
    static const row rows[] = {
        {"", ""},
        {" \t\r\n\u3000", ""},
        {"unaffable", "un ##aff ##able"},
        {"unaffa", "un ##aff ##a"},
        {"unaffz", "[UNK]"}, /* one unknown piece makes the whole word unknown */
        {"zun un", "[UNK] un"},
        {"## #a", "# # # a"}, /* never the continuation mark */
        {"don't", "don ' t"},
        {"a,a.", "a , a ."},
        {"x\u200bx", "x ##x"}, /* zero width: dropped */
        {"\ufeffhello\ufffd", "hello"},
        {"a\u2028a", "a a"},
        {"a\u037ea", "a [UNK] a"}, /* a Greek question mark is ";" after NFD */
        {"a\u1fefa", "a ` a"},     /* ASCII punctuation only after NFD */
    };
    check_rows(NULL, false, rows, VLP_COUNT(rows));
}

static void test_text_wordpiece__accents_are_stripped(void **state) {
    (void)state;
    static const row lower[] = {{"Café CAFÉ cafe\u0301", "cafe cafe cafe"}, {"\u0301", ""}};
    static const row cased[] = {{"café", "caf ##é"}, {"CAFE", "CAFE"}, {"CAFÉ", "[UNK]"}};
    static const row lower_keep[] = {{"CAFÉ", "caf ##é"}};
    static const row cased_strip[] = {{"café Café", "cafe [UNK]"}};
    check_rows(NULL, false, lower, VLP_COUNT(lower));
    check_rows(CASED, false, cased, VLP_COUNT(cased));
    check_rows("{\"strip_accents\": false}", false, lower_keep, 1);
    check_rows("{\"do_lower_case\": false, \"strip_accents\": true}", false, cased_strip, 1);
}

static void test_text_wordpiece__ideographs_stand_alone(void **state) {
    (void)state;
    static const row split[] = {{"世界a世", "世 界 a 世"}, {"世a", "世 a"}};
    static const row whole[] = {{"世界", "[UNK]"}, {"世", "世"}};
    check_rows(NULL, false, split, VLP_COUNT(split));
    check_rows("{\"tokenize_chinese_chars\": false}", false, whole, VLP_COUNT(whole));
}

static void test_text_wordpiece__final_sigma_only_in_literal_text(void **state) {
    (void)state;
    static const row whole[] = {{"ΟΔΟΣ", "οδος"},       {"ΟΔΟΣ.", "οδος ."},
                                {"ΟΔΟ\u0301Σ", "οδος"}, {"ΟΔΟΣ a", "οδος a"},
                                {"ΟΔΟΣ'a", "οδοσ ' a"}, {"Σ", "σ"}};
    static const row each[] = {{"ΟΔΟΣ", "οδοσ"}};
    check_rows(NULL, true, whole, VLP_COUNT(whole));
    check_rows(NULL, false, each, VLP_COUNT(each));
}

static void test_text_wordpiece__special_tokens_in_the_text(void **state) {
    (void)state;
    static const row special[] = {{"a[MASK]x", "a [MASK] x"},
                                  {"[MASK][SEP] [PAD]", "[MASK] [SEP] [PAD]"},
                                  {"[mask]", "[ mask ]"},
                                  {"[MASK", "[ mask"}};
    static const row literal[] = {{"a[MASK]x", "a [ mask ] x"}};
    check_rows(NULL, false, special, VLP_COUNT(special));
    check_rows(NULL, true, literal, 1);
}

static void test_text_wordpiece__special_names_come_from_the_configuration(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer =
        text_open("<pad>\n<oov>\na\n<m>\n",
                  "{\"unk_token\": \"<oov>\", \"pad_token\": {\"content\": \"<pad>\"},"
                  "\"mask_token\": \"<m>\"}");
    vlp_special_ids s = vlp_tokenizer_special(tokenizer);
    assert_true(s.pad == 0 && s.unk == 1 && s.mask == 3 && s.cls == -1 && s.sep == -1);
    check(tokenizer, false, "b a<m>", 6, "<oov> a <m>");
    int32_t ids[4]; /* no [CLS] or [SEP] to put */
    assert_int_equal(vlp_tokenizer_encode(tokenizer, "a b", 3, true, ids, 4), 2);
    assert_int_equal(vlp_tokenizer_encode_pair(tokenizer, (vlp_text){"a", 1}, (vlp_text){"b", 1},
                                               VLP_TRUNCATE_LONGEST, ids, NULL, 4),
                     2);
    assert_true(ids[0] == 2 && ids[1] == 1);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__malformed_utf8_and_nul_are_dropped(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *tokens;
    } rows[] = {
        {"x\xff x", 4, "x x"},
        {"x\xe4\xb8x", 4, "x ##x"},
        {"x\0x", 3, "x ##x"},
        {"x\xed\xa0\x80x", 5, "x ##x"}, /* a surrogate */
        {"x\xc0\xafx", 4, "x ##x"},     /* overlong */
        {"x\xf4\x90\x80\x80x", 6, "x ##x"},
        {"\xe4\xb8\x96\xe4\xb8", 5, "世"},
    };
    vlp_tokenizer *tokenizer = text_open(vocab, NULL);
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        check(tokenizer, false, rows[i].text, rows[i].len, rows[i].tokens);
        check(tokenizer, true, rows[i].text, rows[i].len, rows[i].tokens);
    }
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__unicode_15_is_unassigned(void **state) {
    (void)state;
    static const row rows[] = {{"x\U0001FAE8x", "x ##x"}, {"x\U00031350x", "x ##x"}};
    check_rows(NULL, false, rows, VLP_COUNT(rows));
}

static void test_text_wordpiece__words_over_100_characters_are_unknown(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = text_open(vocab, NULL);
    char text[300];
    memset(text, 'x', sizeof text);
    int32_t ids[400];
    assert_int_equal(vlp_tokenizer_encode(tokenizer, text, 100, false, ids, 400), 100);
    for (size_t len = 101; len <= 300; len += 199) {
        assert_int_equal(vlp_tokenizer_encode(tokenizer, text, len, false, ids, 400), 1);
        assert_int_equal(ids[0], 1);
    }
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__truncation_keeps_sep(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = text_open(vocab, NULL);
    int32_t ids[8], all[8];
    int n = vlp_tokenizer_encode(tokenizer, "a unaffable a", 13, true, all, 8);
    assert_int_equal(n, 7);
    for (int max = 2; max <= 7; max++) {
        ids[max < 8 ? max : 7] = -7;
        assert_int_equal(vlp_tokenizer_encode(tokenizer, "a unaffable a", 13, true, ids, max), max);
        assert_memory_equal(ids, all, (size_t)(max - 1) * sizeof *ids);
        assert_int_equal(ids[max - 1], 3);
        assert_int_equal(ids[max], -7);
    }
    uint8_t mask[6];
    vlp_tokenizer_encode_padded(tokenizer, "a x", 3, 6, ids, mask);
    static const int32_t padded[] = {2, 9, 29, 3, 0, 0};
    static const uint8_t real[] = {1, 1, 1, 1, 0, 0};
    assert_memory_equal(ids, padded, sizeof padded);
    assert_memory_equal(mask, real, sizeof real);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__pairs(void **state) {
    (void)state;
    static const struct {
        const char *first, *second;
        vlp_truncate truncate;
        int max, n, n_first; /* n_first ids of type 0 */
    } rows[] = {
        {"a a", "x", VLP_TRUNCATE_LONGEST, 9, 6, 4},
        {"a a", "x", VLP_TRUNCATE_LONGEST, 5, 5, 3},
        {"a a a a", "x x x x", VLP_TRUNCATE_LONGEST, 8, 8, 5}, /* the second gives first */
        {"a a a a", "x x x x", VLP_TRUNCATE_LONGEST, 9, 9, 5},
        {"a", "x x x x", VLP_TRUNCATE_LONGEST, 6, 6, 3},
        {"a a a a", "x", VLP_TRUNCATE_LONGEST, 6, 6, 4},
        {"a a a a", "x x", VLP_TRUNCATE_FIRST, 6, 6, 3},
        {"a a a a", "x x x", VLP_TRUNCATE_FIRST, 6, -1, 0},
        {"a a", "x x x", VLP_TRUNCATE_SECOND, 6, 6, 4},
        {"", "", VLP_TRUNCATE_SECOND, 3, 3, 2},
        {"a", "x", VLP_TRUNCATE_LONGEST, 3, 3, 2},
    };
    vlp_tokenizer *tokenizer = text_open(vocab, NULL);
    int32_t a = vlp_tokenizer_find(tokenizer, "a"), x = vlp_tokenizer_find(tokenizer, "x");
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        int32_t ids[16];
        uint8_t types[16];
        ids[rows[i].max] = -7;
        vlp_text first = {rows[i].first, strlen(rows[i].first)};
        vlp_text second = {rows[i].second, strlen(rows[i].second)};
        int n = vlp_tokenizer_encode_pair(tokenizer, first, second, rows[i].truncate, ids, types,
                                          rows[i].max);
        assert_int_equal(n, rows[i].n);
        assert_int_equal(ids[rows[i].max], -7);
        if (n < 0) continue;
        assert_int_equal(ids[0], 2);
        assert_int_equal(ids[rows[i].n_first - 1], 3);
        assert_int_equal(ids[n - 1], 3);
        for (int j = 1; j < rows[i].n_first - 1; j++) assert_int_equal(ids[j], a);
        for (int j = rows[i].n_first; j < n - 1; j++) assert_int_equal(ids[j], x);
        for (int j = 0; j < n; j++) assert_int_equal(types[j], j >= rows[i].n_first);
    }
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__decoding_cleans_up(void **state) {
    (void)state;
    static const char words[] = SPECIALS "hello\n##s\n.\n,\n?\n!\n'\nn't\n's\n'm\n've\n're\nt\n";
    static const struct {
        int32_t ids[8];
        int n;
        bool skip;
        const char *text;
    } rows[] = {
        {{2, 5, 6, 8, 5, 7, 3, 0}, 8, true, "hellos, hello."},
        {{2, 5, 7, 3}, 4, false, "[CLS] hello. [SEP]"},
        {{6, 5}, 2, true, "##s hello"}, /* nothing before to join */
        {{2, 6, 5}, 3, true, "##s hello"},
        {{5, 11, 17}, 3, true, "hello't"},
        {{5, 12, 13, 14}, 4, true, "hellon't's'm"},
        {{5, 15, 16, 9, 10}, 5, true, "hello've're?!"},
        {{1, 4}, 2, true, ""},
    };
    vlp_tokenizer *tokenizer = text_open(words, NULL);
    vlp_buf out = {0};
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_buf_clear(&out);
        assert_int_equal(vlp_buf_puts(&out, "> ."), VLP_OK); /* what is there stays as it is */
        assert_int_equal(
            vlp_tokenizer_decode(tokenizer, rows[i].ids, rows[i].n, rows[i].skip, &out), VLP_OK);
        assert_memory_equal(out.data, "> .", 3);
        assert_string_equal(out.data + 3, rows[i].text);
    }
    int32_t beyond = vlp_tokenizer_size(tokenizer);
    assert_int_equal(vlp_tokenizer_decode(tokenizer, &beyond, 1, true, &out), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "18"));
    assert_true(vlp_tokenizer_continues_word(tokenizer, 6));
    assert_false(vlp_tokenizer_continues_word(tokenizer, 5));
    assert_false(vlp_tokenizer_continues_word(tokenizer, beyond));
    vlp_buf_free(&out);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__encoding_allocates_nothing(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = text_open(vocab, NULL);
    static const char text[] = "Unaffable Café 世界 [MASK] \u0958 ΟΔΟΣ";
    int32_t ids[64];
    int64_t before = vlp_alloc_count();
    vlp_tokenizer_encode(tokenizer, text, sizeof text - 1, true, ids, 64);
    vlp_tokenizer_encode_pair(tokenizer, (vlp_text){text, sizeof text - 1},
                              (vlp_text){text, sizeof text - 1}, VLP_TRUNCATE_LONGEST, ids, NULL,
                              20);
    assert_int_equal(vlp_alloc_count(), before);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__bad_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *vocab, *config;
        vlp_status status;
        const char *says;
    } rows[] = {
        {"", NULL, VLP_ERR_FORMAT, "vocab.txt: empty"},
        {"[UNK]\na\na\n", NULL, VLP_ERR_FORMAT, "vocab.txt:3: token \"a\" occurs twice"},
        {"a\n\nb\n", NULL, VLP_ERR_FORMAT, "vocab.txt:2: empty token"},
        {"a\nb\n", NULL, VLP_ERR_FORMAT, "vocab.txt: the unknown token [UNK]"},
        {"[UNK]\n\xff\n", NULL, VLP_ERR_FORMAT, "vocab.txt:2: not valid UTF-8"},
        {"[UNK]\n\xED\xA0\x80\n", NULL, VLP_ERR_FORMAT, "vocab.txt:2: not valid UTF-8"},
        {"[UNK]\na\rb\n", NULL, VLP_ERR_FORMAT, "vocab.txt:2: a carriage return"},
        {"\xEF\xBB\xBF[UNK]\n", NULL, VLP_ERR_FORMAT, "vocab.txt:1: a byte order mark"},
        {"[UNK]\n", "[]", VLP_ERR_FORMAT, "tokenizer_config.json: a JSON object"},
        {"[UNK]\n", "{", VLP_ERR_FORMAT, "tokenizer_config.json:1"},
        {"[UNK]\n", "{\"do_lower_case\": 1}", VLP_ERR_FORMAT, "json: do_lower_case: true or false"},
        {"[UNK]\n", "{\"strip_accents\": \"\"}", VLP_ERR_FORMAT, "json: strip_accents: true"},
        {"[UNK]\n", "{\"unk_token\": 7}", VLP_ERR_FORMAT, "json: unk_token: the text"},
        {"[UNK]\n", "{\"unk_token\": \"?\"}", VLP_ERR_FORMAT, "the unknown token ?"},
        {"[UNK]\n", "{\"max_input_chars_per_word\": 0}", VLP_ERR_FORMAT, "json: max_input_chars"},
        {NULL, NULL, VLP_ERR_NOT_FOUND, "vocab.txt is missing"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder folder = text_folder_make();
        if (rows[i].vocab)
            text_folder_write(&folder, "vocab.txt", rows[i].vocab, strlen(rows[i].vocab));
        if (rows[i].config)
            text_folder_write(&folder, "tokenizer_config.json", rows[i].config,
                              strlen(rows[i].config));
        vlp_tokenizer *tokenizer;
        assert_int_equal(vlp_tokenizer_open(&tokenizer, folder.path), rows[i].status);
        assert_null(tokenizer);
        if (!strstr(vlp_error(), rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", vlp_error(), rows[i].says);
        text_folder_remove(&folder);
        assert_int_equal(vlp_tokenizer_open(&tokenizer, folder.path), VLP_ERR_NOT_FOUND);
    }
}

static void test_text_wordpiece__a_vocabulary_with_nul_is_refused(void **state) {
    (void)state;
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "vocab.txt", "[UNK]\na\0b\n", 10);
    vlp_tokenizer *tokenizer;
    assert_int_equal(vlp_tokenizer_open(&tokenizer, folder.path), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "vocab.txt:2: a token with a NUL byte"));
    text_folder_remove(&folder);
}

static void test_text_wordpiece__without_continuations_words_are_whole(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = text_open("[UNK]\na\nb\n", NULL);
    check(tokenizer, false, "a ab b", 6, "a [UNK] b");
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece__saved_opens_again(void **state) {
    (void)state;
    static const char crlf[] = "[UNK]\r\n[PAD]\r\ncafe\r\n##é\r\ncaf";
    vlp_tokenizer *first = text_open(crlf, "{\"strip_accents\": false, \"do_lower_case\": true,"
                                           "\"max_input_chars_per_word\": 4}");
    text_folder folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(first, folder.path), VLP_OK);
    char file[512];
    snprintf(file, sizeof file, "%s/vocab.txt", folder.path);
    const char *const paths[] = {folder.path, file};
    for (size_t p = 0; p < 2; p++) {
        vlp_tokenizer *second;
        assert_int_equal(vlp_tokenizer_open(&second, paths[p]), VLP_OK);
        assert_int_equal(vlp_tokenizer_size(second), 5);
        for (int32_t id = 0; id < 5; id++) {
            const char *token = vlp_tokenizer_token(first, id);
            assert_string_equal(token, vlp_tokenizer_token(second, id));
            assert_int_equal(vlp_tokenizer_find(second, token), id);
        }
        assert_null(vlp_tokenizer_token(second, 5));
        assert_null(vlp_tokenizer_token(second, -1));
        assert_int_equal(vlp_tokenizer_find(second, "ca"), -1);
        check(second, false, "CAFÉ cafés", strlen("CAFÉ cafés"), "caf ##é [UNK]");
        vlp_tokenizer_free(second);
    }
    text_folder_remove(&folder);
    vlp_tokenizer_free(first);
}

static void test_text_wordpiece__every_failed_allocation_is_reported(void **state) {
    (void)state;
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "vocab.txt", vocab, strlen(vocab));
    text_folder_write(&folder, "tokenizer_config.json", CASED, strlen(CASED));
    int64_t failures = 0;
    for (vlp_status status = VLP_ERR_MEMORY; status != VLP_OK; failures++) {
        vlp_tokenizer *tokenizer;
        vlp_alloc_fail_at(failures + 1);
        status = vlp_tokenizer_open(&tokenizer, folder.path);
        if (status == VLP_OK) status = vlp_tokenizer_save(tokenizer, folder.path);
        vlp_alloc_fail_at(0);
        if (status != VLP_OK && status != VLP_ERR_MEMORY) fail_msg("%s", vlp_error());
        vlp_tokenizer_free(tokenizer);
    }
    assert_true(failures > 5);
    text_folder_remove(&folder);
}

/* U+1D165, a musical stem, combines but is no accent: it stays where it is. */
static void test_text_wordpiece__marks_that_stay_keep_their_place(void **state) {
    (void)state;
    vlp_tokenizer *t = text_open("[UNK]\nx\U0001D165e\n", NULL);
    text_check(t, false, "x\U0001D165\u00E9", "x\U0001D165e");
    vlp_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_wordpiece__longest_piece_first),
        cmocka_unit_test(test_text_wordpiece__accents_are_stripped),
        cmocka_unit_test(test_text_wordpiece__ideographs_stand_alone),
        cmocka_unit_test(test_text_wordpiece__final_sigma_only_in_literal_text),
        cmocka_unit_test(test_text_wordpiece__special_tokens_in_the_text),
        cmocka_unit_test(test_text_wordpiece__special_names_come_from_the_configuration),
        cmocka_unit_test(test_text_wordpiece__malformed_utf8_and_nul_are_dropped),
        cmocka_unit_test(test_text_wordpiece__unicode_15_is_unassigned),
        cmocka_unit_test(test_text_wordpiece__words_over_100_characters_are_unknown),
        cmocka_unit_test(test_text_wordpiece__truncation_keeps_sep),
        cmocka_unit_test(test_text_wordpiece__pairs),
        cmocka_unit_test(test_text_wordpiece__decoding_cleans_up),
        cmocka_unit_test(test_text_wordpiece__encoding_allocates_nothing),
        cmocka_unit_test(test_text_wordpiece__bad_files_are_named),
        cmocka_unit_test(test_text_wordpiece__a_vocabulary_with_nul_is_refused),
        cmocka_unit_test(test_text_wordpiece__without_continuations_words_are_whole),
        cmocka_unit_test(test_text_wordpiece__saved_opens_again),
        cmocka_unit_test(test_text_wordpiece__every_failed_allocation_is_reported),
        cmocka_unit_test(test_text_wordpiece__marks_that_stay_keep_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
