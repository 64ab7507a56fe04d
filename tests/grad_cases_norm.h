/* Gradient cases of the norms. */
#ifndef VLP_TESTS_GRAD_CASES_NORM_H
#define VLP_TESTS_GRAD_CASES_NORM_H

#include "tests/gradcheck.h"

static const double norm_eps = 1e-3;

static vlp_tensor *norm_layer_norm(vlp_tape *tape, vlp_tensor **x) {
    return vlp_layer_norm(tape, x[0], x[1], x[2], norm_eps);
}

static vlp_tensor *norm_layer_norm_bare(vlp_tape *tape, vlp_tensor **x) {
    return vlp_layer_norm(tape, x[0], NULL, NULL, norm_eps);
}

static vlp_tensor *norm_layer_norm_no_bias(vlp_tape *tape, vlp_tensor **x) {
    return vlp_layer_norm(tape, x[0], x[1], NULL, norm_eps);
}

/* x reaches the result by the norm and around it. */
static vlp_tensor *norm_layer_norm_reused(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_layer_norm(tape, x[0], x[1], x[2], norm_eps), x[0]);
}

static vlp_tensor *norm_post_norm(vlp_tape *tape, vlp_tensor **x) {
    return vlp_add_layer_norm(tape, x[0], x[1], x[2], x[3], norm_eps, NULL);
}

static vlp_tensor *norm_pre_norm(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    vlp_tensor *y = vlp_add_layer_norm(tape, x[0], x[1], x[2], x[3], norm_eps, &sum);
    return vlp_mul(tape, y, sum);
}

static vlp_tensor *norm_sum_unused(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    return vlp_add_layer_norm(tape, x[0], x[1], x[2], x[3], norm_eps, &sum);
}

static vlp_tensor *norm_only_sum_used(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    vlp_add_layer_norm(tape, x[0], x[1], x[2], x[3], norm_eps, &sum);
    return vlp_mul(tape, sum, sum);
}

static vlp_tensor *norm_residual_is_x(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    vlp_tensor *y = vlp_add_layer_norm(tape, x[0], x[0], x[1], x[2], norm_eps, &sum);
    return vlp_mul(tape, y, sum);
}

/* Only the residual wants a gradient. */
static vlp_tensor *norm_constant_x(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real values[15] = {1, -2, 3, 0.5, 0.25, -1, 2};
    vlp_tensor *c = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){3, 5}, values, false);
    return vlp_add_layer_norm(tape, c, x[0], x[1], NULL, norm_eps, NULL);
}

/* Without a residual the sum is x itself. */
static vlp_tensor *norm_sum_without_residual(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    vlp_tensor *y = vlp_add_layer_norm(tape, x[0], NULL, x[1], x[2], norm_eps, &sum);
    return vlp_mul(tape, y, sum);
}

static vlp_tensor *norm_weight_is_bias(vlp_tape *tape, vlp_tensor **x) {
    return vlp_layer_norm(tape, x[0], x[1], x[1], norm_eps);
}

static vlp_tensor *norm_rms_norm(vlp_tape *tape, vlp_tensor **x) {
    return vlp_rms_norm(tape, x[0], NULL, x[1], norm_eps, NULL);
}

static vlp_tensor *norm_rms_norm_residual(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *sum = NULL;
    vlp_tensor *y = vlp_rms_norm(tape, x[0], x[1], x[2], norm_eps, &sum);
    return vlp_mul(tape, y, sum);
}

static vlp_tensor *norm_rms_norm_residual_kept(vlp_tape *tape, vlp_tensor **x) {
    return vlp_rms_norm(tape, x[0], x[1], x[2], norm_eps, NULL);
}

static vlp_tensor *norm_l2_normalize(vlp_tape *tape, vlp_tensor **x) {
    return vlp_l2_normalize(tape, x[0], 1e-12);
}

/* All rows are shorter than eps: there the op is x / eps. */
static vlp_tensor *norm_l2_normalize_short(vlp_tape *tape, vlp_tensor **x) {
    return vlp_l2_normalize(tape, x[0], 100);
}

static vlp_tensor *norm_l2_normalize_reused(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_l2_normalize(tape, x[0], 1e-12), x[0]);
}

static const gradcheck_case grad_cases_norm[] = {
    {"layer_norm", "layer_norm", 3, {{3, {2, 3, 7}}, {1, {7}}, {1, {7}}}, norm_layer_norm},
    {"layer_norm, many rows", "layer_norm", 3, {{2, {37, 5}}, {1, {5}}, {1, {5}}}, norm_layer_norm},
    {"layer_norm, wide", "layer_norm", 3, {{2, {2, 67}}, {1, {67}}, {1, {67}}}, norm_layer_norm},
    {"layer_norm, one row", "layer_norm", 3, {{1, {9}}, {1, {9}}, {1, {9}}}, norm_layer_norm},
    {"layer_norm, bare", "layer_norm", 1, {{2, {4, 5}}}, norm_layer_norm_bare},
    {"layer_norm, no bias", "layer_norm", 2, {{2, {4, 5}}, {1, {5}}}, norm_layer_norm_no_bias},
    {"layer_norm, x used twice",
     "layer_norm",
     3,
     {{2, {3, 5}}, {1, {5}}, {1, {5}}},
     norm_layer_norm_reused},
    {"post-norm", "layer_norm", 4, {{2, {3, 5}}, {2, {3, 5}}, {1, {5}}, {1, {5}}}, norm_post_norm},
    {"pre-norm", "layer_norm", 4, {{2, {11, 5}}, {2, {11, 5}}, {1, {5}}, {1, {5}}}, norm_pre_norm},
    {"sum unused",
     "layer_norm",
     4,
     {{2, {3, 5}}, {2, {3, 5}}, {1, {5}}, {1, {5}}},
     norm_sum_unused},
    {"only sum used",
     "layer_norm",
     4,
     {{2, {3, 5}}, {2, {3, 5}}, {1, {5}}, {1, {5}}},
     norm_only_sum_used},
    {"residual is x", "layer_norm", 3, {{2, {3, 5}}, {1, {5}}, {1, {5}}}, norm_residual_is_x},
    {"constant x", "layer_norm", 2, {{2, {3, 5}}, {1, {5}}}, norm_constant_x},
    {"sum, no residual",
     "layer_norm",
     3,
     {{2, {3, 5}}, {1, {5}}, {1, {5}}},
     norm_sum_without_residual},
    {"weight is bias", "layer_norm", 2, {{2, {3, 5}}, {1, {5}}}, norm_weight_is_bias},
    {"layer_norm, no rows", "layer_norm", 3, {{2, {0, 5}}, {1, {5}}, {1, {5}}}, norm_layer_norm},
    {"rms_norm", "rms_norm", 2, {{3, {3, 3, 7}}, {1, {7}}}, norm_rms_norm},
    {"rms_norm, residual and sum",
     "rms_norm",
     3,
     {{2, {11, 5}}, {2, {11, 5}}, {1, {5}}},
     norm_rms_norm_residual},
    {"rms_norm, residual",
     "rms_norm",
     3,
     {{2, {3, 5}}, {2, {3, 5}}, {1, {5}}},
     norm_rms_norm_residual_kept},
    {"l2_normalize", "l2_normalize", 1, {{3, {3, 5, 7}}}, norm_l2_normalize},
    {"l2_normalize, short rows", "l2_normalize", 1, {{2, {3, 5}}}, norm_l2_normalize_short},
    {"l2_normalize, x used twice", "l2_normalize", 1, {{2, {3, 5}}}, norm_l2_normalize_reused},
};

#endif
