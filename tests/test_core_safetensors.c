#include "core/file.h"
#include "core/safetensors.h"
#include "core/suggest.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Builds header length + header + data and opens it. */
static vlp_status open_text(vlp_safetensors **out, vlp_buf *bytes, const char *header,
                            const void *data, size_t len) {
    vlp_buf_clear(bytes);
    uint64_t n = strlen(header);
    assert_int_equal(vlp_buf_append(bytes, &n, 8), VLP_OK);
    assert_int_equal(vlp_buf_puts(bytes, header), VLP_OK);
    assert_int_equal(vlp_buf_append(bytes, data, len), VLP_OK);
    return vlp_safetensors_open_memory(out, bytes->data, bytes->len, "x.safetensors");
}

static void test_core_safetensors__unsound_files_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        vlp_status status;
        const char *says;
    } cases[] = {
        {"{}", 0, VLP_OK, ""},
        {"{}", 1, VLP_ERR_FORMAT, "1 bytes follow"},
        {"[]", 0, VLP_ERR_FORMAT, "begin with {"},
        {"{\"a\":3}", 0, VLP_ERR_FORMAT, "\"a\": no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, VLP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", 8, VLP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, VLP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}", 0, VLP_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}x", 8, VLP_ERR_FORMAT,
         "JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, VLP_ERR_FORMAT,
         "\"a\": offsets 0..8 lie outside the 7 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, VLP_ERR_FORMAT,
         "\"a\": 8 bytes of data, but its shape and dtype need 12"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, VLP_ERR_FORMAT,
         "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, VLP_ERR_FORMAT,
         "dimension 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, VLP_ERR_FORMAT,
         "dimension 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         VLP_ERR_FORMAT, "overflows at dimension 1"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
         VLP_ERR_FORMAT, "overflows"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         VLP_ERR_UNSUPPORTED, "9 dimensions"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
         VLP_ERR_UNSUPPORTED, "\"a\": dtype F8_E4M3"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2,4]}}", 2, VLP_ERR_FORMAT,
         "pair"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":2,\"data_offsets\":[0,2]}}", 2, VLP_ERR_FORMAT,
         "no shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, VLP_ERR_FORMAT, "\"b\": its data overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
         5, VLP_ERR_FORMAT, "\"b\": its data follows a hole"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         4, VLP_ERR_FORMAT, "duplicate"},
        {"{\"a\\nb\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, VLP_ERR_FORMAT,
         "\"a?b\": control characters"},
        {"{\"__metadata__\":{\"step\":3}}", 0, VLP_ERR_FORMAT, "\"step\" is not a string"},
        {"{\"__metadata__\":[]}", 0, VLP_ERR_FORMAT, "not an object"},
    };
    vlp_buf bytes = {0};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        static const uint8_t data[64];
        vlp_safetensors *file;
        vlp_status status = open_text(&file, &bytes, cases[i].header, data, cases[i].data);
        if (status != cases[i].status) print_error("case %zu: %s\n", i, vlp_error());
        assert_int_equal(status, cases[i].status);
        if (status != VLP_OK && !strstr(vlp_error(), cases[i].says)) fail_msg("%s", vlp_error());
        if (status != VLP_OK) assert_non_null(strstr(vlp_error(), "x.safetensors"));
        vlp_safetensors_close(file);
    }
    vlp_buf_free(&bytes);
}

static void test_core_safetensors__header_length_is_bounded(void **state) {
    (void)state;
    vlp_safetensors *file;
    uint8_t bytes[16] = {0};
    uint64_t n = 100000001;
    memcpy(bytes, &n, 8);
    assert_int_equal(vlp_safetensors_open_memory(&file, bytes, 16, "x"), VLP_ERR_LIMIT);
    n = 9;
    memcpy(bytes, &n, 8);
    assert_int_equal(vlp_safetensors_open_memory(&file, bytes, 16, "x"), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "truncated"));
    n = UINT64_MAX;
    memcpy(bytes, &n, 8);
    assert_int_equal(vlp_safetensors_open_memory(&file, bytes, 16, "x"), VLP_ERR_LIMIT);
    assert_int_equal(vlp_safetensors_open_memory(&file, bytes, 7, "x"), VLP_ERR_FORMAT);
    assert_null(file);
}

