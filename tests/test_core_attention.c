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

enum { ARENA_BYTES = 64 << 20 };

/* A call with every input made up from the row; q, k and v are tensors of their own unless fused.
 * bias_batch and bias_heads 0 = no bias. */
typedef struct {
    const char *name;
    int64_t batch, kv_batch, queries, keys, heads, width;
    bool fused, causal, masked, mask_by_query_batch;
    int64_t bias_batch, bias_heads;
    const int32_t *kv_index;
    double scale, dropout;
} attention_row;

typedef struct {
    const attention_row *row;
    vlp_tape *tape;
    vlp_real *values[3], *bias_values, *cotangent;
    uint8_t *mask;
    vlp_attention_args args;
    vlp_tensor *y;
} call;

static const int32_t shared_index[] = {3, 0, 3, 3, 0};

static const attention_row rows[] = {
    {.name = "fused",
     .batch = 2,
     .queries = 65,
     .keys = 65,
     .heads = 3,
     .width = 64,
     .fused = true},
    {.name = "one token", .batch = 3, .queries = 1, .keys = 1, .heads = 1, .width = 7},
    {.name = "cross", .batch = 2, .queries = 3, .keys = 50, .heads = 2, .width = 3, .scale = -0.3},
    {.name = "key mask",
     .batch = 4,
     .queries = 5,
     .keys = 9,
     .heads = 2,
     .width = 8,
     .masked = true},
    {.name = "shared keys, mask of keys",
     .batch = 5,
     .kv_batch = 4,
     .queries = 5,
     .keys = 17,
     .heads = 2,
     .width = 8,
     .masked = true,
     .kv_index = shared_index},
    {.name = "shared keys, mask of samples, bias of head",
     .batch = 5,
     .kv_batch = 4,
     .queries = 5,
     .keys = 17,
     .heads = 2,
     .width = 8,
     .masked = true,
     .mask_by_query_batch = true,
     .kv_index = shared_index,
     .bias_batch = 1,
     .bias_heads = 2},
    {.name = "causal, bias of sample",
     .batch = 2,
     .queries = 33,
     .keys = 33,
     .heads = 2,
     .width = 16,
     .fused = true,
     .causal = true,
     .bias_batch = 2,
     .bias_heads = 1},
    {.name = "causal, more keys, bias of both",
     .batch = 2,
     .queries = 5,
     .keys = 21,
     .heads = 2,
     .width = 16,
     .causal = true,
     .bias_batch = 2,
     .bias_heads = 2},
    {.name = "causal, fewer keys, one bias",
     .batch = 2,
     .queries = 21,
     .keys = 5,
     .heads = 2,
     .width = 16,
     .causal = true,
     .bias_batch = 1,
     .bias_heads = 1},
    {.name = "several tiles",
     .batch = 1,
     .queries = 500,
     .keys = 500,
     .heads = 2,
     .width = 8,
     .fused = true,
     .causal = true,
     .masked = true},
    {.name = "no keys", .batch = 2, .queries = 3, .keys = 0, .heads = 2, .width = 4},
    {.name = "no queries", .batch = 2, .queries = 0, .keys = 3, .heads = 2, .width = 4},
    {.name = "no samples", .batch = 0, .queries = 2, .keys = 3, .heads = 2, .width = 4},
};

static int64_t kv_batch_of(const attention_row *row) {
    return row->kv_index ? row->kv_batch : row->batch;
}

static vlp_real *random_values(int64_t n, uint64_t id) {
    vlp_real *x = vlp_alloc((size_t)(n + 1) * sizeof *x);
    vlp_rng rng = vlp_rng_at(17, VLP_RNG_TEST, 0, id);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)vlp_rng_normal(&rng);
    return x;
}

/* A third of the keys is masked; sample and key row 0 have none left. */
static uint8_t *random_mask(int64_t batch, int64_t keys) {
    uint8_t *mask = vlp_alloc((size_t)(batch * keys + 1));
    vlp_rng rng = vlp_rng_at(17, VLP_RNG_TEST, 0, 9);
    for (int64_t i = 0; i < batch * keys; i++) mask[i] = i >= keys && vlp_rng_below(&rng, 3) > 0;
    return mask;
}

