#include "datasets/catalogue.h"

#include "datasets/filter.h"

#include <stdlib.h>
#include <string.h>

vlp_status vlp_catalogue_missing(vlp_rows *out, const vlp_index *index, const char *model) {
    *out = (vlp_rows){0};
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, vlp_index_db(index),
                         "SELECT id FROM images i WHERE state<>2 AND NOT EXISTS(SELECT 1 FROM"
                         " embeddings WHERE model=?1 AND image_id=i.id) ORDER BY id"));
    vlp_bind_text(stmt, 1, model, -1);
    vlp_status status = vlp_rows_collect(out, stmt);
    vlp_stmt_free(stmt);
    if (status != VLP_OK) vlp_rows_close(out);
    return status;
}

vlp_status vlp_catalogue_put(vlp_index *index, const char *model, const int64_t *ids,
                             const float *vectors, int64_t n, int64_t dim) {
    vlp_db *db = vlp_index_db(index);
    vlp_stmt *add = NULL;
    VLP_TRY(vlp_db_begin(db));
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_stmt_new(&add, db,
                              "INSERT INTO embeddings(model, image_id, dim, vector)"
                              " SELECT ?1, id, ?3, ?4 FROM images WHERE id=?2"
                              " ON CONFLICT(model, image_id) DO UPDATE SET dim=?3, vector=?4"));
    for (int64_t i = 0; i < n; i++) {
        vlp_bind_text(add, 1, model, -1);
        vlp_bind_int(add, 2, ids[i]);
        vlp_bind_int(add, 3, dim);
        vlp_bind_blob(add, 4, vectors + i * dim, dim * (int64_t)sizeof(float));
        VLP_TRY_DONE(vlp_stmt_run(add));
    }
    VLP_TRY_DONE(vlp_db_commit(db));
done:
    vlp_stmt_free(add);
    if (status != VLP_OK) vlp_db_rollback(db);
    return status;
}

static vlp_status take_row(vlp_catalogue *out, vlp_stmt *stmt, const char *model,
                           int64_t *capacity) {
    int64_t bytes, dim = vlp_column_int(stmt, 1);
    const void *vector = vlp_column_blob(stmt, 2, &bytes);
    if (out->n == 0) out->dim = dim;
    if (dim != out->dim || dim < 1 || bytes != dim * (int64_t)sizeof(float))
        return VLP_FAIL(VLP_ERR_FORMAT,
                        "image %lld has an embedding of %lld numbers among ones of %lld (model %s);"
                        " delete the index and embed again",
                        (long long)vlp_column_int(stmt, 0), (long long)dim, (long long)out->dim,
                        model);
    if (out->n == *capacity) {
        *capacity = *capacity ? *capacity + *capacity / 2 : 1024;
        int64_t *ids = vlp_realloc(out->ids, (size_t)*capacity * sizeof *ids);
        if (!ids) return VLP_ERR_MEMORY;
        out->ids = ids;
        float *vectors = vlp_realloc(out->vectors, (size_t)(*capacity * dim) * sizeof *vectors);
        if (!vectors) return VLP_ERR_MEMORY;
        out->vectors = vectors;
    }
    out->ids[out->n] = vlp_column_int(stmt, 0);
    memcpy(out->vectors + out->n++ * dim, vector, (size_t)bytes);
    return VLP_OK;
}

static vlp_status load_rows(vlp_catalogue *out, vlp_stmt *stmt, const char *model) {
    int64_t capacity = 0;
    while (true) {
        bool row;
        VLP_TRY(vlp_stmt_step(stmt, &row));
        if (!row) return VLP_OK;
        VLP_TRY(take_row(out, stmt, model, &capacity));
    }
}