/* Every cut of a sound file is refused. */
static void test_core_safetensors__truncation_is_noticed_at_every_byte(void **state) {
    (void)state;
    vlp_buf bytes = {0};
    vlp_safetensors *file;
    static const uint8_t data[8];
    const char *header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    assert_int_equal(open_text(&file, &bytes, header, data, 8), VLP_OK);
    vlp_safetensors_close(file);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(vlp_safetensors_open_memory(&file, bytes.data, len, "x"), VLP_ERR_FORMAT);
    vlp_buf_free(&bytes);
}

static const vlp_safetensor *only(vlp_safetensors **file, vlp_buf *bytes, const char *dtype,
                                  const char *shape, const void *data, size_t len) {
    char header[200]; /* its odd length leaves the data unaligned */
    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", dtype, shape, len);
    if (strlen(header) % 2 == 0) strcat(header, " ");
    assert_int_equal(open_text(file, bytes, header, data, len), VLP_OK);
    return vlp_safetensors_at(*file, 0);
}

static void test_core_safetensors__floats_of_every_width(void **state) {
    (void)state;
    vlp_buf bytes = {0};
    vlp_safetensors *file;
    vlp_real out[8];
    /* 1, -2, 2^-24 (least subnormal), 65504, inf, NaN, -0, 2^-14 */
    static const uint16_t half[8] = {0x3c00, 0xc000, 1, 0x7bff, 0x7c00, 0x7e01, 0x8000, 0x0400};
    const vlp_safetensor *t = only(&file, &bytes, "F16", "[2,4]", half, sizeof half);
    assert_int_equal(vlp_safetensors_read_real(t, out, 8), VLP_OK);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == VLP_R(0x1p-24) && out[3] == 65504);
    assert_true(isinf(out[4]) && out[4] > 0 && isnan(out[5]) && out[7] == VLP_R(0x1p-14));
    assert_true(out[6] == 0 && signbit(out[6]));
    vlp_safetensors_close(file);

    static const uint16_t brain[3] = {0x3f80, 0xc040, 0x0001};
    t = only(&file, &bytes, "BF16", "[3]", brain, sizeof brain);
    assert_int_equal(vlp_safetensors_read_real(t, out, 3), VLP_OK);
    assert_true(out[0] == 1 && out[1] == -3 && out[2] == VLP_R(0x1p-133));
    vlp_safetensors_close(file);

    static const double wide[2] = {0.1, -1e300};
    t = only(&file, &bytes, "F64", "[2]", wide, sizeof wide);
    assert_int_equal(vlp_safetensors_read_real(t, out, 2), VLP_OK);
    assert_true(out[0] == VLP_R(0.1) && isinf(out[1]));
    vlp_safetensors_close(file);

    static const float single[2] = {0.25f, -3.5f};
    t = only(&file, &bytes, "F32", "[2]", single, sizeof single);
    assert_int_equal(vlp_safetensors_read_real(t, out, 2), VLP_OK);
    assert_true(out[0] == VLP_R(0.25) && out[1] == VLP_R(-3.5));
    assert_int_equal(vlp_safetensors_read_real(t, out, 3), VLP_ERR_FORMAT);
    int32_t integers[2];
    assert_int_equal(vlp_safetensors_read_i32(t, integers, 2), VLP_ERR_FORMAT);
    vlp_safetensors_close(file);
    vlp_buf_free(&bytes);
}

