#include "core/ceiling.h"
#include "core/memory.h"
#include "core/product_backend.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static vlp_rng rng;

static int64_t below(int64_t n) {
    return (int64_t)vlp_rng_below(&rng, (uint64_t)n);
}

static uint16_t to_half(float x) {
    uint16_t half;
    vlp_kernels_get()->to_bf16(1, &x, &half);
    return half;
}

static float from_half(uint16_t x) {
    float value;
    vlp_kernels_get()->from_bf16(1, &x, &value);
    return value;
}

/* Every way to compute that a build may have. */
static const struct way {
    const char *name;
    vlp_gemm_backend backend;
    vlp_isa isa;
    bool dots;
} ways[] = {
    {"plain", VLP_GEMM_OWN, VLP_ISA_PLAIN, false},
    {"avx2", VLP_GEMM_OWN, VLP_ISA_AVX2, false},
    {"avx512", VLP_GEMM_OWN, VLP_ISA_AVX512, false},
    {"avx512 with dots", VLP_GEMM_OWN, VLP_ISA_AVX512, true},
    {"openblas", VLP_GEMM_OPENBLAS, VLP_ISA_PLAIN, false},
    {"onednn", VLP_GEMM_ONEDNN, VLP_ISA_PLAIN, false},
};

/* A matrix whose last (or first) byte touches a page that faults. */
typedef struct {
    char *pages;
    size_t bytes;
    void *data;
    vlp_dtype dtype;
    int64_t count;
} guarded;

static guarded guard(vlp_dtype dtype, int64_t count, bool at_end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)count * vlp_dtype_size(dtype);
    size_t inner = (size + page) / page * page;
    guarded g = {.bytes = inner + 2 * page, .dtype = dtype, .count = count};
    g.pages = mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.pages != MAP_FAILED);
    assert_int_equal(mprotect(g.pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(g.pages + page + inner, page, PROT_NONE), 0);
    g.data = at_end ? g.pages + page + inner - size : g.pages + page;
    return g;
}

static void release(guarded *g) {
    munmap(g->pages, g->bytes);
}

static double element(const guarded *g, int64_t at) {
    return g->dtype == VLP_REAL ? (double)((vlp_real *)g->data)[at]
                                : (double)from_half(((uint16_t *)g->data)[at]);
}

static guarded noise(vlp_dtype dtype, int64_t count) {
    guarded g = guard(dtype, count, below(2));
    for (int64_t i = 0; i < count; i++) {
        float x = (float)vlp_rng_normal(&rng);
        if (dtype == VLP_REAL)
            ((vlp_real *)g.data)[i] = (vlp_real)x;
        else
            ((uint16_t *)g.data)[i] = to_half(x);
    }
    return g;
}

/* elements of a matrix with rows ld apart: none after the last row's last */
static int64_t extent(int64_t rows, int64_t cols, int64_t ld) {
    return rows && cols ? (rows - 1) * ld + cols : 0;
}

static vlp_dtype random_type(void) {
    return below(2) ? VLP_BF16 : VLP_REAL;
}

typedef struct {
    vlp_product p;
    guarded a, b, c, pre, bias;
    double *before;       /* C */
    double *sums, *sizes; /* op(A) op(B) and the same of magnitudes [m,n] */
} sample;

static guarded make_operand(vlp_operand *x, int64_t rows, int64_t cols) {
    if (x->transposed) {
        int64_t swap = rows;
        rows = cols, cols = swap;
    }
    x->ld = cols + below(2) * below(9);
    guarded g = noise(x->dtype, extent(rows, cols, x->ld));
    x->data = g.data;
    return g;
}

static guarded make_result(vlp_result *x, int64_t rows, int64_t cols) {
    x->ld = cols + below(2) * below(9);
    guarded g = noise(x->dtype, extent(rows, cols, x->ld));
    x->data = g.data;
    return g;
}

/* op(x) [rows,cols] as it is multiplied */
static double *values_of(const vlp_product *p, const vlp_operand *x, const guarded *g, int64_t rows,
                         int64_t cols) {
    double *values = malloc(((size_t)(rows * cols) + 1) * sizeof *values);
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t row = i / cols, col = i % cols;
        values[i] = element(g, x->transposed ? col * x->ld + row : row * x->ld + col);
        if (p->bf16) values[i] = (double)from_half(to_half((float)values[i]));
    }
    return values;
}