vlp_status vlp_catalogue_load(vlp_catalogue *out, const vlp_index *index, const char *model,
                              const char *where) {
    *out = (vlp_catalogue){0};
    vlp_filter filter;
    VLP_TRY(vlp_filter_parse(&filter, where, 2));
    vlp_buf sql = {0};
    vlp_stmt *stmt = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_buf_printf(&sql,
                                "SELECT e.image_id, e.dim, e.vector FROM embeddings e JOIN images i"
                                " ON i.id=e.image_id WHERE e.model=?1 AND i.state<>2 AND %s"
                                " ORDER BY e.image_id",
                                filter.sql.data));
    VLP_TRY_DONE(vlp_stmt_new(&stmt, vlp_index_db(index), sql.data));
    vlp_bind_text(stmt, 1, model, -1);
    vlp_filter_bind(&filter, stmt);
    VLP_TRY_DONE(load_rows(out, stmt, model));
done:
    vlp_stmt_free(stmt);
    vlp_buf_free(&sql);
    vlp_filter_free(&filter);
    if (status != VLP_OK) vlp_catalogue_close(out);
    return status;
}

void vlp_catalogue_close(vlp_catalogue *catalogue) {
    vlp_free(catalogue->ids);
    vlp_free(catalogue->vectors);
    *catalogue = (vlp_catalogue){0};
}

/* Whether a comes after b: worse score, or the same and a larger id. */
static bool worse(vlp_hit a, vlp_hit b) {
    return a.score < b.score || (a.score == b.score && a.id > b.id);
}

/* hits is a heap with the worst on top; sinks the entry at i. */
static void sink(vlp_hit *hits, int64_t n, int64_t i) {
    while (true) {
        int64_t child = 2 * i + 1;
        if (child >= n) return;
        if (child + 1 < n && worse(hits[child + 1], hits[child])) child++;
        if (!worse(hits[child], hits[i])) return;
        vlp_hit swap = hits[i];
        hits[i] = hits[child];
        hits[child] = swap;
        i = child;
    }
}

static void keep_best(vlp_hit *hits, int64_t k, int64_t *n, vlp_hit hit) {
    if (*n < k) {
        hits[(*n)++] = hit;
        if (*n == k)
            for (int64_t i = k / 2; i-- > 0;) sink(hits, k, i);
    } else if (k > 0 && worse(hits[0], hit)) {
        hits[0] = hit;
        sink(hits, k, 0);
    }
}

static int best_first(const void *a, const void *b) {
    const vlp_hit *x = a, *y = b;
    return worse(*x, *y) ? 1 : worse(*y, *x) ? -1 : 0;
}

/* Sixteen sums side by side: vectors without leave to reorder floating point. */
static float dot(const float *a, const float *b, int64_t n) {
    enum { LANES = 16 };
    float sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sums[j] += a[i + j] * b[i + j];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int j = 0; j < LANES; j++) sum += sums[j];
    return sum;
}

void vlp_catalogue_top(const vlp_catalogue *catalogue, const float *query, int64_t k, vlp_hit *hits,
                       int64_t *n) {
    *n = 0;
    for (int64_t i = 0; i < catalogue->n; i++) {
        double score = dot(catalogue->vectors + i * catalogue->dim, query, catalogue->dim);
        keep_best(hits, k, n, (vlp_hit){catalogue->ids[i], score});
    }
    qsort(hits, (size_t)*n, sizeof *hits, best_first);
}

/* Every run of letters, digits and bytes above ASCII, quoted, joined by OR: nothing in it can be
 * FTS5 syntax. Empty when there are none. */
static vlp_status word_query(vlp_buf *out, const char *words) {
    while (*words) {
        size_t n = 0;
        while ((words[n] & 0x80) || (words[n] >= '0' && words[n] <= '9') ||
               ((words[n] | 32) >= 'a' && (words[n] | 32) <= 'z'))
            n++;
        if (n) VLP_TRY(vlp_buf_printf(out, "%s\"%.*s\"", out->len ? " OR " : "", (int)n, words));
        words += n ? n : 1;
    }
    return VLP_OK;
}

