#include "datasets/catalogue.h"

#include "core/kernels.h"
#include "core/threads.h"
#include "datasets/filter.h"
#include "datasets/fulltext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_GRAIN = 1024 }; /* vectors that are worth a thread */

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

/* Damaged: of another width, cut short, or not finite. */
static bool copy_vector(float *out, vlp_stmt *stmt, int column, int64_t dim) {
    int64_t bytes;
    const void *vector = vlp_column_blob(stmt, column, &bytes);
    if (vlp_column_int(stmt, column - 1) != dim || bytes != dim * (int64_t)sizeof(float))
        return false;
    memcpy(out, vector, (size_t)bytes);
    return isfinite((double)vlp_kernels_get()->sum_squares(dim, out));
}

/* image_id, dim, vector, passes */
static void take_row(vlp_catalogue *out, vlp_stmt *stmt) {
    int64_t id = vlp_column_int(stmt, 0);
    if (!copy_vector(out->vectors + out->n * out->dim, stmt, 2, out->dim)) {
        if (out->damaged++ == 0) out->first_damaged = id;
        return;
    }
    bool passes = vlp_column_int(stmt, 3) != 0;
    if (out->passes) out->passes[out->n] = passes;
    out->selected += passes;
    out->ids[out->n++] = id;
}

static vlp_status reserve(vlp_catalogue *out, vlp_db *db, const char *model, bool filtered) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT count(*) FROM embeddings WHERE model=?1"));
    vlp_bind_text(stmt, 1, model, -1);
    bool row;
    vlp_status status = vlp_stmt_step(stmt, &row);
    size_t n = status == VLP_OK ? (size_t)vlp_column_int(stmt, 0) + 1 : 1;
    vlp_stmt_free(stmt);
    VLP_TRY(status);
    out->ids = vlp_alloc(n * sizeof *out->ids);
    out->vectors = vlp_alloc(n * (size_t)out->dim * sizeof *out->vectors);
    out->passes = filtered ? vlp_alloc(n) : NULL;
    return out->ids && out->vectors && (out->passes || !filtered) ? VLP_OK : VLP_ERR_MEMORY;
}

/* Counting and reading are one transaction: rows that are added meanwhile do not show. */
static vlp_status load_rows(vlp_catalogue *out, vlp_db *db, const char *model, const char *where,
                            const vlp_filter *filter) {
    vlp_buf sql = {0};
    vlp_stmt *stmt = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_filter_check(filter, db));
    VLP_TRY_DONE(reserve(out, db, model, where != NULL));
    VLP_TRY_DONE(vlp_buf_printf(&sql,
                                "SELECT e.image_id, e.dim, e.vector, (%s) FROM embeddings e"
                                " JOIN images i ON i.id=e.image_id WHERE e.model=?1 AND i.state<>2"
                                " ORDER BY e.image_id",
                                filter->sql.data));
    VLP_TRY_DONE(vlp_stmt_new(&stmt, db, sql.data));
    vlp_bind_text(stmt, 1, model, -1);
    vlp_filter_bind(filter, stmt);
    bool row = true;
    while (row) {
        VLP_TRY_DONE(vlp_stmt_step(stmt, &row));
        if (row) take_row(out, stmt);
    }
done:
    vlp_stmt_free(stmt);
    vlp_buf_free(&sql);
    return status;
}

vlp_status vlp_catalogue_load(vlp_catalogue *out, const vlp_index *index, const char *model,
                              int64_t dim, const char *where) {
    VLP_ASSERT(dim > 0, "vectors of %lld", (long long)dim);
    *out = (vlp_catalogue){.dim = dim};
    vlp_db *db = vlp_index_db(index);
    vlp_filter filter;
    VLP_TRY(vlp_filter_parse(&filter, where, 2));
    vlp_status status = vlp_db_exec(db, "BEGIN");
    if (status == VLP_OK) {
        status = load_rows(out, db, model, where, &filter);
        vlp_db_rollback(db);
    }
    vlp_filter_free(&filter);
    if (status != VLP_OK) vlp_catalogue_close(out);
    return status;
}

static vlp_status find_damaged(vlp_rows *out, vlp_db *db, const char *model, int64_t dim,
                               float *vector) {
    vlp_stmt *stmt;
    int64_t capacity = 0;
    vlp_status status;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT id, dim, vector FROM embeddings WHERE model=?1"));
    vlp_bind_text(stmt, 1, model, -1);
    bool row = true;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        if (copy_vector(vector, stmt, 2, dim)) continue;
        if (out->count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            int64_t *ids = vlp_realloc(out->ids, (size_t)capacity * sizeof *ids);
            if (!ids) break;
            out->ids = ids;
        }
        out->ids[out->count++] = vlp_column_int(stmt, 0);
    }
    vlp_stmt_free(stmt);
    return status == VLP_OK && row ? VLP_ERR_MEMORY : status;
}

