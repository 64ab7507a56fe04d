/* A Transformer with bfloat16 activations against the same one in float. */
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
    vlp_params *params;
    vlp_stack stack;
    vlp_norm final_norm;
    vlp_dense head;
    vlp_real x[BATCH * LENGTH * WIDTH], context[BATCH * CONTEXT * WIDTH], cotangent[BATCH * LENGTH];
    vlp_real y[BATCH * LENGTH];
    vlp_real *grads;
} network;

static void fill_normal(uint64_t stream, int64_t n, vlp_real *x) {
    vlp_rng rng = vlp_rng_at(7, VLP_RNG_INIT, stream, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)vlp_rng_normal(&rng);
}

static void open_network(network *n, bool pre_norm, bool cross) {
    memset(n, 0, sizeof *n);
    vlp_block_config config = {.width = WIDTH,
                               .heads = 3,
                               .mlp_width = 4 * WIDTH,
                               .context_width = cross ? WIDTH : 0,
                               .act = VLP_ACT_GELU,
                               .pre_norm = pre_norm,
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

static void run(network *n, vlp_dtype precision, bool cross) {
    vlp_tape *tape;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    vlp_tape_set_precision(tape, precision);
    assert_int_equal(vlp_tape_open(tape, 16 << 20), VLP_OK);
    vlp_params_zero_grads(n->params);
    vlp_tensor *y = build(n, tape, cross);
    assert_int_equal(vlp_tape_status(tape), VLP_OK);
    memcpy(n->y, vlp_real_data(y), sizeof n->y);
    vlp_tensor *loss = vlp_dot_constant(tape, y, n->cotangent);
    assert_int_equal(vlp_tape_backward(tape, loss), VLP_OK);
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

static void compare(bool pre_norm, bool cross) {
    network *exact = malloc(sizeof *exact), *rounded = malloc(sizeof *rounded);
    open_network(exact, pre_norm, cross);
    open_network(rounded, pre_norm, cross);
    run(exact, VLP_REAL, cross);
    run(rounded, VLP_BF16, cross);
    double y = distance(BATCH * LENGTH, rounded->y, exact->y);
    assert_true(y > 0); /* bfloat16 was at work */
    assert_true(y < 1e-2);
    for (int i = 0; i < exact->params->count; i++) {
        const vlp_param *p = exact->params->items[i];
        double apart =
            distance(vlp_numel(&p->tensor), rounded->grads + p->offset, exact->grads + p->offset);
        if (apart > 4e-2) fail_msg("gradient of %s is %g apart", p->name, apart);
    }
    close_network(exact);
    close_network(rounded);
    free(exact);
    free(rounded);
}

static void test_core_precision__pre_norm_bf16_is_near_float(void **state) {
    (void)state;
    compare(true, false);
}

static void test_core_precision__post_norm_with_cross_bf16_is_near_float(void **state) {
    (void)state;
    compare(false, true);
}

static vlp_tape *small_tape(vlp_dtype precision) {
    vlp_tape *tape;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    vlp_tape_set_precision(tape, precision);
    assert_int_equal(vlp_tape_open(tape, 1 << 20), VLP_OK);
    return tape;
}

static void test_core_precision__to_real_widens_and_passes_gradients(void **state) {
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

static void test_core_precision__only_products_with_parameters_are_bf16(void **state) {
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
        cmocka_unit_test(test_core_precision__pre_norm_bf16_is_near_float),
        cmocka_unit_test(test_core_precision__post_norm_with_cross_bf16_is_near_float),
        cmocka_unit_test(test_core_precision__to_real_widens_and_passes_gradients),
        cmocka_unit_test(test_core_precision__only_products_with_parameters_are_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
