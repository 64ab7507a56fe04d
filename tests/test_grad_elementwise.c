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

/* Long tensors, so that threads and chunks share the work: the rows of x[0] [5, 3] repeated, an op,
 * and a sum with weights that differ from row to row. */
enum { LONG = 2000 };

static vlp_tensor *lengthen(vlp_tape *tape, vlp_tensor *x) {
    static int32_t ids[LONG];
    for (int i = 0; i < LONG; i++) ids[i] = i * 7 % 5;
    return vlp_embedding(tape, x, ids, 2, (int64_t[]){1, LONG}, -1);
}

static vlp_tensor *shorten(vlp_tape *tape, vlp_tensor *y) {
    static vlp_real weights[LONG * 3];
    for (int i = 0; i < LONG * 3; i++) weights[i] = (vlp_real)sin(i * 1.7);
    vlp_tensor *w = vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){1, LONG, 3}, weights, false);
    return vlp_scale(tape, vlp_mean_rows(tape, vlp_mul(tape, y, w), NULL), 10);
}

static vlp_tensor *long_mul(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = lengthen(tape, x[0]), *b = lengthen(tape, x[1]);
    return shorten(tape, vlp_add(tape, vlp_mul(tape, a, b), vlp_mul(tape, a, a)));
}

static vlp_tensor *long_gelu(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = lengthen(tape, x[0]);
    return shorten(tape, vlp_add(tape, vlp_activation(tape, a, VLP_ACT_GELU), a));
}

static vlp_tensor *long_scale_exp(vlp_tape *tape, vlp_tensor **x) {
    return shorten(tape, vlp_scale_exp(tape, lengthen(tape, x[0]), x[1], 10));
}

static vlp_tensor *long_dropout(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = lengthen(tape, x[0]);
    return shorten(tape, vlp_mul(tape, vlp_dropout(tape, a, 0.4), a));
}

static vlp_tensor *long_norm(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *a = lengthen(tape, x[0]), *b = lengthen(tape, x[1]), *sum = NULL;
    vlp_tensor *y = vlp_add_layer_norm(tape, a, b, x[2], x[2], 1e-2, &sum);
    return shorten(tape, vlp_mul(tape, y, sum));
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
    {"mul, long", "mul", 2, {{2, {5, 3}}, {2, {5, 3}}}, long_mul},
    {"gelu, long", "activation", 1, {{2, {5, 3}}}, long_gelu},
    {"scale_exp, long", "scale_exp", 2, {{2, {5, 3}}, {1, {1}}}, long_scale_exp},
    {"dropout, long", "dropout", 1, {{2, {5, 3}}}, long_dropout},
    {"layer_norm, long", "layer_norm", 3, {{2, {5, 3}}, {2, {5, 3}}, {1, {3}}}, long_norm},
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
    const vlp_real *data = vlp_real_data(first); /* the start comes back nowhere */
    for (int lag = 1; lag <= SAMPLES * WIDTH - 64; lag++)
        assert_memory_not_equal(data, data + lag, 64 * sizeof *data);
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
