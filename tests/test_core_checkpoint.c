/* Checkpoints under the names of other implementations. */
#include "core/checkpoint.h"
#include "core/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Theirs: q, k, v [2, 3] of layers, a transposed projection, a table stored once or twice. */
static const vlp_name_row rows[] = {
    VLP_NAME_PART("layer.{}.q", "blocks.{}.qkv", 0, 3),
    VLP_NAME_PART("layer.{}.k", "blocks.{}.qkv", 1, 3),
    VLP_NAME_PART("layer.{}.v", "blocks.{}.qkv", 2, 3),
    {.theirs = "proj", .ours = "proj", .transpose = true},
    {.theirs = "table", .ours = "words"},
    {.theirs = "decoder.table", .ours = "words"},
    {.theirs = "position_ids"},
};

enum { MOST = 12 };

typedef struct {
    const char *name;
    int ndim;
    int64_t shape[2];
    float first; /* values count upwards from here */
} stored;

static const stored all[] = {
    {"bert.layer.0.q.weight", 2, {2, 3}, 0},
    {"bert.layer.0.q.bias", 1, {2}, 100},
    {"bert.layer.0.k.weight", 2, {2, 3}, 10},
    {"bert.layer.0.k.bias", 1, {2}, 110},
    {"bert.layer.0.v.weight", 2, {2, 3}, 20},
    {"bert.layer.0.v.bias", 1, {2}, 120},
    {"bert.proj", 2, {3, 2}, 30},
    {"bert.table", 2, {4, 3}, 40},
};

typedef struct {
    char path[300];
    vlp_safetensors *file;
    vlp_params *params;
    vlp_tensor *weight, *bias, *proj, *words;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%s/vlp-checkpoint-XXXXXX", base ? base : "/tmp");
    int fd = mkstemp(f->path);
    if (fd < 0 || vlp_params_new(&f->params) != VLP_OK) return -1;
    close(fd);
    vlp_init zero = VLP_INIT_CONSTANT(0);
    vlp_params_push(f->params, "text.blocks.0.qkv");
    f->weight = vlp_params_add(f->params, "weight", zero, VLP_NO_DECAY, 2, (int64_t[]){6, 3});
    f->bias = vlp_params_add(f->params, "bias", zero, VLP_NO_DECAY, 1, (int64_t[]){6});
    vlp_params_pop(f->params);
    f->proj = vlp_params_add(f->params, "text.proj", zero, VLP_NO_DECAY, 2, (int64_t[]){2, 3});
    f->words = vlp_params_add(f->params, "text.words", zero, VLP_NO_DECAY, 2, (int64_t[]){4, 3});
    *state = f;
    return vlp_params_allocate(f->params, false) == VLP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    vlp_safetensors_close(f->file);
    vlp_params_free(f->params);
    unlink(f->path);
    free(f);
    return 0;
}

/* Writes all but `without` (or NULL), and `extra` (or NULL), and opens the file. */
static void store(fixture *f, const char *without, const stored *extra) {
    vlp_safetensor_spec specs[MOST] = {0};
    const stored *chosen[MOST] = {0};
    size_t n = 0;
    for (size_t i = 0; i < VLP_COUNT(all); i++)
        if (!without || strcmp(all[i].name, without) != 0) chosen[n++] = &all[i];
    if (extra) chosen[n++] = extra;
    for (size_t i = 0; i < n; i++) {
        specs[i] = (vlp_safetensor_spec){chosen[i]->name, VLP_ST_F32, chosen[i]->ndim, {0}};
        memcpy(specs[i].shape, chosen[i]->shape, sizeof chosen[i]->shape);
    }
    vlp_safetensors_writer *writer;
    assert_int_equal(vlp_safetensors_writer_begin(&writer, f->path, specs, n, NULL, 0), VLP_OK);
    for (size_t i = 0; i < n; i++) {
        float values[MOST];
        int64_t numel = chosen[i]->shape[0] * (chosen[i]->ndim == 2 ? chosen[i]->shape[1] : 1);
        for (int64_t k = 0; k < numel; k++) values[k] = chosen[i]->first + (float)k;
        assert_int_equal(
            vlp_safetensors_writer_write(writer, values, (size_t)numel * sizeof *values), VLP_OK);
    }
    assert_int_equal(vlp_safetensors_writer_commit(writer), VLP_OK);
    assert_int_equal(vlp_safetensors_open(&f->file, f->path), VLP_OK);
}

