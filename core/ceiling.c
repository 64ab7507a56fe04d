#include "core/ceiling.h"
#include "core/gemm.h"
#include "core/kernels_sets.h"
#include "core/memory.h"
#include "core/product_backend.h"
#include "core/product_sets.h"
#include "core/threads.h"

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best rate of `work` (returns its size in units) within the given time, at least twice. */
static double best_rate(double seconds, double (*work)(void *), void *ctx) {
    double best = 0, start = now();
    for (int turn = 0; turn < 2 || now() - start < seconds; turn++) {
        double begin = now();
        double units = work(ctx);
        double rate = units / (now() - begin);
        if (rate > best) best = rate;
    }
    return best;
}

typedef struct {
    vlp_real *a, *b, *c;
    int64_t n;
} square;

static double multiply_square(void *ctx) {
    square *s = ctx;
    int64_t n = s->n;
    vlp_gemm(false, true, n, n, n, 1, s->a, n, s->b, n, 0, s->c, n);
    return 2e-9 * (double)n * (double)n * (double)n;
}

vlp_status vlp_gemm_peak(int size, double seconds, double *gflops) {
    *gflops = 0;
    if (size < 1 || size > 1 << 14)
        return VLP_FAIL(VLP_ERR_USAGE, "product of size %d: use 1 to %d", size, 1 << 14);
    int64_t area = (int64_t)size * size;
    vlp_real *x = vlp_alloc(3 * (size_t)area * sizeof *x);
    if (!x) return VLP_ERR_MEMORY;
    vlp_kernels_get()->fill(3 * area, VLP_R(0.5), x);
    *gflops = best_rate(seconds, multiply_square, &(square){x, x + area, x + 2 * area, size});
    vlp_free(x);
    return VLP_OK;
}

typedef struct {
    vlp_real *x;
    int64_t n;
    double sums[VLP_THREADS_MAX];
} block;

static void touch_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    block *b = ctx;
    vlp_kernels_get()->fill(end - begin, 1, b->x + begin);
}

static void read_range(int64_t begin, int64_t end, int thread, void *ctx) {
    block *b = ctx;
    b->sums[thread] = vlp_kernels_get()->sum(end - begin, b->x + begin);
}

static double read_block(void *ctx) {
    block *b = ctx;
    vlp_parallel_for(b->n, 1 << 16, read_range, b);
    return 1e-9 * (double)b->n * (double)sizeof *b->x;
}

vlp_status vlp_memory_peak(double seconds, double *gbytes) {
    *gbytes = 0;
    int64_t bytes = 4 * vlp_cpu()->l3_bytes, least = 256 << 20;
    if (bytes < least) bytes = least;
    block *b = vlp_alloc_zero(1, sizeof *b);
    if (!b) return VLP_ERR_MEMORY;
    b->n = bytes / (int64_t)sizeof *b->x;
    b->x = vlp_alloc((size_t)bytes);
    vlp_status status = b->x ? VLP_OK : VLP_ERR_MEMORY;
    if (b->x) {
        vlp_parallel_for(b->n, 1 << 16, touch_range, b); /* pages near their readers */
        *gbytes = best_rate(seconds, read_block, b);
    }
    vlp_free(b->x);
    vlp_free(b);
    return status;
}

typedef struct {
    const vlp_kernel_set *set;
    double flops[VLP_THREADS_MAX];
} burner;

static void burn(int64_t begin, int64_t end, int thread, void *ctx) {
    burner *b = ctx;
    b->flops[thread] = 0;
    for (int64_t i = begin; i < end; i++) b->flops[thread] += b->set->multiply_adds(1 << 20);
}

static double burn_all(void *ctx) {
    burner *b = ctx;
    int threads = vlp_threads_get();
    vlp_parallel_for(threads, 1, burn, b);
    double total = 0;
    for (int i = 0; i < threads; i++) total += b->flops[i];
    return 1e-9 * total;
}

vlp_status vlp_fma_peak(vlp_isa isa, double seconds, double *gflops) {
    *gflops = 0;
    const vlp_kernel_set *set = vlp_kernel_set_of(isa);
    if (!set) return VLP_FAIL(VLP_ERR_UNSUPPORTED, "this CPU or build lacks %s", vlp_isa_name(isa));
    burner *b = vlp_alloc_zero(1, sizeof *b);
    if (!b) return VLP_ERR_MEMORY;
    b->set = set;
    *gflops = best_rate(seconds, burn_all, b);
    vlp_free(b);
    return VLP_OK;
}

static void burn_pairs(int64_t begin, int64_t end, int thread, void *ctx) {
    burner *b = ctx;
    const vlp_product_set *set = vlp_product_set_avx512_bf16();
    b->flops[thread] = 0;
    for (int64_t i = begin; i < end; i++) b->flops[thread] += set->burn(1 << 20);
}

enum { TILE_M = 512, TILE_N = 256, TILE_K = 512, TILE_TURNS = 64 };

/* One small product again and again, weights kept in the layout that suits it */
static void burn_tiles(int64_t begin, int64_t end, int thread, void *ctx) {
    static const uint16_t a[TILE_M * TILE_K], w[TILE_N * TILE_K];
    burner *b = ctx;
    vlp_packed *packed = NULL;
    b->flops[thread] = 0;
    uint16_t *c = vlp_alloc(TILE_M * TILE_N * sizeof *c);
    if (!c || vlp_packed_new(&packed) != VLP_OK) end = begin;
    const vlp_product p = {.m = TILE_M,
                           .n = TILE_N,
                           .k = TILE_K,
                           .a = {.data = a, .dtype = VLP_BF16, .ld = TILE_K},
                           .b = {.data = w, .dtype = VLP_BF16, .ld = TILE_N, .packed = packed},
                           .c = {.data = c, .dtype = VLP_BF16, .ld = TILE_N},
                           .bf16 = true};
    for (int64_t i = begin * TILE_TURNS; i < end * TILE_TURNS; i++) {
        vlp_multiply_by(VLP_GEMM_ONEDNN, VLP_ISA_AVX512, true, &p, false);
        b->flops[thread] += 2.0 * TILE_M * TILE_N * TILE_K;
    }
    vlp_packed_free(packed);
    vlp_free(c);
}

typedef struct {
    burner *b;
    vlp_range_body body;
} bf16_burner;

static double burn_bf16(void *ctx) {
    const bf16_burner *x = ctx;
    int threads = vlp_threads_get();
    vlp_parallel_for(threads, 1, x->body, x->b);
    double total = 0;
    for (int i = 0; i < threads; i++) total += x->b->flops[i];
    return 1e-9 * total;
}

vlp_status vlp_bf16_peak(double seconds, double *gflops, const char **kind) {
    bool allowed = vlp_isa_chosen() == VLP_ISA_AVX512;
    bool tiles = allowed && vlp_cpu()->amx_bf16 && vlp_gemm_backend_has(VLP_GEMM_ONEDNN);
    bool pairs = allowed && vlp_cpu()->avx512_bf16 && vlp_product_set_avx512_bf16() != NULL;
    *gflops = 0;
    *kind = tiles ? "tiles" : pairs ? "pairs" : "";
    if (!tiles && !pairs)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "this CPU or build lacks products of bfloat16");
    burner *b = vlp_alloc_zero(1, sizeof *b);
    if (!b) return VLP_ERR_MEMORY;
    bf16_burner x = {b, tiles ? burn_tiles : burn_pairs};
    *gflops = best_rate(seconds, burn_bf16, &x);
    vlp_free(b);
    return VLP_OK;
}
