/* vlp bench attention: the op alone, forward and backward, at the shapes of towers and fusion. */
#include "apps/bench.h"
#include "apps/ceilings.h"

#include "core/kernels.h"
#include "core/memory.h"
#include "core/op_profile.h"
#include "core/ops.h"
#include "core/threads.h"
#include "train/bench.h"

#include <stdio.h>
#include <string.h>

/* shared: so many samples attend to each row of keys. masked: the last quarter of the keys is. */
typedef struct {
    const char *name;
    int64_t batch, heads, width, queries, keys, shared;
    bool causal, masked, biased;
    double dropout;
} shape;

static const shape shapes[] = {
    {"image 64 px", 128, 4, 32, 17, 17, 1, false, false, false, 0},
    {"image 128 px", 64, 6, 64, 65, 65, 1, false, false, false, 0},
    {"image 224 px", 32, 6, 64, 197, 197, 1, false, false, false, 0},
    {"image, bias", 32, 6, 64, 197, 197, 1, false, false, true, 0},
    {"image, dropout", 32, 6, 64, 197, 197, 1, false, false, false, 0.1},
    {"text, padded", 128, 4, 32, 32, 32, 1, false, true, false, 0},
    {"text, causal", 64, 8, 64, 77, 77, 1, true, false, false, 0},
    {"text on image", 256, 4, 32, 16, 17, 3, false, false, false, 0},
    {"text on image", 64, 6, 64, 32, 197, 2, false, false, false, 0},
    {"long", 2, 6, 64, 1024, 1024, 1, false, false, false, 0},
};

typedef struct {
    void *q, *kv;
    vlp_real *bias, *cotangent;
    uint8_t *mask;
    int32_t *index;
} inputs;

static int64_t kv_rows(const shape *s) {
    return (s->batch + s->shared - 1) / s->shared;
}

static float *noise(int64_t n) {
    float *x = vlp_alloc((size_t)n * sizeof *x);
    if (x) vlp_bench_noise(x, n, 1);
    return x;
}

static void *typed_noise(int64_t n, vlp_dtype dtype) {
    float *x = noise(n);
    if (!x || dtype != VLP_BF16) return x;
    uint16_t *half = vlp_alloc((size_t)n * sizeof *half);
    if (half) vlp_kernels_get()->to_bf16(n, x, half);
    vlp_free(x);
    return half;
}

static void free_inputs(inputs *in) {
    vlp_free(in->q);
    vlp_free(in->kv);
    vlp_free(in->bias);
    vlp_free(in->cotangent);
    vlp_free(in->mask);
    vlp_free(in->index);
}

static vlp_status make_inputs(const shape *s, vlp_dtype dtype, inputs *in) {
    int64_t model = s->heads * s->width, rows = kv_rows(s);
    *in = (inputs){.q = typed_noise(s->batch * s->queries * 3 * model, dtype),
                   .kv = typed_noise(rows * s->keys * 2 * model, dtype),
                   .bias = noise(s->heads * s->queries * s->keys),
                   .cotangent = noise(s->batch * s->queries * model),
                   .mask = vlp_alloc((size_t)(rows * s->keys)),
                   .index = vlp_alloc((size_t)s->batch * sizeof *in->index)};
    if (!in->q || !in->kv || !in->bias || !in->cotangent || !in->mask || !in->index)
        return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < rows * s->keys; i++) in->mask[i] = i % s->keys < s->keys * 3 / 4;
    for (int64_t b = 0; b < s->batch; b++) in->index[b] = (int32_t)(b / s->shared);
    return VLP_OK;
}

static vlp_tensor *build(vlp_tape *tape, const shape *s, vlp_dtype dtype, const inputs *in) {
    int64_t model = s->heads * s->width;
    bool self = s->queries == s->keys;
    int64_t q_shape[] = {s->batch, s->queries, self ? 3 * model : model};
    int64_t kv_shape[] = {kv_rows(s), s->keys, 2 * model};
    int64_t bias_shape[] = {1, s->heads, s->queries, s->keys};
    vlp_tensor *q = vlp_tape_input(tape, dtype, 3, q_shape, in->q, true);
    vlp_tensor *kv = self ? q : vlp_tape_input(tape, dtype, 3, kv_shape, in->kv, true);
    vlp_attention_args args = {.q = q,
                               .k = kv,
                               .v = kv,
                               .k_offset = self ? model : 0,
                               .v_offset = self ? 2 * model : model,
                               .heads = s->heads,
                               .head_width = s->width,
                               .causal = s->causal,
                               .key_mask = s->masked ? in->mask : NULL,
                               .kv_index = self ? NULL : in->index,
                               .dropout = s->dropout};
    if (s->biased) args.bias = vlp_tape_input(tape, VLP_REAL, 4, bias_shape, in->bias, true);
    return vlp_attention(tape, &args);
}

/* Lowers best[] to the seconds of this forward and backward. */
static vlp_status step(vlp_tape *tape, const shape *s, vlp_dtype dtype, const inputs *in,
                       double best[2]) {
    vlp_tape_begin(tape, 1, 1);
    double start = vlp_op_profile_clock();
    vlp_tensor *y = build(tape, s, dtype, in);
    double middle = vlp_op_profile_clock();
    vlp_tape_seed(tape, y, in->cotangent);
    double seeded = vlp_op_profile_clock();
    VLP_TRY(vlp_tape_backward(tape, NULL));
    double took[2] = {middle - start, vlp_op_profile_clock() - seeded};
    for (int i = 0; i < 2; i++) best[i] = took[i] < best[i] ? took[i] : best[i];
    return VLP_OK;
}

