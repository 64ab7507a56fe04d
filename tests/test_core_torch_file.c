/* Checkpoints in PyTorch's containers and in several files; tests/data/checkpoints/README.md. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/torch_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DATA VLP_TESTS_DIR "/data/checkpoints/"

static vlp_safetensors *open_good(const char *path) {
    vlp_safetensors *file;
    if (vlp_checkpoint_open(&file, path) != VLP_OK) fail_msg("%s", vlp_error());
    return file;
}

static void refused(const char *path, vlp_status code, const char *part) {
    vlp_safetensors *file;
    assert_int_equal(vlp_checkpoint_open(&file, path), code);
    if (!strstr(vlp_error(), part)) fail_msg("no \"%s\" in: %s", part, vlp_error());
    assert_null(strchr(vlp_error(), '\n'));
    assert_null(file);
}

static void holds(const vlp_safetensors *file, const char *name, vlp_st_dtype dtype, int ndim,
                  const int64_t *shape, const double *values) {
    const vlp_safetensor *t = vlp_safetensors_find(file, name);
    if (!t) fail_msg("no tensor %s", name);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->ndim, ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(t->shape[d], shape[d]);
    for (int64_t i = 0; i < t->numel; i++)
        if (vlp_safetensor_value(t, i) != values[i])
            fail_msg("%s[%d] is %.9g, not %.9g", name, (int)i, vlp_safetensor_value(t, i),
                     values[i]);
}

#define HOLDS(file, name, dtype, shape, ...)                                                       \
    holds(file, name, dtype, (int)VLP_COUNT(((int64_t[])shape)), (int64_t[])shape,                 \
          (double[]){__VA_ARGS__})
#define S(...)                                                                                     \
    { __VA_ARGS__ }

static void test_core_torch_file__every_type_is_read(void **state) {
    (void)state;
    vlp_safetensors *file = open_good(DATA "training.pt");
    assert_int_equal(vlp_safetensors_count(file), 15); /* nothing of the optimizer */
    HOLDS(file, "f32", VLP_ST_F32, S(2, 3), 0, 1, 2, 3, 4, 5);
    HOLDS(file, "f64", VLP_ST_F64, S(2), 1.0 / 3, -2.5);
    HOLDS(file, "f16", VLP_ST_F16, S(2), 1.5, -0.0999755859375);
    HOLDS(file, "bf16", VLP_ST_BF16, S(2), 1.5, -3.140625);
    HOLDS(file, "i64", VLP_ST_I64, S(2), -5, 1099511627776.0);
    HOLDS(file, "i32", VLP_ST_I32, S(2), 7, -8);
    HOLDS(file, "u8", VLP_ST_U8, S(2), 0, 255);
    HOLDS(file, "flag", VLP_ST_BOOL, S(2), 1, 0);
    HOLDS(file, "parameter", VLP_ST_F32, S(2), 9, 8);
    holds(file, "scalar", VLP_ST_F32, 0, NULL, (double[]){(double)4.6052f});
    holds(file, "empty", VLP_ST_F32, 2, (int64_t[]){0, 3}, NULL);
    vlp_safetensors_close(file);
}

static void test_core_torch_file__views_of_a_storage_are_read(void **state) {
    (void)state;
    vlp_safetensors *file = open_good(DATA "training.pt");
    HOLDS(file, "offset", VLP_ST_F32, S(3, 2), 6, 7, 8, 9, 10, 11);
    HOLDS(file, "transposed", VLP_ST_F32, S(3, 2), 0, 3, 1, 4, 2, 5);
    HOLDS(file, "every_other", VLP_ST_F32, S(4), 0, 2, 4, 6);
    HOLDS(file, "position_ids", VLP_ST_I64, S(1, 4), 0, 1, 2, 3);
    const vlp_safetensor *a = vlp_safetensors_find(file, "f32"),
                         *b = vlp_safetensors_find(file, "offset");
    assert_ptr_equal((const uint8_t *)a->data + a->bytes, b->data); /* shared, not copied */
    vlp_safetensors_close(file);
}

static void test_core_torch_file__modules_of_torchscript_give_dotted_names(void **state) {
    (void)state;
    vlp_safetensors *file = open_good(DATA "script.pt");
    assert_int_equal(vlp_safetensors_count(file), 3);
    HOLDS(file, "visual.proj", VLP_ST_F16, S(2, 3), 1, 1, 1, 1, 1, 1);
    holds(file, "context_length", VLP_ST_I64, 0, NULL, (double[]){77});
    vlp_safetensors_close(file);
}

