/* vlp bench optimizer: a step's update of all parameters, by kind, beside reading memory. */
#include "apps/bench.h"
#include "apps/ceilings.h"

#include "core/ceiling.h"
#include "core/op_profile.h"
#include "core/threads.h"
#include "train/bench.h"
#include "train/ema.h"

#include <stdio.h>

enum { VOCABULARY = 8000, ROUNDS = 3 };

/* What is timed: one of these is not NULL. */
typedef struct {
    vlp_params *params;
    vlp_optimizer *optimizer;
    vlp_ema *ema;
} work;

static vlp_status once(const work *w) {
    if (w->optimizer) return vlp_optimizer_step(w->optimizer, 1e-6, 1, NULL, NULL);
    if (w->ema) vlp_ema_update(w->ema);
    if (!w->optimizer && !w->ema) vlp_params_zero_grads(w->params);
    return VLP_OK;
}

/* Seconds of the fastest; the first, which touches new memory, does not count. */
static vlp_status fastest(const work *w, double seconds, double *out) {
    VLP_TRY(once(w));
    double start = vlp_op_profile_clock();
    *out = 0;
    for (int i = 0; (i < ROUNDS || vlp_op_profile_clock() - start < seconds) && !cli_stop; i++) {
        double began = vlp_op_profile_clock();
        VLP_TRY(once(w));
        double took = vlp_op_profile_clock() - began;
        if (*out == 0 || took < *out) *out = took;
    }
    return VLP_OK;
}

static void report(const cli_args *args, const char *what, const work *w, double bytes,
                   double seconds, double peak) {
    double rate = 1e-9 * bytes / seconds;
    if (!cli_has(args, "--json")) {
        printf("  %-17s %9.1f %9.2f %8.1f %9.0f\n", what, 1e-6 * bytes, 1e3 * seconds, rate,
               100 * rate / peak);
        return;
    }
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "update", what);
    vlp_json_set_int(json, "parameters", w->params->learnt);
    vlp_json_set_double(json, "bytes", bytes);
    vlp_json_set_double(json, "ms", 1e3 * seconds);
    vlp_json_set_double(json, "gb_per_s", rate);
    vlp_json_set_double(json, "memory_gb_per_s", peak);
    vlp_json_set_int(json, "threads", vlp_threads_get());
    cli_print_json(json);
}

static vlp_status measure(const cli_args *args, const char *what, const work *w, double bytes,
                          double seconds, double peak) {
    double took;
    VLP_TRY(fastest(w, seconds, &took));
    if (!cli_stop) report(args, what, w, bytes, took, peak);
    fflush(stdout);
    return VLP_OK;
}

static vlp_status measure_kind(const cli_args *args, int kind, vlp_params *params, double seconds,
                               double peak) {
    work w = {.params = params};
    vlp_optimizer_options options = vlp_optimizer_defaults();
    options.kind = kind;
    VLP_TRY(vlp_optimizer_new(&w.optimizer, params, &options));
    vlp_status status = measure(args, vlp_optimizer_kinds[kind], &w,
                                vlp_optimizer_traffic(w.optimizer), seconds, peak);
    vlp_optimizer_free(w.optimizer);
    return status;
}

static vlp_status measure_all(const cli_args *args, vlp_params *params, double seconds,
                              double peak) {
    double block = (double)params->total * (double)sizeof(vlp_real);
    work w = {.params = params};
    for (int kind = 0; vlp_optimizer_kinds[kind] && !cli_stop; kind++)
        VLP_TRY(measure_kind(args, kind, params, seconds, peak));
    VLP_TRY(vlp_ema_new(&w.ema, params, 0.999, false));
    vlp_status status = measure(args, "moving average", &w, 3 * block, seconds, peak);
    vlp_ema_free(w.ema);
    w.ema = NULL;
    if (status == VLP_OK) status = measure(args, "gradients to zero", &w, block, seconds, peak);
    return status;
}

static void print_head(const vlp_recipe *r, const vlp_params *params, double peak) {
    char count[32];
    printf("recipe %s %s: %s parameters; %d threads; memory reads at %.1f GB/s\n\n"
           "  %-17s %9s %9s %8s %9s\n",
           r->name, r->size, cli_count((double)params->learnt, count), vlp_threads_get(), peak,
           "update", "MB moved", "ms", "GB/s", "% of read");
}

static vlp_status with_model(const cli_args *args, const vlp_recipe *r, vlp_params *params,
                             double seconds) {
    double peak;
    VLP_TRY(vlp_params_allocate(params, true));
    vlp_params_init(params, 0);
    vlp_bench_noise(params->grads, params->total, 1);
    VLP_TRY(vlp_memory_peak(0.5, &peak));
    if (!cli_has(args, "--json")) print_head(r, params, peak);
    return measure_all(args, params, seconds, peak);
}

int bench_optimizer(const cli_args *args) {
    vlp_recipe recipe;
    vlp_model_config config;
    vlp_model *model = NULL;
    double seconds;
    vlp_status status = bench_recipe(args, cli_text(args, "--size", NULL), &recipe);
    if (status == VLP_OK) status = cli_double(args, "--seconds", 0.3, 0.001, 1e6, &seconds);
    if (status == VLP_OK) {
        vlp_recipe_model(&recipe, VOCABULARY, &config);
        status = vlp_model_new(&model, &config);
    }
    if (status == VLP_OK) status = with_model(args, &recipe, model->params, seconds);
    vlp_model_free(model);
    return status == VLP_OK ? cli_stop ? EXIT_STOPPED : EXIT_DONE : cli_fail(status);
}