static vlp_status load(fixture *f, const char *optional) {
    vlp_name_map map = {0};
    vlp_name_map_add(&map, rows, VLP_COUNT(rows), "bert.", "text.");
    return vlp_params_load(f->params, f->file, map, optional);
}

static void assert_message(const char *part) {
    if (!strstr(vlp_error(), part)) fail_msg("\"%s\" lacks \"%s\"", vlp_error(), part);
}

static void test_core_checkpoint__parts_and_transposes_find_their_place(void **state) {
    fixture *f = *state;
    store(f, NULL, NULL);
    assert_int_equal(load(f, NULL), VLP_OK);
    const vlp_real *w = vlp_real_data(f->weight), *b = vlp_real_data(f->bias);
    for (int part = 0; part < 3; part++) {
        for (int k = 0; k < 6; k++) assert_true(w[6 * part + k] == (vlp_real)(10 * part + k));
        for (int k = 0; k < 2; k++) assert_true(b[2 * part + k] == (vlp_real)(100 + 10 * part + k));
    }
    const vlp_real *proj = vlp_real_data(f->proj); /* theirs [3, 2] from 30 */
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++) assert_true(proj[3 * r + c] == (vlp_real)(30 + 2 * c + r));
}

static void test_core_checkpoint__copies_go_back_as_they_came(void **state) {
    fixture *f = *state;
    store(f, NULL, NULL);
    assert_int_equal(load(f, NULL), VLP_OK);
    vlp_name_map map = {0};
    vlp_name_map_add(&map, rows, VLP_COUNT(rows), "bert.", "text.");
    for (size_t i = 0; i < VLP_COUNT(all); i++) {
        char ours[VLP_NAME_BYTES];
        vlp_real theirs[MOST];
        const vlp_name_row *row = vlp_name_find(&map, all[i].name, ours);
        const vlp_param *param = row ? vlp_params_find(f->params, ours) : NULL;
        assert_non_null(param);
        vlp_name_copy(row, &param->tensor, param->tensor.data, theirs, true);
        int64_t n = all[i].shape[0] * (all[i].ndim == 2 ? all[i].shape[1] : 1);
        for (int64_t k = 0; k < n; k++)
            assert_true(theirs[k] == (vlp_real)all[i].first + (vlp_real)k);
    }
}

static void test_core_checkpoint__a_missing_tensor_is_named_as_theirs(void **state) {
    fixture *f = *state;
    store(f, "bert.table", NULL);
    assert_int_not_equal(load(f, NULL), VLP_OK);
    assert_message("bert.table");
    assert_int_equal(load(f, "text.words"), VLP_OK); /* unless it is optional */
}

static void test_core_checkpoint__a_missing_part_is_an_error(void **state) {
    fixture *f = *state;
    store(f, "bert.layer.0.k.bias", NULL);
    assert_int_equal(load(f, NULL), VLP_ERR_FORMAT);
    assert_message("\"text.blocks.0.qkv.bias\" is incomplete");
}

static void test_core_checkpoint__tied_copies_must_agree(void **state) {
    fixture *f = *state;
    const stored same = {"bert.decoder.table", 2, {4, 3}, 40};
    store(f, NULL, &same);
    assert_int_equal(load(f, NULL), VLP_OK);
    vlp_safetensors_close(f->file);
    const stored other = {"bert.decoder.table", 2, {4, 3}, 41};
    store(f, NULL, &other);
    assert_int_equal(load(f, NULL), VLP_ERR_UNSUPPORTED);
    assert_message("differs from the other tensor for \"text.words\"");
}

/* Any of the tied copies suffices. */
static void test_core_checkpoint__the_second_name_alone_is_enough(void **state) {
    fixture *f = *state;
    const stored only = {"bert.decoder.table", 2, {4, 3}, 50};
    store(f, "bert.table", &only);
    assert_int_equal(load(f, NULL), VLP_OK);
    assert_true(vlp_real_data(f->words)[11] == 61);
}

