/* vlp bench gemm: the products of a recipe's layers, forward and backward. */
#include "apps/bench.h"

#include "core/ceiling.h"
#include "core/gemm.h"
#include "core/memory.h"
#include "core/op_profile.h"
#include "core/threads.h"
#include "train/bench.h"

#include <stdio.h>

/* y [T,N] = x [T,D] w[N,D]^T and its two gradients: dx = dy w, dw = dy^T x. */
typedef struct {
    const char *layer;
    int64_t rows, out, in;
} linear;

static const char *const passes[] = {"forward", "to input", "to weight"};
static const double seconds_a_shape = 0.15;

static void product(const linear *l, int pass, const float *a, const float *b, float *c) {
    int64_t t = l->rows, n = l->out, d = l->in;
    if (pass == 0)
        vlp_gemm(false, true, t, n, d, 1, a, d, b, d, 0, c, n);
    else if (pass == 1)
        vlp_gemm(false, false, t, d, n, 1, a, n, b, d, 0, c, d);
    else
        vlp_gemm(true, false, n, d, t, 1, a, n, b, d, 0, c, d);
}

static double best_gflops(const linear *l, int pass, const float *a, const float *b, float *c) {
    double flops = 2e-9 * (double)l->rows * (double)l->out * (double)l->in, best = 0;
    double start = vlp_op_profile_clock();
    for (int i = 0; i < 3 || vlp_op_profile_clock() - start < seconds_a_shape; i++) {
        double began = vlp_op_profile_clock();
        product(l, pass, a, b, c);
        double rate = flops / (vlp_op_profile_clock() - began);
        if (rate > best) best = rate;
    }
    return best;
}

static void report(const cli_args *args, const vlp_recipe *r, const linear *l, const char *pass,
                   double gflops, double peak) {
    if (!cli_has(args, "--json")) {
        printf("  %-6s %-14s %-10s %7lld %6lld %6lld %9.1f %7.0f\n", r->size, l->layer, pass,
               (long long)l->rows, (long long)l->out, (long long)l->in, gflops,
               100 * gflops / peak);
        return;
    }
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "size", r->size);
    vlp_json_set_string(json, "layer", l->layer);
    vlp_json_set_string(json, "pass", pass);
    vlp_json_set_int(json, "rows", l->rows);
    vlp_json_set_int(json, "out", l->out);
    vlp_json_set_int(json, "in", l->in);
    vlp_json_set_double(json, "gflops", gflops);
    vlp_json_set_double(json, "fma_gflops", peak);
    cli_print_json(json);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static vlp_status measure(const cli_args *args, const vlp_recipe *r, const linear *l, double peak) {
    int64_t most = larger(l->rows, l->out) * larger(l->in, l->out);
    most = larger(most, l->rows * l->in);
    float *x = vlp_alloc(3 * (size_t)most * sizeof *x);
    if (!x) return VLP_ERR_MEMORY;
    vlp_bench_noise(x, 3 * most, 1);
    for (int pass = 0; pass < (int)VLP_COUNT(passes) && !cli_stop; pass++)
        report(args, r, l, passes[pass], best_gflops(l, pass, x, x + most, x + 2 * most), peak);
    vlp_free(x);
    return VLP_OK;
}

static vlp_status measure_size(const cli_args *args, const char *size, double peak) {
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

int bench_gemm(const cli_args *args) {
    static const char *const sizes[] = {"nano", "small", "base"};
    const char *only = cli_text(args, "--size", NULL);
    double fma, square;
    vlp_isa isa = vlp_isa_chosen();
    vlp_status status = vlp_fma_peak(isa, 0.5, &fma);
    if (status == VLP_OK) status = vlp_gemm_peak(1536, 0.5, &square);
    if (status != VLP_OK) return cli_fail(status);
    vlp_gemm_about gemm = vlp_gemm_info();
    if (!cli_has(args, "--json"))
        printf("%s, %s kernels, %d threads\nmultiply-adds between registers (%s): %.1f GFLOP/s\n"
               "1536 x 1536 x 1536: %.1f GFLOP/s, %.0f %% of that\n\n"
               "  %-6s %-14s %-10s %7s %6s %6s %9s %7s\n",
               gemm.library, gemm.core, vlp_threads_get(), vlp_isa_name(isa), fma, square,
               100 * square / fma, "size", "layer", "pass", "rows", "out", "in", "GFLOP/s",
               "% peak");
    for (size_t i = 0; i < VLP_COUNT(sizes) && status == VLP_OK && !cli_stop; i++)
        if (!only || i == 0) status = measure_size(args, only ? only : sizes[i], fma);
    return status == VLP_OK ? cli_stop ? EXIT_STOPPED : EXIT_DONE : cli_fail(status);
}
