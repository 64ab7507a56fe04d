/* What the objectives of one step share: the batch, and the encodings that several of them need,
 * computed when first asked for and used many times. */
#ifndef VLP_OBJECTIVES_ENCODINGS_H
#define VLP_OBJECTIVES_ENCODINGS_H

#include "fusion/model.h"
#include "objectives/momentum.h"

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
    vlp_momentum *momentum; /* NULL = none */
    vlp_tensor *pixels, *image_tokens, *text_tokens, *image_embedding, *text_embedding;
    vlp_tensor *similarity, *i2t, *t2i;
    vlp_tensor *image_keys[VLP_MAX_DEPTH];
    bool has_image_keys;
    vlp_tensor *match_logits; /* [3n, 2], when the matching loss has been built */
    struct {                  /* of the momentum twin, without gradients */
        vlp_tensor *image_tokens, *image_embedding, *text_embedding, *i2t, *t2i;
        vlp_tensor *image_keys[VLP_MAX_DEPTH];
        bool has_image_keys;
    } twin;
} vlp_encodings;

void vlp_encodings_begin(vlp_encodings *e, vlp_tape *tape, const vlp_model *model,
                         const vlp_pairs *pairs);

vlp_tensor *vlp_encodings_pixels(vlp_encodings *e);          /* [B, C, S, S] */
vlp_tensor *vlp_encodings_image_tokens(vlp_encodings *e);    /* [B, 1 + P, Dv] */
vlp_tensor *vlp_encodings_text_tokens(vlp_encodings *e);     /* [B, L, Dt] */
vlp_tensor *vlp_encodings_image_embedding(vlp_encodings *e); /* [B, E], unit length */
vlp_tensor *vlp_encodings_text_embedding(vlp_encodings *e);  /* [B, E] */
/* Cosines over the temperature of image i and text j of the batch: [B, B] */
vlp_tensor *vlp_encodings_similarity(vlp_encodings *e);
/* The batch's images (texts) against the candidates for their text (image), cosines over the
 * temperature: [B, C]. The first B candidates are the batch's own: with momentum its features by
 * the twin, and C = B + Q with the queue; without, the features themselves, and C = B. */
vlp_tensor *vlp_encodings_i2t(vlp_encodings *e);
vlp_tensor *vlp_encodings_t2i(vlp_encodings *e);
/* Whether candidate j is a positive of image or text i, as vlp_pairs_positive. */
bool vlp_encodings_positive(const vlp_encodings *e, int64_t i, int64_t j);
/* Keys and values of the batch's images for every fusion layer. */
vlp_tensor *const *vlp_encodings_image_keys(vlp_encodings *e);

/* With momentum: the same of the twin, its features in the place of the model's. */
vlp_tensor *vlp_encodings_twin_i2t(vlp_encodings *e);
vlp_tensor *vlp_encodings_twin_t2i(vlp_encodings *e);
vlp_tensor *const *vlp_encodings_twin_keys(vlp_encodings *e);
/* Between these two, ops leave nothing behind for backward and their intermediate results go.
 * Returns what to give back. */
bool vlp_encodings_pause(vlp_encodings *e);
void vlp_encodings_go_on(vlp_encodings *e, bool before);

#endif