static void open_call(call *c, const attention_row *row) {
    *c = (call){.row = row};
    int64_t model = row->heads * row->width, kv = kv_batch_of(row);
    assert_int_equal(vlp_tape_new(&c->tape), VLP_OK);
    assert_int_equal(vlp_tape_open(c->tape, ARENA_BYTES), VLP_OK);
    c->values[0] = random_values(row->batch * row->queries * model * (row->fused ? 3 : 1), 1);
    c->values[1] = random_values(kv * row->keys * model, 2);
    c->values[2] = random_values(kv * row->keys * model, 3);
    c->bias_values = random_values(row->bias_batch * row->bias_heads * row->queries * row->keys, 4);
    c->cotangent = random_values(row->batch * row->queries * model, 5);
    c->mask = random_mask(row->batch > kv ? row->batch : kv, row->keys);
}

static void close_call(call *c) {
    for (int i = 0; i < 3; i++) vlp_free(c->values[i]);
    vlp_free(c->bias_values);
    vlp_free(c->cotangent);
    vlp_free(c->mask);
    vlp_tape_free(c->tape);
}

static vlp_tensor *input(call *c, int64_t batch, int64_t length, int64_t cols, int which,
                         bool needs_grad) {
    return vlp_tape_input(c->tape, VLP_REAL, 3, (int64_t[]){batch, length, cols}, c->values[which],
                          needs_grad);
}

/* needs_grad holds a bit for each of q, k, v and the bias. */
static void build(call *c, int needs_grad) {
    const attention_row *row = c->row;
    int64_t model = row->heads * row->width, kv = kv_batch_of(row);
    c->args = (vlp_attention_args){.heads = row->heads,
                                   .head_width = row->width,
                                   .scale = row->scale,
                                   .key_mask = row->masked ? c->mask : NULL,
                                   .mask_by_query_batch = row->mask_by_query_batch,
                                   .causal = row->causal,
                                   .kv_index = row->kv_index,
                                   .dropout = row->dropout};
    vlp_attention_args *args = &c->args;
    if (row->fused) {
        args->q = args->k = args->v =
            input(c, row->batch, row->queries, 3 * model, 0, needs_grad & 1);
        args->k_offset = model;
        args->v_offset = 2 * model;
    } else {
        args->q = input(c, row->batch, row->queries, model, 0, needs_grad & 1);
        args->k = input(c, kv, row->keys, model, 1, needs_grad & 2);
        args->v = input(c, kv, row->keys, model, 2, needs_grad & 4);
    }
    int64_t shape[] = {row->bias_batch, row->bias_heads, row->queries, row->keys};
    if (row->bias_batch)
        args->bias = vlp_tape_input(c->tape, VLP_REAL, 4, shape, c->bias_values, needs_grad & 8);
    c->y = vlp_attention(c->tape, args);
}

static void run_step(call *c, int needs_grad) {
    vlp_tape_begin(c->tape, 3, 4);
    build(c, needs_grad);
    assert_non_null(c->y);
    if (!needs_grad || !c->y->needs_grad) return;
    vlp_tape_seed(c->tape, c->y, c->cotangent);
    assert_int_equal(vlp_tape_backward(c->tape, NULL), VLP_OK);
}

/* The definition, in double -------------------------------------------------------------------- */

static double element(const vlp_tensor *x, int64_t batch, int64_t row, int64_t col) {
    return (double)vlp_real_data(x)[(batch * x->shape[1] + row) * x->shape[2] + col];
}

static bool allowed(const vlp_attention_args *a, int64_t b, int64_t r, int64_t i, int64_t j) {
    int64_t queries = a->q->shape[1], keys = a->k->shape[1];
    if (a->causal && j > i + keys - queries) return false;
    return !a->key_mask || a->key_mask[(a->mask_by_query_batch ? b : r) * keys + j];
}

static double score(const vlp_attention_args *a, int64_t b, int64_t r, int64_t h, int64_t i,
                    int64_t j) {
    double sum = 0, scale = a->scale == 0 ? 1 / sqrt((double)a->head_width) : a->scale;
    for (int64_t n = 0; n < a->head_width; n++)
        sum += element(a->q, b, i, a->q_offset + h * a->head_width + n) *
               element(a->k, r, j, a->k_offset + h * a->head_width + n);
    sum *= scale;
    if (!a->bias) return sum;
    const int64_t *shape = a->bias->shape;
    int64_t slice = (shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : h);
    return sum + (double)vlp_real_data(a->bias)[(slice * shape[2] + i) * shape[3] + j];
}

