/* The limits that the runner of reference cases applies, on cases made of literals. */
#include "parity/report.h"

#include "core/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_RULE "{\"tolerance\":{\"forward\":2e-5,\"grad\":1e-4},\"compare_rows\":\"x\"}"
#define VISION_RULE                                                                                \
    "{\"tolerance\":{\"forward\":{\"abs\":1e-6,\"rel\":2e-5},\"grad\":{\"abs\":2e-6,\"rel\":1e-4}" \
    ","                                                                                            \
    "\"scalar\":{\"abs\":1e-3,\"rel\":0},\"int\":\"exact\"}}"

static vlp_buf expected_bytes, input_bytes;

static void open_bytes(vlp_safetensors **out, vlp_buf *bytes, const char *header, const void *data,
                       size_t len) {
    uint64_t n = strlen(header);
    vlp_buf_clear(bytes);
    assert_int_equal(vlp_buf_append(bytes, &n, 8), VLP_OK);
    assert_int_equal(vlp_buf_puts(bytes, header), VLP_OK);
    assert_int_equal(vlp_buf_append(bytes, data, len), VLP_OK);
    assert_int_equal(vlp_safetensors_open_memory(out, bytes->data, bytes->len, "x"), VLP_OK);
}

/* A case of one expected tensor `name`, of 4 elements and the given shape, dtype F32 or I32, beside
 * a gradient whose largest element is 1000; attention_mask is [[1,0]]. */
static void open_case(parity_case *c, const char *rule, const char *name, const char *shape,
                      const void *four) {
    char header[400];
    uint8_t data[20];
    const float big = 1000;
    static const int32_t mask[2] = {1, 0};
    memcpy(data, four, 16);
    memcpy(data + 16, &big, 4);
    const char *dtype = strncmp(name, "ids", 3) == 0 ? "I32" : "F32";
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,16]},"
             "\"grad/other\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]}}",
             name, dtype, shape);
    *c = (parity_case){.folder = "case", .system = "s", .mode = "m"};
    assert_int_equal(vlp_json_parse(&c->json, rule, strlen(rule), "rule"), VLP_OK);
    open_bytes(&c->expected, &expected_bytes, header, data, sizeof data);
    open_bytes(&c->inputs, &input_bytes,
               "{\"attention_mask\":{\"dtype\":\"I32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}",
               mask, sizeof mask);
}

static const float four[4] = {1, -2, 0.5f, 2};

/* Whether the tensor passes when element `at` is off by `shift`. */
static bool passes_shape(const char *rule, const char *name, int ndim, const int64_t *shape,
                         const char *text, int at, double shift) {
    parity_case c;
    parity_report *report;
    char *output = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&output, &size);
    vlp_real values[4];
    const vlp_real big = 1000;
    open_case(&c, rule, name, text, four);
    for (int i = 0; i < 4; i++) values[i] = VLP_R(four[i]) + (i == at ? VLP_R(shift) : 0);
    assert_int_equal(parity_report_new(&report, &c, stream), VLP_OK);
    assert_true(parity_wants(report, name));
    parity_expect(report, name, ndim, shape, values);
    assert_false(parity_wants(report, name));
    parity_expect(report, "grad/other", 1, &(int64_t){1}, &big);
    parity_expect(report, "not in the case", ndim, shape, values);
    bool pass = parity_verdict(report, NULL);
    fclose(stream);
    assert_true(pass == !strstr(output, "FAIL"));
    free(output);
    parity_report_free(report);
    parity_case_close(&c);
    return pass;
}

static bool passes(const char *rule, const char *name, int at, double shift) {
    return passes_shape(rule, name, 1, &(int64_t){4}, "[4]", at, shift);
}

static void test_parity_report__text_limits(void **state) {
    (void)state;
    assert_true(passes(TEXT_RULE, "logits", 0, 3.9e-5)); /* 2e-5 x max(1, 2) */
    assert_false(passes(TEXT_RULE, "logits", 0, 4.1e-5));
    assert_true(passes(TEXT_RULE, "grad/w", 2, 9e-4)); /* 1e-4 x max(0.01 x 1000, 2) */
    assert_false(passes(TEXT_RULE, "grad/w", 2, 1.1e-3));
    assert_false(passes(TEXT_RULE, "logits", 0, NAN));
    assert_false(passes(TEXT_RULE, "logits", 0, INFINITY));
}

