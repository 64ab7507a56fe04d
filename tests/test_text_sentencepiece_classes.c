#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/piece_model.h"

static const piece pieces[] = {
    {"<unk>", 0, 2},  {"<s>", 0, 3},      {"</s>", 0, 3},   {"<pad>", 0, 3}, {"[CLS]", 0, 3},
    {"[SEP]", 0, 3},  {"[MASK]", 0, 3},   {"<cls>", 0, 3},  {"<sep>", 0, 3}, {"<mask>", 0, 3},
    {"<eop>", 0, 3},  {"<eod>", 0, 3},    {SP, -3, 1},      {"a", -2, 1},    {"b", -2, 1},
    {"e", -2, 1},     {"t", -2, 1},       {"m", -2, 1},     {"A", -2, 1},    {"É", -2, 1},
    {"\"", -2, 1},    {"`", -2, 1},       {"1", -2, 1},     {"2", -2, 1},    {",", -2, 1},
    {"12,", -1, 1},   {SP "1", -2, 1},    {SP "2,", -1, 1}, {"-", -2, 1},    {"σ", -2, 1},
    {SP "ab", -1, 1}, {"i\u0307", -2, 1}, {NULL, 0, 0}};

static vlp_tokenizer *open_class(const char *config) {
    return open_model(pieces, (shape){.type = 1}, config);
}

/* Of "a" and "b"; the types as digits. */
static void check_pair(const vlp_tokenizer *t, const char *expected, const char *expected_types) {
    int32_t ids[16];
    uint8_t types[16];
    char digits[17] = "";
    vlp_buf joined = {0};
    int n = vlp_tokenizer_encode_pair(t, (vlp_text){"a", 1}, (vlp_text){"b", 1},
                                      VLP_TRUNCATE_LONGEST, ids, types, 16);
    for (int i = 0; i < n; i++) {
        assert_int_equal(
            vlp_buf_printf(&joined, "%s%s", i ? "|" : "", vlp_tokenizer_token(t, ids[i])), VLP_OK);
        digits[i] = (char)('0' + types[i]);
    }
    assert_string_equal(joined.data, expected);
    assert_string_equal(digits, expected_types);
    vlp_buf_free(&joined);
}

