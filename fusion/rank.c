#include "fusion/rank.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

vlp_rank_options vlp_rank_defaults(const vlp_model *model, int64_t k) {
    bool blip = vlp_model_fuses_anew(model);
    return (vlp_rank_options){.k = k, .label_smoothing = blip ? 0.1 : 0, .first_twice = !blip};
}

typedef struct {
    vlp_tape *tape;
    const vlp_model *model;
    const vlp_rank_source *s;
    const vlp_rank_options *o;
    int32_t *order;
    double *first, *p; /* [n, k]: log p of the first token; then what ranks */
} ranking;

static double log_sum_exp(const vlp_real *x, int64_t n) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return most + log(sum);
}

/* Puts (score, answer) in its place among the k best so far. */
static void insert(double *scores, int32_t *order, int64_t *count, int64_t k, double score,
                   int32_t answer) {
    int64_t at = *count < k ? (*count)++ : k;
    if (at == k) {
        if (!(score > scores[k - 1])) return;
        at = k - 1;
    }
    for (; at > 0 && score > scores[at - 1]; at--) {
        scores[at] = scores[at - 1];
        order[at] = order[at - 1];
    }
    scores[at] = score;
    order[at] = answer;
}

/* What follows bos_id, for each source: the k answers whose first token is the most probable. */
static vlp_status choose(const ranking *r) {
    const vlp_tokens *c = r->s->candidates;
    int64_t n = r->s->n, k = r->o->k, vocab = r->model->decoder.config.vocab;
    int32_t *begin = vlp_tape_alloc(r->tape, (size_t)n * sizeof *begin);
    if (!begin) return vlp_tape_status(r->tape);
    for (int64_t i = 0; !vlp_tape_planning(r->tape) && i < n; i++) begin[i] = c->ids[0];
    vlp_tokens tokens = {.batch = n, .length = 1, .ids = begin};
    vlp_tensor *logits = vlp_model_decode(
        r->tape, r->model, &tokens,
        &(vlp_stack_input){.context = r->s->keys, .context_mask = r->s->context_mask});
    VLP_TRY(vlp_tape_status(r->tape));
    for (int64_t i = 0; !vlp_tape_planning(r->tape) && i < n; i++) {
        const vlp_real *row = vlp_real_data(logits) + i * vocab;
        double lse = log_sum_exp(row, vocab);
        int64_t count = 0;
        for (int64_t a = c->batch - 1; a >= 0; a--) /* of equals the later, as the references' */
            insert(r->first + i * k, r->order + i * k, &count, k,
                   (double)row[c->ids[a * c->length + 1]] - lse, (int32_t)a);
    }
    return VLP_OK;
}

/* log p of text b's tokens after the first, smoothed as in training; logits [La, V] are its. */
static double log_p(const ranking *r, const vlp_tokens *t, int64_t b, const vlp_real *logits) {
    int64_t vocab = r->model->decoder.config.vocab;
    double sum = 0, s = r->o->label_smoothing;
    for (int64_t l = 1; l < t->length && t->attention_mask[b * t->length + l]; l++) {
        const vlp_real *row = logits + (l - 1) * vocab;
        double lse = log_sum_exp(row, vocab), mean = 0;
        for (int64_t v = 0; s > 0 && v < vocab; v++) mean += (double)row[v] / (double)vocab;
        sum += (1 - s) * ((double)row[t->ids[b * t->length + l]] - lse) + s * (mean - lse);
    }
    return sum;
}

/* The chosen answers, k for each source, one after the other. */
static bool gather(const ranking *r, vlp_tokens *out, int32_t **index) {
    const vlp_tokens *c = r->s->candidates;
    int64_t rows = r->s->n * r->o->k, length = c->length;
    int32_t *ids = vlp_tape_alloc(r->tape, (size_t)(rows * length) * sizeof *ids);
    uint8_t *mask = vlp_tape_alloc(r->tape, (size_t)(rows * length));
    *index = vlp_tape_alloc(r->tape, (size_t)rows * sizeof **index);
    if (!ids || !mask || !*index) return false;
    for (int64_t b = 0; !vlp_tape_planning(r->tape) && b < rows; b++) {
        int64_t answer = r->order[b] * length;
        memcpy(ids + b * length, c->ids + answer, (size_t)length * sizeof *ids);
        memcpy(mask + b * length, c->attention_mask + answer, (size_t)length);
        (*index)[b] = (int32_t)(b / r->o->k);
    }
    *out = (vlp_tokens){rows, length, ids, NULL, mask};
    return true;
}

/* Sorts a source's answers by what ranks them and makes that their probabilities. */
static void settle(const ranking *r, int64_t source, const double *score) {
    int64_t k = r->o->k, count = 0;
    double sum = 0, *p = r->p + source * k;
    int32_t *order = r->order + source * k;
    for (int64_t i = 0; i < k; i++) {
        int32_t answer = order[i];
        insert(p, order, &count, k, score[i], answer);
    }
    for (int64_t i = k - 1; i >= 0; i--) sum += p[i] = exp(p[i] - p[0]);
    for (int64_t i = 0; i < k; i++) p[i] /= sum;
}

static vlp_status read_whole(const ranking *r) {
    vlp_tokens tokens;
    int32_t *index;
    if (!gather(r, &tokens, &index)) return vlp_tape_status(r->tape);
    int64_t k = r->o->k, row = tokens.length * r->model->decoder.config.vocab;
    vlp_tensor *logits = vlp_model_decode(r->tape, r->model, &tokens,
                                          &(vlp_stack_input){.context = r->s->keys,
                                                             .context_index = index,
                                                             .context_mask = r->s->context_mask});
    VLP_TRY(vlp_tape_status(r->tape));
    for (int64_t i = 0; !vlp_tape_planning(r->tape) && i < r->s->n; i++) {
        double *score = r->first + i * k;
        for (int64_t j = 0; j < k; j++) {
            int64_t b = i * k + j;
            double whole = log_p(r, &tokens, b, vlp_real_data(logits) + b * row);
            score[j] = r->o->first_twice ? score[j] + whole : whole;
        }
        settle(r, i, score);
    }
    return VLP_OK;
}

vlp_status vlp_rank_answers(vlp_tape *tape, const vlp_model *model, const vlp_rank_source *source,
                            const vlp_rank_options *options, int32_t *order, double *p) {
    VLP_ASSERT(options->k >= 1 && options->k <= source->candidates->batch,
               "the best %lld of %lld answers", (long long)options->k,
               (long long)source->candidates->batch);
    ranking r = {tape, model, source, options, order, NULL, p};
    r.first = vlp_alloc_zero((size_t)(source->n * options->k), sizeof *r.first);
    if (!r.first) return VLP_ERR_MEMORY;
    vlp_status status = choose(&r);
    if (status == VLP_OK) status = read_whole(&r);
    vlp_free(r.first);
    return status;
}