static void expect(sample *s) {
    const vlp_product *p = &s->p;
    double *a = values_of(p, &p->a, &s->a, p->m, p->k), *b = values_of(p, &p->b, &s->b, p->k, p->n);
    size_t bytes = ((size_t)(p->m * p->n) + 1) * sizeof *a;
    s->sums = realloc(s->sums, bytes), s->sizes = realloc(s->sizes, bytes);
    memset(s->sums, 0, bytes), memset(s->sizes, 0, bytes);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t l = 0; l < p->k; l++)
            for (int64_t j = 0; j < p->n; j++) {
                double term = a[i * p->k + l] * b[l * p->n + j];
                s->sums[i * p->n + j] += term;
                s->sizes[i * p->n + j] += fabs(term);
            }
    free(a), free(b);
}

static sample make_sample(int64_t m, int64_t n, int64_t k, bool bf16) {
    sample s = {.p = {.m = m, .n = n, .k = k, .bf16 = bf16}};
    vlp_product *p = &s.p;
    p->a = (vlp_operand){.dtype = random_type(), .transposed = below(2)};
    p->b = (vlp_operand){.dtype = random_type(), .transposed = below(2)};
    p->c.dtype = random_type();
    p->pre.dtype = random_type();
    p->act = below(2) ? (vlp_act)below(VLP_ACT_COUNT) : VLP_ACT_NONE;
    p->alpha = below(2) ? 0 : VLP_R(-0.75);
    s.a = make_operand(&p->a, m, k);
    s.b = make_operand(&p->b, k, n);
    s.c = make_result(&p->c, m, n);
    s.pre = make_result(&p->pre, m, n);
    if (below(2)) p->pre.data = NULL;
    s.bias = noise(VLP_REAL, n);
    if (below(2)) p->bias = s.bias.data;
    if (p->c.dtype == VLP_REAL && p->act == VLP_ACT_NONE && !p->pre.data)
        p->beta = (vlp_real)below(2);
    s.before = malloc(((size_t)s.c.count + 1) * sizeof *s.before);
    for (int64_t i = 0; i < s.c.count; i++) s.before[i] = element(&s.c, i);
    expect(&s);
    return s;
}

static void release_sample(sample *s) {
    release(&s->a), release(&s->b), release(&s->c), release(&s->pre), release(&s->bias);
    free(s->before), free(s->sums), free(s->sizes);
}

