/* The trainer: one loop for every recipe.
 *
 *     vlp_trainer_open(&t, &recipe, &options);     model, heads, data, optimizer; --init, --resume
 *     vlp_trainer_plan(t, &plan);                  parameters, FLOPs, memory: nothing trained yet
 *     vlp_trainer_run(t, &summary);                until done, stopped or out of time
 *     vlp_trainer_free(t);
 *
 * The run folder is a model folder (config.json, model.safetensors, tokenizer,
 * preprocessor_config.json) with recipe.json, metrics.jsonl, state.json, state-N/ and, at the
 * end, summary.json beside. Checkpoints are written beside and renamed; a run that is killed at any
 * moment resumes from the last one and repeats the uninterrupted run bit for bit (same threads). */
#ifndef VLP_TRAIN_TRAINER_H
#define VLP_TRAIN_TRAINER_H

#include "train/evaluate.h"
#include "train/recipe.h"
#include "train/step.h"

typedef struct vlp_trainer vlp_trainer;

/* A line of metrics.jsonl, as it happens. */
typedef struct {
    int64_t step, total_steps; /* total 0 = bounded by time only */
    double progress;           /* 0..1 of the run */
    double epoch, loss, lr, grad_norm, pairs_per_s, data_wait, seconds_left, logit_scale;
    int n_losses;
    const char *names[VLP_MAX_OBJECTIVES];
    double losses[VLP_MAX_OBJECTIVES], chance[VLP_MAX_OBJECTIVES];
} vlp_train_progress;

typedef struct {
    const char *data;                   /* the index */
    const char *out;                    /* run folder; created */
    const char *tokenizer;              /* folder or file; NULL = trained on the index's captions */
    const char *init;                   /* model folder to start from, or NULL */
    const char *init_image, *init_text; /* folders of a ViT and of a BERT to start from, or NULL */
    bool resume;                        /* continue `out`; its recipe is used */
    int64_t vocab;                      /* of a tokenizer trained here */
    const volatile int
        *stop; /* set by a signal handler: checkpoint and return VLP_ERR_INTERRUPTED */
    vlp_step_profile *profile; /* filled by the steps after the first ones, or NULL */
    void (*on_step)(const vlp_train_progress *progress, void *user);
    void (*on_eval)(int64_t step, const vlp_retrieval *result, void *user);
    void *user;
} vlp_train_options;

typedef struct {
    int64_t parameters, pictures, vocab, batch, steps, steps_an_epoch;
    double flops_a_step;    /* forward and backward */
    size_t parameter_bytes; /* values, gradients, moments, average, twin, and weights kept packed */
    size_t step_bytes;      /* activations and their gradients */
    size_t product_bytes;   /* scratch of matrix products */
    size_t loader_bytes;    /* batches ahead, and decoded pictures up to loader.cache_mb */
    size_t program_bytes;   /* what the program and its libraries held before */
    size_t total_bytes;
    int threads;
} vlp_train_plan;

typedef struct {
    int64_t steps;
    double seconds, loss, pairs_per_s, data_wait;
    bool has_test;
    vlp_retrieval test;
} vlp_train_summary;

vlp_status vlp_trainer_open(vlp_trainer **out, const vlp_recipe *recipe,
                            const vlp_train_options *options);
vlp_status vlp_trainer_plan(vlp_trainer *trainer, vlp_train_plan *plan);
vlp_status vlp_trainer_run(vlp_trainer *trainer, vlp_train_summary *summary);
const vlp_recipe *vlp_trainer_recipe(const vlp_trainer *trainer);
void vlp_trainer_free(vlp_trainer *trainer);

#endif