static void test_core_safetensors__integers_of_every_width(void **state) {
    (void)state;
    vlp_buf bytes = {0};
    vlp_safetensors *file;
    int32_t out[2];
    static const int64_t i64[2] = {-100, INT32_MAX}, far[2] = {0, INT64_C(1) << 31};
    static const int32_t i32[2] = {INT32_MIN, 7};
    static const int16_t i16[2] = {-300, 300};
    static const int8_t i8[2] = {-3, 3};
    static const uint8_t u8[2] = {255, 1};
    static const struct {
        const char *dtype;
        const void *data;
        size_t len;
        int32_t want[2];
    } cases[] = {
        {"I64", i64, sizeof i64, {-100, INT32_MAX}},
        {"I32", i32, sizeof i32, {INT32_MIN, 7}},
        {"I16", i16, sizeof i16, {-300, 300}},
        {"I8", i8, sizeof i8, {-3, 3}},
        {"U8", u8, sizeof u8, {255, 1}},
        {"BOOL", u8, sizeof u8, {255, 1}},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        const vlp_safetensor *t =
            only(&file, &bytes, cases[i].dtype, "[2]", cases[i].data, cases[i].len);
        assert_int_equal(vlp_safetensors_read_i32(t, out, 2), VLP_OK);
        assert_memory_equal(out, cases[i].want, sizeof out);
        vlp_real real[2];
        assert_int_equal(vlp_safetensors_read_real(t, real, 2), VLP_ERR_FORMAT);
        vlp_safetensors_close(file);
    }
    const vlp_safetensor *t = only(&file, &bytes, "I64", "[2]", far, sizeof far);
    assert_int_equal(vlp_safetensors_read_i32(t, out, 2), VLP_ERR_LIMIT);
    assert_non_null(strstr(vlp_error(), "element 1"));
    vlp_safetensors_close(file);
    vlp_buf_free(&bytes);
}

static char folder[256], path[300];

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-safetensors-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a temporary was left behind */
}

static const vlp_safetensor_spec specs[] = {
    {"steps", VLP_ST_I64, 0, {0}},       {"empty", VLP_ST_F32, 2, {0, 5}},
    {"b.weight", VLP_ST_F32, 2, {2, 3}}, {"a.bias", VLP_ST_F32, 1, {3}},
    {"nothing", VLP_ST_F32, 1, {0}},
};

