#include "tests/gradcheck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int32_t rows[] = {4, 0, 4, 1, 4};

static vlp_tensor *gather(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_rows(tape, x[0], rows, 5);
}

static vlp_tensor *gather_none(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_rows(tape, x[0], NULL, 0);
}

static vlp_tensor *gather_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_gather_rows(tape, x[0], rows, 3),
                   vlp_gather_rows(tape, x[0], rows + 1, 3));
}

static vlp_tensor *scatter(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scatter_rows(tape, x[0], rows, 6);
}

static vlp_tensor *scatter_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_scatter_rows(tape, x[0], rows, 6),
                   vlp_scatter_rows(tape, x[0], rows, 6));
}

static const uint8_t mask[] = {1, 0, 1, 0, 0, 0, 1, 1, 1}; /* the second sample has none */

static vlp_tensor *mean(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mean_rows(tape, x[0], mask);
}

static vlp_tensor *mean_all(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mean_rows(tape, x[0], NULL);
}

static vlp_tensor *mean_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_mean_rows(tape, x[0], mask), vlp_mean_rows(tape, x[0], NULL));
}

static vlp_tensor *reshape(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_reshape(tape, x[0], 3, (int64_t[]){5, 1, 6});
    return vlp_mul(tape, y, y);
}

static vlp_tensor *reshape_and_x(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_reshape(tape, x[0], 2, (int64_t[]){10, 3});
    return vlp_mul(tape, vlp_reshape(tape, y, 2, x[0]->shape), x[0]);
}

static vlp_tensor *transpose(vlp_tape *tape, vlp_tensor **x) {
    return vlp_transpose(tape, x[0]);
}

static vlp_tensor *transpose_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_transpose(tape, x[0]), x[0]);
}

static vlp_tensor *concat(vlp_tape *tape, vlp_tensor **x) {
    return vlp_concat_rows(tape, x[0], x[1]);
}

static vlp_tensor *concat_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_concat_rows(tape, x[0], x[0]);
}

static const gradcheck_case cases[] = {
    {"gather, repeated", "gather_rows", 1, {{3, {1, 5, 3}}}, gather},
    {"gather, wide", "gather_rows", 1, {{2, {5, 37}}}, gather},
    {"gather, none", "gather_rows", 1, {{2, {5, 3}}}, gather_none},
    {"gather, x used twice", "gather_rows", 1, {{2, {5, 3}}}, gather_twice},
    {"scatter, repeated", "scatter_rows", 1, {{2, {5, 3}}}, scatter},
    {"scatter, none", "scatter_rows", 1, {{2, {0, 3}}}, scatter},
    {"scatter, x used twice", "scatter_rows", 1, {{2, {5, 37}}}, scatter_twice},
    {"mean, masked", "mean_rows", 1, {{3, {3, 3, 5}}}, mean},
    {"mean, all", "mean_rows", 1, {{3, {2, 5, 7}}}, mean_all},
    {"mean of no rows", "mean_rows", 1, {{3, {2, 0, 7}}}, mean_all},
    {"mean, x used twice", "mean_rows", 1, {{3, {3, 3, 5}}}, mean_twice},
    {"reshape", "reshape", 1, {{2, {6, 5}}}, reshape},
    {"reshape, x used twice", "reshape", 1, {{2, {6, 5}}}, reshape_and_x},
    {"transpose", "transpose", 1, {{2, {3, 7}}}, transpose},
    {"transpose, beyond a block", "transpose", 1, {{2, {35, 33}}}, transpose},
    {"transpose, x used twice", "transpose", 1, {{2, {5, 5}}}, transpose_and_x},
    {"concat", "concat_rows", 2, {{2, {3, 5}}, {2, {2, 5}}}, concat},
    {"concat with nothing", "concat_rows", 2, {{2, {3, 5}}, {2, {0, 5}}}, concat},
    {"concat with itself", "concat_rows", 1, {{2, {3, 5}}}, concat_itself},
};

static void test_grad_rows__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(cases); i++)
        assert_true(gradcheck_run(&cases[i], 1e-6) <= 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grad_rows__agrees_with_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
