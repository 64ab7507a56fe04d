/* Other orders of the candidates: together with words, and by the matching head. */
#include "core/memory.h"
#include "train/decoder.h"
#include "train/search_internal.h"

#include <stdlib.h>
#include <string.h>

enum { RRF_OFFSET = 60, RERANK_BATCH = 32 };

/* Adds 1 / (60 + rank) of every hit to the sums. */
static void add_ranks(vlp_hit *sums, int64_t *n, const vlp_hit *hits, int64_t n_hits) {
    int64_t before = *n;
    for (int64_t r = 0; r < n_hits; r++) {
        int64_t at = 0;
        while (at < before && sums[at].id != hits[r].id) at++;
        if (at == before) {
            at = (*n)++;
            sums[at] = (vlp_hit){hits[r].id, 0};
        }
        sums[at].score += 1.0 / (double)(RRF_OFFSET + r + 1);
    }
}

static int by_score(const void *a, const void *b) {
    const vlp_hit *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static vlp_status words_of(vlp_buf *out, const vlp_query *q) {
    VLP_TRY(vlp_buf_puts(out, ""));
    for (int64_t t = 0; t < q->n_texts; t++)
        if (q->texts[t].weight > 0) VLP_TRY(vlp_buf_printf(out, "%s ", q->texts[t].text));
    return VLP_OK;
}

vlp_status vlp_search_fuse_words(vlp_search *s, const vlp_query *q, vlp_candidates *c) {
    vlp_buf words = {0};
    int64_t n_found = 0, n_sums = 0, most = c->room / 2;
    vlp_hit *found = vlp_alloc((size_t)most * sizeof *found);
    vlp_hit *sums = vlp_alloc((size_t)c->room * sizeof *sums);
    vlp_status status = found && sums ? words_of(&words, q) : VLP_ERR_MEMORY;
    if (status == VLP_OK)
        status = vlp_catalogue_words(s->index, words.data, s->where, most, found, &n_found);
    if (status == VLP_OK) {
        add_ranks(sums, &n_sums, c->hits, c->n);
        add_ranks(sums, &n_sums, found, n_found);
        qsort(sums, (size_t)n_sums, sizeof *sums, by_score);
        memcpy(c->hits, sums, (size_t)n_sums * sizeof *sums);
        c->n = n_sums;
    }
    vlp_buf_free(&words);
    vlp_free(found);
    vlp_free(sums);
    return status;
}

/* The text that the matching head reads: the first one that is wanted. */
static const char *wanted_text(const vlp_query *q) {
    for (int64_t t = 0; t < q->n_texts; t++)
        if (q->texts[t].weight > 0) return q->texts[t].text;
    return NULL;
}

static vlp_status match_some(vlp_search *s, vlp_decoder *decoder, const char *text, vlp_hit *hits,
                             int64_t n) {
    int64_t ids[RERANK_BATCH];
    float scores[RERANK_BATCH];
    for (int64_t i = 0; i < n; i++) ids[i] = hits[i].id;
    VLP_TRY(vlp_decoder_images(decoder, ids, n));
    VLP_TRY(vlp_embedder_match(s->e, vlp_decoder_pixels(decoder), n, text, scores));
    for (int64_t i = 0; i < n; i++)
        hits[i].score = vlp_decoder_reason(decoder, i) ? -1 : (double)scores[i];
    return VLP_OK;
}

vlp_status vlp_search_rerank(vlp_search *s, const vlp_query *q, vlp_candidates *c) {
    const char *text = wanted_text(q);
    if (!text) return VLP_FAIL(VLP_ERR_USAGE, "--rerank needs a text to match pictures with");
    if (!vlp_model_can_match(vlp_embedder_model(s->e)))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "--rerank needs a model with a fusion stack and a matching head, and this "
                        "one has none; train one with: vlp pretrain vlp, or leave --rerank out");
    if (c->n > q->rerank) c->n = q->rerank;
    vlp_decoder *decoder;
    VLP_TRY(vlp_decoder_open(&decoder, vlp_embedder_transform(s->e), RERANK_BATCH, s->index));
    vlp_status status = VLP_OK;
    for (int64_t at = 0; at < c->n && status == VLP_OK; at += RERANK_BATCH)
        status = match_some(s, decoder, text, c->hits + at,
                            c->n - at < RERANK_BATCH ? c->n - at : RERANK_BATCH);
    vlp_decoder_free(decoder);
    if (status != VLP_OK) return status;
    qsort(c->hits, (size_t)c->n, sizeof *c->hits, by_score);
    while (c->n > 0 && c->hits[c->n - 1].score < 0) c->n--; /* could not be read now */
    return VLP_OK;
}
