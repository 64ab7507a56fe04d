/* Masked image modelling: the pixels of a random share of the patches are predicted, L1 or MSE,
 * mean over masked pixels. Either a mask token stands for these patches, the image is encoded, and
 * one linear layer predicts (SimMIM, Xie et al., 2022); or the encoder sees the other patches alone
 * and a light decoder predicts (MAE, He et al., 2022), which costs a fraction. */
#include "core/memory.h"
#include "core/rng.h"
#include "objectives/kinds.h"
#include "objectives/mae.h"

#include <math.h>

typedef struct {
    vlp_mim_kind kind;
    vlp_dense head; /* [C p p, D], of VLP_MIM_TOKEN */
    vlp_mae mae;    /* of VLP_MIM_VISIBLE */
    int64_t patches, masked;
    vlp_regression loss;
    bool standardised;
    double share, chance;
} mim_state;

/* Half of the encoder's width, in whole fours for each head. */
static vlp_mae_config decoder_of(const vlp_vit_config *c, const vlp_objective_options *o) {
    int64_t unit = 4 * c->heads, half = c->width / 2 / unit * unit;
    int64_t width = o->mim_decoder_width ? o->mim_decoder_width : half > 0 ? half : unit;
    int64_t heads = width % c->heads == 0 ? c->heads : 1;
    return (vlp_mae_config){
        .width = width, .depth = o->mim_decoder_depth, .heads = heads, .mlp_width = 4 * width};
}

static vlp_status declare(mim_state *s, const vlp_objective_setup *setup) {
    const vlp_vit_config *c = &setup->model->config.vision;
    const vlp_mae_config decoder = decoder_of(c, setup->options);
    if (s->kind == VLP_MIM_VISIBLE)
        return vlp_mae_declare(&s->mae, setup->model->params, c, &decoder);
    if (!setup->model->vision.mask_token)
        return VLP_FAIL(VLP_ERR_USAGE, "mim needs a vision tower with a mask token");
    vlp_dense_declare(&s->head, setup->model->params, "head", c->width,
                      c->channels * c->patch * c->patch, true, 0.02);
    return VLP_OK;
}

static void destroy(void *state) {
    mim_state *s = state;
    if (s) vlp_mae_free(&s->mae);
    vlp_free(s);
}

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    const vlp_objective_options *o = setup->options;
    mim_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->kind = (vlp_mim_kind)o->mim_kind;
    s->patches = vlp_vit_patches(&setup->model->config.vision);
    s->masked = llround(o->mim_ratio * (double)s->patches);
    if (s->kind == VLP_MIM_VISIBLE && s->masked == s->patches) s->masked--;
    s->share = o->mim_share;
    s->loss = (vlp_regression)o->mim_loss;
    s->standardised = o->mim_standardised;
    vlp_status status = declare(s, setup);
    if (status != VLP_OK) destroy(s);
    return status;
}

typedef struct {
    uint8_t *mask;    /* [B, P] */
    int32_t *visible; /* [B, P - masked], for MAE */
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
    int64_t pixels = c->channels * c->image_height * c->image_width, seen = 0;
    int64_t each = c->channels * c->patch * c->patch, r = 0, prefix = vlp_vit_prefix(c);
    for (int64_t b = 0; b < n; b++) {
        uint8_t *mask = m->mask + b * s->patches;
        const vlp_real *image = pairs->pixels + b * pixels;
        vlp_rng rng = vlp_rng_at(pairs->seed, VLP_RNG_MIM, pairs->epoch, pairs->keys[b]);
        choose(s, &rng, mask);
        for (int64_t p = 0; p < s->patches; p++) {
            if (!mask[p]) {
                m->visible[seen++] = (int32_t)p;
                continue;
            }
            if (s->kind == VLP_MIM_TOKEN)
                copy_patch(c, image, p, m->target + r * each);
            else
                vlp_mae_patch(c, image, p, s->standardised, m->target + r * each);
            m->rows[r++] = (int32_t)(b * (prefix + s->patches) + prefix + p);
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

/* The states of the masked patches, [R, D], through the head. */
static vlp_tensor *predict(const mim_state *s, vlp_encodings *e, vlp_tensor *pixels,
                           const masked_patches *m, int64_t rows) {
    const vlp_vit *vit = &e->model->vision;
    int64_t kept = s->patches - s->masked;
    vlp_tensor *x =
        s->kind == VLP_MIM_TOKEN
            ? vlp_vit_forward(e->tape, vit, pixels, m->mask, NULL)
            : vlp_mae_decode(e->tape, &s->mae,
                             vlp_vit_forward_visible(e->tape, vit, pixels, m->visible, kept, NULL),
                             m->visible, kept);
    x = vlp_gather_rows(e->tape, x, m->rows, rows);
    return vlp_dense_readout(e->tape, s->kind == VLP_MIM_TOKEN ? &s->head : &s->mae.head, x);
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    mim_state *s = state;
    const vlp_vit_config *c = &e->model->config.vision;
    int64_t n = vlp_pairs_share(e->pairs, s->share), each = c->channels * c->patch * c->patch;
    int64_t rows = n * s->masked, seen = n * (s->patches - s->masked);
    masked_patches m = {
        .mask = vlp_tape_alloc(e->tape, (size_t)(n * s->patches)),
        .visible = vlp_tape_alloc(e->tape, (size_t)seen * sizeof *m.visible),
        .rows = vlp_tape_alloc(e->tape, (size_t)rows * sizeof *m.rows),
        .target = vlp_tape_alloc(e->tape, (size_t)(rows * each) * sizeof *m.target),
    };
    if (vlp_tape_status(e->tape) != VLP_OK) return NULL;
    if (!vlp_tape_planning(e->tape)) {
        fill(s, e->pairs, n, c, &m);
        s->chance = constant_loss(m.target, rows * each, s->loss);
    }
    const int64_t shape[] = {n, c->channels, c->image_height, c->image_width};
    vlp_tensor *pixels = vlp_tape_input(e->tape, VLP_REAL, 4, shape, e->pairs->pixels, false);
    vlp_tensor *x = predict(s, e, pixels, &m, rows);
    return vlp_regression_loss(e->tape, x, m.target, s->loss);
}

static double chance(const void *state) {
    const mim_state *s = state;
    return s->chance;
}

const vlp_objective_kind vlp_objective_mim = {
    .name = "mim",
    .help = "masked image modelling (pixels of masked patches)",
    .weight_offset = offsetof(vlp_objective_options, mim_weight),
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = destroy,
};
