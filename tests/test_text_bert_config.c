/* BERT sizes from the file that users have. */
#include "text/bert_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static vlp_status read(vlp_bert_config *c, const char *text) {
    vlp_json *json;
    assert_int_equal(vlp_json_parse(&json, text, strlen(text), "config.json"), VLP_OK);
    vlp_status status = vlp_bert_config_read(c, json, "config.json");
    vlp_json_free(json);
    return status;
}

static void assert_refused(const char *text, const char *message) {
    vlp_bert_config c;
    assert_int_not_equal(read(&c, text), VLP_OK);
    if (!strstr(vlp_error(), message)) fail_msg("\"%s\" lacks \"%s\"", vlp_error(), message);
}

static void test_text_bert_config__reads_sizes_and_passes_over_the_rest(void **state) {
    (void)state;
    vlp_bert_config c;
    assert_int_equal(read(&c,
                          "{\"hidden_size\": 40, \"num_attention_heads\": 5, \"vocab_size\": 97,"
                          " \"hidden_act\": \"gelu_new\", \"layer_norm_eps\": 1e-5,"
                          " \"classifier_dropout\": null, \"id2label\": {\"0\": \"A\"}}"),
                     VLP_OK);
    assert_int_equal(c.width, 40);
    assert_int_equal(c.heads, 5);
    assert_int_equal(c.vocab, 97);
    assert_int_equal(c.types, 2);
    assert_int_equal(c.pad_id, 0);
    assert_true(c.act == VLP_ACT_GELU_TANH && c.eps == 1e-5);
}

static void test_text_bert_config__null_means_no_padding_row(void **state) {
    (void)state;
    vlp_bert_config c;
    assert_int_equal(read(&c, "{\"pad_token_id\": null}"), VLP_OK);
    assert_int_equal(c.pad_id, -1);
    assert_int_equal(read(&c, "{\"pad_token_id\": 7}"), VLP_OK);
    assert_int_equal(c.pad_id, 7);
}

static void test_text_bert_config__what_cannot_be_read_is_named(void **state) {
    (void)state;
    assert_refused("{\"position_embedding_type\": \"relative_key\"}",
                   "position_embedding_type is \"relative_key\"");
    assert_refused("{\"is_decoder\": true}", "is_decoder is true");
    assert_refused("{\"hidden_act\": \"mish\"}", "known are gelu");
    assert_refused("{\"pad_token_id\": 30522}", "pad_token_id 30522, but vocab_size is 30522");
    assert_refused("{\"num_hidden_layers\": 1000}", "num_hidden_layers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_bert_config__reads_sizes_and_passes_over_the_rest),
        cmocka_unit_test(test_text_bert_config__null_means_no_padding_row),
        cmocka_unit_test(test_text_bert_config__what_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
