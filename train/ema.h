/* An exponential moving average of all parameters, for evaluation and for the saved model.
 *
 *     shadow = d shadow + (1 - d) value,  d = decay, or with warm-up min(decay, (1 + t) / (10 + t))
 *
 * with t the updates made so far, so that a young average follows quickly. */
#ifndef VLP_TRAIN_EMA_H
#define VLP_TRAIN_EMA_H

#include "core/params.h"

typedef struct {
    vlp_params *params; /* borrowed */
    vlp_real *shadow;   /* laid out like params->values */
    double decay;
    bool warmup;
    int64_t updates; /* part of the state of a run, beside the shadow itself */
    bool swapped;
} vlp_ema;

/* Starts from the present values. VLP_ERR_USAGE unless 0 <= decay < 1. */
vlp_status vlp_ema_new(vlp_ema **out, vlp_params *params, double decay, bool warmup);
void vlp_ema_free(vlp_ema *ema); /* NULL is legal; swaps back first */

/* After an optimizer step. Allocates nothing. */
void vlp_ema_update(vlp_ema *ema);

/* Exchanges values and shadow in place: once before evaluating or saving, once after. An update in
 * between is a programming error. */
void vlp_ema_swap(vlp_ema *ema);

/* The shadow as a model file, under the parameters' own names. The caller keeps `updates`. */
vlp_status vlp_ema_save(const vlp_ema *ema, const char *path);
vlp_status vlp_ema_load(vlp_ema *ema, const char *path, int64_t updates);

#endif
