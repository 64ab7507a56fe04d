/* A batch of image-caption pairs on the host; borrowed for the step. */
#ifndef VLP_OBJECTIVES_PAIRS_H
#define VLP_OBJECTIVES_PAIRS_H

#include "core/real.h"
#include "text/tokens.h"

#include <stdbool.h>

/* Choices that are random otherwise. */
typedef struct {
    const int32_t *masked_ids, *mlm_targets;         /* [B, L]; a target below 0: not predicted */
    const int32_t *negative_images, *negative_texts; /* [B]: partners of text b and of image b */
} vlp_given;

typedef struct {
    int64_t batch;
    const vlp_real *pixels;        /* [B, C, S, S], normalised */
    vlp_tokens tokens;             /* [B, L] */
    const uint64_t *keys;          /* [B]: identity of the samples, for their random numbers */
    const int64_t *image_groups;   /* [B]: equal = the same picture */
    const int64_t *caption_groups; /* [B]: equal = the same caption */
    uint64_t seed, epoch;          /* with a key: all that a sample's masks depend on */
    const vlp_given *given;        /* NULL = drawn */
} vlp_pairs;

/* Whether image i and caption j belong together: the same pair, another caption of the same
 * picture, or the same caption of another picture. */
bool vlp_pairs_positive(const vlp_pairs *pairs, int64_t i, int64_t j);

/* How many of the batch's pairs an objective with this share uses: the first so many; at least 1.
 */
int64_t vlp_pairs_share(const vlp_pairs *pairs, double share);

#endif
