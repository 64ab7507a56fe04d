/* Retrieval between all images and all captions of a set. */
#include "train/evaluate.h"

#include "core/gemm.h"
#include "core/memory.h"
#include "datasets/eval_data.h"
#include "train/evaluate_images.h"
#include "train/shortlist.h"

#include <stdlib.h>
#include <string.h>

const int vlp_recall_at[VLP_RECALL_LEVELS] = {1, 5, 10};

typedef struct {
    vlp_embedder *e;
    float *images, *texts, *scores; /* [N, E], [M, E], [N, M] one block of rows at a time */
    vlp_eval_data data;
    int64_t *next_same;           /* [M]: the next caption with the same group, a ring */
    uint8_t *positive;            /* [M], for the present image */
    float *text_best;             /* [M]: the best score among the caption's right images */
    int64_t *above, *equal;       /* [M]: wrong images above it, and level with it */
    double *text_hits;            /* [M] number of right images */
    vlp_shortlist captions;       /* with a rerank: the best captions of every image, */
    vlp_shortlist pictures;       /* the best images of every caption, */
    vlp_shortlist_columns listed; /* and where an image stands in those */
    const char **texts_to_match;  /* [K + M] of one image */
    float *matches;               /* [K + M] */
} retrieval;

static vlp_status embed_some(const float *pixels, int64_t first, int64_t n, void *user) {
    retrieval *r = user;
    return vlp_embedder_pixels(r->e, pixels, n, r->images + first * vlp_embedder_width(r->e));
}

typedef struct {
    int64_t group, caption;
} group_entry;

static int by_group(const void *a, const void *b) {
    const group_entry *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1)
                                : (x->caption > y->caption) - (x->caption < y->caption);
}

/* Rings of captions that say the same. */
static vlp_status link_captions(retrieval *r) {
    int64_t m = r->data.n_captions;
    group_entry *entries = vlp_alloc((size_t)m * sizeof *entries);
    if (!entries) return VLP_ERR_MEMORY;
    for (int64_t j = 0; j < m; j++) entries[j] = (group_entry){r->data.caption_groups[j], j};
    qsort(entries, (size_t)m, sizeof *entries, by_group);
    for (int64_t begin = 0, j = 0; j < m; j++) {
        bool last = j + 1 == m || entries[j + 1].group != entries[j].group;
        r->next_same[entries[j].caption] = entries[last ? begin : j + 1].caption;
        if (last) begin = j + 1;
    }
    vlp_free(entries);
    return VLP_OK;
}

/* Marks the captions that are right for image i; own captions stand at [from, to). */
static void mark_positives(retrieval *r, int64_t i, int64_t from, int64_t to) {
    const vlp_eval_data *d = &r->data;
    for (int64_t j = 0; j < d->n_captions; j++)
        r->positive[j] = d->image_groups[d->caption_images[j]] == d->image_groups[i];
    for (int64_t c = from; c < to; c++)
        for (int64_t j = r->next_same[c]; j != c; j = r->next_same[j]) r->positive[j] = 1;
}

/* 1 - C(n - p, k) / C(n, k): the chance that k draws of n hold one of p. */
static double chance_of(int64_t n, int64_t p, int k) {
    double miss = 1;
    for (int64_t i = 0; i < k && i < n; i++)
        miss *= n - p - i > 0 ? (double)(n - p - i) / (double)(n - i) : 0;
    return 1 - miss;
}

static void count_rank(double above, double equal, double recall[VLP_RECALL_LEVELS]) {
    double rank = above + equal / 2;
    for (int k = 0; k < VLP_RECALL_LEVELS; k++) recall[k] += rank < vlp_recall_at[k];
}

/* Every caption's best right image so far, and the candidates that a rerank will order. */
static void take_best(retrieval *r, int64_t image, const float *scores) {
    for (int64_t j = 0; j < r->data.n_captions; j++) {
        if (r->captions.k > 0) {
            vlp_shortlist_offer(&r->captions, image, (int32_t)j, scores[j]);
            vlp_shortlist_offer(&r->pictures, j, (int32_t)image, scores[j]);
        }
        if (!r->positive[j]) continue;
        if (scores[j] > r->text_best[j]) r->text_best[j] = scores[j];
        r->text_hits[j]++;
    }
}

/* Which of an image's places on both lists are right. */
static void mark_listed(retrieval *r, int64_t image) {
    int64_t k = r->captions.k;
    for (int64_t i = image * k; i < (image + 1) * k && r->captions.at[i] >= 0; i++)
        r->captions.right[i] = r->positive[r->captions.at[i]];
    for (int64_t s = r->listed.begin[image]; s < r->listed.begin[image + 1]; s++)
        r->pictures.right[r->listed.slots[s]] = r->positive[r->listed.slots[s] / k];
}