static void test_core_torch_file__anything_but_tensors_is_refused_by_name(void **state) {
    (void)state;
    refused(DATA "refused.pt", VLP_ERR_UNSUPPORTED, "argparse.Namespace");
    refused(DATA "old.pt", VLP_ERR_UNSUPPORTED, "torch.save(torch.load(");
    refused(DATA "expanded.pt", VLP_ERR_UNSUPPORTED, "contiguous()");
    refused(DATA "README.md", VLP_ERR_UNSUPPORTED, "neither safetensors nor");
    refused(DATA, VLP_ERR_NOT_FOUND, "pytorch_model.bin");
}

static void test_core_torch_file__several_files_are_one(void **state) {
    (void)state;
    static const char *const paths[] = {DATA "sharded", DATA "sharded-bin",
                                        DATA "sharded/model.safetensors.index.json"};
    for (size_t i = 0; i < VLP_COUNT(paths); i++) {
        vlp_safetensors *file = open_good(paths[i]);
        assert_int_equal(vlp_safetensors_count(file), 2);
        HOLDS(file, "a.weight", VLP_ST_F32, S(2, 2), 1, 1, 1, 1);
        HOLDS(file, "b.weight", VLP_ST_F32, S(3), 2, 2, 2);
        for (size_t k = 0; k < 2; k++) {
            const vlp_safetensor *t = vlp_safetensors_at(file, k);
            vlp_safetensors_release(file, t, 0, t->numel);
            assert_true(vlp_safetensor_value(t, 0) > 0);
        }
        vlp_safetensors_close(file);
    }
}

/* An index whose weight_map is `map`, beside the two parts. */
static void index_refused(const char *map, vlp_status code, const char *part) {
    char folder[] = "/tmp/vlp-shards-XXXXXX", path[128], text[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.index.json", folder);
    snprintf(text, sizeof text, "{\"weight_map\": %s}", map);
    assert_int_equal(vlp_file_write(path, text, strlen(text)), VLP_OK);
    refused(path, code, part);
    remove(path);
    remove(folder);
}

static void test_core_torch_file__an_index_names_files_beside_it(void **state) {
    (void)state;
    index_refused("{\"a\": \"../x.safetensors\"}", VLP_ERR_FORMAT, "no file beside it");
    index_refused("{\"a\": 3}", VLP_ERR_FORMAT, "no file beside it");
    index_refused("{\"a\": \"none.safetensors\"}", VLP_ERR_NOT_FOUND, "none.safetensors");
    index_refused("[]", VLP_ERR_FORMAT, "weight_map");
    /* an index that names itself ends */
    index_refused("{\"a\": \"x.index.json\"}", VLP_ERR_UNSUPPORTED, "neither safetensors");
}

/* Cut anywhere, or with any byte changed: an error or tensors that can be read, never a crash. */
static void test_core_torch_file__damage_is_an_error(void **state) {
    (void)state;
    vlp_buf bytes = {0};
    vlp_safetensors *file;
    assert_int_equal(vlp_file_read(DATA "training.pt", 0, &bytes), VLP_OK);
    enum { END = 22 }; /* of the directory, which says nothing that an earlier record did not */
    for (size_t len = 0; len + END < bytes.len; len += 7)
        assert_int_equal(vlp_torch_open_memory(&file, bytes.data, len, "x.pt"), VLP_ERR_FORMAT);
    int good = 0;
    for (size_t i = 0; i < bytes.len; i++)
        for (int flip = 1; flip < 256; flip = flip * 5 + 1) {
            bytes.data[i] = (char)(bytes.data[i] ^ flip);
            if (vlp_torch_open_memory(&file, bytes.data, bytes.len, "x.pt") == VLP_OK) {
                for (size_t k = 0; k < vlp_safetensors_count(file); k++) {
                    const vlp_safetensor *t = vlp_safetensors_at(file, k);
                    if (t->numel) vlp_safetensor_value(t, t->numel - 1);
                }
                good++;
            }
            vlp_safetensors_close(file);
            bytes.data[i] = (char)(bytes.data[i] ^ flip);
        }
    assert_true(good > 0); /* changed numbers are still numbers */
    vlp_buf_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_torch_file__every_type_is_read),
        cmocka_unit_test(test_core_torch_file__views_of_a_storage_are_read),
        cmocka_unit_test(test_core_torch_file__modules_of_torchscript_give_dotted_names),
        cmocka_unit_test(test_core_torch_file__anything_but_tensors_is_refused_by_name),
        cmocka_unit_test(test_core_torch_file__several_files_are_one),
        cmocka_unit_test(test_core_torch_file__an_index_names_files_beside_it),
        cmocka_unit_test(test_core_torch_file__damage_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