static vlp_status write_file(void) {
    static const vlp_st_pair metadata[] = {{"step", "12"}};
    static const vlp_real values[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    int64_t steps = 12;
    vlp_safetensors_writer *writer;
    vlp_status status = vlp_safetensors_writer_begin(&writer, path, specs, VLP_COUNT(specs),
                                                     metadata, VLP_COUNT(metadata));
    if (status != VLP_OK) return status;
    VLP_TRY_DONE(vlp_safetensors_writer_write(writer, &steps, sizeof steps));
    VLP_TRY_DONE(vlp_safetensors_writer_real(writer, values, 2)); /* pieces cross tensors freely */
    VLP_TRY_DONE(vlp_safetensors_writer_real(writer, values + 2, 7));
    return vlp_safetensors_writer_commit(writer);
done:
    vlp_safetensors_writer_abandon(writer);
    return status;
}

static void test_core_safetensors__what_was_written_is_read(void **state) {
    (void)state;
    assert_int_equal(write_file(), VLP_OK);
    vlp_safetensors *file;
    assert_int_equal(vlp_safetensors_open(&file, path), VLP_OK);
    assert_int_equal(vlp_safetensors_count(file), VLP_COUNT(specs));
    assert_string_equal(vlp_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(vlp_safetensors_metadata(file, "step"), "12");
    assert_null(vlp_safetensors_metadata(file, "none"));
    const vlp_safetensor *t = vlp_safetensors_find(file, "b.weight");
    assert_non_null(t);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal((uintptr_t)t->data % 8, 0);
    vlp_real out[6];
    assert_int_equal(vlp_safetensors_read_real(t, out, 6), VLP_OK);
    assert_true(out[0] == 1 && out[5] == 6);
    t = vlp_safetensors_find(file, "a.bias");
    assert_true(vlp_safetensor_value(t, 2) == 9);
    assert_true(vlp_safetensor_value(vlp_safetensors_find(file, "steps"), 0) == 12);
    assert_int_equal(vlp_safetensors_find(file, "empty")->numel, 0);
    vlp_safetensors_close(file);
}

static void test_core_safetensors__same_calls_same_bytes(void **state) {
    (void)state;
    vlp_buf first = {0}, second = {0};
    assert_int_equal(write_file(), VLP_OK);
    assert_int_equal(vlp_file_read(path, 0, &first), VLP_OK);
    assert_int_equal(write_file(), VLP_OK);
    assert_int_equal(vlp_file_read(path, 0, &second), VLP_OK);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    vlp_buf_free(&first);
    vlp_buf_free(&second);
}

static void test_core_safetensors__missing_tensor_suggests_the_nearest(void **state) {
    (void)state;
    assert_int_equal(write_file(), VLP_OK);
    vlp_safetensors *file;
    assert_int_equal(vlp_safetensors_open(&file, path), VLP_OK);
    const vlp_safetensor *t;
    assert_int_equal(vlp_safetensors_get(file, "b.wieght", &t), VLP_ERR_NOT_FOUND);
    assert_non_null(strstr(vlp_error(), "nearest name is \"b.weight\""));
    assert_int_equal(vlp_safetensors_get(file, "logit_scale", &t), VLP_ERR_NOT_FOUND);
    assert_null(strstr(vlp_error(), "nearest"));
    vlp_safetensors_close(file);
    assert_int_equal(vlp_safetensors_open(&file, "/nowhere/x"), VLP_ERR_NOT_FOUND);
}

static void test_core_safetensors__bad_names_are_not_written(void **state) {
    (void)state;
    static const vlp_safetensor_spec bad[3][2] = {
        {{"a", VLP_ST_F32, 0, {0}}, {"a", VLP_ST_F32, 0, {0}}},
        {{"a", VLP_ST_F32, 0, {0}}, {"__metadata__", VLP_ST_F32, 0, {0}}},
        {{"a", VLP_ST_F32, 0, {0}}, {"\xff", VLP_ST_F32, 0, {0}}},
    };
    for (size_t i = 0; i < 3; i++) {
        vlp_safetensors_writer *writer;
        assert_int_equal(vlp_safetensors_writer_begin(&writer, path, bad[i], 2, NULL, 0),
                         VLP_ERR_USAGE);
        assert_null(writer);
    }
}

/* Whichever allocation fails, the call fails cleanly and the old file stays. */
static void test_core_safetensors__every_allocation_may_fail(void **state) {
    (void)state;
    assert_int_equal(write_file(), VLP_OK);
    for (int64_t n = 1;; n++) {
        assert_true(n < 100);
        vlp_alloc_fail_at(n);
        vlp_safetensors *file = NULL;
        vlp_status status = write_file();
        if (status == VLP_OK) status = vlp_safetensors_open(&file, path);
        vlp_alloc_fail_at(0);
        vlp_safetensors_close(file);
        if (status == VLP_OK) break;
        assert_int_equal(status, VLP_ERR_MEMORY);
        assert_int_equal(vlp_safetensors_open(&file, path), VLP_OK);
        vlp_safetensors_close(file);
    }
}

static void test_core_suggest__slips_find_their_word(void **state) {
    (void)state;
    static const char *const known[] = {"learning_rate", "weight_decay", NULL, "warmup", "lr"};
    size_t n = VLP_COUNT(known);
    assert_string_equal(vlp_suggest("learning_rte", known, n), "learning_rate");
    assert_string_equal(vlp_suggest("wieght_decay", known, n), "weight_decay");
    assert_string_equal(vlp_suggest("warm-up", known, n), "warmup");
    assert_string_equal(vlp_suggest("l", known, n), "lr");
    assert_string_equal(vlp_suggest("rl", known, n), "lr"); /* a swap is one slip */
    assert_null(vlp_suggest("batch_size", known, n));
    assert_null(vlp_suggest("", known, 2));
    char text[64];
    assert_string_equal(vlp_suggest_text("warmpu", known, n, text, sizeof text),
                        "; did you mean \"warmup\"?");
    assert_string_equal(vlp_suggest_text("zzz", known, n, text, sizeof text), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_safetensors__unsound_files_are_refused),
        cmocka_unit_test(test_core_safetensors__header_length_is_bounded),
        cmocka_unit_test(test_core_safetensors__truncation_is_noticed_at_every_byte),
        cmocka_unit_test(test_core_safetensors__floats_of_every_width),
        cmocka_unit_test(test_core_safetensors__integers_of_every_width),
        cmocka_unit_test(test_core_safetensors__what_was_written_is_read),
        cmocka_unit_test(test_core_safetensors__same_calls_same_bytes),
        cmocka_unit_test(test_core_safetensors__missing_tensor_suggests_the_nearest),
        cmocka_unit_test(test_core_safetensors__bad_names_are_not_written),
        cmocka_unit_test(test_core_safetensors__every_allocation_may_fail),
        cmocka_unit_test(test_core_suggest__slips_find_their_word),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