/* One image's own rank, and its part in every caption's. */
static void take_ranks(retrieval *r, int64_t image, const float *scores, vlp_retrieval *out) {
    int64_t m = r->data.n_captions, positives = 0, above = 0, equal = 0;
    float best = -2;
    for (int64_t j = 0; j < m; j++)
        if (r->positive[j]) {
            positives++;
            if (scores[j] > best) best = scores[j];
        }
    for (int64_t j = 0; j < m; j++) {
        if (r->positive[j]) continue;
        above += !(scores[j] <= best); /* NaN is a miss */
        equal += scores[j] == best;
        r->above[j] += !(scores[j] <= r->text_best[j]);
        r->equal[j] += scores[j] == r->text_best[j];
    }
    if (r->captions.k > 0) {
        mark_listed(r, image);
        vlp_shortlist_rank(&r->captions, image, &above, &equal);
    }
    count_rank((double)above, (double)equal, out->image_to_text);
    for (int k = 0; k < VLP_RECALL_LEVELS; k++)
        out->image_to_text_chance[k] += chance_of(m, positives, vlp_recall_at[k]);
}

enum { ROWS_AT_A_TIME = 256, CAPTIONS_AT_A_TIME = 512 };

static vlp_status embed_captions(retrieval *r, const vlp_eval_set *set) {
    int64_t m = r->data.n_captions, width = vlp_embedder_width(r->e);
    for (int64_t at = 0; at < m; at += CAPTIONS_AT_A_TIME) {
        int64_t some = m - at < CAPTIONS_AT_A_TIME ? m - at : CAPTIONS_AT_A_TIME;
        VLP_TRY(vlp_eval_watched(set->watch, "captions", at, m));
        VLP_TRY(vlp_embedder_texts(r->e, r->data.captions + at, some, r->texts + at * width));
    }
    return VLP_OK;
}

/* pass 0 finds every caption's best right image, pass 1 counts the wrong ones above it. */
static vlp_status score_pass(retrieval *r, const vlp_eval_set *set, vlp_retrieval *out, int pass) {
    int64_t n = r->data.n_images, m = r->data.n_captions, width = vlp_embedder_width(r->e);
    int64_t caption = 0;
    for (int64_t at = 0; at < n; at += ROWS_AT_A_TIME) {
        VLP_TRY(vlp_eval_watched(set->watch, "ranked pictures", pass * n + at, 2 * n));
        int64_t some = n - at < ROWS_AT_A_TIME ? n - at : ROWS_AT_A_TIME;
        vlp_gemm(false, true, some, m, width, 1, r->images + at * width, width, r->texts, width, 0,
                 r->scores, m);
        for (int64_t i = 0; i < some; i++) {
            int64_t from = caption;
            while (caption < m && r->data.caption_images[caption] == at + i) caption++;
            mark_positives(r, at + i, from, caption);
            if (pass == 0)
                take_best(r, at + i, r->scores + i * m);
            else
                take_ranks(r, at + i, r->scores + i * m, out);
        }
    }
    return VLP_OK;
}

/* The matching head's scores of one image with the captions on its list, and with those on whose
 * lists it stands. */
static vlp_status match_image(retrieval *r, int64_t image, const float *pixels) {
    int64_t k = r->captions.k, first = r->listed.begin[image], n = 0;
    for (int64_t i = image * k; i < (image + 1) * k && r->captions.at[i] >= 0; i++)
        r->texts_to_match[n++] = r->data.captions[r->captions.at[i]];
    int64_t own = n;
    for (int64_t s = first; s < r->listed.begin[image + 1]; s++)
        r->texts_to_match[n++] = r->data.captions[r->listed.slots[s] / k];
    VLP_TRY(vlp_embedder_rank(r->e, pixels, r->texts_to_match, n, r->matches));
    memcpy(r->captions.score + image * k, r->matches, (size_t)own * sizeof *r->matches);
    for (int64_t i = own; i < n; i++)
        r->pictures.score[r->listed.slots[first + i - own]] = r->matches[i];
    return VLP_OK;
}

static vlp_status match_some(const float *pixels, int64_t first, int64_t n, void *user) {
    retrieval *r = user;
    const vlp_vit_config *c = &vlp_embedder_model(r->e)->config.vision;
    int64_t picture = c->channels * c->image_height * c->image_width;
    for (int64_t i = 0; i < n; i++) VLP_TRY(match_image(r, first + i, pixels + i * picture));
    return VLP_OK;
}

