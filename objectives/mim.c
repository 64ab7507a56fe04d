/* Masked image modelling (SimMIM, Xie et al., 2022): a random share of the patches is replaced by a
 * mask token, the image is encoded, one linear layer predicts the pixels of the masked patches;
 * L1 (or MSE), mean over masked pixels. */
#include "core/memory.h"
#include "core/rng.h"
#include "objectives/kinds.h"

#include <math.h>

typedef struct {
    vlp_dense head; /* [C p p, D] */
    int64_t patches, masked;
    vlp_regression kind;
    double share, chance;
} mim_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    const vlp_vit_config *c = &setup->model->config.vision;
    mim_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->patches = vlp_vit_patches(c);
    s->masked = llround(setup->options->mim_ratio * (double)s->patches);
    s->share = setup->options->mim_share;
    s->kind = (vlp_regression)setup->options->mim_loss;
    vlp_dense_declare(&s->head, setup->model->params, "head", c->width,
                      c->channels * c->patch * c->patch, true, 0.02);
    return VLP_OK;
}

typedef struct {
    uint8_t *mask;    /* [B, P] */
    int32_t *rows;    /* [R] in the [B, 1 + P] token grid */
    vlp_real *target; /* [R, C p p] */
} masked_patches;

/* Floyd's sample of `masked` out of P patches. */
static void choose(const mim_state *s, vlp_rng *rng, uint8_t *mask) {
    for (int64_t p = 0; p < s->patches; p++) mask[p] = 0;
    for (int64_t k = s->patches - s->masked; k < s->patches; k++) {
        uint64_t j = vlp_rng_below(rng, (uint64_t)k + 1);
        mask[mask[j] ? (uint64_t)k : j] = 1;
    }
}

/* The pixels of patch p of one image [C, H, W], in the order c, y, x. */
static void copy_patch(const vlp_vit_config *c, const vlp_real *image, int64_t p, vlp_real *out) {
    int64_t across = c->image_width / c->patch;
    int64_t top = p / across * c->patch, left = p % across * c->patch;
    for (int64_t ch = 0; ch < c->channels; ch++)
        for (int64_t y = 0; y < c->patch; y++) {
            const vlp_real *line = image + (ch * c->image_height + top + y) * c->image_width + left;
            for (int64_t x = 0; x < c->patch; x++) *out++ = line[x];
        }
}

static void fill(const mim_state *s, const vlp_pairs *pairs, int64_t n, const vlp_vit_config *c,
                 masked_patches *m) {
    int64_t pixels = c->channels * c->image_height * c->image_width;
    int64_t each = c->channels * c->patch * c->patch, r = 0;
    for (int64_t b = 0; b < n; b++) {
        uint8_t *mask = m->mask + b * s->patches;
        vlp_rng rng = vlp_rng_at(pairs->seed, VLP_RNG_MIM, pairs->epoch, pairs->keys[b]);
        choose(s, &rng, mask);
        for (int64_t p = 0; p < s->patches; p++) {
            if (!mask[p]) continue;
            copy_patch(c, pairs->pixels + b * pixels, p, m->target + r * each);
            m->rows[r++] = (int32_t)(b * (1 + s->patches) + 1 + p);
        }
    }
}

/* The loss of always predicting the mean pixel of the batch. */
static double constant_loss(const vlp_real *target, int64_t n, vlp_regression kind) {
    double mean = 0, loss = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)target[i];
    mean /= n ? (double)n : 1;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)target[i] - mean;
        loss += kind == VLP_LOSS_L1 ? fabs(d) : d * d;
    }
    return loss / (n ? (double)n : 1);
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    mim_state *s = state;
    const vlp_vit_config *c = &e->model->config.vision;
    int64_t n = vlp_pairs_share(e->pairs, s->share);
    int64_t rows = n * s->masked, each = c->channels * c->patch * c->patch;
    masked_patches m = {
        .mask = vlp_tape_alloc(e->tape, (size_t)(n * s->patches)),
        .rows = vlp_tape_alloc(e->tape, (size_t)rows * sizeof *m.rows),
        .target = vlp_tape_alloc(e->tape, (size_t)(rows * each) * sizeof *m.target),
    };
    if (vlp_tape_status(e->tape) != VLP_OK) return NULL;
    if (!vlp_tape_planning(e->tape)) {
        fill(s, e->pairs, n, c, &m);
        s->chance = constant_loss(m.target, rows * each, s->kind);
    }
    const int64_t shape[] = {n, c->channels, c->image_height, c->image_width};
    vlp_tensor *pixels = vlp_tape_input(e->tape, VLP_REAL, 4, shape, e->pairs->pixels, false);
    vlp_tensor *x = vlp_vit_forward(e->tape, &e->model->vision, pixels, m.mask, NULL);
    x = vlp_gather_rows(e->tape, x, m.rows, rows);
    x = vlp_dense_readout(e->tape, &s->head, x);
    return vlp_regression_loss(e->tape, x, m.target, s->kind);
}

static double chance(const void *state) {
    const mim_state *s = state;
    return s->chance;
}

const vlp_objective_kind vlp_objective_mim = {
    .name = "mim",
    .help = "masked image modelling (pixels of masked patches)",
    .weight_offset = offsetof(vlp_objective_options, mim_weight),
    .needs_mask_token = true,
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
