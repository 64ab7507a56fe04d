/* Attention of random shapes, in both types and on every instruction set, against its definition in
 * double; and what it touches in memory. */
#include "core/kernels.h"
#include "core/memory.h"
#include "core/op_attention.h"
#include "core/op_table.h"
#include "core/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { Q, K, V, BIAS, INPUTS };

/* One call, all of its memory between pages that may not be touched. Inputs are rounded to
 * bfloat16 where that is their type, so the definition sees the same numbers. */
typedef struct {
    vlp_attention_attr attr;
    vlp_tensor in[INPUTS], out;
    vlp_node node;
    vlp_real *rounded[INPUTS], *dy; /* rounded: the inputs as the definition reads them */
    double *want_grad[INPUTS], *want;
    void *maps[32];
    size_t map_bytes[32];
    int n_maps;
} call;

static vlp_rng rng;

static int64_t below(int64_t n) {
    return (int64_t)vlp_rng_below(&rng, (uint32_t)n);
}

/* Memory that ends (or, with `first`, begins) at a forbidden page. */
static void *guarded(call *c, size_t bytes, bool first) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    uint8_t *map = mmap(NULL, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED && c->n_maps < (int)VLP_COUNT(c->maps));
    if (body) assert_int_equal(mprotect(map + page, body, PROT_READ | PROT_WRITE), 0);
    memset(map + page, 0xff, body); /* NaN */
    c->maps[c->n_maps] = map;
    c->map_bytes[c->n_maps++] = body + 2 * page;
    return map + page + (first ? 0 : body - bytes);
}

static void close_call(call *c) {
    for (int i = 0; i < c->n_maps; i++) munmap(c->maps[i], c->map_bytes[i]);
}

static void make_input(call *c, int which, vlp_dtype dtype, int ndim, const int64_t *shape) {
    vlp_tensor *x = &c->in[which];
    *x = (vlp_tensor){.dtype = dtype, .ndim = ndim, .needs_grad = true};
    memcpy(x->shape, shape, (size_t)ndim * sizeof *shape);
    size_t n = (size_t)vlp_numel(x);
    x->data = guarded(c, n * vlp_dtype_size(dtype), false);
    x->grad = guarded(c, n * sizeof *x->grad, false);
    x->grad_fresh = true;
    c->rounded[which] = guarded(c, n * sizeof(vlp_real), false);
    c->want_grad[which] = guarded(c, n * sizeof(double), false);
    memset(c->want_grad[which], 0, n * sizeof(double));
    for (size_t i = 0; i < n; i++) c->rounded[which][i] = (vlp_real)vlp_rng_normal(&rng);
    if (dtype == VLP_REAL) {
        memcpy(x->data, c->rounded[which], n * sizeof(vlp_real));
        return;
    }
    vlp_kernels_get()->to_bf16((int64_t)n, c->rounded[which], x->data);
    vlp_kernels_get()->from_bf16((int64_t)n, x->data, c->rounded[which]);
}

/* The first and last few queries may have no gradient, as under padding. */
static void make_output(call *c, vlp_dtype dtype) {
    const vlp_attention_attr *a = &c->attr;
    int64_t cols = a->heads * a->width;
    c->out = (vlp_tensor){
        .dtype = dtype, .ndim = 3, .shape = {a->batch, a->queries, cols}, .needs_grad = true};
    size_t n = (size_t)vlp_numel(&c->out);
    c->out.data = guarded(c, n * vlp_dtype_size(dtype), false);
    c->out.grad = c->dy = guarded(c, n * sizeof *c->dy, false);
    c->want = guarded(c, n * sizeof *c->want, false);
    int64_t from = below(3) ? 0 : below(a->queries), to = below(3) ? a->queries : below(a->queries);
    for (int64_t i = 0; i < (int64_t)n; i++) {
        int64_t query = i / cols % a->queries;
        c->dy[i] = query < from || query >= to ? 0 : (vlp_real)vlp_rng_normal(&rng);
    }
}

