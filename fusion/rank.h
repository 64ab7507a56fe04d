/* Answering by choosing: the candidates of a list in the order in which a decoder would write them
 * (ALBEF, Li et al., 2021, section 5; BLIP, Li et al., 2022). The k whose first token is the most
 * probable are read whole and ranked. */
#ifndef VLP_FUSION_RANK_H
#define VLP_FUSION_RANK_H

#include "fusion/model.h"

typedef struct {
    int64_t k;              /* candidates that are read whole, at most their number */
    double label_smoothing; /* of the loss that ranks them: BLIP keeps that of training */
    bool first_twice;       /* the first token's log probability is added once more (ALBEF) */
} vlp_rank_options;

/* The rule of the reference whose kind of model this is. */
vlp_rank_options vlp_rank_defaults(const vlp_model *model, int64_t k);

/* candidates [A, La] begin with bos_id. For each of n sources (keys, context_mask: as in
 * vlp_generator_source) the k best, the best first: order [n, k], and their probabilities among the
 * k [n, k]. Needs a tape without gradients; while it is planning nothing is written. */
typedef struct {
    int64_t n;
    vlp_tensor *const *keys;
    const uint8_t *context_mask;
    const vlp_tokens *candidates;
} vlp_rank_source;
vlp_status vlp_rank_answers(vlp_tape *tape, const vlp_model *model, const vlp_rank_source *source,
                            const vlp_rank_options *options, int32_t *order, double *p);

#endif