static void test_parity_report__vision_limits(void **state) {
    (void)state;
    assert_true(passes(VISION_RULE, "output", 0, 4.05e-5)); /* 1e-6 + 2e-5 x 2 */
    assert_false(passes(VISION_RULE, "output", 0, 4.2e-5));
    assert_true(passes(VISION_RULE, "grad_input/pixels", 0, 2.01e-4)); /* 2e-6 + 1e-4 x 2 */
    assert_false(passes(VISION_RULE, "grad_input/pixels", 0, 2.04e-4));
}

static void test_parity_report__attended_rows_alone_count(void **state) {
    (void)state;
    const int64_t tokens[3] = {1, 2, 2}, matrix[2] = {2, 2};
    assert_true(passes_shape(TEXT_RULE, "hidden", 3, tokens, "[1,2,2]", 2, 9));
    assert_false(passes_shape(TEXT_RULE, "hidden", 3, tokens, "[1,2,2]", 1, 9));
    assert_false(passes_shape(VISION_RULE, "hidden", 3, tokens, "[1,2,2]", 2, 9)); /* all rows */
    assert_false(passes_shape(TEXT_RULE, "pooled", 2, matrix, "[2,2]", 2, 9));
    assert_false(passes_shape(TEXT_RULE, "grad/hidden", 3, tokens, "[1,2,2]", 2, 9));
}

static void test_parity_report__shapes_must_agree(void **state) {
    (void)state;
    const int64_t flat = 4, square[2] = {2, 2};
    assert_true(passes_shape(TEXT_RULE, "logits", 1, &flat, "[4]", 0, 0));
    assert_false(passes_shape(TEXT_RULE, "logits", 2, square, "[4]", 0, 0));
}

static void test_parity_report__integers_are_exact(void **state) {
    (void)state;
    static const int32_t ids[4] = {5, 100000001, -100, 0};
    for (int wrong = 0; wrong < 2; wrong++) {
        parity_case c;
        parity_report *report;
        FILE *stream = fopen("/dev/null", "w");
        open_case(&c, TEXT_RULE, "ids", "[4]", ids);
        int32_t ours[4] = {5, 100000001 - wrong, -100, 0};
        const vlp_real big = 1000;
        assert_int_equal(parity_report_new(&report, &c, stream), VLP_OK);
        parity_expect(report, "grad/other", 1, &(int64_t){1}, &big);
        parity_expect_i32(report, "ids", 1, &(int64_t){4}, ours);
        assert_true(parity_verdict(report, NULL) == !wrong);
        fclose(stream);
        parity_report_free(report);
        parity_case_close(&c);
    }
}

/* Nothing computed, a failed check or a runner that gave up is no success. */
static void test_parity_report__success_needs_evidence(void **state) {
    (void)state;
    static const struct {
        int checks, failed;
        const char *failure;
        bool pass;
    } cases[] = {{0, 0, NULL, false}, {2, 0, NULL, true}, {2, 1, NULL, false}, {2, 0, "x", false}};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        parity_case c = {.folder = "case"};
        parity_report *report;
        FILE *stream = fopen("/dev/null", "w");
        assert_int_equal(parity_report_new(&report, &c, stream), VLP_OK);
        for (int k = 0; k < cases[i].checks; k++)
            parity_check(report, "ids", k >= cases[i].failed, "%d of 2 texts", k);
        assert_true(parity_verdict(report, cases[i].failure) == cases[i].pass);
        fclose(stream);
        parity_report_free(report);
    }
}

static int free_bytes(void **state) {
    (void)state;
    vlp_buf_free(&expected_bytes);
    vlp_buf_free(&input_bytes);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity_report__text_limits),
        cmocka_unit_test(test_parity_report__vision_limits),
        cmocka_unit_test(test_parity_report__attended_rows_alone_count),
        cmocka_unit_test(test_parity_report__shapes_must_agree),
        cmocka_unit_test(test_parity_report__integers_are_exact),
        cmocka_unit_test(test_parity_report__success_needs_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, free_bytes);
}
