#include "fusion/generate_internal.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

enum { MOST_BEAMS = 64 };

vlp_generate_options vlp_generate_defaults(void) {
    return (vlp_generate_options){.beams = 3,
                                  .top_p = 1,
                                  .temperature = 1,
                                  .min_length = 5,
                                  .max_length = 20,
                                  .length_penalty = 1,
                                  .repetition_penalty = 1};
}

vlp_status vlp_generate_check(const vlp_generate_options *o, const vlp_model *model) {
    if (!vlp_model_can_write(model))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "this model has no decoder: it cannot write text");
    if (o->beams < 1 || o->beams > MOST_BEAMS)
        return VLP_FAIL(VLP_ERR_USAGE, "%lld beams; 1 to %d are possible", (long long)o->beams,
                        MOST_BEAMS);
    if (o->sample && o->beams > 1)
        return VLP_FAIL(VLP_ERR_USAGE, "sampling works with one beam, not %lld",
                        (long long)o->beams);
    if (o->max_length < 2 || o->max_length > model->decoder.config.positions)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "a text of %lld tokens; 2 to %lld are possible with this model",
                        (long long)o->max_length, (long long)model->decoder.config.positions);
    if (o->top_k < 0 || !(o->top_p > 0) || !(o->temperature > 0) || !(o->repetition_penalty > 0))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "top_k is at least 0; top_p, temperature and repetition_penalty are above "
                        "0");
    return VLP_OK;
}

/* The texts' memory of the ends; a source has one more place than beams, for the one that goes. */
static vlp_status point_ends(vlp_generator *w) {
    int64_t places = w->sources * (w->options.beams + 1);
    w->ends = vlp_alloc_zero((size_t)places, sizeof *w->ends);
    w->end_ids = vlp_alloc_zero((size_t)(places * w->length), sizeof *w->end_ids);
    if (!w->ends || !w->end_ids) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < places; i++) w->ends[i].ids = w->end_ids + i * w->length;
    return VLP_OK;
}

static vlp_status allocate(vlp_generator *w) {
    size_t rows = (size_t)w->rows, tokens = rows * (size_t)w->length,
           scores = rows * (size_t)w->vocab;
    size_t kv = tokens * 2 * (size_t)w->model->decoder.config.width;
    w->kv = vlp_alloc_zero((size_t)w->depth, sizeof *w->kv);
    if (!w->kv) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < w->depth; i++)
        if (!(w->kv[i] = vlp_alloc_zero(kv, sizeof **w->kv))) return VLP_ERR_MEMORY;
    w->spare = vlp_alloc_zero(kv, sizeof *w->spare);
    w->mask = vlp_alloc_zero(tokens, 1);
    w->ids = vlp_alloc_zero(tokens, sizeof *w->ids);
    w->spare_ids = vlp_alloc_zero(tokens, sizeof *w->ids);
    w->last = vlp_alloc_zero(rows, sizeof *w->last);
    w->index = vlp_alloc_zero(rows, sizeof *w->index);
    w->from = vlp_alloc_zero(rows, sizeof *w->from);
    w->logits = vlp_alloc_zero(scores, sizeof *w->logits);
    w->scores = vlp_alloc_zero(scores, sizeof *w->scores);
    w->sums = vlp_alloc_zero(rows, sizeof *w->sums);
    w->done = vlp_alloc_zero((size_t)w->sources, sizeof *w->done);
    w->lengths = vlp_alloc_zero((size_t)w->sources, sizeof *w->lengths);
    w->end_counts = vlp_alloc_zero((size_t)w->sources, sizeof *w->end_counts);
    if (!w->spare || !w->mask || !w->ids || !w->spare_ids || !w->last || !w->index || !w->from ||
        !w->logits || !w->scores || !w->sums || !w->done || !w->lengths || !w->end_counts)
        return VLP_ERR_MEMORY;
    return point_ends(w);
}

