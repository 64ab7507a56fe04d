#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#include "core/json.h"

#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define CLIP_CUT                                                                                   \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": " \
    "\"<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{"  \
    "N}]|"                                                                                         \
    "[^\\\\s\\\\p{L}\\\\p{N}]+\"}}, " BYTE_LEVEL "]}"
#define CLIP_NORMAL                                                                                \
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Replace\", "     \
    "\"pattern\": {\"Regex\": \"\\\\s+\"}, \"content\": \" \"}, {\"type\": \"Lowercase\"}]}"

static void test_text_tokenizer_json__clip_from_a_tokenizer_json(void **state) {
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
    text_folder_put(&folder, "tokenizer.json", json);
    vlp_tokenizer *t = text_folder_open(&folder);
    text_folder_remove(&folder);
    assert_string_equal(vlp_tokenizer_kind_name(t), "clip_bpe");
    text_check(t, true, "LO lo!<|endoftext|>",
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

static void test_text_tokenizer_json__what_a_tokenizer_json_may_not_be(void **state) {
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
        text_folder_put(&folder, "tokenizer.json", rows[i].json);
        text_folder_refused(&folder, rows[i].says);
        text_folder_remove(&folder);
    }
}

/* Each key in turn holds what it may not; without the fault all of them open. */
static void test_text_tokenizer_json__wrong_types_are_named(void **state) {
    (void)state;
#define CUT_AND "\"pre_tokenizer\": {\"type\": \"ByteLevel\""
#define TEMPLATE "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
    static const struct {
        const char *members, *model; /* of the file and of its model */
        const char *says;
    } rows[] = {
        {CUT, "", NULL},
        {CUT ", \"added_tokens\": {}", "", "tokenizer.json: \"added_tokens\" must be a list"},
        {CUT ", \"added_tokens\": [5]", "", "json: added_tokens[0]: a JSON object is wanted"},
        {CUT ", \"added_tokens\": [{\"id\": 0, \"content\": \"a\", \"special\": \"yes\"}]", "",
         "tokenizer.json: added_tokens[0]: \"special\" must be true or false"},
        {CUT ", \"added_tokens\": [{\"id\": \"0\", \"content\": \"a\"}]", "", "\"id\" must be"},
        {CUT ", \"added_tokens\": [{\"id\": 0, \"content\": \"a\", \"lstrip\": 1}]", "",
         "\"lstrip\""},
        {"\"pre_tokenizer\": \"ByteLevel\"", "", "json: \"pre_tokenizer\" must be an object"},
        {CUT_AND ", \"add_prefix_space\": \"no\"}", "",
         "json: pre_tokenizer: \"add_prefix_space\" must be true or false"},
        {"\"pre_tokenizer\": {\"type\": 7}", "", "pre_tokenizer: \"type\" must be a string"},
        {"\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
         "\"pattern\": \"x\"}]}",
         "", "pre_tokenizer.pretokenizers[0]: \"pattern\" must be an object"},
        {CUT ", \"post_processor\": \"BertProcessing\"", "",
         "\"post_processor\" must be an object"},
        {CUT ", \"post_processor\": {\"type\": null, \"cls\": 5}", "", "\"cls\" must be a list"},
        {CUT ", " TEMPLATE "\"A\"}", "", "post_processor: \"single\" must be a list"},
        {CUT ", " TEMPLATE "[{\"Sequence\": {\"id\": \"A\", \"type_id\": \"0\"}}]}", "",
         "post_processor.single[0]: \"Sequence.type_id\" must be a whole number"},
        {CUT ", \"normalizer\": []", "", "\"normalizer\" must be an object"},
        {CUT, ", \"byte_fallback\": \"false\"", "\"model.byte_fallback\" must be true or false"},
        {CUT, ", \"ignore_merges\": \"true\"", "\"model.ignore_merges\""},
        {CUT, ", \"unk_token\": 0", "\"model.unk_token\" must be a string"},
        {CUT, ", \"merges\": {\"a\": \"b\"}", "\"model.merges\" must be a list"},
        {CUT, ", \"merges\": [[\"a\"]]", "json: model.merges[0]: must be \"a b\" or"},
        {CUT, ", \"merges\": [5]", "model.merges[0]: must be"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        char json[512];
        int n = snprintf(json, sizeof json,
                         "{%s, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}%s}}",
                         rows[i].members, rows[i].model);
        assert_true(n < (int)sizeof json);
        text_folder folder = text_folder_make();
        text_folder_put(&folder, "tokenizer.json", json);
        if (rows[i].says)
            text_folder_refused(&folder, rows[i].says);
        else
            vlp_tokenizer_free(text_folder_open(&folder));
        text_folder_remove(&folder);
    }
}

static void test_text_tokenizer_json__pieces_of_wrong_types_are_named(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{\"<unk>\": 0}", "model.vocab: a list of [piece, score] expected"},
        {"[[\"<unk>\", \"0\"]]", "model.vocab[0]: must be [piece, score]"},
        {"[[\"<unk>\", 0], [5, 0]]", "model.vocab[1]: must be [piece, score]"},
        {"[\"<unk>\"]", "model.vocab[0]: must be [piece, score]"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"normalizer\": {\"type\": \"Precompiled\"}, \"pre_tokenizer\": {\"type\": "
                 "\"Metaspace\"}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                 "%s}}",
                 rows[i][0]);
        text_folder folder = text_folder_make();
        text_folder_put(&folder, "tokenizer.json", json);
        text_folder_refused(&folder, rows[i][1]);
        text_folder_remove(&folder);
    }
}

static void test_text_tokenizer_json__another_order_of_tokens_is_refused(void **state) {
    (void)state;
    text_folder folder = text_folder_make();
    text_folder_put(&folder, "vocab.txt", "[UNK]\na\nb\n");
    vlp_tokenizer *t = text_folder_open(&folder);
    vlp_json *config = vlp_json_new_object();
    vlp_tokenizer_mark(t, config);
    vlp_tokenizer_free(t);
    vlp_buf text = {0};
    assert_int_equal(vlp_json_dump(config, 0, &text), VLP_OK);
    text_folder_write(&folder, "config.json", text.data, text.len);
    vlp_tokenizer_free(text_folder_open(&folder)); /* the same one opens */
    text_folder_put(&folder, "vocab.txt", "[UNK]\nb\na\n");
    assert_int_equal(vlp_tokenizer_open(&t, folder.path), VLP_ERR_FORMAT);
    assert_null(t);
    assert_non_null(strstr(vlp_error(), "put the original"));
    text_folder_put(&folder, "config.json", "{}");
    vlp_tokenizer_free(text_folder_open(&folder)); /* nothing is known of it */
    text_folder_remove(&folder);
    vlp_buf_free(&text);
    vlp_json_free(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_tokenizer_json__clip_from_a_tokenizer_json),
        cmocka_unit_test(test_text_tokenizer_json__what_a_tokenizer_json_may_not_be),
        cmocka_unit_test(test_text_tokenizer_json__wrong_types_are_named),
        cmocka_unit_test(test_text_tokenizer_json__pieces_of_wrong_types_are_named),
        cmocka_unit_test(test_text_tokenizer_json__another_order_of_tokens_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
