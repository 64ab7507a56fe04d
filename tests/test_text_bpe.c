#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#include "core/json.h"
#include "text/bpe.h"
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

static void test_text_bpe__gpt2_pieces(void **state) {
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

static void test_text_bpe__clip_pieces(void **state) {
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

static void test_text_bpe__clip_cleans_as_openai(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"  A\t\n Red   CAR ", "a red car"},
        {"Tom &amp;amp; Jerry&eacute;", "tom & jerryé"},
        {"&lt;b&gt; &#65;&#x42;&#67 &nGt;", "<b> abc ≫⃒"},
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
static void test_text_bpe__clip_repairs_text(void **state) {
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

static void test_text_bpe__clip_fast_composes_and_keeps_entities(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"Cafe\u0301  &amp;", "café &amp;"}, {" a\n", " a "},
        {"a\u0327\u0301b", "\u00e1\u0327b"}, {"a\u0301\u0323", "ạ\u0301"},
        {"\u1112\u1161\u11ab", "한"},        {"\u212b", "å"}};
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        check_cleaned(VLP_CLIP_CLEAN_FAST, rows[i][0], strlen(rows[i][0]), rows[i][1]);
}

static void test_text_bpe__long_texts_are_cut_between_characters(void **state) {
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

static void put_text(const text_folder *folder, const char *name, const char *text) {
    text_folder_write(folder, name, text, strlen(text));
}

static vlp_tokenizer *open_made(const text_folder *folder) {
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, folder->path) != VLP_OK) fail_msg("%s", vlp_error());
    return tokenizer;
}

#define MERGES "#version: 0.2\nl o\nlo w\ne r\nĠ low\nĠ lo\na a\n"
static const char *const roberta[] = {"lo",  "low",   "er",   "Ġlow",  "Ġlo",    "aa",
                                      "<s>", "<pad>", "</s>", "<unk>", "<mask>", NULL};

static text_folder roberta_folder(const char *config) {
    text_folder folder = text_folder_make();
    put_vocabulary(&folder, false, roberta);
    put_text(&folder, "merges.txt", MERGES);
    if (config) put_text(&folder, "tokenizer_config.json", config);
    return folder;
}

static vlp_tokenizer *open_roberta(const char *config) {
    text_folder folder = roberta_folder(config);
    vlp_tokenizer *tokenizer = open_made(&folder);
    text_folder_remove(&folder);
    return tokenizer;
}

/* The tokens of text joined by '|' equal `expected`. */
static void check_len(const vlp_tokenizer *tokenizer, bool special, const char *text, size_t len,
                      const char *expected) {
    int32_t ids[256];
    int n = vlp_tokenizer_encode(tokenizer, text, len, special, ids, 256);
    vlp_buf joined = {0};
    assert_int_equal(vlp_buf_puts(&joined, ""), VLP_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            vlp_buf_printf(&joined, "%s%s", i ? "|" : "", vlp_tokenizer_token(tokenizer, ids[i])),
            VLP_OK);
    assert_string_equal(joined.data, expected);
    vlp_buf_free(&joined);
}

static void check(const vlp_tokenizer *tokenizer, bool special, const char *text,
                  const char *expected) {
    check_len(tokenizer, special, text, strlen(text), expected);
}

