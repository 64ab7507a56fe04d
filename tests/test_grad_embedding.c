#include "tests/gradcheck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int32_t ids[] = {2, 0, 2, 4, 1, 2};

static vlp_tensor *embedding(vlp_tape *tape, vlp_tensor **x) {
    return vlp_embedding(tape, x[0], ids, 2, (int64_t[]){2, 3}, -1);
}

static vlp_tensor *no_ids(vlp_tape *tape, vlp_tensor **x) {
    return vlp_embedding(tape, x[0], NULL, 1, (int64_t[]){0}, -1);
}

/* The table is also the output layer. */
static vlp_tensor *tied(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *rows = vlp_embedding(tape, x[0], ids, 1, (int64_t[]){6}, -1);
    return vlp_linear(tape, rows, x[0], NULL, VLP_ACT_NONE);
}

static vlp_tensor *positions(vlp_tape *tape, vlp_tensor **x) {
    return vlp_add_positions(tape, x[0], x[1], 0);
}

static vlp_tensor *positions_offset(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_add_positions(tape, x[0], x[1], 2), x[0]);
}

static vlp_tensor *prepend(vlp_tape *tape, vlp_tensor **x) {
    return vlp_prepend_tokens(tape, x[0], x[1]);
}

static vlp_tensor *prepend_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_prepend_tokens(tape, x[0], vlp_prepend_tokens(tape, x[0], x[1]));
}

static const uint8_t mask[] = {0, 1, 1, 0, 0, 1};
static const uint8_t none[6], all[] = {1, 1, 1, 1, 1, 1};

static vlp_tensor *mask_rows(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], mask);
}

static vlp_tensor *mask_none(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], none);
}

static vlp_tensor *mask_all(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], all);
}

static vlp_tensor *mask_reused(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_mask_rows(tape, x[0], x[1], mask), x[0]);
}

static vlp_tensor *patches(vlp_tape *tape, vlp_tensor **x) {
    return vlp_patch_embed(tape, x[0], x[1], x[2], 2);
}

static vlp_tensor *patches_no_bias(vlp_tape *tape, vlp_tensor **x) {
    return vlp_patch_embed(tape, x[0], x[1], NULL, 3);
}

/* The same pixels by two projections: the second adds to what the first wrote. */
static vlp_tensor *patches_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_patch_embed(tape, x[0], x[1], NULL, 2),
                   vlp_patch_embed(tape, x[0], x[2], NULL, 2));
}

static const gradcheck_case cases[] = {
    {"embedding, repeated ids", "embedding", 1, {{2, {5, 3}}}, embedding},
    {"embedding, wide", "embedding", 1, {{2, {5, 37}}}, embedding},
    {"embedding, no ids", "embedding", 1, {{2, {5, 3}}}, no_ids},
    {"embedding, tied", "embedding", 1, {{2, {5, 3}}}, tied},
    {"positions", "add_positions", 2, {{3, {3, 5, 7}}, {2, {5, 7}}}, positions},
    {"positions, offset", "add_positions", 2, {{3, {2, 3, 5}}, {2, {7, 5}}}, positions_offset},
    {"prepend one", "prepend_tokens", 2, {{2, {1, 5}}, {3, {3, 2, 5}}}, prepend},
    {"prepend two", "prepend_tokens", 2, {{2, {2, 37}}, {3, {2, 3, 37}}}, prepend},
    {"prepend to nothing", "prepend_tokens", 2, {{2, {2, 5}}, {3, {2, 0, 5}}}, prepend},
    {"prepend twice", "prepend_tokens", 2, {{2, {1, 5}}, {3, {3, 2, 5}}}, prepend_twice},
    {"mask rows", "mask_rows", 2, {{3, {2, 3, 5}}, {1, {5}}}, mask_rows},
    {"mask none", "mask_rows", 2, {{2, {6, 5}}, {1, {5}}}, mask_none},
    {"mask all", "mask_rows", 2, {{2, {6, 37}}, {1, {37}}}, mask_all},
    {"mask, x used twice", "mask_rows", 2, {{2, {6, 5}}, {1, {5}}}, mask_reused},
    {"patches", "patch_embed", 3, {{4, {2, 3, 4, 6}}, {2, {5, 12}}, {1, {5}}}, patches},
    {"patches, no bias", "patch_embed", 2, {{4, {1, 1, 6, 9}}, {2, {2, 9}}}, patches_no_bias},
    {"patches, 4-dimensional w",
     "patch_embed",
     3,
     {{4, {1, 2, 2, 4}}, {4, {3, 2, 2, 2}}, {1, {3}}},
     patches},
    {"patches, pixels used twice",
     "patch_embed",
     3,
     {{4, {1, 1, 4, 4}}, {2, {3, 4}}, {2, {3, 4}}},
     patches_twice},
};

static void test_grad_embedding__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(cases); i++)
        assert_true(gradcheck_run(&cases[i], 1e-6) <= 1e-6);
}

static void test_grad_embedding__padding_gets_no_gradient(void **state) {
    (void)state;
    vlp_tape *tape = NULL;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    assert_int_equal(vlp_tape_open(tape, 1 << 16), VLP_OK);
    const vlp_real values[5 * 2] = {0}, ones[6 * 2] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    vlp_tensor *table = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){5, 2}, values, true);
    vlp_tensor *y = vlp_embedding(tape, table, ids, 1, (int64_t[]){6}, 2);
    vlp_tape_seed(tape, y, ones);
    assert_int_equal(vlp_tape_backward(tape, NULL), VLP_OK);
    const double times[] = {1, 1, 0, 0, 1}; /* row 2 is the padding, row 3 never used */
    for (int i = 0; i < 10; i++) assert_true(table->grad[i] == times[i / 2]);
    vlp_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grad_embedding__agrees_with_differences),
        cmocka_unit_test(test_grad_embedding__padding_gets_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
