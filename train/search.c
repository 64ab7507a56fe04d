#include "train/search.h"

#include "core/gemm.h"
#include "core/kernels.h"
#include "core/memory.h"
#include "train/decoder.h"
#include "train/embed.h"
#include "train/search_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BACKGROUND_ROWS = 65536, HYBRID_DEPTH = 200 };

vlp_query_text vlp_query_parse(const char *text) {
    vlp_query_text q = {1, text};
    if (*text == '+' || *text == '-') {
        q.weight = *text == '-' ? -1 : 1;
        q.text = text + 1;
    }
    size_t digits = strspn(q.text, "0123456789.");
    if (digits > 0 && q.text[digits] == ':') {
        q.weight *= strtod(q.text, NULL);
        q.text += digits + 1;
    }
    q.text += strspn(q.text, " ");
    return q;
}

static vlp_status refuse_unembedded(const vlp_search *s, const char *folder) {
    int64_t all;
    VLP_TRY(vlp_db_int(vlp_index_db(s->index), "SELECT count(*) FROM images WHERE state<>2", &all));
    const char *db = vlp_index_path(s->index);
    if (all == 0)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s holds no pictures; run: vlp index %s FOLDER", db,
                        db);
    if (s->missing < all) return VLP_OK;
    return VLP_FAIL(VLP_ERR_NOT_FOUND,
                    "%s is not embedded by this model; run: vlp embed %s --model %s", db, db,
                    folder);
}

static vlp_status setup(vlp_search *s, const char *folder) {
    vlp_rows missing;
    size_t width = (size_t)vlp_embedder_width(s->e);
    vlp_embed_model_id(s->e, s->model);
    s->query = vlp_alloc(width * sizeof *s->query);
    s->vector = vlp_alloc(width * sizeof *s->vector);
    if (!s->query || !s->vector) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_catalogue_missing(&missing, s->index, s->model));
    s->missing = missing.count;
    vlp_rows_close(&missing);
    VLP_TRY(refuse_unembedded(s, folder));
    return vlp_catalogue_load(&s->rows, s->index, s->model, vlp_embedder_width(s->e), s->where);
}

vlp_status vlp_search_open(vlp_search **out, const vlp_index *index, vlp_embedder *e,
                           const char *model_folder, const char *where) {
    *out = NULL;
    vlp_search *s = vlp_alloc_zero(1, sizeof *s);
    if (!s) return VLP_ERR_MEMORY;
    s->index = index;
    s->e = e;
    s->where = where ? vlp_strdup(where) : NULL;
    vlp_status status = where && !s->where ? VLP_ERR_MEMORY : setup(s, model_folder);
    if (status != VLP_OK) {
        vlp_search_free(s);
        return status;
    }
    *out = s;
    return VLP_OK;
}

void vlp_search_free(vlp_search *s) {
    if (!s) return;
    vlp_catalogue_close(&s->rows);
    vlp_free(s->where);
    vlp_free(s->query);
    vlp_free(s->vector);
    vlp_free(s);
}

int64_t vlp_search_missing(const vlp_search *s) {
    return s->missing;
}

int64_t vlp_search_damaged(const vlp_search *s, int64_t *first) {
    *first = s->rows.first_damaged;
    return s->rows.damaged;
}

/* s->query = the weighted sum of unit vectors, normalised. */
static vlp_status encode_query(vlp_search *s, const vlp_query *q) {
    int64_t width = vlp_embedder_width(s->e);
    memset(s->query, 0, (size_t)width * sizeof *s->query);
    for (int64_t t = 0; t < q->n_texts; t++) {
        VLP_TRY(vlp_embedder_texts(s->e, &q->texts[t].text, 1, s->vector));
        for (int64_t i = 0; i < width; i++) s->query[i] += (float)q->texts[t].weight * s->vector[i];
    }
    if (q->image) {
        vlp_decoder *decoder;
        VLP_TRY(vlp_decoder_open(&decoder, vlp_embedder_transform(s->e), 1, NULL));
        vlp_status status = vlp_decoder_files(decoder, &q->image, 1);
        if (status == VLP_OK && vlp_decoder_reason(decoder, 0))
            status = VLP_FAIL(VLP_ERR_FORMAT, "%s: %s", q->image, vlp_decoder_reason(decoder, 0));
        if (status == VLP_OK)
            status = vlp_embedder_pixels(s->e, vlp_decoder_pixels(decoder), 1, s->vector);
        vlp_decoder_free(decoder);
        VLP_TRY(status);
        vlp_kernels_get()->add(width, s->vector, s->query);
    }
    if (!(vlp_kernels_get()->sum_squares(width, s->query) > 1e-10))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "the parts of the query cancel out; give them other weights");
    vlp_kernels_get()->l2_normalize(1, width, s->query, 1e-12, s->query, NULL);
    return VLP_OK;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void vlp_background(float *values, int64_t n, double *median, double *spread) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    int64_t middle = n / 2;
    *median =
        n % 2 ? (double)values[middle] : ((double)values[middle - 1] + (double)values[middle]) / 2;
    /* the median distance of the lower half: its members are sorted, so is their distance */
    double quartile = (double)values[n / 4];
    *spread = 1.4826 * (*median - quartile);
}