static double normal_below(double x) {
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double act_of(vlp_act act, double x) {
    switch (act) {
    case VLP_ACT_GELU:
        return x * normal_below(x);
    case VLP_ACT_GELU_TANH:
        return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
    case VLP_ACT_QUICK_GELU:
        return x * sigmoid(1.702 * x);
    case VLP_ACT_RELU:
        return x > 0 ? x : 0;
    case VLP_ACT_SILU:
        return x * sigmoid(x);
    case VLP_ACT_TANH:
        return tanh(x);
    case VLP_ACT_SIGMOID:
        return sigmoid(x);
    default:
        return x;
    }
}

static void check_value(const sample *s, const char *way, const guarded *g, int64_t at, double want,
                        double bound) {
    double got = element(g, at);
    if (g->dtype == VLP_BF16) bound += fabs(want) / 256;
    if (!(fabs(got - want) <= bound))
        fail_msg("%s%s [%d,%d,%d]%s%s act %d at %d: %g, want %g +- %g", way,
                 s->p.bf16 ? " bf16" : "", (int)s->p.m, (int)s->p.n, (int)s->p.k,
                 s->p.a.transposed ? " a'" : "", s->p.b.transposed ? " b'" : "", (int)s->p.act,
                 (int)at, got, want, bound);
}

static void check_sample(const sample *s, const char *way) {
    const vlp_product *p = &s->p;
    double alpha = p->alpha == 0 ? 1 : (double)p->alpha;
    for (int64_t at = 0; at < s->c.count; at++) {
        int64_t i = at / p->c.ld, j = at % p->c.ld;
        if (j >= p->n) { /* between the rows */
            assert_true(element(&s->c, at) == s->before[at]);
            continue;
        }
        double sum = s->sums[i * p->n + j], size = s->sizes[i * p->n + j];
        double pre = alpha * sum + (p->beta != 0 ? s->before[at] : 0);
        if (p->bias) pre += (double)p->bias[j];
        double bound = 8 * (double)FLT_EPSILON * (size + fabs(pre) + 1);
        bool gelu = p->act == VLP_ACT_GELU || p->act == VLP_ACT_GELU_TANH;
        double half = gelu && p->c.dtype == VLP_BF16 ? 1.3e-4 : 0; /* of act_half */
        if (p->pre.data) check_value(s, way, &s->pre, i * p->pre.ld + j, pre, bound);
        /* the activation may see pre as it was rounded */
        if (p->pre.data && p->pre.dtype == VLP_BF16 && p->c.dtype == VLP_BF16)
            bound += fabs(pre) / 256;
        check_value(s, way, &s->c, at, act_of(p->act, pre), 1.2 * bound + half);
    }
}

/* C becomes what it was, or NaN where it is to be overwritten; pre NaN */
static void reset(sample *s) {
    for (int64_t i = 0; i < s->c.count; i++) {
        bool old = s->p.beta != 0 || i % s->p.c.ld >= s->p.n;
        float x = old ? (float)s->before[i] : NAN;
        if (s->c.dtype == VLP_REAL)
            ((vlp_real *)s->c.data)[i] = (vlp_real)x;
        else
            ((uint16_t *)s->c.data)[i] = to_half(x);
    }
    memset(s->pre.data, 0xff, (size_t)s->pre.count * vlp_dtype_size(s->pre.dtype));
}

/* By one way, twice: right, the same bits, nothing allocated the second time. */
static void check_way(sample *s, const struct way *way, bool parallel) {
    size_t bytes = (size_t)s->c.count * vlp_dtype_size(s->c.dtype);
    reset(s);
    if (!vlp_multiply_by(way->backend, way->isa, way->dots, &s->p, parallel)) return;
    check_sample(s, way->name);
    void *first = malloc(bytes + 1);
    memcpy(first, s->c.data, bytes);
    reset(s);
    int64_t allocations = vlp_alloc_count();
    vlp_multiply_by(way->backend, way->isa, way->dots, &s->p, parallel);
    assert_int_equal(vlp_alloc_count(), allocations);
    assert_memory_equal(first, s->c.data, bytes);
    free(first);
}

static void check_shape(int64_t m, int64_t n, int64_t k) {
    sample s = make_sample(m, n, k, below(2));
    for (size_t w = 0; w < VLP_COUNT(ways); w++) check_way(&s, &ways[w], below(3) > 0);
    release_sample(&s);
}

static void test_core_product__random_products_match_a_double_loop(void **state) {
    (void)state;
    rng = vlp_rng_at(11, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(vlp_threads_set(1 + i % 4), VLP_OK);
        int64_t most = i % 8 ? 48 : 150;
        check_shape(below(most), below(most), below(most));
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
}

/* Several blocks of rows, of terms, parts for each thread, and sums cut over threads */
static void test_core_product__large_products_match_a_double_loop(void **state) {
    (void)state;
    rng = vlp_rng_at(12, VLP_RNG_TEST, 0, 0);
    static const int64_t shapes[][3] = {{640, 33, 70},  {15, 700, 90},  {31, 40, 5003},
                                        {65, 64, 2049}, {1500, 17, 31}, {30, 33, 4500}};
    for (int threads = 1; threads <= 4; threads++) {
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        for (size_t i = 0; i < VLP_COUNT(shapes); i++)
            check_shape(shapes[i][0], shapes[i][1], shapes[i][2]);
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
}

static void test_core_product__every_tile_size_and_type_matches(void **state) {
    (void)state;
    rng = vlp_rng_at(13, VLP_RNG_TEST, 0, 0);
    for (int64_t m = 1; m <= 17; m++)
        for (int64_t n = 15; n <= 66; n += 17)
            for (int64_t k = 1; k <= 34; k += 11) check_shape(m, n, k);
}

static void test_core_product__empty_sizes_touch_nothing_or_give_the_bias(void **state) {
    (void)state;
    vlp_real c[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {-1, 0, 2};
    for (size_t w = 0; w < VLP_COUNT(ways); w++) {
        vlp_product p = {.m = 0, .n = 3, .k = 4, .a = {.ld = 4}, .b = {.ld = 3}, .c = {c, .ld = 3}};
        vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &p, true);
        p.m = 2, p.n = 0;
        vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &p, true);
        for (int i = 0; i < 6; i++) assert_true(c[i] == (vlp_real)(i + 1));
        p.n = 3, p.k = 0, p.beta = 1;
        vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &p, true);
        for (int i = 0; i < 6; i++) assert_true(c[i] == (vlp_real)(i + 1));
        vlp_real out[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
        p.beta = 0, p.bias = bias, p.act = VLP_ACT_RELU, p.c.data = out;
        if (!vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &p, false)) continue;
        for (int i = 0; i < 6; i++) assert_true(out[i] == (i % 3 == 2 ? 2 : 0));
    }
}

static void test_core_product__not_a_number_stays_visible(void **state) {
    (void)state;
    for (size_t w = 0; w < VLP_COUNT(ways); w++) {
        for (int bf16 = 0; bf16 < 2; bf16++) {
            vlp_real a[4] = {1, NAN, INFINITY, 1}, b[4] = {1, 2, 3, 4}, c[4] = {0};
            vlp_product p = {.m = 2,
                             .n = 2,
                             .k = 2,
                             .a = {a, .ld = 2},
                             .b = {b, .ld = 2},
                             .c = {c, .ld = 2},
                             .bf16 = bf16};
            if (!vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &p, false)) continue;
            assert_true(isnan(c[0]) && isnan(c[1]));
            assert_true(isinf(c[2]) && isinf(c[3]));
        }
    }
}

