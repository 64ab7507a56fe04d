/* ALBEF's checkpoints as model folders: sizes, names, and what of them is there. */
#include "core/memory.h"
#include "fusion/albef.h"
#include "train/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CASE(name) VLP_TESTS_DIR "/data/parity/" name

static vlp_status read(vlp_model_config *c, const char *text) {
    vlp_json *json;
    assert_int_equal(vlp_json_parse(&json, text, strlen(text), "config.json"), VLP_OK);
    vlp_status status = vlp_model_config_any(c, json, "config.json");
    vlp_json_free(json);
    return status;
}

static void test_fusion_albef__one_bert_is_text_tower_and_fusion_stack(void **state) {
    (void)state;
    vlp_model_config c;
    assert_int_equal(read(&c, "{\"image_res\": 64, \"embed_dim\": 32, \"vision_width\": 48,"
                              " \"bert_config\": {\"num_hidden_layers\": 5, \"fusion_layer\": 2,"
                              " \"hidden_size\": 24, \"num_attention_heads\": 4}}"),
                     VLP_OK);
    assert_int_equal(c.text.depth, 2);
    assert_int_equal(c.fusion.depth, 3);
    assert_int_equal(c.fusion.width, 24);
    assert_int_equal(c.fusion.image_width, 48);
    assert_int_equal(c.vision.width, 48);
    assert_int_equal(c.vision.image_height, 64);
    assert_int_equal(c.embedding, 32);
    assert_true(c.plain_temperature && c.projection_bias);
    assert_int_equal(read(&c, "{\"bert_config\": {\"fusion_layer\": 6}}"), VLP_OK);
    assert_int_equal(c.embedding, 0);
}

static void test_fusion_albef__contradictions_are_named(void **state) {
    (void)state;
    vlp_model_config c;
    assert_int_equal(read(&c, "{\"bert_config\": {\"fusion_layer\": 7, \"num_hidden_layers\": 6}}"),
                     VLP_ERR_FORMAT);
    assert_string_equal(vlp_error(), "config.json: fusion_layer 7, but num_hidden_layers is 6");
    assert_int_equal(read(&c, "{\"vision_width\": 48, \"bert_config\": {\"fusion_layer\": 6,"
                              " \"encoder_width\": 768}}"),
                     VLP_ERR_FORMAT);
    assert_string_equal(vlp_error(), "config.json: encoder_width 768, but the images' is 48");
}

/* Every tensor of the file finds its place, and both copies of a parameter have one name. */
static void names_of(const char *path, bool deep) {
    vlp_safetensors *file;
    vlp_model_config c;
    vlp_json *json;
    char name[300];
    snprintf(name, sizeof name, "%s/config.json", path);
    assert_int_equal(vlp_json_load(&json, name), VLP_OK);
    assert_int_equal(vlp_model_config_any(&c, json, name), VLP_OK);
    vlp_json_free(json);
    snprintf(name, sizeof name, "%s/model.safetensors", path);
    assert_int_equal(vlp_safetensors_open(&file, name), VLP_OK);
    assert_true(vlp_albef_is_file(file));
    int own = 0, twin = 0;
    for (int momentum = 0; momentum < 2; momentum++) {
        vlp_name_map map = {0}, tables = {0};
        vlp_albef_names(&map, &c, file, momentum);
        vlp_albef_tables(&tables, &c, deep, momentum);
        for (size_t i = 0; i < vlp_safetensors_count(file); i++) {
            char ours[VLP_NAME_BYTES], again[VLP_NAME_BYTES];
            const char *theirs = vlp_safetensors_at(file, i)->name;
            const vlp_name_row *row = vlp_name_find(&map, theirs, ours);
            if (!row) fail_msg("%s has no name here", theirs);
            assert_ptr_equal(row, vlp_name_find(&tables, theirs, again));
            if (!row->ours) continue;
            assert_string_equal(ours, again);
            bool is_twin = strstr(theirs, "_m."), aside = strstr(ours, "objective.momentum.");
            assert_int_equal(aside, is_twin != momentum);
            *(is_twin ? &twin : &own) += 1;
        }
    }
    assert_true(own > twin && twin > 100);
    vlp_safetensors_close(file);
}

static void test_fusion_albef__every_tensor_of_a_file_has_a_name(void **state) {
    (void)state;
    names_of(CASE("albef-pretrain"), true);
    names_of(CASE("albef-retrieval-eval"), false);
}

static void test_fusion_albef__a_folder_opens_as_a_model(void **state) {
    (void)state;
    vlp_model *model;
    vlp_safetensors *file;
    const vlp_safetensor *theirs;
    vlp_real first;
    assert_int_equal(vlp_model_open(&model, CASE("albef-pretrain")), VLP_OK);
    assert_true(vlp_model_can_match(model));
    assert_int_equal(vlp_safetensors_open(&file, CASE("albef-pretrain/model.safetensors")), VLP_OK);
    const char *name = "text_encoder.bert.encoder.layer.2.crossattention.self.query.weight";
    assert_int_equal(vlp_safetensors_get(file, name, &theirs), VLP_OK);
    first = vlp_real_data(model->fusion.stack.blocks[0].cross_q.weight)[0];
    assert_true(first == (vlp_real)vlp_safetensor_value(theirs, 0));
    assert_int_equal(vlp_safetensors_get(file, "temp", &theirs), VLP_OK);
    assert_true(vlp_real_data(model->temperature)[0] == (vlp_real)vlp_safetensor_value(theirs, 0));
    vlp_safetensors_close(file);
    vlp_model_free(model);
    assert_int_equal(vlp_model_open(&model, CASE("albef-ve")), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "cls_head.0.bias")); /* a head that inference lacks */
}

static void test_fusion_albef__a_recipe_takes_its_sizes(void **state) {
    (void)state;
    vlp_model_config c, again;
    vlp_recipe r;
    assert_int_equal(vlp_model_folder_config(&c, CASE("albef-pretrain")), VLP_OK);
    assert_int_equal(vlp_recipe_open(&r, "albef", "nano"), VLP_OK);
    assert_int_equal(vlp_recipe_take_sizes(&r, &c, "X"), VLP_OK);
    vlp_recipe_model(&r, c.text.vocab, &again);
    assert_int_equal(again.vision.mlp_width, c.vision.mlp_width);
    assert_int_equal(again.fusion.mlp_width, c.fusion.mlp_width);
    assert_int_equal(again.text.positions, 16);
    assert_int_equal(r.text_length, 16);
    c.text.eps = 1e-5;
    assert_int_equal(vlp_recipe_take_sizes(&r, &c, "X"), VLP_ERR_UNSUPPORTED);
    assert_non_null(strstr(vlp_error(), "X cannot be trained further: no recipe has \"layer_norm"));
    c.embedding = 0;
    assert_int_equal(vlp_recipe_take_sizes(&r, &c, "X"), VLP_ERR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fusion_albef__one_bert_is_text_tower_and_fusion_stack),
        cmocka_unit_test(test_fusion_albef__contradictions_are_named),
        cmocka_unit_test(test_fusion_albef__every_tensor_of_a_file_has_a_name),
        cmocka_unit_test(test_fusion_albef__a_folder_opens_as_a_model),
        cmocka_unit_test(test_fusion_albef__a_recipe_takes_its_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
