/* How fast the compute foundation is here, beside what the machine can reach at best.
 * Built by `cmake --build build --target bench_kernels`; prints to the terminal; not a test. */
#include "core/ceiling.h"
#include "core/gemm.h"
#include "core/kernels.h"
#include "core/memory.h"
#include "core/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 512, COLS = 768, N = ROWS * COLS };

static vlp_real *x, *y, *z, *w, *stat;
static uint16_t *half;
static const vlp_kernels *k;
static const vlp_adamw adamw = {1e-4, 0.9, 0.98, 1e-8, 0.05, 1, 1, 1, false};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_gelu(void) {
    k->bias_act(ROWS, COLS, w, VLP_ACT_GELU, x, y);
}
static void run_gelu_tanh(void) {
    k->bias_act(ROWS, COLS, w, VLP_ACT_GELU_TANH, x, y);
}
static void run_quick(void) {
    k->bias_act(ROWS, COLS, w, VLP_ACT_QUICK_GELU, x, y);
}
static void run_gelu_back(void) {
    k->act_backward(N, VLP_ACT_GELU, x, y, y);
}
static void run_tanh_back(void) {
    k->act_backward(N, VLP_ACT_GELU_TANH, x, y, y);
}
static void run_add(void) {
    k->add(N, x, y);
}
static void run_sums(void) {
    k->column_sum(ROWS, COLS, x, COLS, w + COLS);
}
static void run_norm(void) {
    k->layer_norm(ROWS, COLS, x, z, w, w, 1e-6, y, y, stat, stat + ROWS);
}
static void run_norm_back(void) {
    k->layer_norm_backward(ROWS, COLS, x, w, stat, stat + ROWS, z, y, w + COLS, w + 2 * COLS);
}
static void run_softmax(void) {
    k->softmax(ROWS, COLS, COLS, y, NULL, 1, stat);
}
static void run_softmax_back(void) {
    k->softmax_backward(ROWS, COLS, COLS, x, y, NULL, 1);
}
static void run_exp(void) {
    k->exp(N, x, y);
}
static void run_tanh(void) {
    k->tanh(N, x, y);
}
static void run_erf(void) {
    k->erf(N, x, y);
}
static void run_cross(void) {
    for (int i = 0; i < ROWS; i++)
        k->cross_entropy_backward(COLS, x + i * COLS, 7, 3, 1, y + i * COLS);
}
static void run_lse(void) {
    k->log_sum_exp(ROWS, COLS, COLS, x, stat);
}
static void run_squares(void) {
    stat[0] = (vlp_real)k->sum_squares(N, x);
}
static void run_finite(void) {
    stat[0] = k->all_finite(N, x);
}
static void run_adamw(void) {
    k->adamw(N, &adamw, x, y, z, y);
}
static void run_dropout(void) {
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_DROPOUT, 1, 1);
    k->dropout(0, N, &rng, 0.1, x, y);
}
#ifndef VLP_REAL_DOUBLE
static void run_to_bf16(void) {
    k->to_bf16(N, x, half);
}
static void run_from_bf16(void) {
    k->from_bf16(N, half, y);
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
    double bytes; /* read and written, an element */
} rows[] = {
    {"add", run_add, 12},
    {"column_sum", run_sums, 4},
    {"bias + gelu", run_gelu, 12},
    {"bias + gelu_tanh", run_gelu_tanh, 12},
    {"bias + quick_gelu", run_quick, 12},
    {"gelu backward", run_gelu_back, 12},
    {"gelu_tanh backward", run_tanh_back, 12},
    {"layer_norm (residual)", run_norm, 16},
    {"layer_norm backward", run_norm_back, 16},
    {"softmax", run_softmax, 8},
    {"softmax backward", run_softmax_back, 12},
    {"log_sum_exp", run_lse, 4},
    {"cross_entropy backward", run_cross, 12},
    {"exp", run_exp, 8},
    {"tanh", run_tanh, 8},
    {"erf", run_erf, 8},
    {"sum_squares", run_squares, 4},
    {"all_finite", run_finite, 4},
    {"adamw", run_adamw, 28},
    {"dropout", run_dropout, 8},
#ifndef VLP_REAL_DOUBLE
    {"to_bf16", run_to_bf16, 6},
    {"from_bf16", run_from_bf16, 6},
#endif
};

static double best_seconds(void (*run)(void)) {
    double best = INFINITY, start = now();
    for (int i = 0; i < 3 || now() - start < 0.05; i++) {
        double begin = now();
        run();
        double t = now() - begin;
        if (t < best) best = t;
    }
    return best;
}