/* The query's cosines over the catalogue, or over so many evenly spread rows of it. */
static vlp_status background(const vlp_search *s, double *median, double *spread) {
    const vlp_catalogue *c = &s->rows;
    *median = *spread = 0;
    if (c->n == 0) return VLP_OK;
    int64_t step = (c->n + BACKGROUND_ROWS - 1) / BACKGROUND_ROWS, rows = (c->n + step - 1) / step;
    float *cosines = vlp_alloc((size_t)rows * sizeof *cosines);
    if (!cosines) return VLP_ERR_MEMORY;
    vlp_gemm(false, true, rows, 1, c->dim, 1, c->vectors, step * c->dim, s->query, c->dim, 0,
             cosines, 1);
    vlp_background(cosines, rows, median, spread);
    vlp_free(cosines);
    return VLP_OK;
}

static int by_id(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Cosine of a picture found in any way; NAN without an embedding. */
static double cosine_of(const vlp_search *s, int64_t id) {
    const vlp_catalogue *c = &s->rows;
    if (c->n == 0) return (double)NAN;
    const int64_t *at = bsearch(&id, c->ids, (size_t)c->n, sizeof *c->ids, by_id);
    if (!at) return (double)NAN;
    double sum = 0;
    const float *v = c->vectors + (at - c->ids) * c->dim;
    for (int64_t i = 0; i < c->dim; i++) sum += (double)v[i] * (double)s->query[i];
    return sum;
}

static vlp_status keep_hit(vlp_search *s, const vlp_hit *hit, double z, vlp_found *out) {
    vlp_buf path = {0}, item = {0}, caption = {0};
    struct stat st;
    vlp_status status = vlp_catalogue_item(s->index, hit->id, &path, &item, &caption);
    bool gone = status == VLP_OK && stat(path.data, &st) != 0;
    if (status == VLP_OK && item.len) status = vlp_buf_printf(&path, "#%s", item.data);
    vlp_buf_free(&item);
    if (gone) {
        out->gone++;
    } else if (status == VLP_OK) {
        double score = fmin(hit->score, 1); /* a cosine may round above */
        out->hits[out->n++] = (vlp_found_hit){hit->id, score, z, path.data, caption.data};
        return VLP_OK;
    }
    vlp_buf_free(&path);
    vlp_buf_free(&caption);
    return status;
}

/* Caption or path hold the text of the query as it stands. */
static bool says_it(const vlp_found_hit *hit, const vlp_query *q) {
    for (int64_t t = 0; t < q->n_texts; t++)
        if (q->texts[t].weight > 0 &&
            (strcasestr(hit->caption, q->texts[t].text) || strcasestr(hit->path, q->texts[t].text)))
            return true;
    return false;
}

static void drop_last(vlp_found *out) {
    vlp_found_hit *hit = &out->hits[--out->n];
    vlp_free(hit->path);
    vlp_free(hit->caption);
}

static vlp_status collect(vlp_search *s, const vlp_query *q, const vlp_candidates *c, double median,
                          double spread, vlp_found *out) {
    out->hits = vlp_alloc_zero((size_t)q->top, sizeof *out->hits);
    if (!out->hits) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < c->n && out->n < q->top; i++) {
        double z = spread > 0 ? (cosine_of(s, c->hits[i].id) - median) / spread : 0;
        bool stands_out = !q->has_least_z || z >= q->least_z;
        if (!stands_out && !q->hybrid) continue;
        int64_t before = out->n;
        VLP_TRY(keep_hit(s, &c->hits[i], z, out));
        if (!stands_out && out->n > before && !says_it(&out->hits[before], q)) drop_last(out);
    }
    return VLP_OK;
}

/* More candidates than asked for: files may be gone. */
static int64_t depth_of(const vlp_query *q, int64_t rows) {
    int64_t depth = 2 * q->top + 16;
    if (q->hybrid && depth < HYBRID_DEPTH) depth = HYBRID_DEPTH;
    if (depth < q->rerank) depth = q->rerank;
    return depth < rows || rows == 0 ? depth : rows;
}

static vlp_status find(vlp_search *s, const vlp_query *q, vlp_candidates *c, vlp_found *out) {
    double median, spread;
    int64_t depth = depth_of(q, s->rows.selected);
    c->room = 2 * depth;
    c->hits = vlp_alloc((size_t)c->room * sizeof *c->hits);
    if (!c->hits) return VLP_ERR_MEMORY;
    VLP_TRY(encode_query(s, q));
    VLP_TRY(background(s, &median, &spread));
    VLP_TRY(vlp_catalogue_top(&s->rows, s->query, depth, c->hits, &c->n));
    out->searched = s->rows.selected;
    out->best_z = c->n > 0 && spread > 0 ? (c->hits[0].score - median) / spread : 0;
    if (q->hybrid) VLP_TRY(vlp_search_fuse_words(s, q, c));
    if (q->rerank > 0) VLP_TRY(vlp_search_rerank(s, q, c));
    return collect(s, q, c, median, spread, out);
}

vlp_status vlp_search_run(vlp_search *s, const vlp_query *query, vlp_found *out) {
    *out = (vlp_found){0};
    VLP_ASSERT(query->top > 0 && (query->n_texts > 0 || query->image), "an empty query");
    vlp_candidates candidates = {0};
    vlp_status status = find(s, query, &candidates, out);
    vlp_free(candidates.hits);
    if (status != VLP_OK) vlp_found_close(out);
    return status;
}

void vlp_found_close(vlp_found *found) {
    for (int64_t i = 0; i < found->n; i++) {
        vlp_free(found->hits[i].path);
        vlp_free(found->hits[i].caption);
    }
    vlp_free(found->hits);
    *found = (vlp_found){0};
}
