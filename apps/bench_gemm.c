/* vlp bench gemm: the products of a recipe's layers, forward and backward, by each backend. */
#include "apps/bench.h"
#include "apps/ceilings.h"

#include "core/gemm.h"
#include "core/memory.h"
#include "core/op_profile.h"
#include "core/product_backend.h"
#include "core/threads.h"
#include "train/bench.h"

#include <stdio.h>

/* y [T,N] = x [T,D] w[N,D]^T and its two gradients: dx = dy w, dw = dy^T x. */
typedef struct {
    const char *layer;
    int64_t rows, out, in;
} linear;

static const char *const passes[] = {"forward", "to input", "to weight"};
static const double seconds_a_product = 0.06;

static const struct {
    const char *title;
    bool bf16;
    vlp_gemm_backend backend;
} ways[] = {
    {"OpenBLAS", false, VLP_GEMM_OPENBLAS},
    {"own", false, VLP_GEMM_OWN},
    {"oneDNN", false, VLP_GEMM_ONEDNN},
    {"OpenBLAS", true, VLP_GEMM_OPENBLAS},
    {"own", true, VLP_GEMM_OWN},
    {"oneDNN", true, VLP_GEMM_ONEDNN},
};

/* Matrices of the largest size of a layer's, as a training step has them: activations in the
 * product's type, weights and gradients in float, weights kept packed. */
typedef struct {
    float *x, *w, *y;
    uint16_t *half;
    float *bias;
    vlp_packed *packed;
} matrices;

static vlp_product product_of(const linear *l, int pass, bool bf16, const matrices *m) {
    int64_t t = l->rows, n = l->out, d = l->in;
    vlp_operand x = {.data = bf16 ? (const void *)m->half : m->x, .ld = d};
    vlp_operand w = {.data = m->w, .ld = d, .packed = m->packed};
    vlp_operand dy = {.data = m->x, .ld = n};
    if (bf16) x.dtype = VLP_BF16;
    if (pass == 0) {
        w.transposed = true;
        vlp_dtype type = bf16 ? VLP_BF16 : VLP_REAL;
        return (vlp_product){.m = t,
                             .n = n,
                             .k = d,
                             .a = x,
                             .b = w,
                             .c = {m->y, type, n},
                             .bias = m->bias,
                             .bf16 = bf16};
    }
    if (pass == 1)
        return (vlp_product){
            .m = t, .n = d, .k = n, .a = dy, .b = w, .c = {m->y, VLP_REAL, d}, .bf16 = bf16};
    dy.transposed = true;
    return (vlp_product){
        .m = n, .n = d, .k = t, .a = dy, .b = x, .c = {m->y, VLP_REAL, d}, .bf16 = bf16};
}

/* 0 = the build or the CPU lacks the backend */
static double best_gflops(const linear *l, int pass, size_t way, const matrices *m) {
    double flops = 2e-9 * (double)l->rows * (double)l->out * (double)l->in, best = 0;
    const vlp_product p = product_of(l, pass, ways[way].bf16, m);
    vlp_isa isa = vlp_isa_chosen();
    bool dots = ways[way].bf16 && vlp_cpu()->avx512_bf16 && isa == VLP_ISA_AVX512;
    vlp_packed_stale(m->packed);
    if (!vlp_multiply_by(ways[way].backend, isa, dots, &p, true)) return 0;
    double start = vlp_op_profile_clock();
    for (int i = 0; i < 3 || vlp_op_profile_clock() - start < seconds_a_product; i++) {
        double began = vlp_op_profile_clock();
        vlp_multiply_by(ways[way].backend, isa, dots, &p, true);
        double rate = flops / (vlp_op_profile_clock() - began);
        if (rate > best) best = rate;
    }
    return best;
}

static void report_json(const vlp_recipe *r, const linear *l, int pass, const double *gflops,
                        const ceilings *peak) {
    for (size_t i = 0; i < VLP_COUNT(ways); i++) {
        if (gflops[i] == 0) continue;
        vlp_json *json = vlp_json_new_object();
        vlp_json_set_string(json, "size", r->size);
        vlp_json_set_string(json, "layer", l->layer);
        vlp_json_set_string(json, "pass", passes[pass]);
        vlp_json_set_int(json, "rows", l->rows);
        vlp_json_set_int(json, "out", l->out);
        vlp_json_set_int(json, "in", l->in);
        vlp_json_set_string(json, "precision", ways[i].bf16 ? "bf16" : "fp32");
        vlp_json_set_string(json, "backend", vlp_gemm_backend_name(ways[i].backend));
        vlp_json_set_double(json, "gflops", gflops[i]);
        ceilings_json(json, peak);
        cli_print_json(json);
    }
}

