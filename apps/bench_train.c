/* vlp bench train: whole optimizer steps, and where their time goes. */
#include "apps/bench.h"

#include "core/threads.h"
#include "train/bench.h"
#include "train/step.h"

#include <stdio.h>
#include <stdlib.h>

static void on_step(int64_t step, double seconds, void *user) {
    (void)user;
    cli_progress(step > 0 ? "step %lld: %.3f s" : "warming up (%lld): %.3f s", (long long)step,
                 seconds);
}

static void print_json(const vlp_recipe *r, const vlp_bench_train *b) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_double(json, "pairs_per_s", b->pairs_per_s);
    vlp_json_set_double(json, "gflops", b->gflops);
    vlp_json_set_double(json, "gemm_gflops", b->gemm_gflops);
    vlp_json_set_double(json, "utilisation", b->utilisation);
    vlp_json_set_double(json, "peak_rss_mb", bench_peak_rss_mb());
    vlp_json_set_string(json, "precision", vlp_step_precision_name(r));
    vlp_json_set_int(json, "threads", vlp_threads_get());
    cli_print_json(json);
}

static void print_words(const vlp_recipe *r, const vlp_bench_train *b) {
    char parameters[32], flops[32], bytes[32];
    printf("recipe %s %s: %s parameters, vocabulary %lld, %lld pairs a step, %s, %d threads\n"
           "a step: %.3f s (median of %lld), %s FLOPs, %s of step memory\n"
           "%.1f pairs/s, %.1f GFLOP/s: %.0f %% of the best product here (%.1f GFLOP/s)\n"
           "peak memory %.0f MB\n",
           r->name, r->size, cli_count((double)b->parameters, parameters), (long long)b->vocab,
           (long long)b->batch, vlp_step_precision_name(r), vlp_threads_get(), b->step_seconds,
           (long long)b->steps, cli_count(b->flops_a_step, flops),
           cli_bytes((double)b->step_bytes, bytes), b->pairs_per_s, b->gflops, 100 * b->utilisation,
           b->gemm_gflops, bench_peak_rss_mb());
    if (b->cpu_share < 0.9)
        printf("the steps had %.0f %% of their processors: other programs ran too\n",
               100 * b->cpu_share);
}

static double seconds_of(const vlp_op_row *row) {
    return row->forward_seconds + row->backward_seconds;
}

static int slowest_first(const void *a, const void *b) {
    double x = seconds_of(a), y = seconds_of(b);
    return (x < y) - (x > y);
}

static void profile_line(const vlp_bench_train *b, FILE *to, const char *name, double forward,
                         double backward, int64_t calls, double flops) {
    double steps = (double)b->steps, seconds = forward + backward;
    fprintf(to, "  %-24s %7.1f %10.2f %10.2f %8.0f", name, 100 * seconds / b->timed_seconds,
            1e3 * forward / steps, 1e3 * backward / steps, (double)calls / steps);
    if (flops > 0)
        fprintf(to, " %9.1f\n", 1e-9 * flops / seconds);
    else
        fprintf(to, " %9s\n", "-");
}

/* To stderr beside --json, so that stdout stays data. */
static void print_profile(vlp_bench_train *b, FILE *to) {
    vlp_op_profile *p = &b->profile;
    double in_ops = 0;
    qsort(p->rows, (size_t)p->count, sizeof *p->rows, slowest_first);
    fprintf(to, "\n  %-24s %7s %10s %10s %8s %9s\n", "op", "share %", "forward ms", "backw. ms",
            "calls", "GFLOP/s");
    for (int i = 0; i < p->count; i++) {
        const vlp_op_row *row = &p->rows[i];
        profile_line(b, to, row->op, row->forward_seconds, row->backward_seconds, row->calls,
                     row->flops);
        in_ops += seconds_of(row);
    }
    profile_line(b, to, "(update)", b->update_seconds, 0, b->steps, 0);
    profile_line(b, to, "(between ops)", b->timed_seconds - in_ops - b->update_seconds, 0, b->steps,
                 0);
}

int bench_train(const cli_args *args) {
    vlp_recipe recipe;
    vlp_bench_options options = {
        .profile = cli_has(args, "--profile"), .stop = &cli_stop, .on_step = on_step};
    static vlp_bench_train result;
    vlp_status status = bench_recipe(args, cli_text(args, "--size", NULL), &recipe);
    if (status == VLP_OK) status = cli_int(args, "--steps", 0, 1, 1000000, &options.steps);
    if (status == VLP_OK) status = cli_int(args, "--vocab", 0, 64, 1000000, &options.vocab);
    if (status == VLP_OK) status = vlp_bench_train_run(&recipe, &options, &result);
    if (status != VLP_OK) return cli_fail(status);
    cli_progress_end();
    bool json = cli_has(args, "--json");
    if (json)
        print_json(&recipe, &result);
    else
        print_words(&recipe, &result);
    if (options.profile) print_profile(&result, json ? stderr : stdout);
    return EXIT_DONE;
}
