/* What the objectives of one step share: the batch, and the encodings that several of them need,
 * computed when first asked for and used many times. */
#ifndef VLP_OBJECTIVES_ENCODINGS_H
#define VLP_OBJECTIVES_ENCODINGS_H

#include "fusion/model.h"

/* A batch of image-caption pairs on the host; borrowed for the step. */
typedef struct {
    int64_t batch;
    const vlp_real *pixels;        /* [B, C, S, S], normalised */
    vlp_tokens tokens;             /* [B, L] */
    const uint64_t *keys;          /* [B]: identity of the samples, for their random numbers */
    const int64_t *image_groups;   /* [B]: equal = the same picture */
    const int64_t *caption_groups; /* [B]: equal = the same caption */
    uint64_t seed, epoch;          /* with a key: all that a sample's masks depend on */
} vlp_pairs;

/* Whether image i and caption j belong together: the same pair, another caption of the same
 * picture, or the same caption of another picture. */
bool vlp_pairs_positive(const vlp_pairs *pairs, int64_t i, int64_t j);

/* How many of the batch's pairs an objective with this share uses: the first so many; at least 1.
 */
int64_t vlp_pairs_share(const vlp_pairs *pairs, double share);

/* Gradients of the contrastive losses that are already known, because they are of a larger batch:
 * [B, E] each. The contrastive objectives of the step then pass them on and do nothing else. */
typedef struct {
    const vlp_real *image, *text;
} vlp_cotangents;

typedef struct {
    vlp_tape *tape;
    const vlp_cotangents *cotangents; /* NULL = the contrast is over this batch */
    const vlp_model *model;
    const vlp_pairs *pairs;
    vlp_tensor *pixels, *image_tokens, *text_tokens, *image_embedding, *text_embedding, *similarity;
    vlp_tensor *image_keys[VLP_MAX_DEPTH];
    bool has_image_keys;
} vlp_encodings;

void vlp_encodings_begin(vlp_encodings *e, vlp_tape *tape, const vlp_model *model,
                         const vlp_pairs *pairs);

vlp_tensor *vlp_encodings_pixels(vlp_encodings *e);          /* [B, C, S, S] */
vlp_tensor *vlp_encodings_image_tokens(vlp_encodings *e);    /* [B, 1 + P, Dv] */
vlp_tensor *vlp_encodings_text_tokens(vlp_encodings *e);     /* [B, L, Dt] */
vlp_tensor *vlp_encodings_image_embedding(vlp_encodings *e); /* [B, E], unit length */
vlp_tensor *vlp_encodings_text_embedding(vlp_encodings *e);  /* [B, E] */
/* exp(logit_scale) cos(image i, text j): [B, B] */
vlp_tensor *vlp_encodings_similarity(vlp_encodings *e);
/* Keys and values of the batch's images for every fusion layer. */
vlp_tensor *const *vlp_encodings_image_keys(vlp_encodings *e);

#endif
