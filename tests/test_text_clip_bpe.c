#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#include "text/clip_clean.h"
#include "text/pretoken.h"
#include "text/unicode.h"

/* ---- the first cut ---- */

typedef bool cut_fn(const char *text, size_t len, size_t *at, size_t *start, size_t *end);

static void check_cut(cut_fn *cut, const char *text, const char *expected) {
    vlp_buf pieces = {0};
    assert_int_equal(vlp_buf_puts(&pieces, ""), VLP_OK);
    for (size_t at = 0, start, end; cut(text, strlen(text), &at, &start, &end);) {
        assert_true(end > start && at == end);
        assert_int_equal(vlp_buf_printf(&pieces, "%s%.*s", pieces.len ? "|" : "",
                                        (int)(end - start), text + start),
                         VLP_OK);
    }
    assert_string_equal(pieces.data, expected);
    vlp_buf_free(&pieces);
}

static void test_text_clip_bpe__gpt2_pieces(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"a cat, 12 dogs", "a| cat|,| 12| dogs"},
        {"don't WON'T they've", "don|'t| WON|'|T| they|'ve"},
        {"  two  gaps ", " | two| | gaps| "},
        {"tab\tnext\t\tx", "tab|\t|next|\t|\t|x"},
        {"x²½ ٣a", "x|²½| ٣|a"},
        {" 's", " '|s"},
        {"a\u3000b", "a|\u3000|b"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cut(vlp_pretoken_gpt2, rows[i][0], rows[i][1]);
}

static void test_text_clip_bpe__pieces(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {" ", ""},
        {"a cat, 12 dogs!?", "a|cat|,|1|2|dogs|!?"},
        {"don't they've 'ſx", "don|'t|they|'ve|'ſ|x"},
        {"été🐶🐶x", "été|🐶🐶|x"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cut(vlp_pretoken_clip, rows[i][0], rows[i][1]);
}

/* ---- cleaning ---- */

static void check_cleaned(vlp_clip_clean how, const char *text, size_t len, const char *expected) {
    static char out[VLP_CLIP_TEXT_MAX + 1];
    out[vlp_clip_cleaned(how, text, len, out)] = '\0';
    assert_string_equal(out, expected);
}

static void test_text_clip_bpe__cleans_as_openai(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"  A\t\n Red   CAR ", "a red car"},
        {"Tom &amp;amp; Jerry&eacute;", "tom & jerryé"},
        {"&lt;b&gt; &#65;&#x42;&#67 &nGt;", "<b> abc ≫⃒"},
        {"<b> &amp;amp; &amp;amp;amp;",
         "<b> & &amp;"}, /* twice; a text with tags is not repaired */
        {"&notit; &ampx &;&#; &unknown; &#0;", "¬it; &x &;&#; &unknown; \uFFFD"},
        {"&#128;", "€"},
        {"ΟΔΟΣ ΣΑΣ", "οδος σας"},
        {"\xC4\xB0", "i\xCC\x87"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cleaned(VLP_CLIP_CLEAN_OPENAI, rows[i][0], strlen(rows[i][0]), rows[i][1]);
    check_cleaned(VLP_CLIP_CLEAN_OPENAI, "a\0b\xff\xe2\x82 c", 9, "ab c");
}

/* ftfy's part of it. */
static void test_text_clip_bpe__repairs_text(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"“Smart” ‘quotes’", "\"smart\" 'quotes'"},
        {"ﬁn ŉ ǆ", "fin 'n dž"},
        {"ＦＵＬＬ，　ｶﾞ", "full, ガ"},
        {"e\u0301", "é"},
        {"a\ab\x1b[31mc\x7f\uFEFF", "abc"},
        {"schÃ¶n Ã©tÃ© â€œxâ€\xC2\x9D", "schön été \"x\""},
        {"ПриветÂ© Ã©Ã¨", "привет© éè"},
        {"&NotAName; &eacute; <b>&amp;", "&notaname; é <b>&"},
        {"x\r\ny\rz\u2028w", "x y z w"},
        /* nothing wrong with these */
        {"Über 5 £ für ¼ café™", "über 5 £ für ¼ café™"},
        {"ÅRHUS À LA CARTE Ñ", "århus à la carte ñ"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cleaned(VLP_CLIP_CLEAN_OPENAI, rows[i][0], strlen(rows[i][0]), rows[i][1]);
}

static void test_text_clip_bpe__fast_composes_and_keeps_entities(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"Cafe\u0301  &amp;", "café &amp;"}, {" a\n", " a "},
        {"a\u0327\u0301b", "\u00e1\u0327b"}, {"a\u0301\u0323", "ạ\u0301"},
        {"\u1112\u1161\u11ab", "한"},        {"\u212b", "å"}};
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cleaned(VLP_CLIP_CLEAN_FAST, rows[i][0], strlen(rows[i][0]), rows[i][1]);
}

