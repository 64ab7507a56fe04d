/* vlp bench encode: images and texts a second, through a model folder or a recipe's random model.
 */
#include "apps/bench.h"
#include "apps/ceilings.h"

#include "core/file.h"
#include "core/memory.h"
#include "core/op_profile.h"
#include "core/threads.h"
#include "train/bench.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_BATCH = 32 };

/* flops: of the products of one */
typedef struct {
    double rate, flops;
} speed;

static vlp_status images_a_second(vlp_embedder *e, int64_t batch, double seconds, speed *got) {
    const vlp_transform *t = vlp_embedder_transform(e);
    int64_t pixels = batch * 3 * t->image_size * t->image_size, done = 0;
    float *in = vlp_alloc((size_t)pixels * sizeof *in);
    float *out = vlp_alloc((size_t)(batch * vlp_embedder_width(e)) * sizeof *out);
    vlp_status status = in && out ? VLP_OK : VLP_ERR_MEMORY;
    if (status == VLP_OK) vlp_bench_noise(in, pixels, 1);
    if (status == VLP_OK) status = vlp_embedder_pixels(e, in, batch, out);
    double start = vlp_op_profile_clock(), took = 0;
    while (status == VLP_OK && !cli_stop && (done == 0 || took < seconds)) {
        status = vlp_embedder_pixels(e, in, batch, out);
        done += batch;
        took = vlp_op_profile_clock() - start;
        cli_progress("%lld images", (long long)done);
    }
    *got = (speed){took > 0 ? (double)done / took : 0, vlp_embedder_flops(e) / (double)batch};
    vlp_free(in);
    vlp_free(out);
    return status;
}

static vlp_status texts_a_second(vlp_embedder *e, int64_t batch, double seconds, speed *got) {
    const char **texts = vlp_alloc((size_t)batch * sizeof *texts);
    float *out = vlp_alloc((size_t)(batch * vlp_embedder_width(e)) * sizeof *out);
    vlp_status status = texts && out ? VLP_OK : VLP_ERR_MEMORY;
    for (int64_t i = 0; i < batch && status == VLP_OK; i++)
        texts[i] = "two people walk along the beach with a small dog";
    if (status == VLP_OK) status = vlp_embedder_texts(e, texts, batch, out);
    double start = vlp_op_profile_clock(), took = 0;
    int64_t done = 0;
    while (status == VLP_OK && !cli_stop && (done == 0 || took < seconds)) {
        status = vlp_embedder_texts(e, texts, batch, out);
        done += batch;
        took = vlp_op_profile_clock() - start;
    }
    *got = (speed){took > 0 ? (double)done / took : 0, vlp_embedder_flops(e) / (double)batch};
    vlp_free(texts);
    vlp_free(out);
    return status;
}

static vlp_dtype precision_of(const cli_args *args) {
    return strcmp(cli_text(args, "--precision", "fp32"), "bf16") == 0 ? VLP_BF16 : VLP_REAL;
}

static vlp_status check_precision(const cli_args *args) {
    const char *text = cli_text(args, "--precision", "fp32");
    if (strcmp(text, "fp32") == 0 || strcmp(text, "bf16") == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "bench encode: --precision is fp32 or bf16, not \"%s\"", text);
}

static double gflops_of(const speed *s) {
    return 1e-9 * s->rate * s->flops;
}

static void print(const cli_args *args, const speed *images, const speed *texts, int64_t batch,
                  const ceilings *peak) {
    const char *precision = precision_of(args) == VLP_BF16 ? "bf16" : "fp32";
    double most = ceilings_gflops(peak, precision_of(args));
    if (!cli_has(args, "--json")) {
        printf("%.1f images/s, %.1f texts/s; batch %lld, %s, %d threads\n"
               "images at %.0f GFLOP/s, %.0f %% of the peak; texts at %.0f GFLOP/s, %.0f %%\n",
               images->rate, texts->rate, (long long)batch, precision, vlp_threads_get(),
               gflops_of(images), 100 * gflops_of(images) / most, gflops_of(texts),
               100 * gflops_of(texts) / most);
        ceilings_print(stdout, peak);
        return;
    }
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_double(json, "images_per_s", images->rate);
    vlp_json_set_double(json, "texts_per_s", texts->rate);
    vlp_json_set_int(json, "batch", batch);
    vlp_json_set_string(json, "precision", precision);
    vlp_json_set_int(json, "threads", vlp_threads_get());
    vlp_json_set_double(json, "images_gflops", gflops_of(images));
    vlp_json_set_double(json, "texts_gflops", gflops_of(texts));
    ceilings_json(json, peak);
    cli_print_json(json);
}

static vlp_status measure(const cli_args *args, vlp_embedder *e, int64_t batch, double seconds) {
    speed images, texts;
    ceilings peak;
    VLP_TRY(vlp_embedder_speed_up(e, precision_of(args)));
    VLP_TRY(images_a_second(e, batch, seconds, &images));
    VLP_TRY(texts_a_second(e, batch, seconds / 3, &texts));
    VLP_TRY(ceilings_measure(&peak, false));
    cli_progress_end();
    print(args, &images, &texts, batch, &peak);
    return VLP_OK;
}

static vlp_status with_folder(const cli_args *args, int64_t batch, double seconds) {
    vlp_embedder *e;
    VLP_TRY(vlp_embedder_open(&e, args->positional[1], batch));
    vlp_status status = measure(args, e, batch, seconds);
    vlp_embedder_free(e);
    return status;
}

static vlp_status with_recipe(const cli_args *args, int64_t batch, double seconds) {
    vlp_recipe recipe;
    VLP_TRY(bench_recipe(args, cli_text(args, "--size", NULL), &recipe));
    vlp_bench_encoder encoder;
    VLP_TRY(vlp_bench_encoder_new(&encoder, &recipe, batch));
    vlp_status status = measure(args, encoder.embedder, batch, seconds);
    vlp_bench_encoder_free(&encoder);
    return status;
}

int bench_encode(const cli_args *args) {
    int64_t batch;
    double seconds;
    bool folder = args->n_positional > 1 && vlp_is_folder(args->positional[1]);
    vlp_status status = cli_int(args, "--batch", DEFAULT_BATCH, 1, 65536, &batch);
    if (status == VLP_OK) status = cli_double(args, "--seconds", 3, 0.01, 1e6, &seconds);
    if (status == VLP_OK) status = check_precision(args);
    if (status == VLP_OK)
        status = folder ? with_folder(args, batch, seconds) : with_recipe(args, batch, seconds);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}
