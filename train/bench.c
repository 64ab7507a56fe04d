#include "train/bench.h"

#include "core/ceiling.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"
#include "text/wordpiece_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STEPS = 5, DEFAULT_VOCAB = 8000 };
enum { SHORTEST_CAPTION = 8, LONGEST_CAPTION = 20 }; /* tokens; COCO's lie there */
enum { PEAK_SIZE = 1536 };
static const double peak_seconds = 0.6;

/* Everything of a run but the data: the trainer's parts, around synthetic input. */
typedef struct {
    const vlp_recipe *recipe;
    vlp_tokenizer *tokenizer;
    vlp_model *model;
    vlp_objectives objectives;
    vlp_optimizer *optimizer;
    vlp_tape *tape;
    float *pixels;   /* [B, 3, S, S] */
    int32_t *ids;    /* [B, L] */
    uint8_t *mask;   /* [B, L] */
    uint64_t *keys;  /* [B] */
    int64_t *groups; /* [B] all different */
} bench;

void vlp_bench_noise(float *out, int64_t n, uint64_t seed) {
    vlp_rng rng = vlp_rng_at(seed, VLP_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < n; i++) out[i] = (float)((int32_t)vlp_rng_u32(&rng)) * 0x1p-31f;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double vlp_bench_median(double *values, int64_t n) {
    if (n == 0) return 0;
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* Words of three syllables, enough of them that their pieces fill the vocabulary. */
static vlp_status synthetic_tokenizer(int64_t vocab, vlp_tokenizer **out) {
    static const char consonants[] = "bcdfghjklmnprstvwz", vowels[] = "aeiou";
    vlp_wordpiece_trainer *trainer;
    vlp_wordpiece_train_options options = {.vocab_size = (int32_t)vocab, .lower_case = true};
    VLP_TRY(vlp_wordpiece_trainer_new(&trainer, &options));
    vlp_rng rng = vlp_rng_at(0, VLP_RNG_TEST, 1, 0);
    vlp_status status = VLP_OK;
    for (int64_t i = 0; i < 2 * vocab && status == VLP_OK; i++) {
        char text[16], *at = text;
        for (int s = 0; s < 3; s++) {
            *at++ = consonants[vlp_rng_below(&rng, sizeof consonants - 1)];
            *at++ = vowels[vlp_rng_below(&rng, sizeof vowels - 1)];
        }
        *at = ' ';
        memcpy(at + 1, text, 6); /* twice: a pair must be met twice to be merged */
        status = vlp_wordpiece_trainer_add(trainer, text, 13);
    }
    if (status == VLP_OK) status = vlp_wordpiece_trainer_finish(trainer, out);
    vlp_wordpiece_trainer_free(trainer);
    return status;
}

static void fill_captions(bench *b) {
    const vlp_special_ids special = vlp_tokenizer_special(b->tokenizer);
    int64_t length = b->recipe->text_length;
    uint64_t words = (uint64_t)(vlp_tokenizer_size(b->tokenizer) - special.mask - 1);
    vlp_rng rng = vlp_rng_at(0, VLP_RNG_TEST, 2, 0);
    for (int64_t i = 0; i < b->recipe->batch; i++) {
        int32_t *ids = b->ids + i * length;
        int64_t n =
            SHORTEST_CAPTION + (int64_t)vlp_rng_below(&rng, LONGEST_CAPTION - SHORTEST_CAPTION + 1);
        if (n > length) n = length;
        for (int64_t j = 0; j < length; j++) {
            ids[j] = j < n ? special.mask + 1 + (int32_t)vlp_rng_below(&rng, words) : special.pad;
            b->mask[i * length + j] = j < n;
        }
        ids[0] = special.cls;
        ids[n - 1] = special.sep;
        b->keys[i] = (uint64_t)i;
        b->groups[i] = i;
    }
}

static vlp_status make_batch(bench *b) {
    const vlp_recipe *r = b->recipe;
    int64_t tokens = r->batch * r->text_length,
            pixels = r->batch * 3 * r->image_size * r->image_size;
    b->pixels = vlp_alloc((size_t)pixels * sizeof *b->pixels);
    b->ids = vlp_alloc((size_t)tokens * sizeof *b->ids);
    b->mask = vlp_alloc((size_t)tokens);
    b->keys = vlp_alloc((size_t)r->batch * sizeof *b->keys);
    b->groups = vlp_alloc((size_t)r->batch * sizeof *b->groups);
    if (!b->pixels || !b->ids || !b->mask || !b->keys || !b->groups) return VLP_ERR_MEMORY;
    vlp_bench_noise(b->pixels, pixels, 3);
    fill_captions(b);
    return VLP_OK;
}

static vlp_pairs pairs_of(const bench *b) {
    const vlp_recipe *r = b->recipe;
    return (vlp_pairs){
        .batch = r->batch,
        .pixels = b->pixels,
        .tokens = {r->batch, r->text_length, b->ids, NULL, b->mask},
        .keys = b->keys,
        .image_groups = b->groups,
        .caption_groups = b->groups,
    };
}

static vlp_status assemble(bench *b, const vlp_recipe *recipe, int64_t vocab,
                           vlp_bench_train *out) {
    b->recipe = recipe;
    VLP_TRY(synthetic_tokenizer(vocab ? vocab : DEFAULT_VOCAB, &b->tokenizer));
    vlp_model_config config;
    vlp_recipe_model(recipe, vlp_tokenizer_size(b->tokenizer), &config);
    vlp_recipe_marks(recipe, b->tokenizer, &config);
    VLP_TRY(vlp_model_new(&b->model, &config));
    vlp_objective_setup setup = {b->model, b->tokenizer, &recipe->objectives};
    VLP_TRY(vlp_objectives_create(&b->objectives, &setup));
    VLP_TRY(vlp_params_allocate(b->model->params, true));
    vlp_params_init(b->model->params, 0);
    vlp_objectives_start(&b->objectives, 0);
    vlp_optimizer_options options = vlp_step_optimizer(recipe);
    VLP_TRY(vlp_optimizer_new(&b->optimizer, b->model->params, &options));
    VLP_TRY(vlp_tape_new(&b->tape));
    vlp_step_prepare(b->tape, recipe);
    if (vlp_tape_precision(b->tape) == VLP_BF16) VLP_TRY(vlp_params_keep_packed(b->model->params));
    vlp_step step = {b->tape, b->model, &b->objectives};
    VLP_TRY(vlp_step_rehearse(&step, recipe->batch, recipe->text_length, NULL, &out->flops_a_step));
    out->flops_a_step *= (double)recipe->accumulate;
    out->step_bytes = vlp_tape_bytes(b->tape);
    out->parameters = b->model->params->learnt;
    out->vocab = vlp_tokenizer_size(b->tokenizer);
    out->batch = recipe->batch * recipe->accumulate;
    return make_batch(b);
}

static void release(bench *b) {
    vlp_tape_free(b->tape);
    vlp_optimizer_free(b->optimizer);
    vlp_objectives_destroy(&b->objectives);
    vlp_model_free(b->model);
    vlp_tokenizer_free(b->tokenizer);
    vlp_free(b->pixels);
    vlp_free(b->ids);
    vlp_free(b->mask);
    vlp_free(b->keys);
    vlp_free(b->groups);
}

static vlp_status micro_batch(bench *b, uint64_t number, double *loss_out) {
    vlp_pairs pairs = pairs_of(b);
    vlp_step step = {b->tape, b->model, &b->objectives};
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_tape_begin(b->tape, 0, number);
    vlp_tensor *loss = vlp_step_loss(&step, &pairs, NULL, terms);
    VLP_TRY(vlp_tape_status(b->tape));
    *loss_out = (double)vlp_real_data(loss)[0];
    if (!isfinite(*loss_out))
        return VLP_FAIL(VLP_ERR_NUMERIC, "the loss of the synthetic batch is not finite");
    VLP_TRY(vlp_tape_backward(b->tape, loss));
    vlp_objectives_after_batch(&b->objectives, &pairs);
    return VLP_OK;
}

/* One step; *update = seconds in zeroing the gradients and in the optimizer. A small learning rate:
 * the batch is noise, and its speed does not depend on it. */
static vlp_status one_step(bench *b, int64_t number, double *loss, double *update) {
    const vlp_recipe *r = b->recipe;
    double began = vlp_op_profile_clock(), norm;
    vlp_params_changed(b->model->params); /* by the step before */
    vlp_params_zero_grads(b->model->params);
    *update = vlp_op_profile_clock() - began;
    vlp_objectives_before_step(&b->objectives, b->model, 1);
    for (int64_t m = 0; m < r->accumulate; m++)
        VLP_TRY(micro_batch(b, (uint64_t)(number * r->accumulate + m), loss));
    began = vlp_op_profile_clock();
    VLP_TRY(
        vlp_optimizer_step(b->optimizer, 0.01 * r->lr, 1.0 / (double)r->accumulate, NULL, &norm));
    *update += vlp_op_profile_clock() - began;
    return VLP_OK;
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static vlp_status timed_steps(bench *b, const vlp_bench_options *o, double *seconds,
                              vlp_bench_train *out) {
    vlp_step_profile *profile = &out->profile;
    for (int64_t i = -VLP_STEPS_TO_WARM_UP; i < out->steps; i++) {
        if (o->stop && *o->stop) return VLP_FAIL(VLP_ERR_INTERRUPTED, "stopped");
        if (o->profile && i == 0) vlp_tape_set_profile(b->tape, &profile->ops);
        double began = vlp_op_profile_clock(), cpu = cpu_seconds(), update;
        VLP_TRY(one_step(b, i + VLP_STEPS_TO_WARM_UP, &out->loss, &update));
        double took = vlp_op_profile_clock() - began;
        if (o->on_step) o->on_step(i + 1, took, o->user);
        if (i < 0) continue;
        seconds[i] = took;
        profile->steps++;
        profile->seconds += took;
        profile->update_seconds += update;
        profile->update_bytes += vlp_optimizer_traffic(b->optimizer) +
                                 (double)b->model->params->total * (double)sizeof(vlp_real);
        out->cpu_share += cpu_seconds() - cpu;
    }
    out->cpu_share /= profile->seconds * vlp_threads_get();
    return VLP_OK;
}

static vlp_status measure(bench *b, const vlp_bench_options *o, vlp_bench_train *out) {
    double before, after;
    double *seconds = vlp_alloc((size_t)out->steps * sizeof *seconds);
    if (!seconds) return VLP_ERR_MEMORY;
    vlp_status status = vlp_gemm_peak(PEAK_SIZE, peak_seconds, &before);
    if (status == VLP_OK) status = timed_steps(b, o, seconds, out);
    if (status == VLP_OK) status = vlp_gemm_peak(PEAK_SIZE, peak_seconds, &after);
    if (status == VLP_OK) {
        out->step_seconds = vlp_bench_median(seconds, out->steps);
        out->pairs_per_s = (double)out->batch / out->step_seconds;
        out->gflops = 1e-9 * out->flops_a_step / out->step_seconds;
        out->gemm_gflops = before > after ? before : after;
        out->utilisation = out->gflops / out->gemm_gflops;
    }
    vlp_free(seconds);
    return status;
}

vlp_status vlp_bench_train_run(const vlp_recipe *recipe, const vlp_bench_options *options,
                               vlp_bench_train *out) {
    bench b = {0};
    *out = (vlp_bench_train){.steps = options->steps ? options->steps : DEFAULT_STEPS};
    vlp_status status = assemble(&b, recipe, options->vocab, out);
    if (status == VLP_OK) status = measure(&b, options, out);
    release(&b);
    return status;
}

vlp_status vlp_bench_encoder_new(vlp_bench_encoder *out, const vlp_recipe *recipe, int64_t batch) {
    *out = (vlp_bench_encoder){.transform = vlp_recipe_transform(recipe)};
    vlp_model_config config;
    vlp_status status = synthetic_tokenizer(DEFAULT_VOCAB, &out->tokenizer);
    if (status == VLP_OK) {
        vlp_recipe_model(recipe, vlp_tokenizer_size(out->tokenizer), &config);
        vlp_recipe_marks(recipe, out->tokenizer, &config);
        status = vlp_model_new(&out->model, &config);
    }
    if (status == VLP_OK) status = vlp_params_allocate(out->model->params, false);
    if (status == VLP_OK) {
        vlp_params_init(out->model->params, 0);
        status =
            vlp_embedder_wrap(&out->embedder, out->model, out->tokenizer, &out->transform, batch);
    }
    if (status != VLP_OK) vlp_bench_encoder_free(out);
    return status;
}

void vlp_bench_encoder_free(vlp_bench_encoder *encoder) {
    vlp_embedder_free(encoder->embedder);
    vlp_model_free(encoder->model);
    vlp_tokenizer_free(encoder->tokenizer);
    *encoder = (vlp_bench_encoder){0};
}