/* One query's output [K] */
static void naive_row(const vlp_attention_args *a, int64_t b, int64_t h, int64_t i, double *y) {
    double p[512], most = -INFINITY, total = 0;
    int64_t r = a->kv_index ? a->kv_index[b] : b, keys = a->k->shape[1];
    for (int64_t j = 0; j < keys; j++) {
        p[j] = allowed(a, b, r, i, j) ? score(a, b, r, h, i, j) : -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < keys; j++) {
        p[j] = most == -INFINITY ? 0 : exp(p[j] - most);
        total += p[j];
    }
    for (int64_t n = 0; n < a->head_width; n++) {
        y[n] = 0;
        for (int64_t j = 0; j < keys && total > 0; j++)
            y[n] += p[j] / total * element(a->v, r, j, a->v_offset + h * a->head_width + n);
    }
}

static double worst_error(const call *c) {
    const attention_row *row = c->row;
    double worst = 0, y[64];
    for (int64_t b = 0; b < row->batch; b++)
        for (int64_t h = 0; h < row->heads; h++)
            for (int64_t i = 0; i < row->queries; i++) {
                naive_row(&c->args, b, h, i, y);
                for (int64_t n = 0; n < row->width; n++) {
                    double error = fabs(element(c->y, b, i, h * row->width + n) - y[n]);
                    worst = error <= worst ? worst : error;
                }
            }
    return worst;
}

static void test_core_attention__forward_is_the_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        call c;
        open_call(&c, &rows[i]);
        run_step(&c, 15);
        double worst = worst_error(&c);
        if (!(worst < 1e-5)) print_error("%s: off by %g\n", rows[i].name, worst);
        assert_true(worst < 1e-5);
        close_call(&c);
    }
}

/* Threads and memory --------------------------------------------------------------------------- */

static void copy_gradient(const vlp_tensor *x, vlp_real **to) {
    if (!x || !x->grad) return;
    memcpy(*to, x->grad, (size_t)vlp_numel(x) * sizeof **to);
    *to += vlp_numel(x);
}

/* The output and all gradients, one after the other; returns how many numbers. */
static int64_t results(const call *c, vlp_real *to) {
    vlp_real *at = to + vlp_numel(c->y);
    memcpy(to, vlp_real_data(c->y), (size_t)vlp_numel(c->y) * sizeof *to);
    copy_gradient(c->args.q, &at);
    if (!c->row->fused) {
        copy_gradient(c->args.k, &at);
        copy_gradient(c->args.v, &at);
    }
    copy_gradient(c->args.bias, &at);
    return at - to;
}

enum { MOST_RESULTS = 1 << 18 };

static void test_core_attention__threads_agree_and_repeat(void **state) {
    (void)state;
    vlp_real *one = vlp_alloc(MOST_RESULTS * sizeof *one),
             *two = vlp_alloc(MOST_RESULTS * sizeof *two);
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        attention_row row = rows[i];
        row.dropout = 0.2;
        call c;
        open_call(&c, &row);
        vlp_tape_set_training(c.tape, true);
        assert_int_equal(vlp_threads_set(1), VLP_OK);
        run_step(&c, 15);
        int64_t n = results(&c, one);
        for (int threads = 1; threads <= 3; threads++) {
            assert_int_equal(vlp_threads_set(threads), VLP_OK);
            run_step(&c, 15);
            assert_int_equal(results(&c, two), n);
            for (int64_t j = 0; j < n; j++)
                assert_true(fabs((double)(one[j] - two[j])) <=
                            1e-5 * fmax(1, fabs((double)one[j])));
            run_step(&c, 15);
            vlp_real *again = vlp_alloc(MOST_RESULTS * sizeof *again);
            results(&c, again);
            assert_memory_equal(two, again, (size_t)n * sizeof *again);
            vlp_free(again);
        }
        close_call(&c);
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
    vlp_free(one);
    vlp_free(two);
}

static void test_core_attention__rehearsal_reserves_enough(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        call c;
        open_call(&c, &rows[i]);
        assert_int_equal(vlp_tape_plan(c.tape), VLP_OK);
        build(&c, 15);
        vlp_tape_seed(c.tape, c.y, NULL);
        assert_int_equal(vlp_tape_backward(c.tape, NULL), VLP_OK);
        assert_int_equal(vlp_tape_open(c.tape, 0), VLP_OK);
        run_step(&c, 15);
        close_call(&c);
    }
}

