/* vlp bench train: whole optimizer steps, and where their time goes. */
#include "apps/bench.h"
#include "apps/ceilings.h"
#include "apps/step_profile.h"

#include "core/threads.h"
#include "train/bench.h"

#include <stdio.h>

static void on_step(int64_t step, double seconds, void *user) {
    (void)user;
    cli_progress(step > 0 ? "step %lld: %.3f s" : "warming up (%lld): %.3f s", (long long)step,
                 seconds);
}

static void print_json(const vlp_recipe *r, vlp_bench_train *b, const ceilings *peak,
                       double memory_mb, bool profile) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_double(json, "pairs_per_s", b->pairs_per_s);
    vlp_json_set_double(json, "gflops", b->gflops);
    vlp_json_set_double(json, "gemm_gflops", b->gemm_gflops);
    vlp_json_set_double(json, "utilisation", b->utilisation);
    vlp_json_set_double(json, "peak_rss_mb", memory_mb);
    vlp_json_set_string(json, "precision", vlp_step_precision_name(r));
    vlp_json_set_int(json, "threads", vlp_threads_get());
    ceilings_json(json, peak);
    if (profile)
        vlp_json_set(json, "profile", step_profile_json(&b->profile, vlp_step_precision(r), peak));
    cli_print_json(json);
}

static void print_words(const vlp_recipe *r, const vlp_bench_train *b, const ceilings *peak,
                        double memory_mb) {
    char parameters[32], flops[32], bytes[32];
    printf("recipe %s %s: %s parameters, vocabulary %lld, %lld pairs a step, %s, %d threads\n"
           "a step: %.3f s (median of %lld), %s FLOPs, %s of step memory\n"
           "%.1f pairs/s, %.1f GFLOP/s: %.0f %% of the registers' peak, %.0f %% of OpenBLAS's best "
           "fp32 product (%.1f GFLOP/s)\n"
           "peak memory %.0f MB\n",
           r->name, r->size, cli_count((double)b->parameters, parameters), (long long)b->vocab,
           (long long)b->batch, vlp_step_precision_name(r), vlp_threads_get(), b->step_seconds,
           (long long)b->steps, cli_count(b->flops_a_step, flops),
           cli_bytes((double)b->step_bytes, bytes), b->pairs_per_s, b->gflops,
           100 * b->gflops / ceilings_gflops(peak, vlp_step_precision(r)), 100 * b->utilisation,
           b->gemm_gflops, memory_mb);
    ceilings_print(stdout, peak);
    if (b->cpu_share < 0.9)
        printf("the steps had %.0f %% of their processors: other programs ran too\n",
               100 * b->cpu_share);
}

int bench_train(const cli_args *args) {
    vlp_recipe recipe;
    vlp_bench_options options = {
        .profile = cli_has(args, "--profile"), .stop = &cli_stop, .on_step = on_step};
    static vlp_bench_train result;
    ceilings peak;
    vlp_status status = bench_recipe(args, cli_text(args, "--size", NULL), &recipe);
    if (status == VLP_OK) status = cli_int(args, "--steps", 0, 1, 1000000, &options.steps);
    if (status == VLP_OK) status = cli_int(args, "--vocab", 0, 64, 1000000, &options.vocab);
    if (status == VLP_OK) status = vlp_bench_train_run(&recipe, &options, &result);
    double memory_mb = cli_peak_rss_mb(); /* that of the steps, not of the ceilings */
    if (status == VLP_OK) status = ceilings_measure(&peak, true);
    if (status != VLP_OK) return cli_fail(status);
    cli_progress_end();
    if (cli_has(args, "--json")) {
        print_json(&recipe, &result, &peak, memory_mb, options.profile);
        return EXIT_DONE;
    }
    print_words(&recipe, &result, &peak, memory_mb);
    if (options.profile)
        step_profile_print(stdout, &result.profile, vlp_step_precision(&recipe), &peak);
    return EXIT_DONE;
}
