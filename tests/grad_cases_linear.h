/* Gradient cases of the linear op. */
#ifndef VLP_TESTS_GRAD_CASES_LINEAR_H
#define VLP_TESTS_GRAD_CASES_LINEAR_H

#include "tests/gradcheck.h"

#define LINEAR(name, act)                                                                          \
    static vlp_tensor *name(vlp_tape *tape, vlp_tensor **x) {                                      \
        return vlp_linear(tape, x[0], x[1], x[2], act);                                            \
    }
LINEAR(linear_none, VLP_ACT_NONE)
LINEAR(linear_gelu, VLP_ACT_GELU)
LINEAR(linear_gelu_tanh, VLP_ACT_GELU_TANH)
LINEAR(linear_quick_gelu, VLP_ACT_QUICK_GELU)
LINEAR(linear_silu, VLP_ACT_SILU)
LINEAR(linear_tanh_of, VLP_ACT_TANH)
LINEAR(linear_sigmoid, VLP_ACT_SIGMOID)

/* The second half of the outputs is the negative of the first: the pre-activations are +-(a^2 + 1),
 * away from the kink at 0. */
static vlp_tensor *linear_relu(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real one[] = {1, 1, 1, 1};
    vlp_tensor *bias = vlp_tape_input(tape, VLP_REAL, 1, (int64_t[]){4}, one, false);
    vlp_tensor *square = vlp_mul(tape, x[0], x[0]), *w = vlp_mul(tape, x[1], x[1]);
    vlp_tensor *up = vlp_linear(tape, square, w, bias, VLP_ACT_RELU);
    vlp_tensor *minus = vlp_scale(tape, bias, -1);
    vlp_tensor *down = vlp_linear(tape, square, vlp_scale(tape, w, -1), minus, VLP_ACT_RELU);
    return vlp_concat_rows(tape, up, down);
}

static vlp_tensor *linear_no_bias(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear(tape, x[0], x[1], NULL, VLP_ACT_NONE);
}

static vlp_tensor *linear_no_bias_gelu(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear(tape, x[0], x[1], NULL, VLP_ACT_GELU);
}

/* Similarities of two sets of activations. */
static vlp_tensor *linear_similarity(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear(tape, vlp_l2_normalize(tape, x[0], 1e-12),
                      vlp_l2_normalize(tape, x[1], 1e-12), NULL, VLP_ACT_NONE);
}

static vlp_tensor *linear_x_is_w(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear(tape, x[0], x[0], NULL, VLP_ACT_TANH);
}

static vlp_tensor *linear_shared_weight(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *h = vlp_linear(tape, x[0], x[1], x[2], VLP_ACT_SILU);
    return vlp_linear(tape, h, x[1], x[2], VLP_ACT_NONE);
}

static vlp_tensor *linear_x_used_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_linear(tape, x[0], x[1], NULL, VLP_ACT_NONE),
                   vlp_linear(tape, x[0], x[2], NULL, VLP_ACT_NONE));
}

static vlp_tensor *linear_bias_is_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear(tape, x[0], x[1], x[0], VLP_ACT_GELU);
}

/* Only w needs a gradient. */
static vlp_tensor *linear_constant_x(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real values[] = {1, -2, 3, 0.5, 0.25, -1};
    vlp_tensor *c = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){2, 3}, values, false);
    return vlp_linear(tape, c, x[0], NULL, VLP_ACT_GELU);
}

#define ACT_ROW(name)                                                                              \
    { #name, "linear", 3, {{3, {2, 3, 5 } }, {2, {7, 5 } }, {1, {7 } } }, name }

static const gradcheck_case grad_cases_linear[] = {
    ACT_ROW(linear_none),
    ACT_ROW(linear_gelu),
    ACT_ROW(linear_gelu_tanh),
    ACT_ROW(linear_quick_gelu),
    ACT_ROW(linear_silu),
    ACT_ROW(linear_tanh_of),
    ACT_ROW(linear_sigmoid),
    {"relu", "linear", 2, {{2, {3, 5}}, {2, {4, 5}}}, linear_relu},
    {"one row", "linear", 3, {{1, {5}}, {2, {7, 5}}, {1, {7}}}, linear_gelu},
    {"one column", "linear", 3, {{2, {5, 1}}, {2, {1, 1}}, {1, {1}}}, linear_tanh_of},
    {"no rows", "linear", 3, {{2, {0, 5}}, {2, {7, 5}}, {1, {7}}}, linear_gelu},
    {"many rows", "linear", 3, {{2, {37, 3}}, {2, {17, 3}}, {1, {17}}}, linear_gelu},
    {"no bias", "linear", 2, {{2, {3, 5}}, {2, {7, 5}}}, linear_no_bias},
    {"no bias, gelu", "linear", 2, {{2, {3, 5}}, {2, {7, 5}}}, linear_no_bias_gelu},
    {"w is an activation", "linear", 2, {{2, {3, 5}}, {2, {4, 5}}}, linear_similarity},
    {"x is w", "linear", 1, {{2, {3, 5}}}, linear_x_is_w},
    {"weight used twice", "linear", 3, {{2, {3, 5}}, {2, {5, 5}}, {1, {5}}}, linear_shared_weight},
    {"x used twice", "linear", 3, {{2, {3, 5}}, {2, {4, 5}}, {2, {4, 5}}}, linear_x_used_twice},
    {"bias is x", "linear", 2, {{1, {5}}, {2, {5, 5}}}, linear_bias_is_x},
    {"constant x", "linear", 1, {{2, {4, 3}}}, linear_constant_x},
};

#endif
