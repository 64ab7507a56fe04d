/* Contrast over all micro-batches of a step, exactly, in the memory of one (Gao et al., 2021,
 * "Scaling deep contrastive learning batch size under memory limited setup"):
 *
 *     for each micro-batch p:  vlp_contrast_embed(c, p, &pairs, ...)   forward only, embeddings
 * kept vlp_contrast_solve(c, ...)             the losses of the whole batch, and their gradients in
 *                                            the embeddings and in the temperature
 *     for each micro-batch p:  e.cotangents = vlp_contrast_cotangents(c, p), then forward again
 * with the same random numbers, and backward
 *
 * The objectives that are functions of the two embeddings alone (kind->contrastive) see the whole
 * batch; the others see their micro-batch, as ever. */
#ifndef VLP_TRAIN_CONTRAST_H
#define VLP_TRAIN_CONTRAST_H

#include "train/step.h"

/* For steps of `parts` micro-batches of `batch` pairs. */
vlp_status vlp_contrast_new(vlp_contrast **out, int64_t parts, int64_t batch, int64_t embedding);
void vlp_contrast_free(vlp_contrast *c);

/* Rehearses vlp_contrast_solve on a tape that is rehearsing. */
vlp_status vlp_contrast_rehearse(vlp_contrast *c, const vlp_step *step);

/* The tape has begun the micro-batch; its random numbers depend on that alone. */
vlp_status vlp_contrast_embed(vlp_contrast *c, const vlp_step *step, int64_t part,
                              const vlp_pairs *pairs);

/* losses[i]: of the contrastive objective i of step->objectives; others are left alone. Their
 * gradients, times `scale`, go to the cotangents and to the temperature's gradient. */
vlp_status vlp_contrast_solve(vlp_contrast *c, const vlp_step *step, double scale, double *losses);

const vlp_cotangents *vlp_contrast_cotangents(vlp_contrast *c, int64_t part);

#endif