static void test_text_bpe__lowest_rank_first(void **state) {
    (void)state;
    vlp_tokenizer *t = open_roberta(NULL);
    assert_string_equal(vlp_tokenizer_kind_name(t), "byte_bpe");
    check(t, false, "lower low slow", "low|er|Ġlow|Ġ|s|low");
    check(t, false, " lo", "Ġlo"); /* "l o" comes before "Ġ lo" */
    check(t, false, "aaaaa", "aa|aa|a");
    check(t, false, "é\xff", "Ã|©|ÿ"); /* every byte is kept */
    check_len(t, false, "\0a", 2, "Ā|a");
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
    check(t, true, "low", "<s>|low|</s>");
    check(t, false, "a <mask> a", "a|<mask>|Ġ|a"); /* <mask> takes the space before it */
    check(t, false, "a <pad> a", "a|Ġ|<pad>|Ġ|a"); /* the others do not */
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
    check(t, false, "low low", "Ġlow|Ġlow");
    check(t, false, " low", "Ġlow");
    check(t, false, "", "");
    check(t, false, "<s>low", "Ġ|<s>|low");
    check(t, false, "<mask>low", "<mask>|low"); /* which swallows it */
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
    const int32_t cut[] = {0xF0, 0x9F, 'x', 0xE2, 0x28, 0xFF}; /* ids of bytes are bytes here */
    assert_int_equal(vlp_tokenizer_decode(t, cut, 6, true, &out), VLP_OK);
    assert_string_equal(out.data, "\uFFFDx\uFFFD(\uFFFD");
    vlp_buf_clear(&out);
    assert_int_equal(vlp_tokenizer_decode(t, cut, 0, true, &out), VLP_OK);
    assert_string_equal(out.data, "");
    vlp_buf_free(&out);
    vlp_tokenizer_free(t);
}

/* ---- CLIP ---- */

#define OPENAI "\"bpe_simple_vocab_16e6.txt#version: 0.2\nl o\nlo w</w>\n"

static vlp_tokenizer *open_openai(const char *name, const void *bytes, size_t len) {
    text_folder folder = text_folder_make();
    text_folder_write(&folder, name, bytes, len);
    vlp_tokenizer *tokenizer = open_made(&folder);
    text_folder_remove(&folder);
    return tokenizer;
}

static void test_text_bpe__openai_file_gives_the_vocabulary(void **state) {
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
        check(t, true, " Low LO x", "<|startoftext|>|low</w>|l|o</w>|x</w>|<|endoftext|>");
        check(t, false, "low<|EndOfText|>low", "low</w>|<|endoftext|>|low</w>");
        check(t, false, "!<|", "!|<||</w>"); /* and with more behind it no special token */
    }
    vlp_hash a = vlp_tokenizer_hash(plain), b = vlp_tokenizer_hash(packed);
    assert_true(a.high == b.high && a.low == b.low);
    vlp_tokenizer_free(plain);
    vlp_tokenizer_free(packed);
}

static void test_text_bpe__clip_pads_and_truncates(void **state) {
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

static void test_text_bpe__clip_decodes_words(void **state) {
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

static void test_text_bpe__saved_opens_again(void **state) {
    (void)state;
    vlp_tokenizer *made[] = {
        open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI)),
        open_roberta("{\"add_prefix_space\": true, \"mask_token\": {\"content\": \"<mask>\","
                     "\"lstrip\": true}}")};
    static const char text[] = "Low lower &amp; <mask> été<|endoftext|>";
    for (size_t i = 0; i < VLP_COUNT(made); i++) {
        text_folder folder = text_folder_make();
        assert_int_equal(vlp_tokenizer_save(made[i], folder.path), VLP_OK);
        vlp_tokenizer *again = open_made(&folder);
        assert_true(vlp_tokenizer_in_folder(folder.path));
        text_folder_remove(&folder);
        vlp_hash a = vlp_tokenizer_hash(made[i]), b = vlp_tokenizer_hash(again);
        assert_true(a.high == b.high && a.low == b.low);
        int32_t first[64], second[64];
        int n = vlp_tokenizer_encode(made[i], text, strlen(text), true, first, 64);
        assert_int_equal(vlp_tokenizer_encode(again, text, strlen(text), true, second, 64), n);
        assert_memory_equal(first, second, (size_t)n * sizeof *first);
        vlp_tokenizer_free(made[i]);
        vlp_tokenizer_free(again);
    }
}

