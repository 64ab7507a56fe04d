/* Gradient cases of the losses. */
#ifndef VLP_TESTS_GRAD_CASES_LOSS_H
#define VLP_TESTS_GRAD_CASES_LOSS_H

#include "tests/gradcheck.h"

static const int32_t loss_labels[] = {2, -1, 0, 4, -100};
static const int32_t loss_ignored[] = {-1, -100, -1, -1, -1};
/* [3, 5]; the second row adds up to 1, the others do not */
static const vlp_real loss_target[] = {VLP_R(0.3), VLP_R(0.9), 0,          VLP_R(0.1), VLP_R(0.5),
                                       VLP_R(0.2), VLP_R(0.2), VLP_R(0.2), VLP_R(0.2), VLP_R(0.2),
                                       0,          0,          VLP_R(0.4), VLP_R(-2),  0};

static vlp_tensor *loss_cross_entropy(vlp_tape *tape, vlp_tensor **x) {
    return vlp_cross_entropy(tape, x[0], loss_labels, 0);
}

static vlp_tensor *loss_smoothed(vlp_tape *tape, vlp_tensor **x) {
    return vlp_cross_entropy(tape, x[0], loss_labels, 0.2);
}

static vlp_tensor *loss_all_ignored(vlp_tape *tape, vlp_tensor **x) {
    return vlp_cross_entropy(tape, x[0], loss_ignored, 0.1);
}

static vlp_tensor *loss_linear(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear_cross_entropy(tape, x[0], x[1], x[2], loss_labels, 0.1);
}

static vlp_tensor *loss_linear_bare(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear_cross_entropy(tape, x[0], x[1], NULL, loss_labels, 0);
}

/* Logits of the rows against themselves, and gradients that are already there. */
static vlp_tensor *loss_linear_itself(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *terms[] = {loss_linear(tape, x),
                           vlp_linear_cross_entropy(tape, x[0], x[0], NULL, loss_labels, 0),
                           loss_linear(tape, x)};
    return vlp_weighted_sum(tape, terms, (const double[]){1, 0.5, -2}, 3);
}

static vlp_tensor *loss_linear_ignored(vlp_tape *tape, vlp_tensor **x) {
    return vlp_linear_cross_entropy(tape, x[0], x[1], x[2], loss_ignored, 0.1);
}

static vlp_tensor *loss_soft(vlp_tape *tape, vlp_tensor **x) {
    return vlp_soft_cross_entropy(tape, x[0], loss_target);
}

static vlp_tensor *loss_l1(vlp_tape *tape, vlp_tensor **x) {
    return vlp_regression_loss(tape, x[0], loss_target, VLP_LOSS_L1);
}

static vlp_tensor *loss_mse(vlp_tape *tape, vlp_tensor **x) {
    return vlp_regression_loss(tape, x[0], loss_target, VLP_LOSS_MSE);
}

static vlp_tensor *loss_binary(vlp_tape *tape, vlp_tensor **x) {
    return vlp_regression_loss(tape, x[0], loss_target, VLP_LOSS_BINARY);
}

static vlp_tensor *loss_dot(vlp_tape *tape, vlp_tensor **x) {
    return vlp_dot_constant(tape, x[0], loss_target);
}

/* Every loss of the same tensor: all but one add to a gradient that is there. */
static vlp_tensor *loss_sum(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *first = loss_cross_entropy(tape, x);
    vlp_tensor *terms[] = {first,
                           loss_smoothed(tape, x),
                           loss_soft(tape, x),
                           loss_l1(tape, x),
                           loss_mse(tape, x),
                           loss_dot(tape, x),
                           first};
    static const double weights[] = {1, -2, 0.5, 3, 0.25, 1, 4};
    return vlp_weighted_sum(tape, terms, weights, 7);
}

static const gradcheck_case grad_cases_loss[] = {
    {"cross entropy, ignored rows", "cross_entropy", 1, {{2, {5, 5}}}, loss_cross_entropy},
    {"cross entropy, 3-dimensional", "cross_entropy", 1, {{3, {2, 2, 6}}}, loss_cross_entropy},
    {"cross entropy, smoothing", "cross_entropy", 1, {{2, {5, 7}}}, loss_smoothed},
    {"cross entropy, all ignored", "cross_entropy", 1, {{2, {5, 5}}}, loss_all_ignored},
    {"cross entropy, no rows", "cross_entropy", 1, {{2, {0, 5}}}, loss_cross_entropy},
    {"linear cross entropy",
     "linear_cross_entropy",
     3,
     {{2, {5, 3}}, {2, {7, 3}}, {1, {7}}},
     loss_linear},
    {"linear cross entropy, bare",
     "linear_cross_entropy",
     2,
     {{2, {5, 3}}, {2, {6, 3}}},
     loss_linear_bare},
    {"linear cross entropy, shared input",
     "linear_cross_entropy",
     3,
     {{2, {5, 3}}, {2, {7, 3}}, {1, {7}}},
     loss_linear_itself},
    {"linear cross entropy, all ignored",
     "linear_cross_entropy",
     3,
     {{2, {5, 3}}, {2, {7, 3}}, {1, {7}}},
     loss_linear_ignored},
    {"linear cross entropy, no rows",
     "linear_cross_entropy",
     3,
     {{2, {0, 3}}, {2, {7, 3}}, {1, {7}}},
     loss_linear},
    {"soft cross entropy", "soft_cross_entropy", 1, {{2, {3, 5}}}, loss_soft},
    {"soft cross entropy, no rows", "soft_cross_entropy", 1, {{2, {0, 5}}}, loss_soft},
    {"L1", "regression_loss", 1, {{2, {3, 5}}}, loss_l1},
    {"MSE", "regression_loss", 1, {{3, {1, 3, 5}}}, loss_mse},
    {"binary cross entropy", "regression_loss", 1, {{2, {3, 5}}}, loss_binary},
    {"MSE, no rows", "regression_loss", 1, {{2, {0, 5}}}, loss_mse},
    {"weighted sum of all losses", "weighted_sum", 1, {{2, {3, 5}}}, loss_sum},
    {"dot with a constant", "dot_constant", 1, {{2, {3, 5}}}, loss_dot},
};

#endif
