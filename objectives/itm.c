/* Image-text matching with hard negatives (ALBEF, Li et al., 2021, section 3.2).
 * 3B fused pairs (or a share of them): every true pair, every text with a negative image, every
 * image with a negative text; two-class cross-entropy on the first fused token, mean over the
 * pairs.
 *
 * A negative is drawn with probability proportional to exp(s_ij) among the batch's non-positives,
 * as argmax(s_ij + Gumbel noise): in the log domain nothing underflows. A sample whose whole batch
 * is positive has no negative; its rows are left out of the mean. */
#include "objectives/itm.h"

#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>
#include <string.h>

typedef struct {
    double share;
    bool by_similarity; /* with ITC on; else negatives are uniform */
    int64_t positives, negatives;
} itm_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    itm_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->share = setup->options->itm_share;
    s->by_similarity = setup->options->itc_weight > 0;
    return VLP_OK;
}

int32_t vlp_itm_draw(const vlp_pairs *pairs, int64_t i, const vlp_real *scores, int64_t stride,
                     vlp_rng *rng) {
    int32_t best = -1;
    double best_score = 0;
    for (int64_t j = 0; j < pairs->batch; j++) {
        double u = 1 - vlp_rng_double(rng);
        if (vlp_pairs_positive(pairs, i, j)) continue;
        double score = (scores ? (double)scores[j * stride] : 0) - log(-log(u) + 1e-300);
        if (best >= 0 && !(score > best_score)) continue;
        best = (int32_t)j;
        best_score = score;
    }
    return best;
}

/* Similarities [B, C] of both directions, whose first B columns are the batch; NULL = all alike. */
typedef struct {
    const vlp_real *i2t, *t2i;
    int64_t candidates;
} similarities;

/* The 3B pairs: which text, which image, and the class (-1 = left out). */
typedef struct {
    int64_t n; /* B, or the share of it */
    int32_t *text, *image, *target;
    int32_t *ids;  /* [3n, L] */
    uint8_t *mask; /* [3n, L] */
} triples;

/* Negatives of pair i along rows i of both [B, C], or as they are given. */
static void partners(const vlp_pairs *pairs, int64_t i, const similarities *from, int32_t *image,
                     int32_t *text) {
    if (pairs->given) {
        *image = pairs->given->negative_images[i];
        *text = pairs->given->negative_texts[i];
        return;
    }
    vlp_rng rng = vlp_rng_at(pairs->seed, VLP_RNG_ITM, pairs->epoch, pairs->keys[i]);
    int64_t at = i * from->candidates;
    *image = vlp_itm_draw(pairs, i, from->t2i ? from->t2i + at : NULL, 1, &rng);
    *text = vlp_itm_draw(pairs, i, from->i2t ? from->i2t + at : NULL, 1, &rng);
}

static void fill(itm_state *s, const vlp_pairs *pairs, const similarities *from, triples *t) {
    int64_t n = t->n, length = pairs->tokens.length;
    s->positives = n;
    s->negatives = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t image, text, self = (int32_t)i;
        partners(pairs, i, from, &image, &text);
        const int32_t texts[] = {self, self, text < 0 ? self : text};
        const int32_t images[] = {self, image < 0 ? self : image, self};
        const int32_t targets[] = {1, image < 0 ? -1 : 0, text < 0 ? -1 : 0};
        s->negatives += (image >= 0) + (text >= 0);
        for (int64_t k = 0; k < 3; k++) {
            int64_t row = k * n + i;
            t->text[row] = texts[k];
            t->image[row] = images[k];
            t->target[row] = targets[k];
            memcpy(t->ids + row * length, pairs->tokens.ids + texts[k] * length,
                   (size_t)length * sizeof *t->ids);
            for (int64_t l = 0; l < length; l++)
                t->mask[row * length + l] =
                    pairs->tokens.attention_mask
                        ? pairs->tokens.attention_mask[texts[k] * length + l]
                        : 1;
        }
    }
}

static similarities similarities_of(const itm_state *s, vlp_encodings *e) {
    vlp_tensor *i2t = s->by_similarity ? vlp_encodings_i2t(e) : NULL;
    vlp_tensor *t2i = s->by_similarity ? vlp_encodings_t2i(e) : NULL;
    if (!i2t || !t2i || vlp_tape_planning(e->tape)) return (similarities){0};
    return (similarities){vlp_real_data(i2t), vlp_real_data(t2i), i2t->shape[1]};
}

static bool allocate(vlp_tape *tape, const vlp_pairs *pairs, triples *t) {
    size_t rows = 3 * (size_t)t->n;
    t->text = vlp_tape_alloc(tape, rows * sizeof *t->text);
    t->image = vlp_tape_alloc(tape, rows * sizeof *t->image);
    t->target = vlp_tape_alloc(tape, rows * sizeof *t->target);
    t->ids = vlp_tape_alloc(tape, rows * (size_t)pairs->tokens.length * sizeof *t->ids);
    t->mask = vlp_tape_alloc(tape, rows * (size_t)pairs->tokens.length);
    return vlp_tape_status(tape) == VLP_OK;
}

/* Models that fuse in the text tower read the negatives' words anew (BLIP, Li et al., 2022). */
static vlp_tensor *fuse(vlp_encodings *e, const triples *t) {
    vlp_tokens texts = {3 * t->n, e->pairs->tokens.length, t->ids, NULL, t->mask};
    vlp_tensor *states = NULL;
    if (!vlp_model_fuses_anew(e->model))
        states = vlp_gather_samples(e->tape, vlp_encodings_text_tokens(e), t->text, 3 * t->n);
    return vlp_model_fuse(e->tape, e->model, &texts, states, vlp_encodings_image_keys(e), t->image);
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    itm_state *s = state;
    similarities from = similarities_of(s, e);
    triples t = {.n = vlp_pairs_share(e->pairs, s->share)};
    if (!allocate(e->tape, e->pairs, &t)) return NULL;
    if (!vlp_tape_planning(e->tape)) fill(s, e->pairs, &from, &t);
    vlp_tensor *fused = fuse(e, &t);
    e->match_logits = vlp_model_match(e->tape, e->model, fused);
    return vlp_cross_entropy(e->tape, e->match_logits, t.target, 0);
}

/* The entropy of the class mix: 0.6365 for one positive to two negatives. */
static double chance(const void *state) {
    const itm_state *s = state;
    double p = (double)s->positives, n = (double)s->negatives;
    if (p == 0 || n == 0) return 0;
    return -(p * log(p / (p + n)) + n * log(n / (p + n))) / (p + n);
}

const vlp_objective_kind vlp_objective_itm = {
    .name = "itm",
    .help = "image-text matching with hard negatives",
    .weight_offset = offsetof(vlp_objective_options, itm_weight),
    .needs_fusion = true,
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