static vlp_status open_lists(retrieval *r, int64_t k) {
    int64_t n = r->data.n_images, m = r->data.n_captions;
    if (k == 0) return VLP_OK;
    if (!vlp_model_can_match(vlp_embedder_model(r->e)))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "--rerank needs a model with a fusion stack and a matching head, and this "
                        "one has none; train one with: vlp pretrain vlp, or leave --rerank out");
    k = k < m ? k : m;
    r->texts_to_match = vlp_alloc((size_t)(k + m) * sizeof *r->texts_to_match);
    r->matches = vlp_alloc((size_t)(k + m) * sizeof *r->matches);
    if (!r->texts_to_match || !r->matches) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_shortlist_open(&r->captions, n, k));
    return vlp_shortlist_open(&r->pictures, m, k);
}

static vlp_status rerank(retrieval *r, const vlp_index *index, const vlp_eval_set *set) {
    if (r->captions.k == 0) return VLP_OK;
    VLP_TRY(vlp_shortlist_by_column(&r->listed, &r->pictures, r->data.n_images));
    return vlp_evaluate_images(index, set, vlp_embedder_transform(r->e), r->data.n_images,
                               match_some, r);
}

static void finish(retrieval *r, vlp_retrieval *out) {
    int64_t n = r->data.n_images, m = r->data.n_captions;
    for (int64_t j = 0; j < m; j++) {
        if (r->pictures.k > 0) vlp_shortlist_rank(&r->pictures, j, &r->above[j], &r->equal[j]);
        count_rank((double)r->above[j], (double)r->equal[j], out->text_to_image);
        for (int k = 0; k < VLP_RECALL_LEVELS; k++)
            out->text_to_image_chance[k] +=
                chance_of(n, (int64_t)r->text_hits[j], vlp_recall_at[k]);
    }
    out->images = n;
    out->captions = m;
    for (int k = 0; k < VLP_RECALL_LEVELS; k++) {
        out->image_to_text[k] /= (double)n;
        out->image_to_text_chance[k] /= (double)n;
        out->text_to_image[k] /= (double)m;
        out->text_to_image_chance[k] /= (double)m;
    }
}

static vlp_status allocate(retrieval *r) {
    size_t n = (size_t)r->data.n_images, m = (size_t)r->data.n_captions;
    size_t width = (size_t)vlp_embedder_width(r->e);
    r->images = vlp_alloc(n * width * sizeof(float));
    r->texts = vlp_alloc(m * width * sizeof(float));
    r->scores = vlp_alloc(ROWS_AT_A_TIME * m * sizeof(float));
    r->next_same = vlp_alloc(m * sizeof *r->next_same);
    r->positive = vlp_alloc(m);
    r->text_best = vlp_alloc(m * sizeof *r->text_best);
    r->above = vlp_alloc_zero(m, sizeof *r->above);
    r->equal = vlp_alloc_zero(m, sizeof *r->equal);
    r->text_hits = vlp_alloc_zero(m, sizeof *r->text_hits);
    bool all = r->images && r->texts && r->scores && r->next_same && r->positive && r->text_best &&
               r->above && r->equal && r->text_hits;
    for (size_t j = 0; all && j < m; j++) r->text_best[j] = -2;
    return all ? VLP_OK : VLP_ERR_MEMORY;
}

static void release(retrieval *r) {
    vlp_free(r->images);
    vlp_free(r->texts);
    vlp_free(r->scores);
    vlp_free(r->next_same);
    vlp_free(r->positive);
    vlp_free(r->text_best);
    vlp_free(r->above);
    vlp_free(r->equal);
    vlp_free(r->text_hits);
    vlp_shortlist_close(&r->captions);
    vlp_shortlist_close(&r->pictures);
    vlp_shortlist_columns_close(&r->listed);
    vlp_free(r->texts_to_match);
    vlp_free(r->matches);
    vlp_eval_data_close(&r->data);
}

static vlp_status run(retrieval *r, const vlp_index *index, const vlp_eval_set *set,
                      vlp_retrieval *out) {
    VLP_TRY(vlp_eval_data_open(&r->data, index, set->split, set->source, set->max_images));
    VLP_TRY(allocate(r));
    VLP_TRY(open_lists(r, set->rerank));
    VLP_TRY(link_captions(r));
    VLP_TRY(vlp_evaluate_images(index, set, vlp_embedder_transform(r->e), r->data.n_images,
                                embed_some, r));
    VLP_TRY(embed_captions(r, set));
    VLP_TRY(score_pass(r, set, out, 0));
    VLP_TRY(rerank(r, index, set));
    VLP_TRY(score_pass(r, set, out, 1));
    finish(r, out);
    return VLP_OK;
}

vlp_status vlp_evaluate_retrieval(vlp_embedder *e, const vlp_index *index, const vlp_eval_set *set,
                                  vlp_retrieval *out) {
    *out = (vlp_retrieval){0};
    retrieval r = {.e = e};
    vlp_status status = run(&r, index, set, out);
    release(&r);
    return status;
}
