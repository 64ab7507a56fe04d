#include "train/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COSINE, LINEAR, CONSTANT };

static void test_train_schedule__warmup_moves_from_the_first_update(void **state) {
    (void)state;
    for (int kind = COSINE; kind <= CONSTANT; kind++) {
        vlp_schedule s = {.kind = kind, .lr = 2, .floor = 0.5, .warmup = 4, .total = 12};
        assert_float_equal(vlp_schedule_lr(&s, 0), 0.5, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 3), 2, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 4), 2, 1e-12);
        s.from_zero = true;
        assert_float_equal(vlp_schedule_lr(&s, 0), 0, 0);
        assert_float_equal(vlp_schedule_lr(&s, 3), 1.5, 1e-12);
    }
}

static void test_train_schedule__shapes_between_peak_and_floor(void **state) {
    (void)state;
    static const struct {
        int kind;
        double half, quarter, end;
    } cases[] = {
        {COSINE, 1.25, 1.25 + 0.75 * 0.70710678118654752, 0.5},
        {LINEAR, 1.25, 1.625, 0.5},
        {CONSTANT, 2, 2, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vlp_schedule s = {.kind = cases[i].kind, .lr = 2, .floor = 0.5, .warmup = 4, .total = 12};
        assert_float_equal(vlp_schedule_lr(&s, 6), cases[i].quarter, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 8), cases[i].half, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 12), cases[i].end, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 1000), cases[i].end, 1e-12); /* stays */
    }
}

static void test_train_schedule__degenerate_lengths_are_finite(void **state) {
    (void)state;
    for (int kind = COSINE; kind <= CONSTANT; kind++) {
        vlp_schedule s = {.kind = kind, .lr = 2, .warmup = 0, .total = 0};
        assert_float_equal(vlp_schedule_lr(&s, 0), 2, 1e-12);
        s.warmup = 5; /* longer than the run */
        s.total = 3;
        assert_float_equal(vlp_schedule_lr(&s, 4), 2, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 5), 2, 1e-12);
        assert_float_equal(vlp_schedule_lr(&s, 6), kind == CONSTANT ? 2 : 0, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_schedule__warmup_moves_from_the_first_update),
        cmocka_unit_test(test_train_schedule__shapes_between_peak_and_floor),
        cmocka_unit_test(test_train_schedule__degenerate_lengths_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
