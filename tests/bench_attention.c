/* Speed of attention forward and backward beside the best product of this machine.
 *     bench_attention [seconds per row] */
#include "core/ceiling.h"
#include "core/gemm.h"
#include "core/memory.h"
#include "core/ops.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    const char *name;
    int64_t batch, heads, queries, keys;
    bool causal, masked, biased;
    double dropout;
} bench_row;

static const bench_row rows[] = {
    {"self", 64, 3, 65, 65, false, false, false, 0},
    {"self", 64, 6, 65, 65, false, false, false, 0},
    {"self", 64, 3, 197, 197, false, false, false, 0},
    {"self", 64, 6, 197, 197, false, false, false, 0},
    {"self, bias of head", 64, 6, 197, 197, false, false, true, 0},
    {"self, dropout", 64, 6, 197, 197, false, false, false, 0.1},
    {"text, mask", 64, 6, 32, 32, false, true, false, 0},
    {"text, causal", 64, 6, 77, 77, true, false, false, 0},
    {"cross", 64, 6, 32, 197, false, false, false, 0},
    {"long", 2, 6, 2048, 2048, false, false, false, 0},
    {"long, causal", 2, 6, 2048, 2048, true, false, false, 0},
};

enum { WIDTH = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    vlp_real *q, *kv, *bias, *cotangent;
    uint8_t *mask;
} inputs;

static vlp_real *random_values(int64_t n) {
    vlp_real *x = vlp_alloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)((double)(i * 7919 % 1013) / 506.5 - 1);
    return x;
}

static inputs make_inputs(const bench_row *row) {
    int64_t model = row->heads * WIDTH;
    inputs in = {random_values(row->batch * row->queries * 3 * model),
                 random_values(row->batch * row->keys * 2 * model),
                 random_values(row->heads * row->queries * row->keys),
                 random_values(row->batch * row->queries * model),
                 vlp_alloc((size_t)(row->batch * row->keys))};
    for (int64_t i = 0; i < row->batch * row->keys; i++)
        in.mask[i] = i % row->keys < row->keys * 3 / 4;
    return in;
}

static void free_inputs(inputs *in) {
    vlp_free(in->q);
    vlp_free(in->kv);
    vlp_free(in->bias);
    vlp_free(in->cotangent);
    vlp_free(in->mask);
}

/* Lowers best[] to the seconds of this step's forward and backward. */
static void step(vlp_tape *tape, const bench_row *row, const inputs *in, double best[2]) {
    int64_t model = row->heads * WIDTH;
    bool self = row->queries == row->keys;
    vlp_tape_begin(tape, 1, 1);
    vlp_tensor *q = vlp_tape_input(tape, VLP_REAL, 3,
                                   (int64_t[]){row->batch, row->queries, self ? 3 * model : model},
                                   in->q, true);
    vlp_tensor *kv =
        self ? q
             : vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){row->batch, row->keys, 2 * model},
                              in->kv, true);
    vlp_attention_args args = {.q = q,
                               .k = kv,
                               .v = kv,
                               .k_offset = self ? model : 0,
                               .v_offset = self ? 2 * model : model,
                               .heads = row->heads,
                               .head_width = WIDTH,
                               .causal = row->causal,
                               .key_mask = row->masked ? in->mask : NULL,
                               .dropout = row->dropout};
    if (row->biased)
        args.bias = vlp_tape_input(
            tape, VLP_REAL, 4, (int64_t[]){1, row->heads, row->queries, row->keys}, in->bias, true);
    double start = now();
    vlp_tensor *y = vlp_attention(tape, &args);
    double middle = now();
    vlp_tape_seed(tape, y, in->cotangent);
    double seeded = now();
    vlp_tape_backward(tape, NULL);
    double time[2] = {middle - start, now() - seeded};
    for (int i = 0; i < 2; i++) best[i] = time[i] < best[i] ? time[i] : best[i];
}

static void bench(const bench_row *row, double seconds, double peak) {
    vlp_tape *tape = NULL;
    inputs in = make_inputs(row);
    double time[2] = {1e9, 1e9};
    if (vlp_tape_new(&tape) != VLP_OK || vlp_tape_open(tape, (size_t)1 << 30) != VLP_OK) exit(1);
    vlp_tape_set_training(tape, true);
    double start = now();
    do step(tape, row, &in, time);
    while (now() - start < seconds);
    /* a product of [Lq, K] [K, Lk]; forward has two, backward five */
    double product = 2e-9 * (double)(row->batch * row->heads * row->queries * row->keys * WIDTH);
    if (row->causal) product /= 2;
    double forward = 2 * product / time[0], backward = 5 * product / time[1];
    double both = 7 * product / (time[0] + time[1]);
    printf("%-20s B %2lld H %lld Lq %4lld Lk %4lld  forward %6.1f  backward %6.1f  both %6.1f "
           "GFLOP/s = %2.0f %% of peak, %.2f ms\n",
           row->name, (long long)row->batch, (long long)row->heads, (long long)row->queries,
           (long long)row->keys, forward, backward, both, 100 * both / peak,
           1e3 * (time[0] + time[1]));
    free_inputs(&in);
    vlp_tape_free(tape);
}

int main(int argc, char **argv) {
    if (vlp_gemm_cure(argc, argv) != VLP_OK) return 1;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5, peak = 0;
    if (vlp_gemm_peak(1536, seconds, &peak) != VLP_OK) return 1;
    printf("%d threads, %s, product %.1f GFLOP/s\n", vlp_threads_get(), vlp_gemm_info().core, peak);
    for (size_t i = 0; i < VLP_COUNT(rows); i++) bench(&rows[i], seconds, peak);
    return 0;
}