static void test_text_sentencepiece_classes__albert_folds(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"  A  b\n", SP "|a|" SP "|b"},
        {"É e\u0301 ™", SP "|e|" SP "|e|" SP "|t|m"}, /* NFKD; what it brings is lower-cased too */
        {"``a'' ```", SP "|\"|a|\"|" SP "|\"|`"},
        {"12,", SP "|1|2|,"}, /* the space that begins "12" was not in the piece */
        {"2,", SP "|2|,"},
        {"a12,b", SP "|a|1|2|,|b"},
        {"a [MASK] b", SP "|a|[MASK]|" SP "|b"},
        {"a<PAD>b", SP "|a|<pad>|" SP "|b"}, /* lower case comes first */
        {"ΣΣ İ", SP "|σ|σ|" SP "|<unk>"},    /* character by character: no final sigma */
        {"", ""},
    };
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"AlbertTokenizer\"}");
    for (size_t i = 0; i < VLP_COUNT(rows); i++) text_check(t, false, rows[i][0], rows[i][1]);
    text_check(t, true, "ab", "[CLS]|" SP "ab|[SEP]");
    check_pair(t, "[CLS]|" SP "|a|[SEP]|" SP "|b|[SEP]", "0000111");
    vlp_special_ids ids = vlp_tokenizer_special(t);
    assert_true(ids.mask == 6 && ids.pad == 3 && ids.unk == 0 && ids.cls == 4 && ids.eos == 5);
    int32_t literal[8];
    assert_int_equal(vlp_tokenizer_encode_literal(t, "É", 2, literal, 8), 2);
    assert_int_equal(literal[1], vlp_tokenizer_find(t, "É")); /* as the model alone reads it */
    text_check_saved(t);
    text_check_allocates_nothing(t);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__space_at_the_ends_goes(void **state) {
    (void)state;
    vlp_tokenizer *t = open_model(pieces, (shape){.type = 1, .keep_spaces = true},
                                  "{\"tokenizer_class\": \"AlbertTokenizer\"}");
    text_check(t, false, "  a  b ", SP "|a|" SP "|b"); /* though the model would keep it */
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__options_of_folding(void **state) {
    (void)state;
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"AlbertTokenizer\", \"keep_accents\": "
                                  "true, \"do_lower_case\": false, \"remove_space\": false}");
    text_check(t, false, "AÉ", SP "|A|É");
    text_check(t, false, "a\tb", SP "|a|<unk>|b"); /* a tab is a character, then */
    text_check(t, false, "a<PAD>", SP "|a|<unk>|A|<unk>");
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__xlnet_ends_with_cls(void **state) {
    (void)state;
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"XLNetTokenizer\"}");
    text_check(t, true, "AÉ ``12,", SP "|A|<unk>|" SP "|\"|1|2|,|<sep>|<cls>");
    text_check(t, false, "a <eop> b", SP "|a|<eop>|" SP "|b");
    check_pair(t, SP "|a|<sep>|" SP "|b|<sep>|<cls>", "0001112");
    text_check_saved(t);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__llama_begins_both_texts(void **state) {
    (void)state;
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"LlamaTokenizer\"}");
    check_pair(t, "<s>|" SP "|a|<s>|" SP "|b", "000111");
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__siglip_drops_punctuation(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"A, B!", SP "|a|" SP "|b|</s>"},
        {"a - b\t.", SP "|a|" SP "|b|</s>"},
        {"  ab", SP "|" SP "ab|</s>"}, /* this model has no rule that makes the mark a space */
        {"a" SP "b", SP "|a|" SP "|b|</s>"}, /* the mark of a space is a space */
        {"a</S> b", SP "|a|</s>|b|</s>"},    /* after a special token there is no space */
        {"a</s>", SP "|a|</s>"},             /* it ends once */
        {"!?", "</s>"},
        {"", "</s>"},
        {"İ", SP "|i\u0307|</s>"},
    };
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"SiglipTokenizer\"}");
    for (size_t i = 0; i < VLP_COUNT(rows); i++) text_check(t, true, rows[i][0], rows[i][1]);
    check_pair(t, SP "|a|</s>|" SP "|b|</s>", "000000");
    int32_t ids[5];
    vlp_tokenizer_encode_padded(t, "a", 1, 5, ids, NULL);
    assert_int_equal(ids[4], vlp_tokenizer_find(t, "</s>"));
    text_check_saved(t);
    text_check_allocates_nothing(t);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__long_texts(void **state) {
    (void)state;
    enum { LEN = 20000 };
    vlp_tokenizer *t = open_class("{\"tokenizer_class\": \"SiglipTokenizer\"}");
    char *text = malloc(LEN);
    int32_t *ids = malloc((LEN + 1) * sizeof *ids);
    memset(text, 'B', LEN);
    assert_int_equal(vlp_tokenizer_encode(t, text, LEN, false, ids, LEN + 1), LEN + 1);
    assert_int_equal(ids[LEN], vlp_tokenizer_find(t, "b"));
    for (int fail = 1; fail <= 2; fail++) { /* without memory its beginning */
        vlp_alloc_fail_at(fail);
        int n = vlp_tokenizer_encode(t, text, LEN, false, ids, LEN);
        vlp_alloc_fail_at(0);
        assert_true(n > 1000 && n < LEN);
    }
    free(text);
    free(ids);
    vlp_tokenizer_free(t);
}

static void test_text_sentencepiece_classes__bad_configurations_are_named(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{\"tokenizer_class\": 5}", "tokenizer_config.json: \"tokenizer_class\" must be a string"},
        {"{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": \"5\"}", "\"extra_ids\" must be"},
        {"{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": 1}", "\"add_bos_token\""},
        {"{\"tokenizer_class\": \"AlbertTokenizer\", \"do_lower_case\": \"yes\"}",
         "do_lower_case: true or false"},
        {"{\"tokenizer_class\": \"AlbertTokenizer\", \"keep_accents\": 0}", "keep_accents: true"},
        {"{\"tokenizer_class\": \"XLNetTokenizer\", \"remove_space\": 0}", "remove_space: true"},
        {"{\"tokenizer_class\": \"XLNetTokenizer\", \"cls_token\": \"<x>\"}",
         "no piece \"<x>\", which XLNetTokenizer puts around texts (cls_token)"},
    };
    vlp_buf model = {0};
    piece_put_model(&model, pieces, (shape){.type = 1});
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "spiece.model", model.data, model.len);
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder_put(&folder, "tokenizer_config.json", rows[i][0]);
        text_folder_refused(&folder, rows[i][1]);
    }
    text_folder_remove(&folder);
    vlp_buf_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_sentencepiece_classes__albert_folds),
        cmocka_unit_test(test_text_sentencepiece_classes__space_at_the_ends_goes),
        cmocka_unit_test(test_text_sentencepiece_classes__options_of_folding),
        cmocka_unit_test(test_text_sentencepiece_classes__xlnet_ends_with_cls),
        cmocka_unit_test(test_text_sentencepiece_classes__llama_begins_both_texts),
        cmocka_unit_test(test_text_sentencepiece_classes__siglip_drops_punctuation),
        cmocka_unit_test(test_text_sentencepiece_classes__long_texts),
        cmocka_unit_test(test_text_sentencepiece_classes__bad_configurations_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
