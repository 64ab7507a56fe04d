/* Masked language modelling on fused states (ALBEF, section 3.2): the text is masked anew, encoded,
 * fused with its own image, and the chosen tokens are predicted; cross-entropy, mean over them.
 * With a momentum twin (equation 7) it is (1 - alpha) of that and alpha of the cross-entropy with
 * the twin's probabilities. Without a fusion stack it is BERT's MLM on the text alone. */
#include "objectives/mlm.h"

#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>
#include <string.h>

typedef struct {
    vlp_mlm_masking masking;
    vlp_mlm_head head;
    double share, alpha;
} mlm_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    const vlp_objective_options *o = setup->options;
    mlm_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->masking = (vlp_mlm_masking){.probability = o->mlm_probability,
                                   .mask = o->mlm_mask,
                                   .random = o->mlm_random,
                                   .whole_words = o->mlm_whole_words,
                                   .vocab = (int32_t)setup->model->config.text.vocab,
                                   .tokenizer = setup->tokenizer};
    if (setup->tokenizer) s->masking.special = vlp_tokenizer_special(setup->tokenizer);
    s->share = o->mlm_share;
    s->alpha = o->mlm_alpha;
    if (s->masking.special.mask < 0) {
        vlp_free(s);
        return VLP_FAIL(VLP_ERR_USAGE, "mlm: the tokenizer has no [MASK] token");
    }
    vlp_mlm_head_declare(&s->head, setup->model->params, &setup->model->config.text);
    return VLP_OK;
}

typedef struct {
    int32_t *ids, *rows, *targets;
    int32_t *images; /* of each text: its own, among those of the whole batch */
    int64_t batch, count;
} masked_batch;

/* Masks pair b's text into ids [L]; the positions that are to be predicted. */
static int64_t mask_one(const mlm_state *s, const vlp_pairs *pairs, int64_t b, int32_t *ids,
                        int32_t *positions) {
    int64_t length = pairs->tokens.length;
    const uint8_t *mask = pairs->tokens.attention_mask;
    vlp_rng rng = vlp_rng_at(pairs->seed, VLP_RNG_MLM, pairs->epoch, pairs->keys[b]);
    return vlp_mlm_mask(&s->masking, pairs->tokens.ids + b * length,
                        mask ? mask + b * length : NULL, length, &rng, ids, positions);
}

/* The masked ids and targets that the batch brings. */
static void take_given(const vlp_pairs *pairs, masked_batch *m) {
    int64_t n = m->batch * pairs->tokens.length, length = pairs->tokens.length;
    m->count = 0;
    for (int64_t b = 0; b < m->batch; b++) m->images[b] = (int32_t)b;
    memcpy(m->ids, pairs->given->masked_ids, (size_t)n * sizeof *m->ids);
    for (int64_t i = 0; i < n && length > 0; i++) {
        if (pairs->given->mlm_targets[i] < 0) continue;
        m->targets[m->count] = pairs->given->mlm_targets[i];
        m->rows[m->count++] = (int32_t)i;
    }
}

static void fill(const mlm_state *s, const vlp_pairs *pairs, masked_batch *m) {
    int64_t length = pairs->tokens.length;
    m->count = 0;
    for (int64_t b = 0; b < m->batch; b++) {
        m->images[b] = (int32_t)b;
        const int32_t *ids = pairs->tokens.ids + b * length;
        int32_t *positions = m->rows + m->count;
        int64_t n = mask_one(s, pairs, b, m->ids + b * length, positions);
        for (int64_t i = 0; i < n; i++) {
            m->targets[m->count + i] = ids[positions[i]];
            positions[i] += (int32_t)(b * length);
        }
        m->count += n;
    }
}

static int64_t count(const void *state, const vlp_pairs *pairs) {
    static _Thread_local int32_t ids[VLP_MLM_MAX_LENGTH], positions[VLP_MLM_MAX_LENGTH];
    const mlm_state *s = state;
    int64_t batch = vlp_pairs_share(pairs, s->share), sum = 0;
    for (int64_t b = 0; b < batch; b++) sum += mask_one(s, pairs, b, ids, positions);
    return sum;
}