static void test_text_bpe__added_tokens_follow(void **state) {
    (void)state;
    text_folder folder = roberta_folder(NULL);
    put_text(&folder, "added_tokens.json", "{\"[ENC]\": 268, \"[DEC]\": 267}");
    vlp_tokenizer *t = open_made(&folder);
    text_folder_remove(&folder);
    assert_int_equal(vlp_tokenizer_find(t, "[ENC]"), 268);
    check(t, false, "low[DEC]low", "low|[DEC]|low");
    folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(t, folder.path), VLP_OK);
    vlp_tokenizer *again = open_made(&folder);
    check(again, false, "low[DEC]low", "low|[DEC]|low");
    text_folder_remove(&folder);
    vlp_tokenizer_free(t);
    vlp_tokenizer_free(again);
}

static void test_text_bpe__encoding_allocates_nothing(void **state) {
    (void)state;
    vlp_tokenizer *made[] = {open_openai("bpe_simple_vocab_16e6.txt", OPENAI, strlen(OPENAI)),
                             open_roberta(NULL)};
    static const char text[] = "Low &amp; lower Café 世界 <mask> ΟΔΟΣ";
    int32_t ids[128];
    for (size_t i = 0; i < VLP_COUNT(made); i++) {
        int64_t before = vlp_alloc_count();
        vlp_tokenizer_encode(made[i], text, strlen(text), true, ids, 128);
        assert_int_equal(vlp_alloc_count(), before);
        vlp_tokenizer_free(made[i]);
    }
}

/* ---- tokenizer.json ---- */

#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define CLIP_CUT                                                                                   \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": " \
    "\"<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{"  \
    "N}]|"                                                                                         \
    "[^\\\\s\\\\p{L}\\\\p{N}]+\"}}, " BYTE_LEVEL "]}"
#define CLIP_NORMAL                                                                                \
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Replace\", "     \
    "\"pattern\": {\"Regex\": \"\\\\s+\"}, \"content\": \" \"}, {\"type\": \"Lowercase\"}]}"

static void test_text_bpe__clip_from_a_tokenizer_json(void **state) {
    (void)state;
    static const char json[] =
        "{\"normalizer\": " CLIP_NORMAL ", \"pre_tokenizer\": " CLIP_CUT
        ", \"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"<|endoftext|>\", 5], "
        "\"cls\": [\"<|startoftext|>\", 4]}, \"added_tokens\": [{\"id\": 5, \"content\": "
        "\"<|endoftext|>\", \"special\": true}], \"model\": {\"type\": \"BPE\", "
        "\"end_of_word_suffix\": \"</w>\", \"unk_token\": \"<|endoftext|>\", \"vocab\": {\"l\": 0, "
        "\"o\": 1, \"o</w>\": 2, \"lo</w>\": 3, \"<|startoftext|>\": 4, \"<|endoftext|>\": 5}, "
        "\"merges\": [[\"l\", \"o</w>\"]]}}";
    text_folder folder = text_folder_make();
    put_text(&folder, "tokenizer.json", json);
    vlp_tokenizer *t = open_made(&folder);
    text_folder_remove(&folder);
    assert_string_equal(vlp_tokenizer_kind_name(t), "clip_bpe");
    check(t, true, "LO lo!<|endoftext|>",
          "<|startoftext|>|lo</w>|lo</w>|<|endoftext|>|<|endoftext|>|<|endoftext|>");
    folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(t, folder.path), VLP_OK); /* as it was read */
    vlp_buf saved = {0}, path = {0};
    assert_int_equal(vlp_path_join(&path, folder.path, "tokenizer.json"), VLP_OK);
    assert_int_equal(vlp_file_read(path.data, 0, &saved), VLP_OK);
    assert_string_equal(saved.data, json);
    text_folder_remove(&folder);
    vlp_buf_free(&saved);
    vlp_buf_free(&path);
    vlp_tokenizer_free(t);
}

