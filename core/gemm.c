#include "core/gemm.h"
#include "core/gemm_openblas.h"
#include "core/threads.h"

#include <limits.h>
#include <pthread.h>

/* Parts of C are whole micro-tiles of the kernels (at most 16 by 16 among OpenBLAS's core types).
 * A part below MIN_WORK multiply-adds costs less than waking a thread. PACK_COST is what copying
 * one element of a panel costs in multiply-adds: each part packs its own rows of A and columns of
 * B. */
enum { TILE = 16, MIN_WORK = 1 << 18, PACK_COST = 24 };

typedef struct {
    bool ta, tb;
    int64_t m, n, k;
    vlp_real alpha, beta;
    const vlp_real *a, *b;
    vlp_real *c;
    int64_t lda, ldb, ldc;
} product;

/* C in a grid of rows x cols parts of tile_m x tile_n elements (the last ones smaller) */
typedef struct {
    int64_t rows, cols, tile_m, tile_n;
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

/* rows [i, i+m) and columns [j, j+n) of C */
static void multiply_part(const product *p, int64_t i, int64_t m, int64_t j, int64_t n) {
    const vlp_real *a = p->a + (p->ta ? i : i * p->lda);
    const vlp_real *b = p->b + (p->tb ? j * p->ldb : j);
    /* OpenBLAS wants leading dimensions >= 1 even for nothing */
    vlp_openblas_gemm(p->ta, p->tb, (int)m, (int)n, (int)p->k, p->alpha, a,
                      p->lda ? (int)p->lda : 1, b, p->ldb ? (int)p->ldb : 1, p->beta,
                      p->c + i * p->ldc + j, (int)p->ldc);
}

static int64_t ceil_to(int64_t x, int64_t unit) {
    return (x + unit - 1) / unit * unit;
}

static grid grid_of(int64_t m, int64_t n, int64_t rows, int64_t cols) {
    grid g = {.tile_m = ceil_to((m + rows - 1) / rows, TILE),
              .tile_n = ceil_to((n + cols - 1) / cols, TILE)};
    g.rows = (m + g.tile_m - 1) / g.tile_m;
    g.cols = (n + g.tile_n - 1) / g.tile_n;
    return g;
}

/* The grid with the least work for its largest part, packing included. */
static grid choose_grid(int64_t m, int64_t n, int64_t k) {
    int64_t threads = vlp_threads_get();
    double work = (double)m * (double)n * (double)(k ? k : 1);
    if (work < (double)threads * MIN_WORK) threads = 1 + (int64_t)(work / MIN_WORK);
    grid best = grid_of(m, n, 1, 1);
    double least = 0;
    for (int64_t rows = 1; rows <= threads; rows++) {
        grid g = grid_of(m, n, rows, threads / rows);
        double tile_m = (double)g.tile_m, tile_n = (double)g.tile_n;
        double cost = tile_m * tile_n + PACK_COST * (tile_m + tile_n);
        if (rows > 1 && cost >= least) continue;
        best = g;
        least = cost;
    }
    return best;
}

typedef struct {
    const product *p;
    grid g;
} split;

static void multiply_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const split *s = ctx;
    for (int64_t part = begin; part < end; part++) {
        int64_t i = part / s->g.cols * s->g.tile_m, j = part % s->g.cols * s->g.tile_n;
        int64_t m = s->p->m - i, n = s->p->n - j;
        multiply_part(s->p, i, m < s->g.tile_m ? m : s->g.tile_m, j,
                      n < s->g.tile_n ? n : s->g.tile_n);
    }
}

static void multiply(const product *p, bool parallel) {
    check(p);
    if (p->m == 0 || p->n == 0) return;
    pthread_once(&single_once, vlp_openblas_set_single_thread);
    if (!parallel) {
        multiply_part(p, 0, p->m, 0, p->n);
        return;
    }
    split s = {p, choose_grid(p->m, p->n, p->k)};
    vlp_parallel_for(s.g.rows * s.g.cols, 1, multiply_range, &s);
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