static void test_text_clip_bpe__long_texts_are_cut_between_characters(void **state) {
    (void)state;
    enum { CHARS = VLP_CLIP_TEXT_MAX };
    static char text[2 * CHARS], out[VLP_CLIP_TEXT_MAX];
    for (size_t i = 0; i < CHARS; i++) memcpy(text + 2 * i, "\xC3\x89", 2);
    for (int how = VLP_CLIP_CLEAN_OPENAI; how <= VLP_CLIP_CLEAN_FAST; how++) {
        size_t n = vlp_clip_cleaned((vlp_clip_clean)how, text, sizeof text, out);
        assert_true(n <= sizeof out && n > sizeof out - 16);
        assert_true(vlp_utf8_valid(out, n));
    }
}

/* ---- CLIP ---- */

#define OPENAI "\"bpe_simple_vocab_16e6.txt#version: 0.2\nl o\nlo w</w>\n"

static vlp_tokenizer *open_openai(const char *name, const void *bytes, size_t len) {
    text_folder folder = text_folder_make();
    text_folder_write(&folder, name, bytes, len);
    vlp_tokenizer *tokenizer = text_folder_open(&folder);
    text_folder_remove(&folder);
    return tokenizer;
}

static void test_text_clip_bpe__openai_file_gives_the_vocabulary(void **state) {
    (void)state;
    static const uint8_t gz[] = {
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x53, 0x4a, 0x2a, 0x48, 0x8d,
        0x2f, 0xce, 0xcc, 0x2d, 0xc8, 0x49, 0x8d, 0x2f, 0xcb, 0x4f, 0x4e, 0x4c, 0x8a, 0x37, 0x34,
        0x4b, 0x35, 0xd3, 0x2b, 0xa9, 0x28, 0x51, 0x2e, 0x4b, 0x2d, 0x2a, 0xce, 0xcc, 0xcf, 0xb3,
        0x52, 0x30, 0xd0, 0x33, 0xe2, 0xca, 0x51, 0xc8, 0xe7, 0xca, 0xc9, 0x57, 0x28, 0xb7, 0xd1,
        0x2f, 0xb7, 0xe3, 0x02, 0x00, 0xca, 0x68, 0x5f, 0x6e, 0x35, 0x00, 0x00, 0x00};
    vlp_tokenizer *plain = open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI));
    vlp_tokenizer *packed = open_openai("bpe_simple_vocab_16e6.txt.gz", gz, sizeof gz);
    vlp_tokenizer *const both[] = {plain, packed};
    for (size_t i = 0; i < 2; i++) {
        vlp_tokenizer *t = both[i];
        assert_string_equal(vlp_tokenizer_kind_name(t), "clip_bpe");
        assert_int_equal(vlp_tokenizer_size(t), 516);
        assert_int_equal(vlp_tokenizer_find(t, "!"), 0);
        assert_int_equal(vlp_tokenizer_find(t, "!</w>"), 256);
        assert_int_equal(vlp_tokenizer_find(t, "lo"), 512);
        assert_int_equal(vlp_tokenizer_special(t).eos, 515);
        text_check(t, true, " Low LO x", "<|startoftext|>|low</w>|l|o</w>|x</w>|<|endoftext|>");
        text_check(t, false, "low<|EndOfText|>low", "low</w>|<|endoftext|>|low</w>");
        text_check(t, false, "!<|", "!|<||</w>"); /* and with more behind it no special token */
    }
    vlp_hash a = vlp_tokenizer_hash(plain), b = vlp_tokenizer_hash(packed);
    assert_true(a.high == b.high && a.low == b.low);
    vlp_tokenizer_free(plain);
    vlp_tokenizer_free(packed);
}

