/* ALBEF's and BLIP's retrieval evaluation: cosines between all images and all texts, the best k of
 * each ranked anew by the matching head (BLIP: plus the cosine), recall of both rankings. */
#include "core/memory.h"
#include "parity/albef.h"
#include "parity/runners.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is asked for is the rows of a table of scores, and what it is asked about its columns. */
typedef struct {
    const char *scores, *metric;
    int64_t rows, columns;
    vlp_real *table;     /* [rows, columns] */
    const int32_t *gold; /* [columns] the row of each column; or NULL and */
    const int32_t *own;  /* [rows] the column of each row */
    double recall[3];
} ranking;

enum { PASSED_OVER = -100 };
static const int recall_at[] = {1, 5, 10};

typedef struct {
    vlp_model *model;
    vlp_tokens tokens;
    const vlp_real *pixels;
    const int32_t *text_image;
    int64_t images, texts, k;
    vlp_tensor *text_tokens, *keys[VLP_MAX_DEPTH], *similarity;
    ranking to_text, to_image;
} ranking_run;

typedef struct {
    vlp_real score;
    int64_t at;
} candidate;

static int best_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->at < y->at) - (x->at > y->at); /* the later of equals first */
}

static vlp_status sort_row(const vlp_real *scores, int64_t n, int64_t stride, candidate *out) {
    for (int64_t j = 0; j < n; j++) out[j] = (candidate){scores[j * stride], j};
    qsort(out, (size_t)n, sizeof *out, best_first);
    return VLP_OK;
}

/* The pairs of one ranking: row i with its k most similar columns. */
typedef struct {
    int64_t count;
    int32_t *text, *image; /* [count] */
    int32_t *ids;          /* [count, L] */
    uint8_t *mask;         /* [count, L] */
} chosen_pairs;

static bool allocate(parity_model *m, const ranking_run *r, const ranking *ranked,
                     chosen_pairs *p) {
    p->count = ranked->rows * r->k;
    p->text = vlp_tape_alloc(m->tape, (size_t)p->count * sizeof *p->text);
    p->image = vlp_tape_alloc(m->tape, (size_t)p->count * sizeof *p->image);
    p->ids = vlp_tape_alloc(m->tape, (size_t)(p->count * r->tokens.length) * sizeof *p->ids);
    p->mask = vlp_tape_alloc(m->tape, (size_t)(p->count * r->tokens.length));
    return vlp_tape_status(m->tape) == VLP_OK;
}

static void choose(const ranking_run *r, const ranking *ranked, candidate *order, chosen_pairs *p) {
    bool by_image = ranked == &r->to_text;
    const vlp_real *similarity = vlp_real_data(r->similarity); /* [images, texts] */
    int64_t length = r->tokens.length, n = 0;
    for (int64_t i = 0; i < ranked->rows; i++) {
        sort_row(similarity + (by_image ? i * r->texts : i), ranked->columns,
                 by_image ? 1 : r->texts, order);
        for (int64_t j = 0; j < r->k; j++, n++) {
            p->image[n] = (int32_t)(by_image ? i : order[j].at);
            p->text[n] = (int32_t)(by_image ? order[j].at : i);
            memcpy(p->ids + n * length, r->tokens.ids + p->text[n] * length,
                   (size_t)length * sizeof *p->ids);
            memcpy(p->mask + n * length, r->tokens.attention_mask + p->text[n] * length,
                   (size_t)length);
        }
    }
}

static void fill_table(ranking_run *r, ranking *ranked, const chosen_pairs *p,
                       const vlp_real *logits) {
    bool by_image = ranked == &r->to_text;
    for (int64_t i = 0; i < ranked->rows * ranked->columns; i++) ranked->table[i] = PASSED_OVER;
    for (int64_t n = 0; n < p->count; n++) {
        int64_t row = by_image ? p->image[n] : p->text[n];
        int64_t column = by_image ? p->text[n] : p->image[n];
        vlp_real cosine = vlp_real_data(r->similarity)[p->image[n] * r->texts + p->text[n]];
        ranked->table[row * ranked->columns + column] =
            logits[2 * n + 1] + (vlp_model_fuses_anew(r->model) ? cosine : 0);
    }
}

