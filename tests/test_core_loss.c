#include "core/memory.h"
#include "core/ops.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ln of 1, 2, 3, 4 and of 4, 3, 2, 1: the softmax is that over 10. */
static vlp_real logits[8];
static vlp_tape *tape;

static int open_tape(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) logits[i] = logits[7 - i] = (vlp_real)log(i + 1);
    if (vlp_tape_new(&tape) != VLP_OK) return 1;
    return vlp_tape_open(tape, 16 << 20) == VLP_OK ? 0 : 1;
}

static int close_tape(void **state) {
    (void)state;
    vlp_tape_free(tape);
    return 0;
}

static vlp_tensor *wrap(int64_t n, int64_t cols, const vlp_real *data) {
    return vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){n, cols}, data, true);
}

static void assert_value(const vlp_tensor *loss, double want) {
    assert_non_null(loss);
    assert_int_equal(loss->ndim, 0);
    assert_true(fabs((double)vlp_real_data(loss)[0] - want) < 1e-6);
}

static void test_core_loss__cross_entropy_values(void **state) {
    (void)state;
    vlp_tape_begin(tape, 0, 0);
    vlp_tensor *x = wrap(2, 4, logits);
    static const int32_t both[] = {0, 1}, first[] = {3, -1}, none[] = {-100, -1};
    assert_value(vlp_cross_entropy(tape, x, both, 0), -(log(0.1) + log(0.3)) / 2);
    assert_value(vlp_cross_entropy(tape, x, first, 0), -log(0.4));
    assert_value(vlp_cross_entropy(tape, x, none, 0.1), 0);
    double all = -(log(0.1) + log(0.2) + log(0.3) + log(0.4)) / 4;
    assert_value(vlp_cross_entropy(tape, x, first, 0.2), -0.8 * log(0.4) + 0.2 * all);
    assert_value(vlp_cross_entropy(tape, wrap(0, 4, logits), both, 0), 0);
}

static void test_core_loss__soft_cross_entropy_values(void **state) {
    (void)state;
    vlp_tape_begin(tape, 0, 0);
    static const vlp_real target[] = {0.5f, 0.5f, 0, 0, 0, 0, 0, 1};
    assert_value(vlp_soft_cross_entropy(tape, wrap(2, 4, logits), target),
                 -(0.5 * log(0.1) + 0.5 * log(0.2) + log(0.1)) / 2);
    assert_value(vlp_soft_cross_entropy(tape, wrap(0, 4, logits), target), 0);
}

static void test_core_loss__regression_values(void **state) {
    (void)state;
    vlp_tape_begin(tape, 0, 0);
    static const vlp_real x[] = {1, -2, 3, 0}, target[] = {0, 1, 3, 2};
    assert_value(vlp_regression_loss(tape, wrap(2, 2, x), target, VLP_LOSS_L1), 6.0 / 4);
    assert_value(vlp_regression_loss(tape, wrap(2, 2, x), target, VLP_LOSS_MSE), 14.0 / 4);
    assert_value(vlp_regression_loss(tape, wrap(0, 2, x), target, VLP_LOSS_MSE), 0);
    static const vlp_real logits_of[] = {0, 2, 200, -200}, truth[] = {0.5f, 1, 1, 0};
    assert_value(vlp_regression_loss(tape, wrap(2, 2, logits_of), truth, VLP_LOSS_BINARY),
                 (log(2) + log1p(exp(-2))) / 4);
}

static void test_core_loss__sums(void **state) {
    (void)state;
    vlp_tape_begin(tape, 0, 0);
    static const vlp_real x[] = {1, -2, 3, 0}, c[] = {0.5f, 1, 2, 7};
    vlp_tensor *dot = vlp_dot_constant(tape, wrap(2, 2, x), c);
    assert_value(dot, 4.5);
    static const double weights[] = {2, -1, 0.5};
    assert_value(vlp_weighted_sum(tape, (vlp_tensor *[]){dot, dot, dot}, weights, 3), 6.75);
    assert_value(vlp_weighted_sum(tape, NULL, weights, 0), 0);
}

static void test_core_loss__extreme_logits_stay_finite(void **state) {
    (void)state;
    vlp_tape_begin(tape, 0, 0);
    static const vlp_real x[] = {1e4f, -1e4f, 0, -1e4f};
    static const int32_t target[] = {1, 0};
    vlp_tensor *input = wrap(2, 2, x), *loss = vlp_cross_entropy(tape, input, target, 0);
    assert_value(loss, 1.5e4 - 5e3);
    assert_int_equal(vlp_tape_backward(tape, loss), VLP_OK);
    static const double want[] = {0.5, -0.5, 0, 0};
    for (int i = 0; i < 4; i++) assert_true(fabs((double)input->grad[i] - want[i]) < 1e-6);
}

/* The scalar and all gradients of every loss over 200 rows. */
enum { ROWS = 200, COLS = 37 };

