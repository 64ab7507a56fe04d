/* Gradient cases of the elementwise ops. */
#ifndef VLP_TESTS_GRAD_CASES_ELEMENTWISE_H
#define VLP_TESTS_GRAD_CASES_ELEMENTWISE_H

#include "tests/gradcheck.h"

#include <math.h>

static vlp_tensor *elementwise_add(vlp_tape *tape, vlp_tensor **x) {
    return vlp_add(tape, x[0], x[1]);
}

static vlp_tensor *elementwise_add_itself(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_add(tape, x[0], x[0]);
    return vlp_mul(tape, y, y);
}

static vlp_tensor *elementwise_mul(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, x[0], x[1]);
}

static vlp_tensor *elementwise_mul_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, x[0], x[0]);
}

static vlp_tensor *elementwise_scale(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale(tape, x[0], -1.75);
}

static vlp_tensor *elementwise_scale_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_scale(tape, x[0], 0.3), x[0]);
}

/* One builder for each activation; x 1.5 reaches the flat ends, the product adds to a gradient that
 * is already there. */
#define ACTIVATION(name, act)                                                                      \
    static vlp_tensor *name(vlp_tape *tape, vlp_tensor **x) {                                      \
        return vlp_activation(tape, vlp_scale(tape, x[0], 1.5), act);                              \
    }                                                                                              \
    static vlp_tensor *name##_and_x(vlp_tape *tape, vlp_tensor **x) {                              \
        return vlp_mul(tape, vlp_activation(tape, x[0], act), x[0]);                               \
    }
ACTIVATION(elementwise_none, VLP_ACT_NONE)
ACTIVATION(elementwise_gelu, VLP_ACT_GELU)
ACTIVATION(elementwise_gelu_tanh, VLP_ACT_GELU_TANH)
ACTIVATION(elementwise_quick_gelu, VLP_ACT_QUICK_GELU)
ACTIVATION(elementwise_silu, VLP_ACT_SILU)
ACTIVATION(elementwise_tanh_of, VLP_ACT_TANH)
ACTIVATION(elementwise_sigmoid, VLP_ACT_SIGMOID)

/* x^2 + 0.1 and its negative are away from the kink at 0. */
static vlp_tensor *elementwise_relu(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real tenth[15] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                       0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    vlp_tensor *shift = vlp_tape_input(tape, VLP_REAL, x[0]->ndim, x[0]->shape, tenth, false);
    vlp_tensor *positive = vlp_add(tape, vlp_mul(tape, x[0], x[0]), shift);
    vlp_tensor *both = vlp_concat_rows(tape, positive, vlp_scale(tape, positive, -1));
    return vlp_activation(tape, both, VLP_ACT_RELU);
}

static vlp_tensor *elementwise_scale_exp(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[1], 4.6052);
}

static vlp_tensor *elementwise_scale_exp_clamped(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[1], -5);
}

static vlp_tensor *elementwise_scale_exp_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[0], 4.6052);
}

static vlp_tensor *elementwise_scale_exp_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_scale_exp(tape, x[0], x[1], 4.6052), x[0]);
}

/* t = exp(x[1]) is away from 0. */
static vlp_tensor *elementwise_divide_by(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real one[] = {1};
    vlp_tensor *t = vlp_tape_input(tape, VLP_REAL, 1, (int64_t[]){1}, one, false);
    return vlp_divide_by(tape, x[0], vlp_scale_exp(tape, t, x[1], 10));
}

static vlp_tensor *elementwise_dropout(vlp_tape *tape, vlp_tensor **x) {
    return vlp_dropout(tape, x[0], 0.4);
}

static vlp_tensor *elementwise_dropout_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_dropout(tape, x[0], 0.4), x[0]);
}

static vlp_tensor *elementwise_drop_path(vlp_tape *tape, vlp_tensor **x) {
    return vlp_drop_path(tape, x[0], 0.5);
}

static vlp_tensor *elementwise_drop_path_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_drop_path(tape, x[0], 0.5), x[0]);
}

/* Long tensors, so that threads and chunks share the work: the rows of x[0] [5, 3] repeated, an op,
 * and a sum with weights that differ from row to row. */
enum { LONG = 2000 };

static vlp_tensor *elementwise_lengthen(vlp_tape *tape, vlp_tensor *x) {
    static int32_t ids[LONG];
    for (int i = 0; i < LONG; i++) ids[i] = i * 7 % 5;
    return vlp_embedding(tape, x, ids, 2, (int64_t[]){1, LONG}, -1);
}

static vlp_tensor *elementwise_shorten(vlp_tape *tape, vlp_tensor *y) {
    static vlp_real weights[LONG * 3];
    for (int i = 0; i < LONG * 3; i++) weights[i] = (vlp_real)sin(i * 1.7);
    vlp_tensor *w = vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){1, LONG, 3}, weights, false);
    return vlp_scale(tape, vlp_mean_rows(tape, vlp_mul(tape, y, w), NULL), 10);
}

