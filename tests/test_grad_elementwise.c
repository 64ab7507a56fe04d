#include "tests/grad_cases_elementwise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_grad_elementwise__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(grad_cases_elementwise); i++)
        assert_true(gradcheck_run(&grad_cases_elementwise[i], 1e-6) <= 1e-6);
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
