/* A Transformer in other ways of running it: in bfloat16, and with blocks computed again. */
#include "core/memory.h"
#include "core/nn.h"
#include "core/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 3, LENGTH = 9, WIDTH = 48, CONTEXT = 5, DEPTH = 3 };

typedef struct {
    bool pre_norm, cross;
    double drop;
    vlp_dtype precision;
    bool recompute, reuse;
} variant;

typedef struct {
    vlp_params *params;
    vlp_stack stack;
    vlp_norm final_norm;
    vlp_dense head;
    vlp_real x[BATCH * LENGTH * WIDTH], context[BATCH * CONTEXT * WIDTH], cotangent[BATCH * LENGTH];
    vlp_real y[BATCH * LENGTH];
    vlp_real *grads;
    size_t step_bytes;
} network;

static void fill_normal(uint64_t stream, int64_t n, vlp_real *x) {
    vlp_rng rng = vlp_rng_at(7, VLP_RNG_INIT, stream, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)vlp_rng_normal(&rng);
}

static void open_network(network *n, variant v) {
    memset(n, 0, sizeof *n);
    vlp_block_config config = {.width = WIDTH,
                               .heads = 3,
                               .mlp_width = 4 * WIDTH,
                               .context_width = v.cross ? WIDTH : 0,
                               .act = VLP_ACT_GELU,
                               .pre_norm = v.pre_norm,
                               .dropout = v.drop,
                               .attention_dropout = v.drop,
                               .drop_path = v.drop,
                               .eps = 1e-6};
    assert_int_equal(vlp_params_new(&n->params), VLP_OK);
    assert_int_equal(vlp_stack_declare(&n->stack, n->params, &config, DEPTH), VLP_OK);
    vlp_norm_declare(&n->final_norm, n->params, "norm", WIDTH, 1e-6);
    vlp_dense_declare(&n->head, n->params, "head", WIDTH, 1, true, vlp_init_std(WIDTH));
    assert_int_equal(vlp_params_allocate(n->params, true), VLP_OK);
    vlp_params_init(n->params, 3);
    fill_normal(1, VLP_COUNT(n->x), n->x);
    fill_normal(2, VLP_COUNT(n->context), n->context);
    fill_normal(3, VLP_COUNT(n->cotangent), n->cotangent);
    n->grads = vlp_alloc((size_t)n->params->total * sizeof *n->grads);
}

static void close_network(network *n) {
    vlp_stack_free(&n->stack);
    vlp_params_free(n->params);
    vlp_free(n->grads);
}

static vlp_tensor *build(network *n, vlp_tape *tape, bool cross) {
    vlp_tensor *keys[DEPTH];
    vlp_tensor *x =
        vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){BATCH, LENGTH, WIDTH}, n->x, false);
    vlp_tensor *context =
        vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){BATCH, CONTEXT, WIDTH}, n->context, false);
    if (cross) vlp_stack_context(tape, &n->stack, context, keys);
    x = vlp_stack_forward(
        tape, &n->stack, x,
        &(vlp_stack_input){.context = cross ? keys : NULL, .final_norm = &n->final_norm});
    return vlp_dense_readout(tape, &n->head, x);
}

static void pass_through(network *n, vlp_tape *tape, bool cross) {
    vlp_tape_set_training(tape, true);
    vlp_tensor *y = build(n, tape, cross);
    assert_int_equal(vlp_tape_status(tape), VLP_OK);
    if (!vlp_tape_planning(tape)) memcpy(n->y, vlp_real_data(y), sizeof n->y);
    assert_int_equal(vlp_tape_backward(tape, vlp_dot_constant(tape, y, n->cotangent)), VLP_OK);
}

static void run(network *n, variant v) {
    vlp_tape *tape;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    vlp_tape_set_precision(tape, v.precision);
    vlp_tape_set_recompute(tape, v.recompute);
    vlp_tape_set_reuse(tape, v.reuse);
    vlp_tape_set_poison(tape, true);
    assert_int_equal(vlp_tape_plan(tape), VLP_OK);
    pass_through(n, tape, v.cross);
    n->step_bytes = vlp_tape_bytes(tape);
    assert_int_equal(vlp_tape_open(tape, 0), VLP_OK);
    for (int step = 0; step < 2; step++) {
        vlp_params_zero_grads(n->params);
        vlp_tape_begin(tape, 1, 5);
        pass_through(n, tape, v.cross);
    }
    assert_true(vlp_tape_used(tape) <= n->step_bytes); /* a rehearsal says the truth */
    memcpy(n->grads, n->params->grads, (size_t)n->params->total * sizeof *n->grads);
    vlp_tape_free(tape);
}