static vlp_tensor *elementwise_long_mul(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = elementwise_lengthen(tape, x[0]), *b = elementwise_lengthen(tape, x[1]);
    return elementwise_shorten(tape, vlp_add(tape, vlp_mul(tape, a, b), vlp_mul(tape, a, a)));
}

static vlp_tensor *elementwise_long_gelu(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = elementwise_lengthen(tape, x[0]);
    return elementwise_shorten(tape, vlp_add(tape, vlp_activation(tape, a, VLP_ACT_GELU), a));
}

static vlp_tensor *elementwise_long_scale_exp(vlp_tape *tape, vlp_tensor **x) {
    return elementwise_shorten(tape,
                               vlp_scale_exp(tape, elementwise_lengthen(tape, x[0]), x[1], 10));
}

static vlp_tensor *elementwise_long_dropout(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = elementwise_lengthen(tape, x[0]);
    return elementwise_shorten(tape, vlp_mul(tape, vlp_dropout(tape, a, 0.4), a));
}

static vlp_tensor *elementwise_long_norm(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = elementwise_lengthen(tape, x[0]), *b = elementwise_lengthen(tape, x[1]),
               *sum = NULL;
    vlp_tensor *y = vlp_add_layer_norm(tape, a, b, x[2], x[2], 1e-2, &sum);
    return elementwise_shorten(tape, vlp_mul(tape, y, sum));
}

#define ACTIVATION_ROWS(name)                                                                      \
    {#name, "activation", 1, {{2, {3, 7}}}, name}, {                                               \
#name ", x used twice", "activation", 1, {{2, {3, 7 } } }, name##_and_x                    \
    }

static const gradcheck_case grad_cases_elementwise[] = {
    {"add", "add", 2, {{3, {2, 3, 5}}, {3, {2, 3, 5}}}, elementwise_add},
    {"add, nothing", "add", 2, {{2, {0, 5}}, {2, {0, 5}}}, elementwise_add},
    {"add, a is b", "add", 1, {{2, {3, 5}}}, elementwise_add_itself},
    {"mul", "mul", 2, {{2, {3, 5}}, {2, {3, 5}}}, elementwise_mul},
    {"mul, long", "mul", 2, {{2, {5, 3}}, {2, {5, 3}}}, elementwise_long_mul},
    {"gelu, long", "activation", 1, {{2, {5, 3}}}, elementwise_long_gelu},
    {"scale_exp, long", "scale_exp", 2, {{2, {5, 3}}, {1, {1}}}, elementwise_long_scale_exp},
    {"dropout, long", "dropout", 1, {{2, {5, 3}}}, elementwise_long_dropout},
    {"layer_norm, long",
     "layer_norm",
     3,
     {{2, {5, 3}}, {2, {5, 3}}, {1, {3}}},
     elementwise_long_norm},
    {"mul, a is b", "mul", 1, {{2, {3, 5}}}, elementwise_mul_itself},
    {"scale", "scale", 1, {{2, {3, 5}}}, elementwise_scale},
    {"scale, x used twice", "scale", 1, {{2, {3, 5}}}, elementwise_scale_and_x},
    ACTIVATION_ROWS(elementwise_none),
    ACTIVATION_ROWS(elementwise_gelu),
    ACTIVATION_ROWS(elementwise_gelu_tanh),
    ACTIVATION_ROWS(elementwise_quick_gelu),
    ACTIVATION_ROWS(elementwise_silu),
    ACTIVATION_ROWS(elementwise_tanh_of),
    ACTIVATION_ROWS(elementwise_sigmoid),
    {"relu", "activation", 1, {{2, {3, 5}}}, elementwise_relu},
    {"scale_exp", "scale_exp", 2, {{2, {3, 5}}, {0, {0}}}, elementwise_scale_exp},
    {"scale_exp, clamped", "scale_exp", 2, {{2, {3, 5}}, {1, {1}}}, elementwise_scale_exp_clamped},
    {"scale_exp, x is s", "scale_exp", 1, {{1, {1}}}, elementwise_scale_exp_itself},
    {"scale_exp, x used twice",
     "scale_exp",
     2,
     {{2, {3, 5}}, {1, {1}}},
     elementwise_scale_exp_and_x},
    {"scale_exp, nothing", "scale_exp", 2, {{2, {0, 5}}, {1, {1}}}, elementwise_scale_exp},
    {"divide_by", "divide_by", 2, {{2, {3, 5}}, {1, {1}}}, elementwise_divide_by},
    {"dropout", "dropout", 1, {{2, {5, 7}}}, elementwise_dropout},
    {"dropout, x used twice", "dropout", 1, {{2, {5, 7}}}, elementwise_dropout_and_x},
    {"drop_path", "drop_path", 1, {{3, {8, 2, 3}}}, elementwise_drop_path},
    {"drop_path, x used twice", "drop_path", 1, {{3, {8, 2, 3}}}, elementwise_drop_path_and_x},
    {"drop_path, no samples", "drop_path", 1, {{2, {0, 3}}}, elementwise_drop_path},
};

#endif
