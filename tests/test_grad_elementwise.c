#include "tests/gradcheck.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static vlp_tensor *add(vlp_tape *tape, vlp_tensor **x) {
    return vlp_add(tape, x[0], x[1]);
}

static vlp_tensor *add_itself(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *y = vlp_add(tape, x[0], x[0]);
    return vlp_mul(tape, y, y);
}

static vlp_tensor *mul(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, x[0], x[1]);
}

static vlp_tensor *mul_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, x[0], x[0]);
}

static vlp_tensor *scale(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale(tape, x[0], -1.75);
}

static vlp_tensor *scale_and_x(vlp_tape *tape, vlp_tensor **x) {
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
ACTIVATION(none, VLP_ACT_NONE)
ACTIVATION(gelu, VLP_ACT_GELU)
ACTIVATION(gelu_tanh, VLP_ACT_GELU_TANH)
ACTIVATION(quick_gelu, VLP_ACT_QUICK_GELU)
ACTIVATION(silu, VLP_ACT_SILU)
ACTIVATION(tanh_of, VLP_ACT_TANH)
ACTIVATION(sigmoid, VLP_ACT_SIGMOID)

/* x^2 + 0.1 and its negative are away from the kink at 0. */
static vlp_tensor *relu(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real tenth[15] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                       0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    vlp_tensor *shift = vlp_tape_input(tape, VLP_REAL, x[0]->ndim, x[0]->shape, tenth, false);
    vlp_tensor *positive = vlp_add(tape, vlp_mul(tape, x[0], x[0]), shift);
    vlp_tensor *both = vlp_concat_rows(tape, positive, vlp_scale(tape, positive, -1));
    return vlp_activation(tape, both, VLP_ACT_RELU);
}

static vlp_tensor *scale_exp(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[1], 4.6052);
}

static vlp_tensor *scale_exp_clamped(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[1], -5);
}

static vlp_tensor *scale_exp_itself(vlp_tape *tape, vlp_tensor **x) {
    return vlp_scale_exp(tape, x[0], x[0], 4.6052);
}

static vlp_tensor *scale_exp_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_scale_exp(tape, x[0], x[1], 4.6052), x[0]);
}

/* t = exp(x[1]) is away from 0. */
static vlp_tensor *divide_by(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real one[] = {1};
    vlp_tensor *t = vlp_tape_input(tape, VLP_REAL, 1, (int64_t[]){1}, one, false);
    return vlp_divide_by(tape, x[0], vlp_scale_exp(tape, t, x[1], 10));
}

static vlp_tensor *dropout(vlp_tape *tape, vlp_tensor **x) {
    return vlp_dropout(tape, x[0], 0.4);
}

static vlp_tensor *dropout_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_dropout(tape, x[0], 0.4), x[0]);
}

static vlp_tensor *drop_path(vlp_tape *tape, vlp_tensor **x) {
    return vlp_drop_path(tape, x[0], 0.5);
}

static vlp_tensor *drop_path_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_drop_path(tape, x[0], 0.5), x[0]);
}

#define ACTIVATION_ROWS(name)                                                                      \
    {#name, "activation", 1, {{2, {3, 7}}}, name}, {                                               \
#name ", x used twice", "activation", 1, {{2, {3, 7 } } }, name##_and_x                    \
    }

static const gradcheck_case cases[] = {
    {"add", "add", 2, {{3, {2, 3, 5}}, {3, {2, 3, 5}}}, add},
    {"add, nothing", "add", 2, {{2, {0, 5}}, {2, {0, 5}}}, add},
    {"add, a is b", "add", 1, {{2, {3, 5}}}, add_itself},
    {"mul", "mul", 2, {{2, {3, 5}}, {2, {3, 5}}}, mul},
    {"mul, beyond a chunk", "mul", 2, {{2, {11, 103}}, {2, {11, 103}}}, mul},
    {"mul, a is b", "mul", 1, {{2, {3, 5}}}, mul_itself},
    {"scale", "scale", 1, {{2, {3, 5}}}, scale},
    {"scale, x used twice", "scale", 1, {{2, {3, 5}}}, scale_and_x},
    ACTIVATION_ROWS(none),
    ACTIVATION_ROWS(gelu),
    ACTIVATION_ROWS(gelu_tanh),
    ACTIVATION_ROWS(quick_gelu),
    ACTIVATION_ROWS(silu),
    ACTIVATION_ROWS(tanh_of),
    ACTIVATION_ROWS(sigmoid),
    {"relu", "activation", 1, {{2, {3, 5}}}, relu},
    {"scale_exp", "scale_exp", 2, {{2, {3, 5}}, {0, {0}}}, scale_exp},
    {"scale_exp, clamped", "scale_exp", 2, {{2, {3, 5}}, {1, {1}}}, scale_exp_clamped},
    {"scale_exp, x is s", "scale_exp", 1, {{1, {1}}}, scale_exp_itself},
    {"scale_exp, x used twice", "scale_exp", 2, {{2, {3, 5}}, {1, {1}}}, scale_exp_and_x},
    {"scale_exp, nothing", "scale_exp", 2, {{2, {0, 5}}, {1, {1}}}, scale_exp},
    {"divide_by", "divide_by", 2, {{2, {3, 5}}, {1, {1}}}, divide_by},
    {"dropout", "dropout", 1, {{2, {5, 7}}}, dropout},
    {"dropout, x used twice", "dropout", 1, {{2, {5, 7}}}, dropout_and_x},
    {"drop_path", "drop_path", 1, {{3, {8, 2, 3}}}, drop_path},
    {"drop_path, x used twice", "drop_path", 1, {{3, {8, 2, 3}}}, drop_path_and_x},
    {"drop_path, no samples", "drop_path", 1, {{2, {0, 3}}}, drop_path},
};

