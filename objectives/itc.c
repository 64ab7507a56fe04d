/* Image-text contrast: symmetric InfoNCE (van den Oord et al., 2018; CLIP, Radford et al., 2021).
 *   s_ij = exp(logit_scale) cos(image_i, text_j)
 *   loss = (CE(rows of s, q) + CE(columns of s, q)) / 2
 * q_i is uniform over the positives of i: its own pair, other captions of the same picture, and
 * byte-identical pictures or equal captions, which must not act as negatives. */
#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>

typedef struct {
    double label_smoothing;
    int64_t batch;
} itc_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    itc_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->label_smoothing = setup->options->itc_label_smoothing;
    return VLP_OK;
}

/* q [B, B]; positives are symmetric, so the same rows serve both directions. */
static void fill_targets(const vlp_pairs *pairs, double smoothing, vlp_real *q) {
    int64_t n = pairs->batch;
    for (int64_t i = 0; i < n; i++) {
        int64_t positives = 0;
        for (int64_t j = 0; j < n; j++) positives += vlp_pairs_positive(pairs, i, j);
        vlp_real yes = (vlp_real)((1 - smoothing) / (double)positives + smoothing / (double)n);
        for (int64_t j = 0; j < n; j++)
            q[i * n + j] =
                vlp_pairs_positive(pairs, i, j) ? yes : (vlp_real)(smoothing / (double)n);
    }
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    itc_state *s = state;
    int64_t n = s->batch = e->pairs->batch;
    vlp_tensor *rows = vlp_encodings_similarity(e);
    vlp_real *q = vlp_tape_alloc(e->tape, (size_t)(n * n) * sizeof *q);
    if (!q) return NULL;
    if (!vlp_tape_planning(e->tape)) fill_targets(e->pairs, s->label_smoothing, q);
    vlp_tensor *columns = vlp_transpose(e->tape, rows);
    vlp_tensor *terms[] = {vlp_soft_cross_entropy(e->tape, rows, q),
                           vlp_soft_cross_entropy(e->tape, columns, q)};
    return vlp_weighted_sum(e->tape, terms, (const double[]){0.5, 0.5}, 2);
}

static double chance(const void *state) {
    const itc_state *s = state;
    return log((double)s->batch);
}

const vlp_objective_kind vlp_objective_itc = {
    .name = "itc",
    .help = "image-text contrast (InfoNCE over the batch)",
    .contrastive = true,
    .weight_offset = offsetof(vlp_objective_options, itc_weight),
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