static void test_text_clip_bpe__pads_and_truncates(void **state) {
    (void)state;
    vlp_tokenizer *t = open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI));
    int32_t ids[6];
    uint8_t mask[6];
    vlp_tokenizer_encode_padded(t, "low", 3, 6, ids, mask);
    static const int32_t padded[] = {514, 513, 515, 0, 0, 0};
    assert_memory_equal(ids, padded, sizeof padded);
    assert_true(mask[2] && !mask[3]);
    vlp_tokenizer_encode_padded(t, "low low low low low low", 23, 6, ids, mask);
    static const int32_t cut[] = {514, 513, 513, 513, 513, 515};
    assert_memory_equal(ids, cut, sizeof cut);
    vlp_tokenizer_free(t);
}

static void test_text_clip_bpe__decodes_words(void **state) {
    (void)state;
    vlp_tokenizer *t = open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI));
    int32_t ids[32];
    int n = vlp_tokenizer_encode(t, "low É, x", 9, true, ids, 32);
    vlp_buf out = {0};
    assert_int_equal(vlp_tokenizer_decode(t, ids, n, true, &out), VLP_OK);
    assert_string_equal(out.data, "low é , x");
    vlp_buf_free(&out);
    vlp_tokenizer_free(t);
}

static void test_text_clip_bpe__bad_openai_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t len;
        const char *says;
    } rows[] = {
        {"bpe_simple_vocab_16e6.txt", "l o\nl o\n", 8, "txt:2: token \"lo\" occurs twice"},
        {"bpe_simple_vocab_16e6.txt", "lo x\n", 5, "txt:1: \"lo x\": the first part"},
        {"bpe_simple_vocab_16e6.txt.gz", "l o\n", 4, "gz: not a whole gzip file"},
        {"bpe_simple_vocab_16e6.txt.gz", "\x1f\x8b\x08\0\0\0", 6, "gz: not a whole gzip file"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder folder = text_folder_make();
        text_folder_write(&folder, rows[i].name, rows[i].bytes, rows[i].len);
        text_folder_refused(&folder, rows[i].says);
        text_folder_remove(&folder);
    }
}

static void test_text_clip_bpe__saved_opens_again(void **state) {
    (void)state;
    vlp_tokenizer *t = open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI));
    text_check_saved(t);
    text_check_allocates_nothing(t);
    vlp_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_clip_bpe__gpt2_pieces),
        cmocka_unit_test(test_text_clip_bpe__pieces),
        cmocka_unit_test(test_text_clip_bpe__cleans_as_openai),
        cmocka_unit_test(test_text_clip_bpe__repairs_text),
        cmocka_unit_test(test_text_clip_bpe__fast_composes_and_keeps_entities),
        cmocka_unit_test(test_text_clip_bpe__long_texts_are_cut_between_characters),
        cmocka_unit_test(test_text_clip_bpe__openai_file_gives_the_vocabulary),
        cmocka_unit_test(test_text_clip_bpe__pads_and_truncates),
        cmocka_unit_test(test_text_clip_bpe__decodes_words),
        cmocka_unit_test(test_text_clip_bpe__bad_openai_files_are_named),
        cmocka_unit_test(test_text_clip_bpe__saved_opens_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
