/* Measurements on this machine, with nothing read from a disk: what a training step and an encoder
 * reach, for the program's `bench`. Weights and inputs are random. */
#ifndef VLP_TRAIN_BENCH_H
#define VLP_TRAIN_BENCH_H

#include "train/embedder.h"
#include "train/recipe.h"
#include "train/step.h"

typedef struct {
    int64_t steps; /* timed ones, after VLP_STEPS_TO_WARM_UP; 0 = 5 */
    int64_t vocab; /* 0 = 8000 */
    bool profile;
    const volatile int *stop; /* set by a signal handler, or NULL */
    void (*on_step)(int64_t step, double seconds, void *user);
    void *user;
} vlp_bench_options;

typedef struct {
    int64_t parameters, batch, steps, vocab; /* batch: pairs a step, micro-batches together */
    double step_seconds;                     /* median */
    double flops_a_step;                     /* of products, forward and backward */
    double pairs_per_s, gflops;
    double gemm_gflops; /* vlp_gemm_peak, the better of before and after the steps */
    double utilisation; /* gflops / gemm_gflops */
    double cpu_share;   /* processor time over time x threads: below 1, other programs ran too */
    double loss;        /* of the last step: a figure that is not finite is an error */
    size_t step_bytes;
    vlp_step_profile profile; /* of the timed steps; its ops where asked for */
} vlp_bench_train;

/* A recipe's step as the trainer does it: objectives, backward, clipping, update; on a synthetic
 * batch of random pixels and captions of 8 to 20 tokens. */
vlp_status vlp_bench_train_run(const vlp_recipe *recipe, const vlp_bench_options *options,
                               vlp_bench_train *out);

/* A recipe's model with random weights, for encoding. Free with vlp_bench_encoder_free. */
typedef struct {
    vlp_model *model;
    vlp_tokenizer *tokenizer;
    vlp_transform transform;
    vlp_embedder *embedder;
} vlp_bench_encoder;
vlp_status vlp_bench_encoder_new(vlp_bench_encoder *out, const vlp_recipe *recipe, int64_t batch);
void vlp_bench_encoder_free(vlp_bench_encoder *encoder);

/* Random numbers in [-1, 1). */
void vlp_bench_noise(float *out, int64_t n, uint64_t seed);
double vlp_bench_median(double *values, int64_t n); /* sorts them; 0 for n = 0 */

#endif
