/* ViT sizes from the files that users have. */
#include "vision/vit_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static vlp_status read(vlp_vit_config *c, const char *text) {
    vlp_json *json;
    assert_int_equal(vlp_json_parse(&json, text, strlen(text), "config.json"), VLP_OK);
    vlp_status status = vlp_vit_config_read(c, json, "config.json");
    vlp_json_free(json);
    return status;
}

static void assert_refused(const char *text, const char *message) {
    vlp_vit_config c;
    assert_int_not_equal(read(&c, text), VLP_OK);
    if (!strstr(vlp_error(), message)) fail_msg("\"%s\" lacks \"%s\"", vlp_error(), message);
}

static void test_vision_vit_config__hf_defaults_are_the_library_s(void **state) {
    (void)state;
    vlp_vit_config c;
    assert_int_equal(read(&c, "{\"hidden_size\": 768, \"architectures\": [\"ViTModel\"]}"), VLP_OK);
    assert_int_equal(c.image_height, 224);
    assert_int_equal(c.patch, 16);
    assert_int_equal(c.depth, 12);
    assert_int_equal(c.mlp_width, 3072);
    assert_true(c.eps == 1e-12 && c.act == VLP_ACT_GELU && c.patch_bias && !c.no_qkv_bias);
}

static void test_vision_vit_config__hf_sizes_may_be_pairs(void **state) {
    (void)state;
    vlp_vit_config c;
    assert_int_equal(read(&c, "{\"hidden_size\": 22, \"image_size\": [14, 21], \"patch_size\": 7,"
                              " \"num_channels\": 1, \"hidden_act\": \"quick_gelu\","
                              " \"layer_norm_eps\": 1e-5, \"qkv_bias\": false}"),
                     VLP_OK);
    assert_int_equal(c.image_height, 14);
    assert_int_equal(c.image_width, 21);
    assert_int_equal(c.channels, 1);
    assert_true(c.eps == 1e-5 && c.act == VLP_ACT_QUICK_GELU && c.no_qkv_bias);
}

static void test_vision_vit_config__constructor_keys_of_both_spellings(void **state) {
    (void)state;
    vlp_vit_config c;
    assert_int_equal(read(&c, "{\"img_size\": [24, 32], \"patch_size\": 8, \"embed_dim\": 36,"
                              " \"depth\": 2, \"num_heads\": 3, \"mlp_ratio\": 1.5}"),
                     VLP_OK);
    assert_int_equal(c.image_width, 32);
    assert_int_equal(c.mlp_width, 54);
    assert_int_equal(c.heads, 3);
    assert_true(c.eps == 1e-6);
    assert_int_equal(read(&c, "{\"image_res\": 48, \"patch_size\": 8, \"vision_width\": 32,"
                              " \"vision_depth\": 5, \"vision_heads\": 4}"),
                     VLP_OK);
    assert_int_equal(c.image_height, 48);
    assert_int_equal(c.width, 32);
    assert_int_equal(c.depth, 5);
    assert_int_equal(c.mlp_width, 128);
}

static void test_vision_vit_config__what_cannot_be_read_is_named(void **state) {
    (void)state;
    assert_refused("{\"hidden_size\": 8, \"hidden_act\": \"mish\"}",
                   "hidden_act is \"mish\"; known are gelu, gelu_new, quick_gelu, relu");
    assert_refused("{\"hidden_size\": 8, \"hidden_act\": 3}", "\"hidden_act\" must be a string");
    assert_refused("{\"hidden_size\": \"8\"}", "\"hidden_size\" must be a whole number");
    assert_refused("{\"hidden_size\": 8, \"num_attention_heads\": 0}", "num_attention_heads");
    assert_refused("{\"hidden_size\": 8, \"patch_size\": [4, 8]}", "patches must be square");
    assert_refused("{\"hidden_size\": 8, \"image_size\": [1, 2, 3]}", "\"image_size\"");
    assert_refused("{\"hidden_size\": 8, \"image_size\": 1e30}", "\"image_size\"");
    assert_refused("[]", "JSON object");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_vit_config__hf_defaults_are_the_library_s),
        cmocka_unit_test(test_vision_vit_config__hf_sizes_may_be_pairs),
        cmocka_unit_test(test_vision_vit_config__constructor_keys_of_both_spellings),
        cmocka_unit_test(test_vision_vit_config__what_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