vlp_status vlp_generator_new(vlp_generator **out, const vlp_model *model, int64_t sources,
                             const vlp_generate_options *options) {
    *out = NULL;
    VLP_TRY(vlp_generate_check(options, model));
    vlp_generator *w = vlp_alloc_zero(1, sizeof *w);
    if (!w) return VLP_ERR_MEMORY;
    *w = (vlp_generator){.model = model,
                         .options = *options,
                         .sources = sources,
                         .rows = sources * options->beams,
                         .vocab = model->decoder.config.vocab,
                         .length = options->max_length,
                         .depth = model->decoder.config.depth};
    vlp_status status = allocate(w);
    if (status != VLP_OK) {
        vlp_generator_free(w);
        return status;
    }
    *out = w;
    return VLP_OK;
}

void vlp_generator_free(vlp_generator *w) {
    if (!w) return;
    for (int64_t i = 0; w->kv && i < w->depth; i++) vlp_free(w->kv[i]);
    void *const blocks[] = {w->kv,      w->spare, w->mask,    w->ids,       w->spare_ids, w->last,
                            w->index,   w->from,  w->logits,  w->scores,    w->sums,      w->done,
                            w->lengths, w->ends,  w->end_ids, w->end_counts};
    for (size_t i = 0; i < VLP_COUNT(blocks); i++) vlp_free(blocks[i]);
    vlp_free(w);
}

/* Logits after the newest tokens, which stand at `at`, into w->logits. */
static vlp_status step(vlp_generator *w, vlp_tape *tape, const vlp_generator_source *s,
                       int64_t at) {
    int64_t rows = s->n * w->options.beams;
    vlp_tokens tokens = {.batch = rows, .length = 1, .ids = w->last};
    vlp_stack_cache cache = {rows, w->length, w->kv, w->mask, at};
    size_t mark = vlp_tape_mark(tape);
    for (int64_t r = 0; r < rows; r++) w->mask[r * w->length + at] = 1;
    vlp_tensor *logits = vlp_model_decode(tape, w->model, &tokens,
                                          &(vlp_stack_input){.cache = &cache,
                                                             .context = s->keys,
                                                             .context_index = w->index,
                                                             .context_mask = s->context_mask});
    VLP_TRY(vlp_tape_status(tape));
    if (vlp_tape_planning(tape)) return VLP_OK;
    memcpy(w->logits, vlp_real_data(logits), (size_t)(rows * w->vocab) * sizeof *w->logits);
    vlp_tape_release(tape, mark, w->model->lm.bias); /* everything since the mark */
    return VLP_OK;
}

/* Rows continue others: ids and the cache follow. */
static void reorder(vlp_generator *w, int64_t rows, int64_t length) {
    size_t width = 2 * (size_t)w->model->decoder.config.width, row = (size_t)w->length * width;
    bool same = true;
    for (int64_t r = 0; r < rows; r++) same = same && w->from[r] == r;
    if (same) return;
    for (int64_t i = 0; i < w->depth; i++) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(w->spare + (size_t)r * row, w->kv[i] + (size_t)w->from[r] * row,
                   (size_t)length * width * sizeof *w->spare);
        vlp_real *old = w->kv[i];
        w->kv[i] = w->spare;
        w->spare = old;
    }
    for (int64_t r = 0; r < rows; r++)
        memcpy(w->spare_ids + r * w->length, w->ids + w->from[r] * w->length,
               (size_t)length * sizeof *w->ids);
    int32_t *old = w->ids;
    w->ids = w->spare_ids;
    w->spare_ids = old;
}

static void append(vlp_generator *w, int64_t rows, int64_t at) {
    for (int64_t r = 0; r < rows; r++) w->ids[r * w->length + at] = w->last[r];
}

static int32_t most_probable(const double *scores, int64_t vocab) {
    int64_t best = 0;
    for (int64_t v = 1; v < vocab; v++)
        if (scores[v] > scores[best]) best = v;
    return (int32_t)best;
}

