#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"
#include "train/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int kind(const char *name) {
    for (int i = 0; vlp_optimizer_kinds[i]; i++)
        if (strcmp(vlp_optimizer_kinds[i], name) == 0) return i;
    fail_msg("no optimizer %s", name);
    return -1;
}

/* Three parameters, one of them long enough for several threads. */
static vlp_params *new_params(void) {
    vlp_params *params;
    const int64_t large[2] = {900, 173}, small = 7;
    assert_int_equal(vlp_params_new(&params), VLP_OK);
    vlp_params_add(params, "weight", VLP_INIT_NORMAL(0.5), VLP_DECAY, 2, large);
    vlp_params_add(params, "bias", VLP_INIT_NORMAL(0.5), VLP_NO_DECAY, 1, &small);
    vlp_params_add(params, "scale", VLP_INIT_CONSTANT(2), VLP_NO_DECAY, 0, NULL);
    assert_int_equal(vlp_params_allocate(params, true), VLP_OK);
    vlp_params_init(params, 3);
    return params;
}

/* Gradients that depend on the step only. */
static void draw_gradients(vlp_params *params, uint64_t step) {
    for (int i = 0; i < params->count; i++) {
        vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, step, (uint64_t)i);
        const vlp_tensor *t = &params->items[i]->tensor;
        for (int64_t k = 0; k < vlp_numel(t); k++) t->grad[k] = VLP_R(vlp_rng_double(&rng) - 0.5);
    }
}

static vlp_optimizer *new_optimizer(vlp_params *params, const char *name) {
    vlp_optimizer_options options = vlp_optimizer_defaults();
    vlp_optimizer *optimizer;
    options.kind = kind(name);
    options.weight_decay = 0.1;
    assert_int_equal(vlp_optimizer_new(&optimizer, params, &options), VLP_OK);
    return optimizer;
}

static void train(vlp_optimizer *optimizer, vlp_params *params, uint64_t from, uint64_t to) {
    for (uint64_t t = from; t < to; t++) {
        draw_gradients(params, t);
        assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, NULL), VLP_OK);
    }
}

static void assert_same_values(const vlp_params *a, const vlp_params *b) {
    assert_memory_equal(a->values, b->values, (size_t)a->total * sizeof *a->values);
}

/* One scalar, two steps, by the formula. */
static void test_train_optimizer__adamw_follows_its_equation(void **state) {
    (void)state;
    vlp_params *params = new_params();
    vlp_optimizer *optimizer = new_optimizer(params, "adamw");
    double p = 2, m = 0, v = 0, lr = 0.01;
    for (int t = 1; t <= 5; t++) {
        vlp_params_zero_grads(params);
        double g = 0.25 * t, clipped = g * fmin(1, 1 / (g + 1e-6)), norm;
        params->items[2]->tensor.grad[0] = VLP_R(g / 2);
        assert_int_equal(vlp_optimizer_step(optimizer, lr, 2, NULL, &norm), VLP_OK);
        m = 0.9 * m + 0.1 * clipped;
        v = 0.999 * v + 0.001 * clipped * clipped;
        p -= lr * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.999, t))) + 1e-8);
        assert_float_equal(norm, g, 1e-6);
        assert_float_equal(vlp_real_data(&params->items[2]->tensor)[0], (float)p, 1e-6);
    }
    vlp_optimizer_free(optimizer);
    vlp_params_free(params);
}

/* Gradients as large as the limit shrink by norm / (norm + 1e-6), but not for lamb-nv. */
static void test_train_optimizer__clipping_is_by_the_global_norm(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        double factor;
    } cases[] = {{"adamw", 1 / 1.001}, {"lamb-nv", 1}};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        vlp_params *params = new_params();
        vlp_optimizer_options options = vlp_optimizer_defaults();
        vlp_optimizer *optimizer;
        double norm;
        options.kind = kind(cases[i].kind);
        options.max_grad_norm = 1e-3;
        assert_int_equal(vlp_optimizer_new(&optimizer, params, &options), VLP_OK);
        params->grads[0] = VLP_R(0.6e-3);
        params->items[1]->tensor.grad[6] = VLP_R(0.8e-3);
        assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, &norm), VLP_OK);
        assert_true(fabs(norm - 1e-3) < 1e-9);
        double m = (double)vlp_optimizer_exp_avg(optimizer)[0];
        assert_true(fabs(m / (0.1 * 0.6e-3 * cases[i].factor) - 1) < 1e-5);
        vlp_optimizer_free(optimizer);
        vlp_params_free(params);
    }
}