static void test_core_checkpoint__known_and_not_needed_is_passed_over(void **state) {
    fixture *f = *state;
    const stored ids = {"bert.position_ids", 2, {1, 4}, 0};
    store(f, NULL, &ids);
    assert_int_equal(load(f, NULL), VLP_OK);
}

static void test_core_checkpoint__an_unknown_tensor_is_an_error(void **state) {
    fixture *f = *state;
    const stored stranger = {"bert.pooler", 2, {2, 2}, 0};
    store(f, NULL, &stranger);
    assert_int_equal(load(f, NULL), VLP_ERR_FORMAT);
    assert_message("unexpected tensor \"bert.pooler\"");
}

static void test_core_checkpoint__another_shape_is_an_error(void **state) {
    fixture *f = *state;
    const stored wide = {"bert.proj", 2, {2, 3}, 0};
    store(f, "bert.proj", &wide);
    assert_int_equal(load(f, NULL), VLP_ERR_FORMAT);
    assert_message("\"bert.proj\" has shape [2,3]");
}

static void test_core_checkpoint__prefixes_tell_variants_apart(void **state) {
    fixture *f = *state;
    static const char *const prefixes[] = {"", "vit.", "bert.", NULL};
    store(f, NULL, NULL);
    assert_string_equal(vlp_name_prefix(f->file, prefixes, "table"), "bert.");
    assert_null(vlp_name_prefix(f->file, prefixes, "tables"));
}

/* One stack of theirs is two of ours: layers 0 and 1, and 2 and 3 counted from 0 again. */
static void test_core_checkpoint__a_stack_is_cut_into_stretches_of_layers(void **state) {
    (void)state;
    static const vlp_name_row layers[] = {{.theirs = "layer.{}.w", .ours = "blocks.{}.w"},
                                          {.theirs = "table", .ours = "words"}};
    static const char *const pairs[][2] = {
        {"bert.layer.0.w", "text.blocks.0.w"},
        {"bert.layer.1.w", "text.blocks.1.w"},
        {"bert.layer.2.w", "fusion.blocks.0.w"},
        {"bert.layer.3.w", "fusion.blocks.1.w"},
        {"bert.table", "text.words"},
    };
    vlp_name_map map = {0};
    char ours[VLP_NAME_BYTES];
    vlp_name_map_add_layers(&map, layers, VLP_COUNT(layers), "bert.", "text.", 0, 2);
    vlp_name_map_add_layers(&map, layers, VLP_COUNT(layers), "bert.", "fusion.", 2, 4);
    for (size_t i = 0; i < VLP_COUNT(pairs); i++) {
        assert_non_null(vlp_name_find(&map, pairs[i][0], ours));
        assert_string_equal(ours, pairs[i][1]);
    }
    assert_null(vlp_name_find(&map, "bert.layer.4.w", ours));
}

/* A missing tensor of the second stretch is named by its number in the file. */
static void test_core_checkpoint__a_missing_layer_has_the_files_number(void **state) {
    fixture *f = *state;
    vlp_name_map map = {0};
    store(f, NULL, NULL);
    vlp_name_map_add(&map, rows + 6, VLP_COUNT(rows) - 6, "bert.", "text.");
    vlp_name_map_add_layers(&map, rows, 6, "bert.", "fusion.", 0, 1);
    vlp_name_map_add_layers(&map, rows, 6, "bert.", "text.", 6, 8);
    assert_int_not_equal(vlp_params_load(f->params, f->file, map, "fusion."), VLP_OK);
    assert_message("bert.layer.6.q.weight");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_core_checkpoint__##name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parts_and_transposes_find_their_place),
        TEST(copies_go_back_as_they_came),
        TEST(a_missing_tensor_is_named_as_theirs),
        TEST(a_missing_part_is_an_error),
        TEST(tied_copies_must_agree),
        TEST(the_second_name_alone_is_enough),
        TEST(known_and_not_needed_is_passed_over),
        TEST(an_unknown_tensor_is_an_error),
        TEST(another_shape_is_an_error),
        TEST(prefixes_tell_variants_apart),
        TEST(a_stack_is_cut_into_stretches_of_layers),
        TEST(a_missing_layer_has_the_files_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