/* One token for each source that has not ended; greedy or drawn. */
static void choose(vlp_generator *w, const vlp_generator_source *s, int64_t length) {
    int32_t eos = (int32_t)w->model->config.eos_id;
    for (int64_t i = 0; i < s->n; i++) {
        const vlp_real *logits = w->logits + i * w->vocab;
        w->from[i] = (int32_t)i;
        w->last[i] = 0;
        if (w->done[i]) continue;
        vlp_scores_copy(logits, w->vocab, w->scores);
        vlp_scores_process(&w->options, eos, w->ids + i * w->length, length, w->scores);
        vlp_rng rng = vlp_rng_at(w->options.seed, VLP_RNG_GENERATE, (uint64_t)length,
                                 s->numbers ? s->numbers[i] : (uint64_t)i);
        w->last[i] = w->options.sample ? vlp_scores_draw(&w->options, w->vocab, w->scores, &rng)
                                       : most_probable(w->scores, w->vocab);
        vlp_scores_log_softmax(logits, w->vocab, w->scores);
        w->sums[i] += w->scores[w->last[i]];
        w->done[i] = w->last[i] == eos;
        w->lengths[i] = length + !w->done[i];
    }
}

static void begin(vlp_generator *w, const vlp_generator_source *s) {
    memset(w->mask, 0, (size_t)(w->rows * w->length));
    memset(w->ids, 0, (size_t)(w->rows * w->length) * sizeof *w->ids);
    for (int64_t r = 0; r < s->n * w->options.beams; r++)
        w->index[r] = (int32_t)(r / w->options.beams);
    vlp_beam_begin(w, s->n);
    for (int64_t i = 0; i < s->n; i++) w->lengths[i] = s->prompt_length;
}

/* The given tokens, one after the other. */
static vlp_status read_prompt(vlp_generator *w, vlp_tape *tape, const vlp_generator_source *s) {
    int64_t rows = s->n * w->options.beams;
    for (int64_t at = 0; at < s->prompt_length; at++) {
        for (int64_t r = 0; r < rows; r++) w->last[r] = s->prompt[at];
        append(w, rows, at);
        VLP_TRY(step(w, tape, s, at));
    }
    return VLP_OK;
}

static void hand_over(const vlp_generator *w, int64_t n, vlp_writing *writings) {
    for (int64_t i = 0; i < n; i++)
        writings[i] = (vlp_writing){w->ids + i * w->length, w->lengths[i], w->sums[i]};
}

vlp_status vlp_generator_write(vlp_generator *w, vlp_tape *tape, const vlp_generator_source *s,
                               vlp_writing *writings) {
    VLP_ASSERT(s->n <= w->sources, "%lld sources for a writer of %lld", (long long)s->n,
               (long long)w->sources);
    VLP_ASSERT(vlp_tape_planning(tape) || (s->prompt_length >= 1 && s->prompt_length < w->length),
               "%lld given tokens in a text of %lld", (long long)s->prompt_length,
               (long long)w->length);
    bool beams = w->options.beams > 1;
    begin(w, s);
    if (vlp_tape_planning(tape)) return step(w, tape, s, 0);
    VLP_TRY(read_prompt(w, tape, s));
    int64_t length = s->prompt_length;
    for (;;) {
        if (beams)
            vlp_beam_advance(w, s->n, length);
        else
            choose(w, s, length);
        reorder(w, s->n * w->options.beams, length);
        append(w, s->n * w->options.beams, length++);
        if (length == w->length || vlp_beam_done(w, s->n)) break;
        VLP_TRY(step(w, tape, s, length - 1));
    }
    if (beams)
        vlp_beam_finish(w, s->n, length, writings);
    else
        hand_over(w, s->n, writings);
    return VLP_OK;
}

/* Tokens that the model has beyond the tokenizer's are marks, no text. */
vlp_status vlp_writing_text(const vlp_tokenizer *tokenizer, const vlp_writing *writing,
                            int64_t from, vlp_buf *out) {
    vlp_status status = vlp_buf_append(out, "", 0);
    int32_t *ids = vlp_alloc_zero((size_t)writing->length + 1, sizeof *ids);
    int n = 0;
    if (!ids) return VLP_ERR_MEMORY;
    for (int64_t i = from; i < writing->length; i++)
        if (writing->ids[i] < vlp_tokenizer_size(tokenizer)) ids[n++] = writing->ids[i];
    if (status == VLP_OK) status = vlp_tokenizer_decode(tokenizer, ids, n, true, out);
    vlp_free(ids);
    return status;
}