/* ?1 the FTS query, ?2 its words as a JSON array; names count where a caption does not say it. */
static const char words_sql[] =
    "WITH found AS MATERIALIZED (SELECT rowid AS id, -bm25(captions_fts) AS score"
    " FROM captions_fts WHERE captions_fts MATCH ?1),"
    " text AS (SELECT c.image_id AS id, max(f.score) AS score FROM found f"
    " JOIN captions c ON c.id=f.id WHERE c.image_id IS NOT NULL GROUP BY c.image_id),"
    " name AS (SELECT i.id, (SELECT count(*) FROM json_each(?2) w WHERE"
    "  instr(lower(replace(i.path, rtrim(i.path, replace(i.path, '/', '')), '')), w.value)>0) score"
    "  FROM images i),"
    " both AS (SELECT id, score FROM text UNION ALL SELECT id, score FROM name WHERE score>0)"
    "SELECT i.id, sum(both.score) total FROM both JOIN images i ON i.id=both.id"
    " WHERE i.state<>2 AND %s GROUP BY i.id ORDER BY total DESC, i.id LIMIT ?3";

static vlp_status words_array(vlp_buf *out, const char *query) {
    vlp_json *list = vlp_json_new_array();
    for (const char *p = query; (p = strchr(p, '"'));) {
        const char *end = strchr(p + 1, '"');
        char word[128];
        int n = (int)(end - p - 1 < 127 ? end - p - 1 : 127);
        for (int i = 0; i < n; i++) {
            char c = p[1 + i];
            word[i] = c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
        }
        word[n] = '\0';
        vlp_json_append(list, vlp_json_new_string(word));
        p = end + 1;
    }
    vlp_status status = vlp_json_dump(list, 0, out);
    vlp_json_free(list);
    return status;
}

static vlp_status run_words(const vlp_index *index, const char *query, const char *words,
                            const vlp_filter *filter, int64_t k, vlp_hit *hits, int64_t *n) {
    vlp_buf sql = {0};
    vlp_stmt *stmt = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_buf_printf(&sql, words_sql, filter->sql.data));
    VLP_TRY_DONE(vlp_stmt_new(&stmt, vlp_index_db(index), sql.data));
    vlp_bind_text(stmt, 1, query, -1);
    vlp_bind_text(stmt, 2, words, -1);
    vlp_bind_int(stmt, 3, k);
    vlp_filter_bind(filter, stmt);
    bool row = true;
    while (row) {
        VLP_TRY_DONE(vlp_stmt_step(stmt, &row));
        if (row) hits[(*n)++] = (vlp_hit){vlp_column_int(stmt, 0), vlp_column_double(stmt, 1)};
    }
done:
    vlp_stmt_free(stmt);
    vlp_buf_free(&sql);
    return status;
}

vlp_status vlp_catalogue_words(const vlp_index *index, const char *words, const char *where,
                               int64_t k, vlp_hit *hits, int64_t *n) {
    *n = 0;
    vlp_filter filter;
    VLP_TRY(vlp_filter_parse(&filter, where, 4));
    vlp_buf query = {0}, list = {0};
    vlp_status status = word_query(&query, words);
    if (status == VLP_OK && query.len > 0) {
        status = words_array(&list, query.data);
        if (status == VLP_OK) status = run_words(index, query.data, list.data, &filter, k, hits, n);
    }
    vlp_filter_free(&filter);
    vlp_buf_free(&query);
    vlp_buf_free(&list);
    return status;
}

vlp_status vlp_catalogue_item(const vlp_index *index, int64_t id, vlp_buf *path, vlp_buf *caption) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, vlp_index_db(index),
                         "SELECT path, (SELECT text FROM captions WHERE image_id=i.id ORDER BY id"
                         " LIMIT 1) FROM images i WHERE id=?1"));
    vlp_bind_int(stmt, 1, id);
    bool row;
    vlp_buf_clear(path);
    vlp_buf_clear(caption);
    vlp_status status = vlp_stmt_step(stmt, &row);
    if (status == VLP_OK && !row)
        status =
            VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no image %lld", vlp_index_path(index), (long long)id);
    if (status == VLP_OK) status = vlp_buf_puts(path, vlp_column_text(stmt, 0, NULL));
    if (status == VLP_OK) status = vlp_buf_puts(caption, vlp_column_text(stmt, 1, NULL));
    vlp_stmt_free(stmt);
    return status;
}