static double distance(int64_t n, const vlp_real *a, const vlp_real *b) {
    double square = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(square / (size + 1e-30));
}

/* Largest relative distance of a gradient, and *y of the output */
static double compare(variant a, variant b, double *y, double *memory) {
    network *one = malloc(sizeof *one), *other = malloc(sizeof *other);
    open_network(one, a);
    open_network(other, b);
    run(one, a);
    run(other, b);
    *y = distance(BATCH * LENGTH, other->y, one->y);
    *memory = (double)other->step_bytes / (double)one->step_bytes;
    double most = 0;
    for (int i = 0; i < one->params->count; i++) {
        const vlp_param *p = one->params->items[i];
        most = fmax(most, distance(vlp_numel(&p->tensor), other->grads + p->offset,
                                   one->grads + p->offset));
    }
    close_network(one);
    close_network(other);
    free(one);
    free(other);
    return most;
}

static void check_bf16(variant v) {
    variant narrow = v;
    double y, memory;
    narrow.precision = VLP_BF16;
    assert_true(compare(v, narrow, &y, &memory) < 4e-2);
    assert_true(y > 0); /* bfloat16 was at work */
    assert_true(y < 1e-2);
}

static void test_core_stack__pre_norm_bf16_is_near_float(void **state) {
    (void)state;
    check_bf16((variant){.pre_norm = true});
}

static void test_core_stack__post_norm_with_cross_bf16_is_near_float(void **state) {
    (void)state;
    check_bf16((variant){.cross = true});
}

static void test_core_stack__bf16_drops_the_same_elements(void **state) {
    (void)state;
    check_bf16((variant){.pre_norm = true, .drop = 0.2});
}

static void check_recompute(variant v) {
    variant again = v;
    double y, memory;
    again.recompute = true;
    /* keys of several stretches have their gradient in float, of one op in bfloat16 */
    assert_true(compare(v, again, &y, &memory) < (v.precision == VLP_BF16 ? 5e-3 : 1e-6));
    assert_true(y < 1e-6);
    assert_true(memory < 0.7);
}

static void test_core_stack__recomputed_blocks_give_the_same_gradients(void **state) {
    (void)state;
    check_recompute((variant){.pre_norm = true});
    check_recompute((variant){.cross = true});
    check_recompute((variant){.pre_norm = true, .cross = true, .precision = VLP_BF16});
}

static void test_core_stack__recomputed_blocks_drop_the_same_elements(void **state) {
    (void)state;
    check_recompute((variant){.pre_norm = true, .drop = 0.3});
    check_recompute((variant){.cross = true, .drop = 0.3});
}

/* Backward finds what was forgotten again: in float the same bits. */
static void check_reuse(variant v, double limit, double share) {
    variant reuse = v;
    double y, memory;
    reuse.reuse = true;
    assert_true(compare(v, reuse, &y, &memory) <= limit);
    assert_true(y == 0);
    assert_true(memory < share);
}

static void test_core_stack__reused_memory_gives_the_same_gradients(void **state) {
    (void)state;
    check_reuse((variant){.pre_norm = true}, 0, 0.75);
    check_reuse((variant){.cross = true}, 0, 0.7);
    check_reuse((variant){.pre_norm = true, .cross = true, .drop = 0.2}, 0, 0.8);
    check_reuse((variant){.cross = true, .drop = 0.2}, 0, 0.8);
    check_reuse((variant){.pre_norm = true, .recompute = true}, 0, 1);
    check_reuse((variant){.cross = true, .recompute = true, .drop = 0.2}, 0, 1);
}

static void test_core_stack__reused_memory_suits_bf16(void **state) {
    (void)state;
    check_reuse((variant){.pre_norm = true, .precision = VLP_BF16}, 5e-3, 0.72);
    check_reuse((variant){.cross = true, .precision = VLP_BF16}, 5e-3, 0.7);
    check_reuse((variant){.cross = true, .precision = VLP_BF16, .drop = 0.2}, 5e-3, 0.8);
    check_reuse((variant){.cross = true, .precision = VLP_BF16, .recompute = true}, 5e-3, 1);
}

static vlp_tape *small_tape(vlp_dtype precision) {
    vlp_tape *tape;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    vlp_tape_set_precision(tape, precision);
    assert_int_equal(vlp_tape_open(tape, 1 << 20), VLP_OK);
    return tape;
}