static void test_grad_elementwise__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(cases); i++)
        assert_true(gradcheck_run(&cases[i], 1e-6) <= 1e-6);
}

enum { SAMPLES = 2000, WIDTH = 5 };

typedef struct {
    vlp_tape *tape;
    vlp_real values[SAMPLES * WIDTH];
    vlp_tensor *x;
} ones;

static int open_ones(void **state) {
    static ones o;
    o.tape = NULL;
    if (vlp_tape_new(&o.tape) != VLP_OK || vlp_tape_open(o.tape, 1 << 20) != VLP_OK) return -1;
    for (int i = 0; i < SAMPLES * WIDTH; i++) o.values[i] = 1;
    o.x = vlp_tape_input(o.tape, VLP_REAL, 2, (int64_t[]){SAMPLES, WIDTH}, o.values, true);
    *state = &o;
    return 0;
}

static int close_ones(void **state) {
    ones *o = *state;
    vlp_tape_free(o->tape);
    return 0;
}

static void test_grad_elementwise__drop_is_the_identity_outside_training(void **state) {
    ones *o = *state;
    assert_ptr_equal(vlp_dropout(o->tape, o->x, 0.5), o->x);
    assert_ptr_equal(vlp_drop_path(o->tape, o->x, 0.5), o->x);
    vlp_tape_set_training(o->tape, true);
    assert_ptr_equal(vlp_dropout(o->tape, o->x, 0), o->x);
    assert_ptr_equal(vlp_drop_path(o->tape, o->x, 0), o->x);
}

/* The share of zeros; every other element must be 1 / (1 - rate). */
static double zeros(const vlp_tensor *y, double rate) {
    const vlp_real *data = vlp_real_data(y);
    int64_t n = vlp_numel(y), dropped = 0;
    for (int64_t i = 0; i < n; i++) {
        if (data[i] != 0) assert_true(fabs(data[i] - 1 / (1 - rate)) < 1e-12);
        dropped += data[i] == 0;
    }
    return (double)dropped / (double)n;
}

static void test_grad_elementwise__dropout_keeps_its_rate(void **state) {
    ones *o = *state;
    vlp_tape_set_training(o->tape, true);
    vlp_tensor *first = vlp_dropout(o->tape, o->x, 0.3), *second = vlp_dropout(o->tape, o->x, 0.3);
    assert_true(fabs(zeros(first, 0.3) - 0.3) < 0.02);
    assert_true(fabs(zeros(second, 0.3) - 0.3) < 0.02);
    assert_memory_not_equal(first->data, second->data, sizeof o->values);
}

static void test_grad_elementwise__drop_path_drops_whole_samples(void **state) {
    ones *o = *state;
    vlp_tape_set_training(o->tape, true);
    vlp_tensor *y = vlp_drop_path(o->tape, o->x, 0.2);
    assert_true(fabs(zeros(y, 0.2) - 0.2) < 0.03);
    const vlp_real *data = vlp_real_data(y);
    for (int i = 0; i < SAMPLES * WIDTH; i++) assert_true(data[i] == data[i / WIDTH * WIDTH]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grad_elementwise__agrees_with_differences),
        cmocka_unit_test_setup_teardown(
            test_grad_elementwise__drop_is_the_identity_outside_training, open_ones, close_ones),
        cmocka_unit_test_setup_teardown(test_grad_elementwise__dropout_keeps_its_rate, open_ones,
                                        close_ones),
        cmocka_unit_test_setup_teardown(test_grad_elementwise__drop_path_drops_whole_samples,
                                        open_ones, close_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