static void all_losses(const vlp_real *x, const vlp_real *target, const int32_t *labels,
                       vlp_real *out) {
    vlp_tape_begin(tape, 0, 0);
    vlp_tensor *input = wrap(ROWS, COLS, x);
    vlp_tensor *terms[] = {vlp_cross_entropy(tape, input, labels, 0.1),
                           vlp_soft_cross_entropy(tape, input, target),
                           vlp_regression_loss(tape, input, target, VLP_LOSS_L1),
                           vlp_regression_loss(tape, input, target, VLP_LOSS_MSE)};
    vlp_tensor *loss = vlp_weighted_sum(tape, terms, (const double[]){1, 2, 3, 4}, 4);
    assert_int_equal(vlp_tape_backward(tape, loss), VLP_OK);
    out[0] = vlp_real_data(loss)[0];
    memcpy(out + 1, input->grad, ROWS * COLS * sizeof *out);
}

static void test_core_loss__any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    static vlp_real x[ROWS * COLS], target[ROWS * COLS], one[ROWS * COLS + 1],
        many[ROWS * COLS + 1];
    static int32_t labels[ROWS];
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] = (vlp_real)vlp_rng_normal(&rng);
        target[i] = (vlp_real)vlp_rng_double(&rng);
    }
    for (int i = 0; i < ROWS; i++) labels[i] = (int32_t)vlp_rng_below(&rng, COLS + 5) - 5;
    assert_int_equal(vlp_threads_set(1), VLP_OK);
    all_losses(x, target, labels, one);
    for (int threads = 2; threads <= 3; threads++) {
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        all_losses(x, target, labels, many);
        assert_memory_equal(one, many, sizeof one);
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
}

enum { MANY_ROWS = 20000, CLASSES = 200, WIDTH = 8 };

typedef struct {
    vlp_real loss, dx[MANY_ROWS * WIDTH], dw[CLASSES * WIDTH], dbias[CLASSES];
} linear_result;

static void linear_loss(bool fused, vlp_real *const data[3], const int32_t *target,
                        linear_result *out) {
    vlp_tape *big;
    assert_int_equal(vlp_tape_new(&big), VLP_OK);
    assert_int_equal(vlp_tape_open(big, 128 << 20), VLP_OK);
    vlp_tensor *x = vlp_tape_input(big, VLP_REAL, 2, (int64_t[]){MANY_ROWS, WIDTH}, data[0], true);
    vlp_tensor *w = vlp_tape_input(big, VLP_REAL, 2, (int64_t[]){CLASSES, WIDTH}, data[1], true);
    vlp_tensor *bias = vlp_tape_input(big, VLP_REAL, 1, (int64_t[]){CLASSES}, data[2], true);
    vlp_tensor *loss =
        fused ? vlp_linear_cross_entropy(big, x, w, bias, target, 0.1)
              : vlp_cross_entropy(big, vlp_linear(big, x, w, bias, VLP_ACT_NONE), target, 0.1);
    assert_int_equal(vlp_tape_status(big), VLP_OK);
    out->loss = vlp_real_data(loss)[0];
    assert_int_equal(vlp_tape_backward(big, loss), VLP_OK);
    memcpy(out->dx, x->grad, sizeof out->dx);
    memcpy(out->dw, w->grad, sizeof out->dw);
    memcpy(out->dbias, bias->grad, sizeof out->dbias);
    vlp_tape_free(big);
}

static void assert_near(int64_t n, const vlp_real *a, const vlp_real *b) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)b[i]));
    for (int64_t i = 0; i < n; i++) assert_true(fabs((double)a[i] - (double)b[i]) < 1e-5 * most);
}

/* So many rows that a block of logits holds a part of the classes only. */
static void test_core_loss__blocks_of_classes_add_up_to_all_logits(void **state) {
    (void)state;
    vlp_real *data[3] = {vlp_alloc(MANY_ROWS * WIDTH * sizeof(vlp_real)),
                         vlp_alloc(CLASSES * WIDTH * sizeof(vlp_real)),
                         vlp_alloc(CLASSES * sizeof(vlp_real))};
    const int64_t n[3] = {MANY_ROWS * WIDTH, CLASSES * WIDTH, CLASSES};
    int32_t *target = vlp_alloc(MANY_ROWS * sizeof *target);
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_INIT, 0, 0);
    for (int a = 0; a < 3; a++)
        for (int64_t i = 0; i < n[a]; i++) data[a][i] = (vlp_real)vlp_rng_normal(&rng);
    for (int i = 0; i < MANY_ROWS; i++) target[i] = i % 11 ? i * 7 % CLASSES : -1;
    linear_result *fused = vlp_alloc(sizeof *fused), *whole = vlp_alloc(sizeof *whole);
    linear_loss(true, data, target, fused);
    linear_loss(false, data, target, whole);
    assert_near(1, &fused->loss, &whole->loss);
    assert_near(n[0], fused->dx, whole->dx);
    assert_near(n[1], fused->dw, whole->dw);
    assert_near(n[2], fused->dbias, whole->dbias);
    for (int a = 0; a < 3; a++) vlp_free(data[a]);
    vlp_free(target);
    vlp_free(fused);
    vlp_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_loss__cross_entropy_values),
        cmocka_unit_test(test_core_loss__blocks_of_classes_add_up_to_all_logits),
        cmocka_unit_test(test_core_loss__soft_cross_entropy_values),
        cmocka_unit_test(test_core_loss__regression_values),
        cmocka_unit_test(test_core_loss__sums),
        cmocka_unit_test(test_core_loss__extreme_logits_stay_finite),
        cmocka_unit_test(test_core_loss__any_number_of_threads_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_tape, close_tape);
}