static void test_core_stack__to_real_widens_and_passes_gradients(void **state) {
    (void)state;
    static const uint16_t halves[] = {0x3f80, 0xc000, 0x0000, 0x7f80, 0x3eab};
    static const vlp_real wide[] = {1, -2, 0, INFINITY, VLP_R(0.333984375)};
    static const vlp_real cotangent[] = {1, 2, 3, 4, 5};
    vlp_tape *tape = small_tape(VLP_BF16);
    vlp_tensor *x = vlp_tape_input(tape, VLP_BF16, 1, (int64_t[]){5}, halves, true);
    vlp_tensor *y = vlp_to_real(tape, x);
    assert_int_equal(y->dtype, VLP_REAL);
    for (int i = 0; i < 5; i++) assert_true(vlp_real_data(y)[i] == wide[i]);
    assert_ptr_equal(vlp_to_real(tape, y), y);
    vlp_tape_seed(tape, y, cotangent);
    assert_int_equal(vlp_tape_backward(tape, NULL), VLP_OK);
    assert_memory_equal(x->grad, cotangent, sizeof cotangent);
    vlp_tape_free(tape);
}

/* One reader: the gradient is rounded as the values are; two: it is summed in float. */
static void test_core_stack__bf16_gradients_are_never_added_to(void **state) {
    (void)state;
    static vlp_real values[4] = {1, 2, 3, 4}, grads[2];
    static const vlp_real cotangent[] = {VLP_R(1.00390625), 1, 1, 1}; /* halfway: to even */
    vlp_tensor weight = {.ndim = 2, .shape = {2, 2}, .data = values, .parameter = true};
    vlp_tensor bias = {.ndim = 1, .shape = {2}, .data = values, .grad = grads, .needs_grad = true};
    vlp_tape *tape = small_tape(VLP_BF16);
    for (int readers = 1; readers <= 2; readers++) {
        vlp_tape_begin(tape, 0, 0);
        memset(grads, 0, sizeof grads);
        vlp_tensor *x = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){1, 2}, values, true);
        vlp_tensor *y = vlp_linear(tape, x, &weight, &bias, VLP_ACT_NONE);
        for (int i = 0; i < readers; i++) vlp_tape_seed(tape, vlp_to_real(tape, y), cotangent);
        assert_int_equal(y->readers, readers);
        assert_int_equal(vlp_tape_backward(tape, NULL), VLP_OK);
        assert_true(grads[0] == (readers == 1 ? 1 : 2 * cotangent[0]));
        assert_null(y->grad);
        assert_null(y->half_grad);
    }
    vlp_tape_free(tape);
}

static void test_core_stack__only_products_with_parameters_are_bf16(void **state) {
    (void)state;
    static vlp_real values[4] = {1, 2, 3, 4};
    vlp_tensor weight = {.ndim = 2, .shape = {2, 2}, .data = values, .parameter = true};
    vlp_tape *tape = small_tape(VLP_BF16);
    vlp_tensor *x = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){2, 2}, values, false);
    assert_int_equal(vlp_linear(tape, x, &weight, NULL, VLP_ACT_NONE)->dtype, VLP_BF16);
    assert_int_equal(vlp_readout(tape, x, &weight, NULL)->dtype, VLP_REAL);
    assert_int_equal(vlp_linear(tape, x, x, NULL, VLP_ACT_NONE)->dtype, VLP_REAL);
    vlp_tape_free(tape);
    tape = small_tape(VLP_REAL);
    x = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){2, 2}, values, false);
    assert_int_equal(vlp_linear(tape, x, &weight, NULL, VLP_ACT_NONE)->dtype, VLP_REAL);
    vlp_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_stack__pre_norm_bf16_is_near_float),
        cmocka_unit_test(test_core_stack__post_norm_with_cross_bf16_is_near_float),
        cmocka_unit_test(test_core_stack__bf16_drops_the_same_elements),
        cmocka_unit_test(test_core_stack__recomputed_blocks_give_the_same_gradients),
        cmocka_unit_test(test_core_stack__recomputed_blocks_drop_the_same_elements),
        cmocka_unit_test(test_core_stack__reused_memory_gives_the_same_gradients),
        cmocka_unit_test(test_core_stack__reused_memory_suits_bf16),
        cmocka_unit_test(test_core_stack__to_real_widens_and_passes_gradients),
        cmocka_unit_test(test_core_stack__bf16_gradients_are_never_added_to),
        cmocka_unit_test(test_core_stack__only_products_with_parameters_are_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