static void test_text_bpe__what_a_tokenizer_json_may_not_be(void **state) {
    (void)state;
#define MODEL "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []"
#define CUT "\"pre_tokenizer\": " BYTE_LEVEL
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"{}", "tokenizer.json: no \"model\""},
        {"{\"model\": {\"type\": \"WordLevel\"}}", "tokenizer.json: model: WordLevel is not"},
        {"{" MODEL "}}", "pre_tokenizer: none is not"},
        {"{" CUT ", " MODEL ", \"byte_fallback\": true}}", "normalizer: none is not"},
        {"{" CUT ", " MODEL ", \"ignore_merges\": true}}", "model.ignore_merges: true"},
        {"{" CUT ", " MODEL ", \"dropout\": 0.1}}", "model.dropout"},
        {"{" CUT ", " MODEL ", \"continuing_subword_prefix\": \"##\"}}", "subword_prefix: \"##\""},
        {"{\"normalizer\": {\"type\": \"NFKC\"}, " CUT ", " MODEL "}}", "normalizer: NFKC"},
        {"{\"post_processor\": {\"type\": \"X\"}, " CUT ", " MODEL "}}", "post_processor: X is"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"a\", 7]}, " CUT ", " MODEL
         "}}",
         "a token's id from 0 to 0"},
        {"{\"added_tokens\": [{\"id\": 3, \"content\": \"b\"}], " CUT ", " MODEL "}}",
         "added_tokens[0]: \"b\" has id 3"},
        {"{" CUT ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
         "model.merges[0]: \"a b\""},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder folder = text_folder_make();
        put_text(&folder, "tokenizer.json", rows[i].json);
        vlp_tokenizer *tokenizer;
        assert_int_not_equal(vlp_tokenizer_open(&tokenizer, folder.path), VLP_OK);
        assert_null(tokenizer);
        if (!strstr(vlp_error(), rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", vlp_error(), rows[i].says);
        text_folder_remove(&folder);
    }
}

static void test_text_bpe__another_order_of_tokens_is_refused(void **state) {
    (void)state;
    text_folder folder = text_folder_make();
    put_text(&folder, "vocab.txt", "[UNK]\na\nb\n");
    vlp_tokenizer *t = open_made(&folder);
    vlp_json *config = vlp_json_new_object();
    vlp_tokenizer_mark(t, config);
    vlp_tokenizer_free(t);
    vlp_buf text = {0};
    assert_int_equal(vlp_json_dump(config, 0, &text), VLP_OK);
    text_folder_write(&folder, "config.json", text.data, text.len);
    vlp_tokenizer_free(open_made(&folder)); /* the same one opens */
    put_text(&folder, "vocab.txt", "[UNK]\nb\na\n");
    assert_int_equal(vlp_tokenizer_open(&t, folder.path), VLP_ERR_FORMAT);
    assert_null(t);
    assert_non_null(strstr(vlp_error(), "put the original"));
    put_text(&folder, "config.json", "{}");
    vlp_tokenizer_free(open_made(&folder)); /* nothing is known of it */
    text_folder_remove(&folder);
    vlp_buf_free(&text);
    vlp_json_free(config);
}