static void make_masks(call *c, bool masked) {
    vlp_attention_attr *a = &c->attr;
    if (below(3) == 0) {
        int32_t *index = guarded(c, (size_t)a->batch * sizeof *index, false);
        for (int64_t b = 0; b < a->batch; b++) index[b] = (int32_t)below(a->kv_batch);
        a->kv_index = index;
    } else {
        a->kv_batch = a->batch;
    }
    if (!masked) return;
    a->mask_by_query_batch = below(2);
    int64_t rows = a->mask_by_query_batch ? a->batch : a->kv_batch;
    uint8_t *mask = guarded(c, (size_t)(rows * a->keys), false);
    for (int64_t r = 0; r < rows; r++) {
        int64_t used = below(a->keys + 1), holes = below(2);
        for (int64_t j = 0; j < a->keys; j++)
            mask[r * a->keys + j] = j < used && !(holes && below(4) == 0);
    }
    a->key_mask = mask;
}

static void open_call(call *c, vlp_dtype dtype, vlp_attention_attr attr, bool masked, bool bias) {
    *c = (call){.attr = attr};
    vlp_attention_attr *a = &c->attr;
    a->tile_count = vlp_attention_tile_count(a->queries);
    a->scale = below(4) ? (vlp_real)(1 / sqrt((double)a->width)) : VLP_R(-0.2);
    make_masks(c, masked);
    int64_t cols = a->heads * a->width + below(3);
    a->offset[V] = cols - a->heads * a->width;
    make_input(c, Q, dtype, 3, (int64_t[]){a->batch, a->queries, cols});
    make_input(c, K, dtype, 3, (int64_t[]){a->kv_batch, a->keys, cols});
    make_input(c, V, dtype, 3, (int64_t[]){a->kv_batch, a->keys, cols});
    int64_t shape[] = {below(2) ? 1 : a->batch, below(2) ? 1 : a->heads, a->queries, a->keys};
    if (bias) make_input(c, BIAS, VLP_REAL, 4, shape);
    make_output(c, dtype);
    c->node = (vlp_node){.op = &vlp_op_attention, .attr = a, .recorded = true, .seed = 3};
    for (int i = 0; i < (bias ? INPUTS : BIAS); i++) c->node.in[i] = &c->in[i];
    c->node.out[0] = &c->out;
    size_t rows = (size_t)(a->batch * a->heads * a->queries);
    c->node.saved[0] = guarded(c, rows * sizeof(vlp_real), false);
    c->node.work = guarded(c, vlp_op_attention.workspace(&c->node), below(2));
}

static vlp_attention_attr random_shape(void) {
    bool large = below(3) == 0;
    return (vlp_attention_attr){.batch = 1 + below(4),
                                .kv_batch = 1 + below(4),
                                .queries = 1 + below(large ? 150 : 34),
                                .keys = 1 + below(large ? 290 : 34),
                                .heads = 1 + below(3),
                                .width = below(2) ? 8 * (1 + below(10)) : 1 + below(70),
                                .causal = below(4) == 0};
}

/* The definition ------------------------------------------------------------------------------- */

static int64_t place(const call *c, int which, int64_t row, int64_t length, int64_t at, int64_t h) {
    const vlp_attention_attr *a = &c->attr;
    return (row * length + at) * vlp_col_count(&c->in[which]) + a->offset[which] + h * a->width;
}

