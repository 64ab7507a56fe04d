#include "train/embed.h"

#include "core/memory.h"
#include "datasets/catalogue.h"
#include "datasets/fulltext.h"
#include "datasets/meta.h"
#include "train/decoder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { DEFAULT_BATCH = 64, SAVE_ROWS = 8192 };

typedef struct {
    vlp_embedder *e;
    vlp_index *index;
    const vlp_embed_options *options;
    vlp_embed_report *report;
    char model[33];
    int64_t batch, width;
    vlp_decoder *decoder;
    vlp_rows missing;
    float *encoded; /* [batch, E] */
    int64_t *ids;   /* [SAVE_ROWS] waiting to be saved */
    float *vectors; /* [SAVE_ROWS, E] */
    int64_t waiting;
    double began, saved;
} embedding;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void vlp_embed_model_id(const vlp_embedder *e, char out[33]) {
    vlp_hash_hex(vlp_embedder_id(e), out);
}

static vlp_status save(embedding *m) {
    if (m->waiting > 0)
        VLP_TRY(vlp_catalogue_put(m->index, m->model, m->ids, m->vectors, m->waiting, m->width));
    m->report->embedded += m->waiting;
    m->waiting = 0;
    m->saved = now();
    return VLP_OK;
}

static void tell_skipped(embedding *m, const char *path, const char *reason) {
    if (m->options->skipped) m->options->skipped(path, reason, m->options->user);
}

static vlp_status encode_some(embedding *m, const int64_t *ids, int64_t n) {
    VLP_TRY(vlp_decoder_images(m->decoder, ids, n));
    VLP_TRY(vlp_embedder_pixels(m->e, vlp_decoder_pixels(m->decoder), n, m->encoded));
    for (int64_t i = 0; i < n; i++) {
        const char *reason = vlp_decoder_reason(m->decoder, i);
        if (reason) {
            m->report->skipped++;
            tell_skipped(m, vlp_decoder_path(m->decoder, i), reason);
            continue;
        }
        m->ids[m->waiting] = ids[i];
        memcpy(m->vectors + m->waiting++ * m->width, m->encoded + i * m->width,
               (size_t)m->width * sizeof(float));
    }
    return VLP_OK;
}

static void tell_progress(const embedding *m, int64_t done) {
    if (!m->options->progress) return;
    vlp_embed_progress p = {.total = m->missing.count,
                            .done = done,
                            .skipped = m->report->skipped,
                            .seconds = now() - m->began};
    p.per_second = p.seconds > 0 ? (double)done / p.seconds : 0;
    p.seconds_left = p.per_second > 0 ? (double)(p.total - done) / p.per_second : 0;
    m->options->progress(&p, m->options->user);
}

static vlp_status encode_all(embedding *m) {
    double every = m->options->save_seconds > 0 ? m->options->save_seconds : 3;
    m->began = m->saved = now();
    for (int64_t at = 0; at < m->missing.count;) {
        int64_t n = m->missing.count - at < m->batch ? m->missing.count - at : m->batch;
        VLP_TRY(encode_some(m, m->missing.ids + at, n));
        at += n;
        tell_progress(m, at);
        bool stop = m->options->stop && *m->options->stop;
        if (stop || m->waiting + m->batch > SAVE_ROWS || now() - m->saved > every) VLP_TRY(save(m));
        if (stop && at < m->missing.count)
            return VLP_FAIL(VLP_ERR_INTERRUPTED,
                            "interrupted: %lld of %lld missing embeddings are made and saved; the "
                            "same command goes on",
                            (long long)m->report->embedded, (long long)m->missing.count);
    }
    return save(m);
}

/* Files of earlier embeddings that are no longer there: a stat each. */
static vlp_status find_gone(embedding *m) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, vlp_index_db(m->index),
                         "SELECT i.path FROM embeddings e JOIN images i ON i.id=e.image_id"
                         " WHERE e.model=?1 ORDER BY i.id"));
    vlp_bind_text(stmt, 1, m->model, -1);
    vlp_status status;
    bool row = true;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        struct stat st;
        const char *path = vlp_column_text(stmt, 0, NULL);
        m->report->present++;
        if (stat(path, &st) == 0) continue;
        m->report->gone++;
        tell_skipped(m, path, "the file is gone; index its folder again");
    }
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status record_model(embedding *m, const char *folder) {
    char *absolute = realpath(folder, NULL);
    vlp_status status = vlp_meta_set(m->index, VLP_META_MODEL, absolute ? absolute : folder);
    free(absolute);
    return status == VLP_OK ? vlp_meta_set(m->index, VLP_META_MODEL_ID, m->model) : status;
}

static vlp_status run(embedding *m, const char *folder) {
    vlp_embed_model_id(m->e, m->model);
    m->encoded = vlp_alloc((size_t)(m->batch * m->width) * sizeof *m->encoded);
    m->ids = vlp_alloc(SAVE_ROWS * sizeof *m->ids);
    m->vectors = vlp_alloc((size_t)(SAVE_ROWS * m->width) * sizeof *m->vectors);
    if (!m->encoded || !m->ids || !m->vectors) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_catalogue_discard_damaged(m->index, m->model, m->width, &m->report->damaged));
    VLP_TRY(vlp_fulltext_update(m->index));
    VLP_TRY(find_gone(m));
    VLP_TRY(vlp_catalogue_missing(&m->missing, m->index, m->model));
    VLP_TRY(record_model(m, folder));
    VLP_TRY(vlp_decoder_open(&m->decoder, vlp_embedder_transform(m->e), m->batch, m->index));
    return encode_all(m);
}

vlp_status vlp_embed_catalogue(vlp_embedder *e, vlp_index *index, const char *model_folder,
                               const vlp_embed_options *options, vlp_embed_report *report) {
    *report = (vlp_embed_report){0};
    embedding m = {.e = e,
                   .index = index,
                   .options = options,
                   .report = report,
                   .batch = options->batch > 0 ? options->batch : DEFAULT_BATCH,
                   .width = vlp_embedder_width(e)};
    VLP_ASSERT(m.batch <= SAVE_ROWS, "batch of %lld", (long long)m.batch);
    double began = now();
    vlp_status status = run(&m, model_folder);
    report->seconds = now() - began;
    vlp_decoder_free(m.decoder);
    vlp_rows_close(&m.missing);
    vlp_free(m.encoded);
    vlp_free(m.ids);
    vlp_free(m.vectors);
    return status;
}