static void rank_anew(parity_model *m, ranking_run *r, ranking *ranked) {
    chosen_pairs p;
    if (!allocate(m, r, ranked, &p)) return;
    candidate *order = vlp_alloc((size_t)ranked->columns * sizeof *order);
    if (!order) {
        vlp_tape_fail(m->tape, VLP_ERR_MEMORY);
        return;
    }
    bool real = !vlp_tape_planning(m->tape);
    if (real) choose(r, ranked, order, &p);
    vlp_tokens texts = {p.count, r->tokens.length, p.ids, NULL, p.mask};
    vlp_tensor *text = vlp_model_fuses_anew(r->model)
                           ? NULL
                           : vlp_gather_samples(m->tape, r->text_tokens, p.text, p.count);
    vlp_tensor *fused = vlp_model_fuse(m->tape, r->model, &texts, text, r->keys, p.image);
    vlp_tensor *logits = vlp_model_match(m->tape, r->model, fused);
    if (logits && real) fill_table(r, ranked, &p, vlp_real_data(logits));
    vlp_free(order);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    ranking_run *r = ctx;
    const vlp_vit_config *c = &r->model->config.vision;
    vlp_tensor *pixels = vlp_tape_input(
        m->tape, VLP_REAL, 4, (int64_t[]){r->images, c->channels, c->image_height, c->image_width},
        r->pixels, false);
    vlp_tensor *images = vlp_model_image_tokens(m->tape, r->model, pixels);
    r->text_tokens = vlp_model_text_tokens(m->tape, r->model, &r->tokens);
    vlp_model_image_keys(m->tape, r->model, images, r->keys);
    r->similarity =
        vlp_linear(m->tape, vlp_model_image_embedding(m->tape, r->model, images),
                   vlp_model_text_embedding(m->tape, r->model, &r->tokens, r->text_tokens), NULL,
                   VLP_ACT_NONE);
    parity_output(m, r->similarity, "sims_matrix");
    rank_anew(m, r, &r->to_text);
    rank_anew(m, r, &r->to_image);
    return r->similarity ? vlp_dot_constant(m->tape, r->similarity, r->to_text.table) : NULL;
}

static bool belongs(const ranking *ranked, int64_t row, int64_t column) {
    return ranked->gold ? ranked->gold[column] == row : ranked->own[row] == column;
}

/* Shares, in percent, of the rows that have one of theirs among the first 1, 5, 10. */
static vlp_status recall(parity_model *m, ranking *ranked) {
    candidate *order = vlp_alloc((size_t)ranked->columns * sizeof *order);
    if (!order) return VLP_ERR_MEMORY;
    double mean = 0;
    char name[64];
    for (int64_t i = 0; i < ranked->rows; i++) {
        int64_t rank = 0;
        sort_row(ranked->table + i * ranked->columns, ranked->columns, 1, order);
        while (rank < ranked->columns && !belongs(ranked, i, order[rank].at)) rank++;
        for (int k = 0; k < 3; k++) ranked->recall[k] += rank < recall_at[k];
    }
    for (int k = 0; k < 3; k++) {
        ranked->recall[k] *= 100 / (double)ranked->rows;
        mean += ranked->recall[k] / 3;
        snprintf(name, sizeof name, "metric/%s_r%d", ranked->metric, recall_at[k]);
        parity_expect_scalar(m->report, name, ranked->recall[k]);
    }
    snprintf(name, sizeof name, "metric/%s_r_mean", ranked->metric);
    parity_expect_scalar(m->report, name, mean);
    vlp_free(order);
    return VLP_OK;
}

static vlp_status read_inputs(parity_model *m, ranking_run *r) {
    VLP_TRY(parity_model_dim(m, "image", 0, &r->images));
    VLP_TRY(parity_model_reals(m, "image", &r->pixels));
    VLP_TRY(parity_albef_tokens(m, &r->tokens));
    VLP_TRY(parity_model_ids(m, "txt2img", false, &r->text_image));
    r->texts = r->tokens.batch;
    r->k = vlp_json_int(m->c->config, "k_test", 0);
    if (r->k < 1 || r->k > r->texts || r->k > r->images || !r->tokens.attention_mask)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: k_test %lld of %lld images and %lld texts",
                        m->c->folder, (long long)r->k, (long long)r->images, (long long)r->texts);
    size_t cells = (size_t)(r->images * r->texts);
    r->to_text = (ranking){
        "score_matrix_i2t", "txt", r->images, r->texts, vlp_alloc_zero(cells, sizeof(vlp_real)),
        r->text_image,      NULL,  {0}};
    r->to_image = (ranking){"score_matrix_t2i",
                            "img",
                            r->texts,
                            r->images,
                            vlp_alloc_zero(cells, sizeof(vlp_real)),
                            NULL,
                            r->text_image,
                            {0}};
    return r->to_text.table && r->to_image.table ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_status run(parity_model *m, ranking_run *r) {
    double all = 0;
    ranking *both[] = {&r->to_text, &r->to_image};
    VLP_TRY(parity_albef_declare(m, &r->model));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_load(m, "objective."));
    VLP_TRY(parity_model_compute(m, build, r));
    for (int i = 0; i < 2; i++) {
        parity_expect(m->report, both[i]->scores, 2, (int64_t[]){both[i]->rows, both[i]->columns},
                      both[i]->table);
        VLP_TRY(recall(m, both[i]));
        for (int k = 0; k < 3; k++) all += both[i]->recall[k] / 6;
    }
    parity_expect_scalar(m->report, "metric/r_mean", all);
    return VLP_OK;
}

vlp_status parity_run_albef_ranking(const parity_case *c, parity_report *report) {
    parity_model m;
    ranking_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_free(r.to_text.table);
    vlp_free(r.to_image.table);
    parity_model_close(&m);
    vlp_model_free(r.model);
    return status;
}