static void define_query(call *c, int64_t b, int64_t h, int64_t i) {
    const vlp_attention_attr *a = &c->attr;
    int64_t r = a->kv_index ? a->kv_index[b] : b, q_at = place(c, Q, b, a->queries, i, h);
    int64_t y_at = ((b * a->queries + i) * a->heads + h) * a->width, bias_at = 0;
    const int64_t *shape = c->in[BIAS].shape;
    if (c->node.in[BIAS])
        bias_at =
            (((shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : h)) * a->queries + i) *
            a->keys;
    double p[300], dp[300], most = -INFINITY, total = 0, delta = 0, scale = (double)a->scale;
    const uint8_t *mask =
        a->key_mask ? a->key_mask + (a->mask_by_query_batch ? b : r) * a->keys : NULL;
    for (int64_t j = 0; j < a->keys; j++) {
        int64_t k_at = place(c, K, r, a->keys, j, h), v_at = place(c, V, r, a->keys, j, h);
        p[j] = dp[j] = 0;
        for (int64_t n = 0; n < a->width; n++) {
            p[j] += scale * (double)c->rounded[Q][q_at + n] * (double)c->rounded[K][k_at + n];
            dp[j] += (double)c->dy[y_at + n] * (double)c->rounded[V][v_at + n];
        }
        if (c->node.in[BIAS]) p[j] += (double)c->rounded[BIAS][bias_at + j];
        if ((mask && !mask[j]) || (a->causal && j > i + a->keys - a->queries)) p[j] = -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < a->keys; j++) total += p[j] = most > -INFINITY ? exp(p[j] - most) : 0;
    for (int64_t j = 0; j < a->keys && total > 0; j++) delta += (p[j] /= total) * dp[j];
    for (int64_t n = 0; n < a->width; n++) c->want[y_at + n] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        int64_t k_at = place(c, K, r, a->keys, j, h), v_at = place(c, V, r, a->keys, j, h);
        double ds = p[j] * (dp[j] - delta);
        for (int64_t n = 0; n < a->width; n++) {
            c->want[y_at + n] += p[j] * (double)c->rounded[V][v_at + n];
            c->want_grad[V][v_at + n] += p[j] * (double)c->dy[y_at + n];
            c->want_grad[K][k_at + n] += scale * ds * (double)c->rounded[Q][q_at + n];
            c->want_grad[Q][q_at + n] += scale * ds * (double)c->rounded[K][k_at + n];
        }
        if (c->node.in[BIAS]) c->want_grad[BIAS][bias_at + j] += ds;
    }
}

static void define(call *c) {
    const vlp_attention_attr *a = &c->attr;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->queries; i++) define_query(c, b, h, i);
}

/* Largest difference, relative to the largest number wanted (at least 1) */
static double distance(int64_t n, const void *got, vlp_dtype dtype, const double *want) {
    double most = 1, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        float x;
        if (dtype == VLP_REAL)
            x = (float)((const vlp_real *)got)[i];
        else
            vlp_kernels_get()->from_bf16(1, (const uint16_t *)got + i, &x);
        double error = fabs((double)x - want[i]);
        most = fmax(most, fabs(want[i]));
        worst = error <= worst ? worst : error;
    }
    return worst / most;
}

static void run(call *c) {
    vlp_op_attention.forward(&c->node);
    vlp_op_attention.backward(&c->node);
}

static void on_every_set(void (*test)(const char *set)) {
    for (int isa = 0; isa <= (int)vlp_isa_best(); isa++) {
        setenv("VLP_ISA", vlp_isa_name((vlp_isa)isa), 1);
        rng = vlp_rng_at(23, VLP_RNG_TEST, 0, 0);
        test(vlp_isa_name((vlp_isa)isa));
    }
    unsetenv("VLP_ISA");
}

static void check_random(const char *set, vlp_dtype dtype, double limit) {
    for (int turn = 0; turn < 60; turn++) {
        call c;
        open_call(&c, dtype, random_shape(), below(2), below(4) == 0);
        define(&c);
        run(&c);
        double worst = distance(vlp_numel(&c.out), c.out.data, dtype, c.want);
        for (int i = 0; i < INPUTS; i++) {
            if (!c.node.in[i]) continue;
            double off = distance(vlp_numel(&c.in[i]), c.in[i].grad, VLP_REAL, c.want_grad[i]);
            worst = off <= worst ? worst : off;
        }
        if (!(worst < limit))
            fail_msg("%s, turn %d: B %lld of %lld, Lq %lld, Lk %lld, H %lld, K %lld: off by %g",
                     set, turn, (long long)c.attr.batch, (long long)c.attr.kv_batch,
                     (long long)c.attr.queries, (long long)c.attr.keys, (long long)c.attr.heads,
                     (long long)c.attr.width, worst);
        close_call(&c);
    }
}