static void test_train_optimizer__decay_acts_on_matrices_only(void **state) {
    (void)state;
    vlp_params *params = new_params(), *before = new_params();
    vlp_optimizer *optimizer = new_optimizer(params, "adamw");
    assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, NULL), VLP_OK);
    const vlp_real *w = params->values, *b = params->values + params->items[1]->offset;
    assert_true(fabs((double)w[0] - (double)before->values[0] * (1 - 0.01 * 0.1)) < 1e-7);
    assert_memory_equal(b, before->values + before->items[1]->offset, 7 * sizeof *b);
    vlp_optimizer_free(optimizer);
    vlp_params_free(params);
    vlp_params_free(before);
}

/* The same bits with any number of threads, for every kind. */
static void test_train_optimizer__threads_do_not_change_a_bit(void **state) {
    (void)state;
    for (int k = 0; vlp_optimizer_kinds[k]; k++) {
        vlp_params *results[2];
        double norms[2];
        for (int run = 0; run < 2; run++) {
            assert_int_equal(vlp_threads_set(run ? 3 : 1), VLP_OK);
            vlp_params *params = results[run] = new_params();
            vlp_optimizer *optimizer = new_optimizer(params, vlp_optimizer_kinds[k]);
            train(optimizer, params, 0, 3);
            draw_gradients(params, 3);
            assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, &norms[run]), VLP_OK);
            vlp_optimizer_free(optimizer);
        }
        assert_true(norms[0] == norms[1]);
        assert_same_values(results[0], results[1]);
        vlp_params_free(results[0]);
        vlp_params_free(results[1]);
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
}

static void test_train_optimizer__without_gradient_nothing_moves(void **state) {
    (void)state;
    vlp_params *params = new_params(), *before = new_params();
    vlp_optimizer *optimizer = new_optimizer(params, "adamw");
    const bool has_grad[3] = {false, true, true};
    draw_gradients(params, 0);
    params->grads[0] = VLP_R(INFINITY); /* not looked at */
    assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, has_grad, NULL), VLP_OK);
    assert_memory_equal(params->values, before->values, 900 * 173 * sizeof *params->values);
    assert_int_equal(vlp_optimizer_steps(optimizer, 0), 0);
    assert_int_equal(vlp_optimizer_steps(optimizer, 1), 1);
    vlp_params_freeze(params, "bias", true);
    draw_gradients(params, 1);
    assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, NULL), VLP_OK);
    assert_int_equal(vlp_optimizer_steps(optimizer, 0), 1);
    assert_int_equal(vlp_optimizer_steps(optimizer, 1), 1);
    vlp_optimizer_free(optimizer);
    vlp_params_free(params);
    vlp_params_free(before);
}

static void test_train_optimizer__a_gradient_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    for (int k = 0; vlp_optimizer_kinds[k]; k++) {
        vlp_params *params = new_params(), *twin = new_params();
        vlp_optimizer *optimizer = new_optimizer(params, vlp_optimizer_kinds[k]);
        vlp_optimizer *other = new_optimizer(twin, vlp_optimizer_kinds[k]);
        draw_gradients(params, 9);
        params->items[1]->tensor.grad[6] = VLP_R(NAN);
        assert_int_equal(vlp_optimizer_step(optimizer, 0.01, 1, NULL, NULL), VLP_ERR_NUMERIC);
        assert_non_null(strstr(vlp_error(), "gradient of bias"));
        train(optimizer, params, 0, 2);
        train(other, twin, 0, 2);
        assert_same_values(params, twin);
        vlp_optimizer_free(optimizer);
        vlp_optimizer_free(other);
        vlp_params_free(params);
        vlp_params_free(twin);
    }
}

static void test_train_optimizer__a_warm_step_allocates_nothing(void **state) {
    (void)state;
    vlp_params *params = new_params();
    vlp_optimizer *optimizer = new_optimizer(params, "lamb");
    train(optimizer, params, 0, 1);
    int64_t count = vlp_alloc_count();
    train(optimizer, params, 1, 3);
    assert_int_equal(vlp_alloc_count(), count);
    vlp_optimizer_free(optimizer);
    vlp_params_free(params);
}