static void test_text_bpe__bad_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *vocab, *merges, *config, *added;
        vlp_status status;
        const char *says;
    } rows[] = {
        {"[]", "", NULL, NULL, VLP_ERR_FORMAT, "vocab.json: an object"},
        {"{}", "", NULL, NULL, VLP_ERR_FORMAT, "vocab.json: no tokens"},
        {"{", "", NULL, NULL, VLP_ERR_FORMAT, "vocab.json:1"},
        {"{\"a\": 0, \"b\": 0}", "", NULL, NULL, VLP_ERR_FORMAT, "both have id 0"},
        {"{\"a\": 0, \"b\": 2}", "", NULL, NULL, VLP_ERR_FORMAT, "\"b\": its id is not a number"},
        {"{\"a\": 0, \"b\": \"x\"}", "", NULL, NULL, VLP_ERR_FORMAT, "\"b\": its id is not"},
        {"{\"a\": 0, \"\": 1}", "", NULL, NULL, VLP_ERR_FORMAT, "id 1: empty token"},
        {"{\"a\": 0}", "#version: 0.2\na b\n", NULL, NULL, VLP_ERR_FORMAT,
         "merges.txt:2: \"a b\": the second part is not"},
        {"{\"a\": 0}", "b a", NULL, NULL, VLP_ERR_FORMAT, "merges.txt:1: \"b a\": the first part"},
        {"{\"a\": 0}", "a a\n", NULL, NULL, VLP_ERR_FORMAT, "the joined token is not"},
        {"{\"a\": 0}", "a\n", NULL, NULL, VLP_ERR_FORMAT, "merges.txt:1: \"a\" is not two tokens"},
        {"{\"a\": 0}", "a a a\n", NULL, NULL, VLP_ERR_FORMAT, "is not two tokens"},
        {"{\"a\": 0}", "", "{\"add_prefix_space\": 1}", NULL, VLP_ERR_FORMAT,
         "json: add_prefix_space: true or false"},
        {"{\"a\": 0}", "", NULL, "{\"b\": 2}", VLP_ERR_FORMAT,
         "added_tokens.json: no token has id 1"},
        {"{\"a\": 0}", NULL, NULL, NULL, VLP_ERR_NOT_FOUND, "vocab.json with merges.txt"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        text_folder folder = text_folder_make();
        put_text(&folder, "vocab.json", rows[i].vocab);
        if (rows[i].merges) put_text(&folder, "merges.txt", rows[i].merges);
        if (rows[i].config) put_text(&folder, "tokenizer_config.json", rows[i].config);
        if (rows[i].added) put_text(&folder, "added_tokens.json", rows[i].added);
        vlp_tokenizer *tokenizer;
        assert_int_equal(vlp_tokenizer_open(&tokenizer, folder.path), rows[i].status);
        assert_null(tokenizer);
        if (!strstr(vlp_error(), rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", vlp_error(), rows[i].says);
        text_folder_remove(&folder);
    }
}

static void test_text_bpe__bad_openai_files_are_named(void **state) {
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
        vlp_tokenizer *tokenizer;
        assert_int_equal(vlp_tokenizer_open(&tokenizer, folder.path), VLP_ERR_FORMAT);
        if (!strstr(vlp_error(), rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", vlp_error(), rows[i].says);
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
        cmocka_unit_test(test_text_bpe__gpt2_pieces),
        cmocka_unit_test(test_text_bpe__clip_pieces),
        cmocka_unit_test(test_text_bpe__clip_cleans_as_openai),
        cmocka_unit_test(test_text_bpe__clip_repairs_text),
        cmocka_unit_test(test_text_bpe__clip_from_a_tokenizer_json),
        cmocka_unit_test(test_text_bpe__what_a_tokenizer_json_may_not_be),
        cmocka_unit_test(test_text_bpe__another_order_of_tokens_is_refused),
        cmocka_unit_test(test_text_bpe__clip_fast_composes_and_keeps_entities),
        cmocka_unit_test(test_text_bpe__long_texts_are_cut_between_characters),
        cmocka_unit_test(test_text_bpe__lowest_rank_first),
        cmocka_unit_test(test_text_bpe__long_words_are_whole),
        cmocka_unit_test(test_text_bpe__roberta_surrounds_and_strips),
        cmocka_unit_test(test_text_bpe__a_space_is_put_in_front),
        cmocka_unit_test(test_text_bpe__decoding_repairs_utf8),
        cmocka_unit_test(test_text_bpe__openai_file_gives_the_vocabulary),
        cmocka_unit_test(test_text_bpe__clip_pads_and_truncates),
        cmocka_unit_test(test_text_bpe__clip_decodes_words),
        cmocka_unit_test(test_text_bpe__saved_opens_again),
        cmocka_unit_test(test_text_bpe__added_tokens_follow),
        cmocka_unit_test(test_text_bpe__encoding_allocates_nothing),
        cmocka_unit_test(test_text_bpe__bad_files_are_named),
        cmocka_unit_test(test_text_bpe__bad_openai_files_are_named),
        cmocka_unit_test(test_text_bpe__every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
