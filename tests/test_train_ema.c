#include "train/ema.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static vlp_params *new_params(double value) {
    vlp_params *params;
    const int64_t shape = 40000;
    assert_int_equal(vlp_params_new(&params), VLP_OK);
    vlp_params_add(params, "w", VLP_INIT_CONSTANT(value), VLP_DECAY, 1, &shape);
    vlp_params_add(params, "scale", VLP_INIT_CONSTANT(value), VLP_NO_DECAY, 0, NULL);
    assert_int_equal(vlp_params_allocate(params, false), VLP_OK);
    vlp_params_init(params, 1);
    return params;
}

static void set_all(vlp_params *params, double value) {
    for (int64_t i = 0; i < 40000; i++) params->values[i] = VLP_R(value);
}

static void test_train_ema__follows_its_equation(void **state) {
    (void)state;
    for (int warmup = 0; warmup < 2; warmup++) {
        vlp_params *params = new_params(1);
        vlp_ema *ema;
        assert_int_equal(vlp_ema_new(&ema, params, 0.5, warmup), VLP_OK);
        double want = 1;
        for (int t = 0; t < 20; t++) {
            set_all(params, t);
            vlp_ema_update(ema);
            double d = warmup ? fmin(0.5, (1.0 + t) / (10.0 + t)) : 0.5;
            want = d * want + (1 - d) * t;
            assert_float_equal(ema->shadow[0], want, 1e-5);
            assert_float_equal(ema->shadow[39999], want, 1e-5);
        }
        vlp_ema_free(ema);
        vlp_params_free(params);
    }
}

static void test_train_ema__swap_and_back_leaves_the_model_alone(void **state) {
    (void)state;
    vlp_params *params = new_params(1);
    vlp_ema *ema;
    assert_int_equal(vlp_ema_new(&ema, params, 0.75, false), VLP_OK);
    set_all(params, 5);
    vlp_ema_update(ema);
    vlp_ema_swap(ema);
    assert_true(params->values[0] == 2 && ema->shadow[0] == 5);
    vlp_ema_swap(ema);
    assert_true(params->values[39999] == 5 && ema->shadow[39999] == 2);
    vlp_ema_swap(ema);
    vlp_ema_free(ema); /* gives the model its values back */
    assert_true(params->values[7] == 5);
    vlp_params_free(params);
}

static void test_train_ema__state_comes_back(void **state) {
    (void)state;
    char path[300];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/vlp-ema-XXXXXX", base ? base : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    vlp_params *params = new_params(1);
    vlp_ema *ema, *other;
    assert_int_equal(vlp_ema_new(&ema, params, 0.75, true), VLP_OK);
    set_all(params, 5);
    vlp_ema_update(ema);
    assert_int_equal(vlp_ema_save(ema, path), VLP_OK);
    assert_int_equal(vlp_ema_new(&other, params, 0.75, true), VLP_OK);
    assert_int_equal(vlp_ema_load(other, path, ema->updates), VLP_OK);
    assert_int_equal(other->updates, 1);
    assert_memory_equal(ema->shadow, other->shadow, (size_t)params->total * sizeof(vlp_real));
    assert_true(params->values[0] == 5);
    assert_int_equal(vlp_ema_load(other, "/nowhere", 0), VLP_ERR_NOT_FOUND);
    assert_int_equal(vlp_ema_new(&(vlp_ema *){NULL}, params, 1, true), VLP_ERR_USAGE);
    vlp_ema_free(ema);
    vlp_ema_free(other);
    vlp_params_free(params);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_ema__follows_its_equation),
        cmocka_unit_test(test_train_ema__swap_and_back_leaves_the_model_alone),
        cmocka_unit_test(test_train_ema__state_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
