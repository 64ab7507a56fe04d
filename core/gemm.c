#include "core/gemm.h"
#include "core/gemm_openblas.h"
#include "core/kernels.h"
#include "core/memory.h"
#include "core/threads.h"

#include <limits.h>
#include <pthread.h>

/* Parts of C are whole micro-tiles of the kernels (at most 16 by 16 among OpenBLAS's core types).
 * A part below MIN_WORK multiply-adds costs less than waking a thread. PACK_COST is what copying
 * one element of a panel costs in multiply-adds (measured with cold panels): each part packs its
 * own rows of A and columns of B. REDUCE_COST is that of adding up one element of a partial sum. */
enum { TILE = 16, MIN_WORK = 1 << 20, PACK_COST = 32, REDUCE_COST = 16, MIN_DEPTH = 512 };

typedef struct {
    bool ta, tb;
    int64_t m, n, k;
    vlp_real alpha, beta;
    const vlp_real *a, *b;
    vlp_real *c;
    int64_t lda, ldb, ldc;
} product;

/* C in a grid of rows x cols parts of tile_m x tile_n elements (the last ones smaller). Weight
 * gradients are small and sum over all tokens: there the sum is cut too, into `depth` parts of
 * tile_k, which are added in order, so the bits depend on the grid alone. */
typedef struct {
    int64_t rows, cols, depth, tile_m, tile_n, tile_k;
} grid;

static pthread_once_t single_once = PTHREAD_ONCE_INIT;

static void check(const product *p) {
    int64_t a_cols = p->ta ? p->m : p->k, b_cols = p->tb ? p->k : p->n;
    VLP_ASSERT(p->m >= 0 && p->n >= 0 && p->k >= 0, "product of negative size");
    VLP_ASSERT(p->lda >= a_cols && p->ldb >= b_cols && p->ldc >= p->n,
               "leading dimensions %lld %lld %lld below rows of %lld %lld %lld", (long long)p->lda,
               (long long)p->ldb, (long long)p->ldc, (long long)a_cols, (long long)b_cols,
               (long long)p->n);
    VLP_ASSERT(p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX && p->lda <= INT_MAX &&
                   p->ldb <= INT_MAX && p->ldc <= INT_MAX,
               "product beyond 2^31 rows or columns");
}

typedef struct {
    int64_t begin, size;
} range;

/* rows i and columns j of C, from terms l of the sum */
static void multiply_part(const product *p, range i, range j, range l, vlp_real beta, vlp_real *c,
                          int64_t ldc) {
    const vlp_real *a = p->a + (p->ta ? l.begin * p->lda + i.begin : i.begin * p->lda + l.begin);
    const vlp_real *b = p->b + (p->tb ? j.begin * p->ldb + l.begin : l.begin * p->ldb + j.begin);
    /* OpenBLAS wants leading dimensions >= 1 even for nothing */
    vlp_openblas_gemm(p->ta, p->tb, (int)i.size, (int)j.size, (int)l.size, p->alpha, a,
                      p->lda ? (int)p->lda : 1, b, p->ldb ? (int)p->ldb : 1, beta,
                      c + i.begin * ldc + j.begin, (int)ldc);
}

static int64_t ceil_to(int64_t x, int64_t unit) {
    return (x + unit - 1) / unit * unit;
}

static int64_t parts_of(int64_t n, int64_t tile) {
    return tile ? (n + tile - 1) / tile : 1;
}

static grid grid_of(const product *p, int64_t rows, int64_t cols, int64_t depth) {
    grid g = {.tile_m = ceil_to((p->m + rows - 1) / rows, TILE),
              .tile_n = ceil_to((p->n + cols - 1) / cols, TILE),
              .tile_k = depth > 1 ? ceil_to((p->k + depth - 1) / depth, TILE) : p->k};
    g.rows = parts_of(p->m, g.tile_m);
    g.cols = parts_of(p->n, g.tile_n);
    g.depth = parts_of(p->k, g.tile_k);
    return g;
}

/* Work of the largest part, packing included, and of adding up the partial sums */
static double cost_of(const product *p, const grid *g, int64_t threads) {
    double m = (double)g->tile_m, n = (double)g->tile_n, k = (double)g->tile_k;
    double reduce = g->depth > 1 ? (double)p->m * (double)p->n * (double)(g->depth + 1) : 0;
    return (m * n + PACK_COST * (m + n)) * k + REDUCE_COST * reduce / (double)threads;
}

