/* A training step's two halves that the trainer and the benchmark share: the loss of a batch on the
 * tape, and the optimizer that a recipe asks for. */
#ifndef VLP_TRAIN_STEP_H
#define VLP_TRAIN_STEP_H

#include "objectives/objective.h"
#include "train/optimizer.h"
#include "train/recipe.h"

typedef struct vlp_contrast vlp_contrast;

/* Borrowed. */
typedef struct {
    vlp_tape *tape;
    const vlp_model *model;
    vlp_objectives *objectives;
} vlp_step;

/* The weighted sum of the objectives; terms [objectives->count] are the single ones. cotangents: of
 * a contrast over more than this batch (train/contrast.h), or NULL. NULL when the tape has failed.
 */
vlp_tensor *vlp_step_loss(const vlp_step *step, const vlp_pairs *pairs,
                          const vlp_cotangents *cotangents, vlp_tensor **terms);

/* The type of a run's activations and products: the recipe's precision, "auto" meaning VLP_BF16
 * where the processor multiplies bfloat16 (AVX-512-BF16, AMX). */
vlp_dtype vlp_step_precision(const vlp_recipe *recipe);
const char *vlp_step_precision_name(const vlp_recipe *recipe); /* "fp32" or "bf16" */
const char *vlp_step_precision_auto(void);                     /* what auto means here */

/* Sets the tape's precision and recomputation, before the rehearsal. */
void vlp_step_prepare(vlp_tape *tape, const vlp_recipe *recipe);

/* Rehearses a step of `batch` pairs with captions of `length` tokens, puts the tape into training
 * mode and reserves its memory, that of the contrast over several batches (or NULL) included.
 * *flops = of forward and backward. */
vlp_status vlp_step_rehearse(const vlp_step *step, int64_t batch, int64_t length,
                             vlp_contrast *contrast, double *flops);

vlp_optimizer_options vlp_step_optimizer(const vlp_recipe *recipe);

/* Where the time of training steps goes. Beside the ops: the update (gradients to zero, clipping,
 * optimizer, moving average), waiting for data, and what is left, host work between ops. */
typedef struct {
    vlp_op_profile ops;
    int64_t steps;
    double seconds; /* of the whole steps */
    double data_seconds, update_seconds;
    double update_bytes; /* that updates read and write */
} vlp_step_profile;

/* Profiles begin after so many steps: the first ones touch their memory for the first time. */
enum { VLP_STEPS_TO_WARM_UP = 2 };

#endif