/* A kept form serves until the values are marked as changed, in both directions. */
static void test_core_product__packed_weights_follow_their_marks(void **state) {
    (void)state;
    rng = vlp_rng_at(14, VLP_RNG_TEST, 0, 0);
    for (size_t w = 0; w < VLP_COUNT(ways); w++) {
        for (int i = 0; i < 24; i++) {
            assert_int_equal(vlp_threads_set(1 + i % 3), VLP_OK);
            sample s = make_sample(1 + below(80), 1 + below(120), 1 + below(90), i & 1);
            assert_int_equal(vlp_packed_new(&s.p.b.packed), VLP_OK);
            check_way(&s, &ways[w], true);
            if (s.b.dtype == VLP_REAL) ((vlp_real *)s.b.data)[0] += 4;
            expect(&s);
            vlp_packed_stale(s.p.b.packed);
            check_way(&s, &ways[w], false);
            s.p.bf16 = !s.p.bf16; /* another form: made anew by itself */
            expect(&s);
            check_way(&s, &ways[w], true);
            s.p.b.transposed = !s.p.b.transposed;
            s.p.b.ld = s.p.n > s.p.k ? s.p.n : s.p.k;
            release(&s.b);
            s.b = noise(s.p.b.dtype, s.p.b.ld * s.p.b.ld);
            s.p.b.data = s.b.data;
            expect(&s);
            check_way(&s, &ways[w], true);
            vlp_packed_free(s.p.b.packed);
            release_sample(&s);
        }
    }
    assert_int_equal(vlp_threads_set(0), VLP_OK);
    vlp_packed_stale(NULL);
    vlp_packed_free(NULL);
}

/* Whatever allocation fails, the product is right. */
static void test_core_product__missing_memory_costs_time_only(void **state) {
    (void)state;
    rng = vlp_rng_at(15, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < 40; i++) {
        int64_t grown = 3000 + 40 * i; /* beyond all scratch so far */
        sample s = make_sample(20, 35, grown, i & 1);
        for (size_t w = 0; w < VLP_COUNT(ways); w++) {
            reset(&s);
            vlp_alloc_fail_at(1 + i % 3);
            bool done = vlp_multiply_by(ways[w].backend, ways[w].isa, ways[w].dots, &s.p, false);
            vlp_alloc_fail_at(0);
            if (done) check_sample(&s, ways[w].name);
        }
        release_sample(&s);
    }
}

static void test_core_product__the_bf16_ceiling_is_measured_or_refused(void **state) {
    (void)state;
    double gflops;
    const char *kind;
    vlp_status status = vlp_bf16_peak(0, &gflops, &kind);
    bool has = vlp_cpu()->avx512_bf16 && vlp_isa_chosen() == VLP_ISA_AVX512;
    assert_int_equal(status, has ? VLP_OK : VLP_ERR_UNSUPPORTED);
    assert_true(has ? gflops > 0 && *kind : gflops == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_product__random_products_match_a_double_loop),
        cmocka_unit_test(test_core_product__large_products_match_a_double_loop),
        cmocka_unit_test(test_core_product__every_tile_size_and_type_matches),
        cmocka_unit_test(test_core_product__empty_sizes_touch_nothing_or_give_the_bias),
        cmocka_unit_test(test_core_product__not_a_number_stays_visible),
        cmocka_unit_test(test_core_product__packed_weights_follow_their_marks),
        cmocka_unit_test(test_core_product__missing_memory_costs_time_only),
        cmocka_unit_test(test_core_product__the_bf16_ceiling_is_measured_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