static bool mask_batch(const mlm_state *s, vlp_encodings *e, masked_batch *m) {
    const vlp_tokens *tokens = &e->pairs->tokens;
    m->batch = vlp_pairs_share(e->pairs, s->share);
    size_t all = (size_t)(m->batch * tokens->length);
    m->count =
        e->pairs->given ? (int64_t)all : m->batch * vlp_mlm_most(&s->masking, tokens->length);
    m->ids = vlp_tape_alloc(e->tape, all * sizeof *m->ids);
    m->rows = vlp_tape_alloc(e->tape, (size_t)m->count * sizeof *m->rows);
    m->targets = vlp_tape_alloc(e->tape, (size_t)m->count * sizeof *m->targets);
    m->images = vlp_tape_alloc(e->tape, (size_t)m->batch * sizeof *m->images);
    if (vlp_tape_status(e->tape) != VLP_OK) return false;
    if (!vlp_tape_planning(e->tape) && e->pairs->given)
        take_given(e->pairs, m);
    else if (!vlp_tape_planning(e->tape))
        fill(s, e->pairs, m);
    return true;
}

vlp_tensor *vlp_mlm_states(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                           vlp_tensor *const *keys, const int32_t *images) {
    vlp_tensor *x = vlp_model_fuses_anew(model) ? NULL : vlp_model_text_tokens(tape, model, tokens);
    return vlp_model_can_fuse(model) ? vlp_model_fuse(tape, model, tokens, x, keys, images) : x;
}

/* States of the masked rows: of the model, or of its twin. */
static vlp_tensor *states(vlp_encodings *e, const masked_batch *m, bool twin) {
    const vlp_model *model = twin ? e->momentum->twin : e->model;
    vlp_tensor *const *keys = !vlp_model_can_fuse(model) ? NULL
                              : twin                     ? vlp_encodings_twin_keys(e)
                                                         : vlp_encodings_image_keys(e);
    vlp_tokens tokens = e->pairs->tokens;
    tokens.ids = m->ids;
    tokens.batch = m->batch;
    vlp_tensor *x = vlp_mlm_states(e->tape, model, &tokens, keys,
                                   m->batch < e->pairs->batch ? m->images : NULL);
    return vlp_gather_rows(e->tape, x, m->rows, m->count);
}

/* The twin's probabilities [R, V]. */
static const vlp_real *soft_targets(vlp_encodings *e, const masked_batch *m) {
    bool before = vlp_encodings_pause(e);
    vlp_tensor *x = vlp_mlm_head_forward(e->tape, &e->momentum->mlm, &e->momentum->twin->text,
                                         states(e, m, true));
    vlp_encodings_go_on(e, before);
    if (!x) return NULL;
    if (!vlp_tape_planning(e->tape))
        vlp_kernels_get()->softmax(m->count, vlp_col_count(x), vlp_col_count(x), vlp_real_data(x),
                                   NULL, 1, NULL);
    return vlp_real_data(x);
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    mlm_state *s = state;
    masked_batch m;
    if (!mask_batch(s, e, &m)) return NULL;
    const vlp_bert *text = &e->model->text;
    vlp_tensor *x = states(e, &m, false);
    if (!e->momentum || s->alpha == 0)
        return vlp_mlm_head_loss(e->tape, &s->head, text, x, m.targets, 0);
    const vlp_real *soft = soft_targets(e, &m);
    if (!soft) return NULL;
    double alpha = s->alpha * e->momentum->ramp;
    x = vlp_mlm_head_forward(e->tape, &s->head, text, x);
    vlp_tensor *terms[] = {vlp_cross_entropy(e->tape, x, m.targets, 0),
                           vlp_soft_cross_entropy(e->tape, x, soft)};
    return vlp_weighted_sum(e->tape, terms, (const double[]){1 - alpha, alpha}, 2);
}

static double chance(const void *state) {
    const mlm_state *s = state;
    return log((double)s->masking.vocab);
}

const vlp_objective_kind vlp_objective_mlm = {
    .name = "mlm",
    .help = "masked language modelling on fused states",
    .weight_offset = offsetof(vlp_objective_options, mlm_weight),
    .create = create,
    .loss = loss,
    .count = count,
    .chance = chance,
    .destroy = vlp_free,
};