static char folder[256], path[300];

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-optimizer-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* Four steps equal two steps, a save, a load into a fresh optimizer and two more, bit for bit. */
static void test_train_optimizer__a_resumed_run_is_the_same_run(void **state) {
    (void)state;
    for (int k = 0; vlp_optimizer_kinds[k]; k++) {
        vlp_params *whole = new_params(), *parts = new_params();
        vlp_optimizer *straight = new_optimizer(whole, vlp_optimizer_kinds[k]);
        vlp_optimizer *first = new_optimizer(parts, vlp_optimizer_kinds[k]);
        train(straight, whole, 0, 4);
        train(first, parts, 0, 2);
        assert_int_equal(vlp_optimizer_save(first, path), VLP_OK);
        vlp_optimizer_free(first);
        vlp_optimizer *second = new_optimizer(parts, vlp_optimizer_kinds[k]);
        assert_int_equal(vlp_optimizer_load(second, path), VLP_OK);
        train(second, parts, 2, 4);
        assert_same_values(whole, parts);
        vlp_optimizer_free(straight);
        vlp_optimizer_free(second);
        vlp_params_free(whole);
        vlp_params_free(parts);
    }
}

static void test_train_optimizer__foreign_state_is_refused(void **state) {
    (void)state;
    vlp_params *params = new_params();
    vlp_optimizer *lamb = new_optimizer(params, "lamb"), *adamw = new_optimizer(params, "adamw");
    assert_int_equal(vlp_optimizer_save(lamb, path), VLP_OK);
    assert_int_equal(vlp_optimizer_load(adamw, path), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "lamb, but the recipe says adamw"));

    vlp_params *other;
    const int64_t shape = 9;
    assert_int_equal(vlp_params_new(&other), VLP_OK);
    vlp_params_add(other, "weigth", VLP_INIT_CONSTANT(0), VLP_DECAY, 1, &shape);
    vlp_params_add(other, "bias", VLP_INIT_CONSTANT(0), VLP_DECAY, 1, &shape);
    vlp_params_add(other, "scale", VLP_INIT_CONSTANT(0), VLP_DECAY, 0, NULL);
    assert_int_equal(vlp_params_allocate(other, true), VLP_OK);
    vlp_optimizer *stranger = new_optimizer(other, "lamb");
    assert_int_equal(vlp_optimizer_load(stranger, path), VLP_ERR_NOT_FOUND);
    assert_non_null(strstr(vlp_error(), "\"step.weigth\"; the nearest name is \"step.weight\""));
    assert_int_equal(vlp_optimizer_save(stranger, path), VLP_OK);
    assert_int_equal(vlp_optimizer_load(lamb, path), VLP_ERR_NOT_FOUND);
    vlp_optimizer_free(stranger);
    vlp_optimizer_free(lamb);
    vlp_optimizer_free(adamw);
    vlp_params_free(other);
    vlp_params_free(params);
}

static void test_train_optimizer__options_out_of_range_are_refused(void **state) {
    (void)state;
    vlp_params *params = new_params();
    vlp_optimizer *optimizer;
    vlp_optimizer_options good = vlp_optimizer_defaults(), bad[4] = {good, good, good, good};
    bad[0].beta1 = 1;
    bad[1].eps = 0;
    bad[2].weight_decay = -1;
    bad[3].max_grad_norm = NAN;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(vlp_optimizer_new(&optimizer, params, &bad[i]), VLP_ERR_USAGE);
    for (int64_t n = 1;; n++) {
        assert_true(n < 20);
        vlp_alloc_fail_at(n);
        vlp_status status = vlp_optimizer_new(&optimizer, params, &good);
        vlp_alloc_fail_at(0);
        if (status == VLP_OK) break;
        assert_int_equal(status, VLP_ERR_MEMORY);
        assert_null(optimizer);
    }
    vlp_optimizer_free(optimizer);
    vlp_params_free(params);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_optimizer__adamw_follows_its_equation),
        cmocka_unit_test(test_train_optimizer__clipping_is_by_the_global_norm),
        cmocka_unit_test(test_train_optimizer__decay_acts_on_matrices_only),
        cmocka_unit_test(test_train_optimizer__threads_do_not_change_a_bit),
        cmocka_unit_test(test_train_optimizer__without_gradient_nothing_moves),
        cmocka_unit_test(test_train_optimizer__a_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(test_train_optimizer__a_warm_step_allocates_nothing),
        cmocka_unit_test(test_train_optimizer__a_resumed_run_is_the_same_run),
        cmocka_unit_test(test_train_optimizer__foreign_state_is_refused),
        cmocka_unit_test(test_train_optimizer__options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