static void check_real(const char *set) {
    check_random(set, VLP_REAL, 1e-5);
}

/* One rounding of the output and, where products take bfloat16, of probabilities and gradients of
 * scores. */
static void check_bf16(const char *set) {
    check_random(set, VLP_BF16, 1.0 / 64);
}

static void test_core_attention_sets__forward_and_backward_are_the_definition(void **state) {
    (void)state;
    on_every_set(check_real);
}

static void test_core_attention_sets__bf16_is_within_its_rounding(void **state) {
    (void)state;
    on_every_set(check_bf16);
}

/* Keys behind the last allowed one ------------------------------------------------------------- */

/* NaN in padded keys and values changes nothing, and their gradients are 0. */
static void check_padding(const char *set) {
    call c;
    vlp_attention_attr attr = {
        .batch = 3, .kv_batch = 3, .queries = 20, .keys = 20, .heads = 2, .width = 16};
    open_call(&c, VLP_REAL, attr, true, false);
    uint8_t *mask = guarded(&c, 60, false);
    static const int64_t used[] = {7, 20, 0};
    for (int64_t i = 0; i < 60; i++) mask[i] = i % 20 < used[i / 20];
    c.attr.key_mask = mask;
    c.attr.mask_by_query_batch = false;
    c.attr.kv_index = NULL;
    int64_t cols = vlp_col_count(&c.in[K]);
    for (int64_t i = 0; i < 60 * cols; i++)
        if (!mask[i / cols]) vlp_real_data(&c.in[K])[i] = vlp_real_data(&c.in[V])[i] = VLP_R(NAN);
    define(&c);
    run(&c);
    for (int64_t i = 0; i < 60 * cols; i++)
        if (!mask[i / cols]) assert_true(c.in[K].grad[i] == 0 && c.in[V].grad[i] == 0);
    assert_true(distance(vlp_numel(&c.out), c.out.data, VLP_REAL, c.want) < 1e-5 || !set);
    for (int i = Q; i <= V; i++)
        assert_true(distance(60 * cols, c.in[i].grad, VLP_REAL, c.want_grad[i]) < 1e-5);
    close_call(&c);
}

static void test_core_attention_sets__padded_keys_are_never_read(void **state) {
    (void)state;
    on_every_set(check_padding);
}

/* Memory --------------------------------------------------------------------------------------- */

static size_t workspace(int64_t length, vlp_dtype dtype) {
    vlp_tensor q = {.dtype = dtype, .ndim = 3, .shape = {1, length, 192}, .needs_grad = true};
    vlp_attention_attr attr = {.batch = 1,
                               .kv_batch = 1,
                               .queries = length,
                               .keys = length,
                               .heads = 1,
                               .width = 64,
                               .tile_count = vlp_attention_tile_count(length)};
    vlp_node node = {.in = {&q, &q, &q}, .attr = &attr, .recorded = true};
    return vlp_op_attention.workspace(&node);
}

static void test_core_attention_sets__memory_grows_with_the_length_only(void **state) {
    (void)state;
    for (int dtype = VLP_REAL; dtype <= VLP_BF16; dtype++) {
        size_t some = workspace(4096, (vlp_dtype)dtype), many = workspace(65536, (vlp_dtype)dtype);
        assert_true(many > some && many < 16 * some);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_attention_sets__forward_and_backward_are_the_definition),
        cmocka_unit_test(test_core_attention_sets__bf16_is_within_its_rounding),
        cmocka_unit_test(test_core_attention_sets__padded_keys_are_never_read),
        cmocka_unit_test(test_core_attention_sets__memory_grows_with_the_length_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