static vlp_status time_shape(const shape *s, vlp_dtype dtype, double seconds, double best[2]) {
    vlp_tape *tape = NULL;
    inputs in = {0};
    vlp_status status;
    best[0] = best[1] = 1e9;
    VLP_TRY_DONE(make_inputs(s, dtype, &in));
    VLP_TRY_DONE(vlp_tape_new(&tape));
    vlp_tape_set_training(tape, true);
    VLP_TRY_DONE(vlp_tape_plan(tape));
    vlp_tape_seed(tape, build(tape, s, dtype, &in), NULL);
    VLP_TRY_DONE(vlp_tape_backward(tape, NULL));
    VLP_TRY_DONE(vlp_tape_open(tape, 0));
    double start = vlp_op_profile_clock();
    for (int i = 0; i < 2 || vlp_op_profile_clock() - start < seconds; i++)
        VLP_TRY_DONE(step(tape, s, dtype, &in, best));
done:
    free_inputs(&in);
    vlp_tape_free(tape);
    return status;
}

/* Of the products: two forward, five backward, masked keys not counted. */
static double product_gflop(const shape *s) {
    double keys = (double)(s->masked ? s->keys * 3 / 4 : s->keys);
    double gflop = 2e-9 * (double)(s->batch * s->heads * s->width * s->queries) * keys;
    return s->causal ? gflop / 2 : gflop;
}

static void report(const cli_args *args, const shape *s, vlp_dtype dtype, const double took[2],
                   const ceilings *peak) {
    double most = ceilings_gflops(peak, dtype);
    const char *precision = dtype == VLP_BF16 ? "bf16" : "fp32";
    double rate[] = {2 * product_gflop(s) / took[0], 5 * product_gflop(s) / took[1]};
    if (!cli_has(args, "--json")) {
        printf("  %-15s %-5s %4lld %3lld %4lld %5lld %5lld %9.3f %8.1f %5.0f %9.3f %8.1f %5.0f\n",
               s->name, precision, (long long)s->batch, (long long)s->heads, (long long)s->width,
               (long long)s->queries, (long long)s->keys, 1e3 * took[0], rate[0],
               100 * rate[0] / most, 1e3 * took[1], rate[1], 100 * rate[1] / most);
        return;
    }
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "shape", s->name);
    vlp_json_set_string(json, "precision", precision);
    vlp_json_set_int(json, "batch", s->batch);
    vlp_json_set_int(json, "heads", s->heads);
    vlp_json_set_int(json, "width", s->width);
    vlp_json_set_int(json, "queries", s->queries);
    vlp_json_set_int(json, "keys", s->keys);
    vlp_json_set_double(json, "forward_ms", 1e3 * took[0]);
    vlp_json_set_double(json, "backward_ms", 1e3 * took[1]);
    vlp_json_set_double(json, "forward_gflops", rate[0]);
    vlp_json_set_double(json, "backward_gflops", rate[1]);
    ceilings_json(json, peak);
    cli_print_json(json);
}

static vlp_status wanted_types(const cli_args *args, bool want[2]) {
    static const char *const names[] = {"fp32", "bf16"};
    const char *only = cli_text(args, "--precision", NULL);
    want[0] = want[1] = !only;
    for (int i = 0; only && i < 2; i++) want[i] = strcmp(only, names[i]) == 0;
    if (want[0] || want[1]) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "bench attention: --precision is fp32 or bf16, not \"%s\"",
                    only);
}

static vlp_status measure(const cli_args *args, double seconds, int64_t batch,
                          const ceilings *peak) {
    static const vlp_dtype types[] = {VLP_REAL, VLP_BF16};
    bool want[2];
    VLP_TRY(wanted_types(args, want));
    for (size_t i = 0; i < VLP_COUNT(shapes) && !cli_stop; i++)
        for (int t = 0; t < 2 && !cli_stop; t++) {
            if (!want[t]) continue;
            shape s = shapes[i];
            if (batch > 0) s.batch = batch;
            double took[2];
            VLP_TRY(time_shape(&s, types[t], seconds, took));
            report(args, &s, types[t], took, peak);
        }
    return VLP_OK;
}

int bench_attention(const cli_args *args) {
    double seconds;
    ceilings peak;
    int64_t batch;
    vlp_status status = cli_double(args, "--seconds", 0.3, 0.001, 1e6, &seconds);
    if (status == VLP_OK) status = cli_int(args, "--batch", 0, 0, 65536, &batch);
    if (status == VLP_OK) status = ceilings_measure(&peak, false);
    if (status != VLP_OK) return cli_fail(status);
    if (!cli_has(args, "--json")) {
        printf("%d threads, %s kernels; ", vlp_threads_get(), vlp_isa_name(vlp_isa_chosen()));
        ceilings_print(stdout, &peak);
        printf("\n  %-15s %-5s %4s %3s %4s %5s %5s %9s %8s %5s %9s %8s %5s\n", "shape", "type", "B",
               "H", "K", "Lq", "Lk", "fwd ms", "GFLOP/s", "%", "bwd ms", "GFLOP/s", "%");
    }
    status = measure(args, seconds, batch, &peak);
    return status == VLP_OK ? cli_stop ? EXIT_STOPPED : EXIT_DONE : cli_fail(status);
}
