/* Captions, word by word (BLIP, Li et al., 2022): the decoder reads [DEC] and the caption's tokens
 * up to each, looks at the picture, and predicts the next; cross-entropy, mean over the tokens. */
#include "objectives/lm.h"

#include "core/memory.h"
#include "objectives/kinds.h"

#include <math.h>

typedef struct {
    double label_smoothing, share;
    int64_t vocab;
    bool answers;
} lm_state;

static vlp_status create(void **state, const vlp_objective_setup *setup) {
    const vlp_model *model = setup->model;
    *state = NULL;
    if (!vlp_model_can_write(model) || model->config.decoder_reads_text)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "lm needs a model with a decoder that looks at pictures; set "
                        "fusion_in_text to true or lm.weight to 0");
    lm_state *s = vlp_alloc_zero(1, sizeof *s);
    *state = s;
    if (!s) return VLP_ERR_MEMORY;
    s->label_smoothing = setup->options->lm_label_smoothing;
    s->share = setup->options->lm_share;
    s->vocab = model->decoder.config.vocab;
    s->answers = setup->options->lm_answers;
    return VLP_OK;
}

/* The rows that predict something, and what. */
typedef struct {
    int32_t *rows, *targets;
    int64_t count;
} predictions;

/* Of [CLS] question [SEP] answer [SEP] the question is given, with its [SEP]. */
static void leave_questions(const vlp_tokens *tokens, int32_t end, int32_t *targets) {
    for (int64_t b = 0; b < tokens->batch; b++)
        for (int64_t l = 0; l < tokens->length; l++) {
            if (tokens->ids[b * tokens->length + l] == end) break;
            targets[b * tokens->length + l] = -1;
        }
}

static bool predict(vlp_encodings *e, const vlp_tokens *tokens, bool answers, predictions *p) {
    int64_t all = tokens->batch * tokens->length;
    p->rows = vlp_tape_alloc(e->tape, (size_t)all * sizeof *p->rows);
    p->targets = vlp_tape_alloc(e->tape, (size_t)all * sizeof *p->targets);
    p->count = tokens->batch * (tokens->length - 1); /* at most, for the rehearsal */
    if (!p->rows || !p->targets) return false;
    if (vlp_tape_planning(e->tape)) return true;
    vlp_lm_targets(tokens, 0, p->targets);
    if (answers) leave_questions(tokens, (int32_t)e->model->config.eos_id, p->targets);
    p->count = 0;
    for (int64_t r = 0; r < all; r++) {
        if (p->targets[r] < 0) continue;
        p->targets[p->count] = p->targets[r];
        p->rows[p->count++] = (int32_t)r;
    }
    return true;
}

/* Sample b looks at picture b. */
static const int32_t *own_images(vlp_tape *tape, int64_t n) {
    int32_t *index = vlp_tape_alloc(tape, (size_t)n * sizeof *index);
    for (int64_t b = 0; index && !vlp_tape_planning(tape) && b < n; b++) index[b] = (int32_t)b;
    return index;
}

static vlp_tensor *const *decoder_keys(vlp_encodings *e, vlp_tensor **keys) {
    if (e->model->config.decoder_shared) return vlp_encodings_image_keys(e);
    vlp_model_decoder_keys(e->tape, e->model, vlp_encodings_image_tokens(e), keys);
    return keys;
}

static vlp_tensor *loss(void *state, vlp_encodings *e) {
    lm_state *s = state;
    const vlp_model *model = e->model;
    vlp_tokens tokens = e->pairs->tokens;
    vlp_tensor *keys[VLP_MAX_DEPTH];
    predictions p;
    tokens.batch = vlp_pairs_share(e->pairs, s->share);
    if (!predict(e, &tokens, s->answers, &p)) return NULL;
    vlp_stack_input input = {.causal = true, .context = decoder_keys(e, keys)};
    if (tokens.batch < e->pairs->batch) input.context_index = own_images(e->tape, tokens.batch);
    tokens = vlp_tokens_begin_with(e->tape, &tokens, (int32_t)model->config.bos_id);
    if (vlp_tape_status(e->tape) != VLP_OK) return NULL;
    vlp_tensor *x = vlp_bert_forward_with(e->tape, &model->decoder, &tokens, &input);
    x = vlp_gather_rows(e->tape, x, p.rows, p.count);
    return vlp_mlm_head_loss(e->tape, &model->lm, &model->decoder, x, p.targets,
                             s->label_smoothing);
}

static double chance(const void *state) {
    const lm_state *s = state;
    return log((double)s->vocab);
}

const vlp_objective_kind vlp_objective_lm = {
    .name = "lm",
    .help = "captions written word by word",
    .weight_offset = offsetof(vlp_objective_options, lm_weight),
    .create = create,
    .loss = loss,
    .chance = chance,
    .destroy = vlp_free,
};