static vlp_status delete_all(vlp_db *db, const vlp_rows *rows) {
    vlp_stmt *stmt = NULL;
    VLP_TRY(vlp_db_begin(db));
    vlp_status status = vlp_stmt_new(&stmt, db, "DELETE FROM embeddings WHERE id=?1");
    for (int64_t i = 0; i < rows->count && status == VLP_OK; i++) {
        vlp_bind_int(stmt, 1, rows->ids[i]);
        status = vlp_stmt_run(stmt);
    }
    vlp_stmt_free(stmt);
    if (status == VLP_OK) status = vlp_db_commit(db);
    if (status != VLP_OK) vlp_db_rollback(db);
    return status;
}

vlp_status vlp_catalogue_discard_damaged(vlp_index *index, const char *model, int64_t dim,
                                         int64_t *n) {
    vlp_rows damaged = {0};
    float *vector = vlp_alloc((size_t)dim * sizeof *vector);
    vlp_db *db = vlp_index_db(index);
    vlp_status status = vector ? find_damaged(&damaged, db, model, dim, vector) : VLP_ERR_MEMORY;
    if (status == VLP_OK && damaged.count > 0) status = delete_all(db, &damaged);
    *n = damaged.count;
    vlp_free(vector);
    vlp_rows_close(&damaged);
    return status;
}

void vlp_catalogue_close(vlp_catalogue *catalogue) {
    vlp_free(catalogue->ids);
    vlp_free(catalogue->vectors);
    vlp_free(catalogue->passes);
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

/* The best of each part; hits [parts, k]. */
typedef struct {
    const vlp_catalogue *catalogue;
    const float *query;
    int64_t k;
    vlp_hit *hits;
    int64_t *found; /* [parts] */
} scan;

static void scan_part(int64_t begin, int64_t end, int part, void *ctx) {
    const scan *s = ctx;
    const vlp_catalogue *c = s->catalogue;
    vlp_hit *hits = s->hits + part * s->k;
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++) {
        if (c->passes && !c->passes[i]) continue;
        double score = (double)dot(c->vectors + i * c->dim, s->query, c->dim);
        keep_best(hits, s->k, &n, (vlp_hit){c->ids[i], score});
    }
    s->found[part] = n;
}

vlp_status vlp_catalogue_top(const vlp_catalogue *catalogue, const float *query, int64_t k,
                             vlp_hit *hits, int64_t *n) {
    *n = 0;
    int parts = vlp_parallel_parts(catalogue->n, SCAN_GRAIN);
    if (parts == 0 || k <= 0) return VLP_OK;
    if (k > catalogue->n) k = catalogue->n;
    scan s = {catalogue, query, k, hits, NULL};
    s.found = vlp_alloc_zero((size_t)parts, sizeof *s.found);
    if (parts > 1) s.hits = vlp_alloc((size_t)parts * (size_t)k * sizeof *s.hits);
    vlp_status status = s.found && s.hits ? VLP_OK : VLP_ERR_MEMORY;
    if (status == VLP_OK) {
        vlp_parallel_for(catalogue->n, SCAN_GRAIN, scan_part, &s);
        *n = s.found[0];
        if (parts > 1) memcpy(hits, s.hits, (size_t)*n * sizeof *hits);
        if (parts > 1 && *n == k)
            for (int64_t i = k / 2; i-- > 0;) sink(hits, k, i);
        for (int part = 1; part < parts; part++)
            for (int64_t i = 0; i < s.found[part]; i++) keep_best(hits, k, n, s.hits[part * k + i]);
        qsort(hits, (size_t)*n, sizeof *hits, best_first);
    }
    if (s.hits != hits) vlp_free(s.hits);
    vlp_free(s.found);
    return status;
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

static vlp_status refuse_behind(const vlp_index *index) {
    int64_t behind;
    VLP_TRY(vlp_fulltext_behind(index, &behind));
    if (behind == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "%s: the words of %lld captions are not indexed yet; run: vlp embed",
                    vlp_index_path(index), (long long)behind);
}

vlp_status vlp_catalogue_words(const vlp_index *index, const char *words, const char *where,
                               int64_t k, vlp_hit *hits, int64_t *n) {
    *n = 0;
    vlp_filter filter;
    VLP_TRY(vlp_filter_parse(&filter, where, 4));
    vlp_buf query = {0}, list = {0};
    vlp_status status = vlp_filter_check(&filter, vlp_index_db(index));
    if (status == VLP_OK) status = refuse_behind(index);
    if (status == VLP_OK) status = word_query(&query, words);
    if (status == VLP_OK && query.len > 0) {
        status = words_array(&list, query.data);
        if (status == VLP_OK) status = run_words(index, query.data, list.data, &filter, k, hits, n);
    }
    vlp_filter_free(&filter);
    vlp_buf_free(&query);
    vlp_buf_free(&list);
    return status;
}

vlp_status vlp_catalogue_item(const vlp_index *index, int64_t id, vlp_buf *path, vlp_buf *item,
                              vlp_buf *caption) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, vlp_index_db(index),
                         "SELECT path, (SELECT text FROM captions WHERE image_id=i.id ORDER BY id"
                         " LIMIT 1), item FROM images i WHERE id=?1"));
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
    if (item) vlp_buf_clear(item);
    if (status == VLP_OK && item) status = vlp_buf_puts(item, vlp_column_text(stmt, 2, NULL));
    vlp_stmt_free(stmt);
    return status;
}
