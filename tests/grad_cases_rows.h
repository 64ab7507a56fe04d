/* Gradient cases of the ops on rows. */
#ifndef VLP_TESTS_GRAD_CASES_ROWS_H
#define VLP_TESTS_GRAD_CASES_ROWS_H

#include "tests/gradcheck.h"

static const int32_t rows[] = {4, 0, 4, 1, 4};

static vlp_tensor *rows_gather(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_rows(tape, x[0], rows, 5);
}

static vlp_tensor *rows_gather_none(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_rows(tape, x[0], NULL, 0);
}

static vlp_tensor *rows_gather_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_gather_rows(tape, x[0], rows, 3),
                   vlp_gather_rows(tape, x[0], rows + 1, 3));
}

static vlp_tensor *rows_scatter(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scatter_rows(tape, x[0], rows, 6);
}

static vlp_tensor *rows_scatter_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_scatter_rows(tape, x[0], rows, 6),
                   vlp_scatter_rows(tape, x[0], rows, 6));
}

static const uint8_t rows_mask[] = {1, 0, 1, 0, 0, 0, 1, 1, 1}; /* the second sample has none */

static vlp_tensor *rows_mean(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mean_rows(tape, x[0], rows_mask);
}

static vlp_tensor *rows_mean_all(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mean_rows(tape, x[0], NULL);
}

static vlp_tensor *rows_mean_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_mean_rows(tape, x[0], rows_mask), vlp_mean_rows(tape, x[0], NULL));
}

static vlp_tensor *rows_reshape(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_reshape(tape, x[0], 3, (int64_t[]){5, 1, 6});
    return vlp_mul(tape, y, y);
}

static vlp_tensor *rows_reshape_and_x(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_reshape(tape, x[0], 2, (int64_t[]){10, 3});
    return vlp_mul(tape, vlp_reshape(tape, y, 2, x[0]->shape), x[0]);
}

static vlp_tensor *rows_transpose(vlp_tape *tape, vlp_tensor **x) {
    return vlp_transpose(tape, x[0]);
}

static vlp_tensor *rows_transpose_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_transpose(tape, x[0]), x[0]);
}

static vlp_tensor *rows_concat(vlp_tape *tape, vlp_tensor **x) {
    return vlp_concat_rows(tape, x[0], x[1]);
}

static vlp_tensor *rows_concat_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_concat_rows(tape, x[0], x[0]);
}

static const gradcheck_case grad_cases_rows[] = {
    {"gather, repeated", "gather_rows", 1, {{3, {1, 5, 3}}}, rows_gather},
    {"gather, wide", "gather_rows", 1, {{2, {5, 37}}}, rows_gather},
    {"gather, none", "gather_rows", 1, {{2, {5, 3}}}, rows_gather_none},
    {"gather, x used twice", "gather_rows", 1, {{2, {5, 3}}}, rows_gather_twice},
    {"scatter, repeated", "scatter_rows", 1, {{2, {5, 3}}}, rows_scatter},
    {"scatter, none", "scatter_rows", 1, {{2, {0, 3}}}, rows_scatter},
    {"scatter, x used twice", "scatter_rows", 1, {{2, {5, 37}}}, rows_scatter_twice},
    {"mean, masked", "mean_rows", 1, {{3, {3, 3, 5}}}, rows_mean},
    {"mean, all", "mean_rows", 1, {{3, {2, 5, 7}}}, rows_mean_all},
    {"mean of no rows", "mean_rows", 1, {{3, {2, 0, 7}}}, rows_mean_all},
    {"mean, x used twice", "mean_rows", 1, {{3, {3, 3, 5}}}, rows_mean_twice},
    {"reshape", "reshape", 1, {{2, {6, 5}}}, rows_reshape},
    {"reshape, x used twice", "reshape", 1, {{2, {6, 5}}}, rows_reshape_and_x},
    {"transpose", "transpose", 1, {{2, {3, 7}}}, rows_transpose},
    {"transpose, beyond a block", "transpose", 1, {{2, {35, 33}}}, rows_transpose},
    {"transpose, x used twice", "transpose", 1, {{2, {5, 5}}}, rows_transpose_and_x},
    {"concat", "concat_rows", 2, {{2, {3, 5}}, {2, {2, 5}}}, rows_concat},
    {"concat with nothing", "concat_rows", 2, {{2, {3, 5}}, {2, {0, 5}}}, rows_concat},
    {"concat with itself", "concat_rows", 1, {{2, {3, 5}}}, rows_concat_itself},
};

#endif