static grid choose_grid(const product *p) {
    int64_t threads = vlp_threads_get();
    double work = (double)p->m * (double)p->n * (double)p->k;
    if (work < (double)threads * MIN_WORK) threads = 1 + (int64_t)(work / MIN_WORK);
    grid best = grid_of(p, 1, 1, 1);
    double least = cost_of(p, &best, threads);
    for (int64_t depth = 1; depth <= threads; depth *= 2) {
        if (depth > 1 && p->k / depth < MIN_DEPTH) break;
        for (int64_t rows = 1; rows <= threads / depth; rows++) {
            grid g = grid_of(p, rows, threads / depth / rows, depth);
            double cost = cost_of(p, &g, threads);
            if (cost >= least) continue;
            best = g;
            least = cost;
        }
    }
    return best;
}

typedef struct {
    const product *p;
    grid g;
    vlp_real *partial; /* [depth,m,n]; NULL = depth 1, straight into C */
} split;

static range tile_range(int64_t index, int64_t tile, int64_t n) {
    int64_t begin = index * tile, left = n - begin;
    return (range){begin, left < tile ? left : tile};
}

static void multiply_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const split *s = ctx;
    const product *p = s->p;
    const grid *g = &s->g;
    for (int64_t part = begin; part < end; part++) {
        int64_t layer = part / (g->rows * g->cols), at = part % (g->rows * g->cols);
        range i = tile_range(at / g->cols, g->tile_m, p->m);
        range j = tile_range(at % g->cols, g->tile_n, p->n);
        range l = tile_range(layer, g->tile_k, p->k);
        if (s->partial)
            multiply_part(p, i, j, l, 0, s->partial + layer * p->m * p->n, p->n);
        else
            multiply_part(p, i, j, l, p->beta, p->c, p->ldc);
    }
}

/* rows [begin, end) of C = beta C + the partial sums in order */
static void reduce_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const split *s = ctx;
    const product *p = s->p;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t i = begin; i < end; i++) {
        vlp_real *c = p->c + i * p->ldc;
        if (p->beta == 0)
            k->fill(p->n, 0, c);
        else if (p->beta != 1)
            k->scale(p->n, p->beta, c);
        for (int64_t layer = 0; layer < s->g.depth; layer++)
            k->add(p->n, s->partial + (layer * p->m + i) * p->n, c);
    }
}

/* Partial sums of one product at a time; kept, so that a warm training step allocates nothing. */
static pthread_mutex_t partial_lock = PTHREAD_MUTEX_INITIALIZER;
static vlp_real *partial_sums;
static int64_t partial_size;

static vlp_real *reserve_partial(int64_t size) {
    if (size <= partial_size) return partial_sums;
    vlp_free(partial_sums);
    partial_sums = vlp_alloc((size_t)size * sizeof *partial_sums);
    partial_size = partial_sums ? size : 0;
    return partial_sums;
}

/* false without memory */
static bool multiply_deep(split *s) {
    const product *p = s->p;
    pthread_mutex_lock(&partial_lock);
    s->partial = reserve_partial(s->g.depth * p->m * p->n);
    if (s->partial) {
        vlp_parallel_for(s->g.rows * s->g.cols * s->g.depth, 1, multiply_range, s);
        vlp_parallel_for(p->m, TILE, reduce_range, s);
    }
    pthread_mutex_unlock(&partial_lock);
    return s->partial != NULL;
}

static void multiply(const product *p, bool parallel) {
    check(p);
    if (p->m == 0 || p->n == 0) return;
    pthread_once(&single_once, vlp_openblas_set_single_thread);
    split s = {p, parallel ? choose_grid(p) : grid_of(p, 1, 1, 1), NULL};
    if (s.g.depth > 1) {
        if (multiply_deep(&s)) return;
        s.g = grid_of(p, 1, 1, 1);
    }
    if (parallel)
        vlp_parallel_for(s.g.rows * s.g.cols, 1, multiply_range, &s);
    else
        multiply_range(0, 1, 0, &s);
}

void vlp_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, vlp_real alpha, const vlp_real *a,
              int64_t lda, const vlp_real *b, int64_t ldb, vlp_real beta, vlp_real *c,
              int64_t ldc) {
    multiply(&(product){ta, tb, m, n, k, alpha, beta, a, b, c, lda, ldb, ldc}, true);
}

void vlp_gemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t k, vlp_real alpha,
                     const vlp_real *a, int64_t lda, const vlp_real *b, int64_t ldb, vlp_real beta,
                     vlp_real *c, int64_t ldc) {
    multiply(&(product){ta, tb, m, n, k, alpha, beta, a, b, c, lda, ldb, ldc}, false);
}
