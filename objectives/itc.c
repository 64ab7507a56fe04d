/* Image-text contrast: symmetric InfoNCE (van den Oord et al., 2018; CLIP, Radford et al., 2021).
 *   s_ij = exp(logit_scale) cos(image_i, text_j)
 *   loss = (CE(rows of s, q) + CE(columns of s, q)) / 2
 * With a momentum twin (ALBEF, Li et al., 2021, equations 2 and 6) j counts its features of the
 * batch and those in its queues, and the target is alpha softmax(s of the twin) + (1 - alpha) q.
 * q_i is uniform over the positives of i: its own pair, other captions of the same picture, and
 * byte-identical pictures or equal captions, which must not act as negatives. */
#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>
#include <string.h>

typedef struct {
    double label_smoothing, alpha;
    int64_t candidates;
} itc_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    itc_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->label_smoothing = setup->options->itc_label_smoothing;
    s->alpha = setup->options->itc_alpha;
    return VLP_OK;
}

/* q [B, C]; positives are symmetric, so the same rows serve both directions. */
static void fill_targets(const vlp_encodings *e, int64_t c, double smoothing, vlp_real *q) {
    for (int64_t i = 0; i < e->pairs->batch; i++) {
        int64_t positives = 0;
        for (int64_t j = 0; j < c; j++) positives += vlp_encodings_positive(e, i, j);
        vlp_real yes = (vlp_real)((1 - smoothing) / (double)positives + smoothing / (double)c);
        for (int64_t j = 0; j < c; j++)
            q[i * c + j] =
                vlp_encodings_positive(e, i, j) ? yes : (vlp_real)(smoothing / (double)c);
    }
}

/* alpha softmax(x) + (1 - alpha) q, rows of x [B, C] */
static void soften(const vlp_tensor *x, double alpha, const vlp_real *q, vlp_real *out) {
    int64_t rows = vlp_row_count(x), cols = vlp_col_count(x);
    memcpy(out, vlp_real_data(x), (size_t)(rows * cols) * sizeof *out);
    vlp_kernels_get()->softmax(rows, cols, cols, out, NULL, 1, NULL);
    for (int64_t i = 0; i < rows * cols; i++)
        out[i] = (vlp_real)(alpha * (double)out[i] + (1 - alpha) * (double)q[i]);
}

/* The targets of one direction: q, or q softened by the twin's similarities. */
static const vlp_real *targets(const itc_state *s, vlp_encodings *e, const vlp_real *q,
                               vlp_tensor *twin) {
    int64_t n = e->pairs->batch * s->candidates;
    vlp_real *out = vlp_tape_alloc(e->tape, (size_t)n * sizeof *out);
    if (out && twin && !vlp_tape_planning(e->tape))
        soften(twin, s->alpha * e->momentum->ramp, q, out);
    return out;
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    itc_state *s = state;
    vlp_tensor *i2t = vlp_encodings_i2t(e), *t2i = vlp_encodings_t2i(e);
    if (!i2t || !t2i) return NULL;
    s->candidates = i2t->shape[1];
    vlp_real *q = vlp_tape_alloc(e->tape, (size_t)vlp_numel(i2t) * sizeof *q);
    if (!q) return NULL;
    if (!vlp_tape_planning(e->tape)) fill_targets(e, s->candidates, s->label_smoothing, q);
    const vlp_real *to_text = q, *to_image = q;
    if (e->momentum && s->alpha > 0) {
        to_text = targets(s, e, q, vlp_encodings_twin_i2t(e));
        to_image = targets(s, e, q, vlp_encodings_twin_t2i(e));
    }
    vlp_tensor *terms[] = {vlp_soft_cross_entropy(e->tape, i2t, to_text),
                           vlp_soft_cross_entropy(e->tape, t2i, to_image)};
    return vlp_weighted_sum(e->tape, terms, (const double[]){0.5, 0.5}, 2);
}

static double chance(const void *state) {
    const itc_state *s = state;
    return log((double)s->candidates);
}

const vlp_objective_kind vlp_objective_itc = {
    .name = "itc",
    .help = "image-text contrast (InfoNCE over batch and queue)",
    .contrastive = true,
    .weight_offset = offsetof(vlp_objective_options, itc_weight),
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