static void test_core_attention__any_subset_of_gradients(void **state) {
    (void)state;
    const attention_row *row = &rows[5];
    call all, some;
    open_call(&all, row);
    open_call(&some, row);
    run_step(&all, 15);
    for (int needs = 0; needs < 15; needs++) {
        run_step(&some, needs);
        vlp_tensor *want[] = {all.args.q, all.args.k, all.args.v, all.args.bias};
        vlp_tensor *got[] = {some.args.q, some.args.k, some.args.v, some.args.bias};
        for (int i = 0; i < 4; i++) {
            if (!(needs >> i & 1)) {
                assert_null(got[i]->grad);
                continue;
            }
            assert_memory_equal(got[i]->grad, want[i]->grad,
                                (size_t)vlp_numel(got[i]) * sizeof(vlp_real));
        }
    }
    close_call(&all);
    close_call(&some);
}

/* Edges of the numbers ------------------------------------------------------------------------- */

static void assert_finite(const vlp_real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) assert_true(isfinite((double)x[i]));
}

static void test_core_attention__a_masked_query_is_zero(void **state) {
    (void)state;
    static const int by_key_row = 3;
    call c;
    open_call(&c, &rows[by_key_row]);
    run_step(&c, 15);
    const attention_row *row = c.row;
    int64_t n = row->queries * row->heads * row->width, keys = row->keys * row->heads * row->width;
    for (int64_t i = 0; i < n; i++) {
        assert_true(vlp_real_data(c.y)[i] == 0);
        assert_true(c.args.q->grad[i] == 0);
    }
    for (int64_t i = 0; i < keys; i++)
        assert_true(c.args.k->grad[i] == 0 && c.args.v->grad[i] == 0);
    assert_finite(c.args.q->grad, vlp_numel(c.args.q));
    assert_finite(c.args.k->grad, vlp_numel(c.args.k));
    assert_finite(c.args.v->grad, vlp_numel(c.args.v));
    close_call(&c);
}

/* Scores of +-1e4 and a bias of -inf, in some rows for every key. */
static void test_core_attention__extreme_scores(void **state) {
    (void)state;
    attention_row row = rows[7];
    row.causal = false;
    call c;
    open_call(&c, &row);
    int64_t n = row.bias_batch * row.bias_heads * row.queries * row.keys;
    for (int64_t i = 0; i < n; i++) {
        c.bias_values[i] *= VLP_R(1e4);
        if (i % 7 == 0 || i / row.keys % 5 == 0) c.bias_values[i] = -VLP_R(INFINITY);
    }
    run_step(&c, 15);
    assert_true(worst_error(&c) < 1e-3);
    assert_finite(vlp_real_data(c.y), vlp_numel(c.y));
    assert_finite(c.args.q->grad, vlp_numel(c.args.q));
    assert_finite(c.args.k->grad, vlp_numel(c.args.k));
    assert_finite(c.args.v->grad, vlp_numel(c.args.v));
    assert_finite(c.args.bias->grad, vlp_numel(c.args.bias));
    for (int64_t i = 0; i < row.width; i++) assert_true(vlp_real_data(c.y)[i] == 0);
    close_call(&c);
}

/* With values of 1 the output is the kept probability: 0 or 1 / (1 - rate) for a single key. */
static void test_core_attention__dropout_keeps_its_rate(void **state) {
    (void)state;
    attention_row row = {.batch = 1, .queries = 5000, .keys = 1, .heads = 4, .width = 1};
    row.dropout = 0.25;
    call c;
    open_call(&c, &row);
    c.values[2][0] = c.values[2][1] = c.values[2][2] = c.values[2][3] = 1;
    run_step(&c, 15);
    for (int64_t i = 0; i < 20000; i++) assert_true(vlp_real_data(c.y)[i] == 1);
    vlp_tape_set_training(c.tape, true);
    run_step(&c, 15);
    int dropped = 0;
    for (int64_t i = 0; i < 20000; i++) {
        double y = (double)vlp_real_data(c.y)[i];
        assert_true(y == 0 || fabs(y - 4.0 / 3) < 1e-6);
        dropped += y == 0;
    }
    assert_in_range(dropped, 4700, 5300);
    close_call(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_attention__forward_is_the_definition),
        cmocka_unit_test(test_core_attention__threads_agree_and_repeat),
        cmocka_unit_test(test_core_attention__rehearsal_reserves_enough),
        cmocka_unit_test(test_core_attention__any_subset_of_gradients),
        cmocka_unit_test(test_core_attention__a_masked_query_is_zero),
        cmocka_unit_test(test_core_attention__extreme_scores),
        cmocka_unit_test(test_core_attention__dropout_keeps_its_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