static void report_words(const vlp_recipe *r, const linear *l, int pass, const double *gflops,
                         const ceilings *peak) {
    double best[2] = {0};
    printf("  %-6s %-13s %-9s %6lld %6lld %6lld", r->size, l->layer, passes[pass],
           (long long)l->rows, (long long)l->out, (long long)l->in);
    for (size_t i = 0; i < VLP_COUNT(ways); i++) {
        if (gflops[i] > best[ways[i].bf16]) best[ways[i].bf16] = gflops[i];
        if (gflops[i] > 0)
            printf(" %8.0f", gflops[i]);
        else
            printf(" %8s", "-");
    }
    printf(" %5.0f", 100 * best[0] / peak->fma);
    if (peak->bf16 > 0) printf(" %5.0f", 100 * best[1] / peak->bf16);
    putchar('\n');
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static vlp_status measure(const cli_args *args, const vlp_recipe *r, const linear *l,
                          const ceilings *peak) {
    int64_t most = larger(larger(l->rows, l->out) * larger(l->in, l->out), l->rows * l->in);
    matrices m = {.x = vlp_alloc(5 * (size_t)most * sizeof *m.x)};
    vlp_status status = m.x ? vlp_packed_new(&m.packed) : VLP_ERR_MEMORY;
    if (status == VLP_OK) {
        m.w = m.x + most, m.y = m.w + most, m.bias = m.y + most;
        vlp_bench_noise(m.x, 4 * most, 1);
        m.half = (uint16_t *)(void *)(m.bias + most);
        vlp_kernels_get()->to_bf16(l->rows * l->in, m.x, m.half);
    }
    for (int pass = 0; pass < (int)VLP_COUNT(passes) && status == VLP_OK && !cli_stop; pass++) {
        double gflops[VLP_COUNT(ways)];
        for (size_t i = 0; i < VLP_COUNT(ways); i++) gflops[i] = best_gflops(l, pass, i, &m);
        (cli_has(args, "--json") ? report_json : report_words)(r, l, pass, gflops, peak);
        fflush(stdout);
    }
    vlp_packed_free(m.packed);
    vlp_free(m.x);
    return status;
}

static vlp_status measure_size(const cli_args *args, const char *size, const ceilings *peak) {
    vlp_recipe r;
    VLP_TRY(bench_recipe(args, size, &r));
    int64_t side = r.image_size / r.patch, d = r.width, hidden = (int64_t)(r.mlp_ratio * (double)d);
    int64_t image = r.batch * (side * side + 1), text = r.batch * r.text_length;
    int64_t dt = r.text_width ? r.text_width : d;
    const linear layers[] = {
        {"patches", image, d, 3 * r.patch * r.patch},
        {"image qkv", image, 3 * d, d},
        {"image output", image, d, d},
        {"image mlp in", image, hidden, d},
        {"image mlp out", image, d, hidden},
        {"text qkv", text, 3 * dt, dt},
    };
    for (size_t i = 0; i < VLP_COUNT(layers); i++) VLP_TRY(measure(args, &r, &layers[i], peak));
    return VLP_OK;
}

static void print_head(const ceilings *peak) {
    vlp_gemm_about gemm = vlp_gemm_info();
    char fp32[64], bf16[64];
    printf("%s, %s kernels; own %s kernels; oneDNN %s; %d threads\n", gemm.library, gemm.core,
           vlp_isa_name(vlp_isa_chosen()),
           vlp_gemm_backend_has(VLP_GEMM_ONEDNN) ? "built in" : "not built in", vlp_threads_get());
    printf("layers take: fp32 by %s, bf16 by %s\n",
           vlp_gemm_backend_about(false, fp32, sizeof fp32),
           vlp_gemm_backend_about(true, bf16, sizeof bf16));
    ceilings_print(stdout, peak);
    printf("\n  %52s %-26s %-26s %s\n  %-6s %-13s %-9s %6s %6s %6s", "", "fp32 GFLOP/s",
           "bf16 GFLOP/s", "best % of peak", "size", "layer", "pass", "rows", "out", "in");
    for (size_t i = 0; i < VLP_COUNT(ways); i++) printf(" %8s", ways[i].title);
    puts("  fp32  bf16");
}

int bench_gemm(const cli_args *args) {
    static const char *const sizes[] = {"nano", "small", "base"};
    const char *only = cli_text(args, "--size", NULL);
    ceilings peak;
    vlp_status status = ceilings_measure(&peak, false);
    if (status == VLP_OK && !cli_has(args, "--json")) print_head(&peak);
    for (size_t i = 0; i < VLP_COUNT(sizes) && status == VLP_OK && !cli_stop; i++)
        if (!only || i == 0) status = measure_size(args, only ? only : sizes[i], &peak);
    return status == VLP_OK ? cli_stop ? EXIT_STOPPED : EXIT_DONE : cli_fail(status);
}
