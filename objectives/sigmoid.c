/* Image-text contrast by pairs: the sigmoid loss (SigLIP, Zhai et al., 2023).
 *   s_ij = exp(logit_scale) cos(image_i, text_j) + bias
 *   loss = -sum_ij log sigmoid(y_ij s_ij) / B
 * y is 1 for a pair, and for its duplicates, which must not act as negatives; elsewhere -1. */
#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>

typedef struct {
    int64_t batch;
} sigmoid_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    (void)setup;
    *state = vlp_alloc_zero(1, sizeof(sigmoid_state));
    return *state ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    sigmoid_state *s = state;
    int64_t n = s->batch = e->pairs->batch;
    vlp_real *target = vlp_tape_alloc(e->tape, (size_t)(n * n) * sizeof *target);
    if (!target) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(e->tape) && i < n * n; i++)
        target[i] = vlp_pairs_positive(e->pairs, i / n, i % n) ? 1 : 0;
    vlp_tensor *mean =
        vlp_regression_loss(e->tape, vlp_encodings_similarity(e), target, VLP_LOSS_BINARY);
    return vlp_scale(e->tape, mean, (double)n); /* over images, not over pairs */
}

/* Of the best constant: one pair in B. */
static double chance(const void *state) {
    double n = (double)((const sigmoid_state *)state)->batch;
    return n < 2 ? 0 : log(n) + (n - 1) * log(n / (n - 1));
}

const vlp_objective_kind vlp_objective_sigmoid = {
    .name = "sigmoid",
    .help = "image-text contrast of each pair by itself (SigLIP)",
    .contrastive = true,
    .weight_offset = offsetof(vlp_objective_options, sigmoid_weight),
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