static void fill_inputs(void) {
    for (int64_t i = 0; i < N; i++) {
        x[i] = (vlp_real)sin((double)i);
        y[i] = z[i] = (vlp_real)(cos((double)i) + 1.5);
    }
    for (int64_t i = 0; i < 3 * COLS; i++) w[i] = VLP_R(0.01);
    for (int64_t i = 0; i < 2 * ROWS; i++) stat[i] = 1;
}

static void bench_kernels(void) {
    printf("\nkernels, one thread, [%d,%d]: GB/s (elements a ns)\n%-24s", ROWS, COLS, "");
    for (int isa = 0; isa < VLP_ISA_COUNT; isa++) printf(" %16s", vlp_isa_name((vlp_isa)isa));
    printf("\n");
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        printf("%-24s", rows[i].name);
        for (int isa = 0; isa < VLP_ISA_COUNT; isa++) {
            k = vlp_kernels_of((vlp_isa)isa);
            if (!k) continue;
            fill_inputs();
            double t = best_seconds(rows[i].run);
            printf(" %8.1f (%5.2f)", 1e-9 * N * rows[i].bytes * sizeof *x / 4 / t, 1e-9 * N / t);
        }
        printf("\n");
    }
}

static const struct {
    const char *name;
    bool ta, tb;
    int m, n, k; /* of a ViT: T tokens, width D */
} products[] = {
    {"forward  T1040 D192 -> 192", false, true, 1040, 192, 192},
    {"forward  T4160 D384 -> 1152", false, true, 4160, 1152, 384},
    {"forward  T4160 D768 -> 3072", false, true, 4160, 3072, 768},
    {"input    T4160 D3072 -> 768", false, false, 4160, 768, 3072},
    {"input    T16640 D768 -> 192", false, false, 16640, 192, 768},
    {"weight   192x192 T16640", true, false, 192, 192, 16640},
    {"weight   384x1536 T4160", true, false, 384, 1536, 4160},
    {"weight   768x768 T4160", true, false, 768, 768, 4160},
};

static void bench_products(void) {
    int64_t most = 4160 * 3072;
    vlp_real *a = vlp_alloc(3 * (size_t)most * sizeof *a);
    if (!a) return;
    vlp_kernels_get()->fill(3 * most, VLP_R(0.25), a);
    printf("\nproducts, GFLOP/s of %d threads\n", vlp_threads_get());
    for (size_t i = 0; i < VLP_COUNT(products); i++) {
        int m = products[i].m, n = products[i].n, depth = products[i].k;
        double best = INFINITY, start = now();
        while (now() - start < 0.3) {
            double begin = now();
            vlp_gemm(products[i].ta, products[i].tb, m, n, depth, 1, a, products[i].ta ? m : depth,
                     a + most, products[i].tb ? depth : n, 0, a + 2 * most, n);
            double t = now() - begin;
            if (t < best) best = t;
        }
        printf("%-30s %7.1f\n", products[i].name, 2e-9 * m * n * depth / best);
    }
    vlp_free(a);
}

int main(int argc, char **argv) {
    if (vlp_gemm_cure(argc, argv) != VLP_OK || vlp_isa_check() != VLP_OK) {
        fprintf(stderr, "%s\n", vlp_error());
        return 1;
    }
    vlp_gemm_about about = vlp_gemm_info();
    char features[256];
    printf("%s\n%s\n%s: core type %s (by %s, before: %s)\n", vlp_cpu()->model,
           vlp_cpu_features(features, sizeof features), about.library, about.core, about.by,
           about.before);
    double rate = 0;
    if (vlp_gemm_peak(1536, 0.5, &rate) == VLP_OK) printf("product 1536^3   %8.1f GFLOP/s\n", rate);
    for (int isa = 0; isa < VLP_ISA_COUNT; isa++)
        if (vlp_fma_peak((vlp_isa)isa, 0.2, &rate) == VLP_OK)
            printf("FMA %-12s %8.1f GFLOP/s\n", vlp_isa_name((vlp_isa)isa), rate);
    if (vlp_memory_peak(0.5, &rate) == VLP_OK) printf("memory read      %8.1f GB/s\n", rate);
    bench_products();
    x = vlp_alloc(N * sizeof *x), y = vlp_alloc(N * sizeof *x), z = vlp_alloc(N * sizeof *x);
    w = vlp_alloc(3 * COLS * sizeof *x), stat = vlp_alloc(2 * ROWS * sizeof *x);
    half = vlp_alloc(N * sizeof *half);
    if (x && y && z && w && stat && half) bench_kernels();
    vlp_free(x), vlp_free(y), vlp_free(z), vlp_free(w), vlp_free(stat), vlp_free(half);
    return 0;
}
