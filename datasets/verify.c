#include "datasets/verify.h"

#include "core/threads.h"
#include "datasets/bulk.h"
#include "datasets/look.h"
#include "datasets/stored.h"
#include "vision/image.h"

#include <omp.h>
#include <stdio.h>

enum { CHUNK = 256, MAX_THREADS = 256 };

typedef struct {
    int64_t id, offset, length;
    vlp_stored stored;
    vlp_buf path;
    bool good;
    uint64_t look;
    int width, height;
    char reason[256];
} candidate;

typedef struct {
    vlp_image image;
    vlp_buf file;
    vlp_container container;
    vlp_look_scratch look;
} workspace;

static void check(candidate *c, workspace *work, const vlp_decode_options *decode) {
    vlp_status status = vlp_stored_read(&work->container, c->path.data, c->offset, c->length,
                                        c->stored, &work->file);
    if (status == VLP_OK)
        status = vlp_image_decode(&work->image, (const uint8_t *)work->file.data, work->file.len,
                                  decode);
    if (status == VLP_OK) status = vlp_look(&c->look, &work->image, &work->look);
    c->good = status == VLP_OK;
    c->width = c->good ? work->image.width : 0;
    c->height = c->good ? work->image.height : 0;
    snprintf(c->reason, sizeof c->reason, "%s", c->good ? "" : vlp_error());
}

static vlp_status next_chunk(vlp_stmt *select, int64_t after, candidate *chunk, int *n) {
    *n = 0;
    vlp_bind_int(select, 1, after);
    bool row = true;
    while (*n < CHUNK) {
        VLP_TRY(vlp_stmt_step(select, &row));
        if (!row) return VLP_OK;
        candidate *c = &chunk[*n];
        c->id = vlp_column_int(select, 0);
        vlp_buf_clear(&c->path);
        VLP_TRY(vlp_buf_puts(&c->path, vlp_column_text(select, 1, NULL)));
        c->offset = vlp_column_int(select, 2);
        c->length = vlp_column_int(select, 3);
        c->stored = (vlp_stored)vlp_column_int(select, 4);
        ++*n;
    }
    vlp_stmt_reset(select);
    return VLP_OK;
}

static vlp_status save_chunk(vlp_db *db, vlp_stmt *update, const candidate *chunk, int n) {
    VLP_TRY(vlp_db_begin(db));
    vlp_status status = VLP_OK;
    for (int i = 0; i < n; i++) {
        const candidate *c = &chunk[i];
        vlp_bind_int(update, 1, c->id);
        vlp_bind_int(update, 2, c->good ? VLP_IMAGE_GOOD : VLP_IMAGE_BAD);
        vlp_bind_text(update, 3, c->good ? NULL : c->reason, -1);
        vlp_bind_int(update, 4, c->width);
        vlp_bind_int(update, 5, c->height);
        if (c->good) vlp_bind_int(update, 6, (int64_t)c->look);
        VLP_TRY_DONE(vlp_stmt_run(update));
    }
    VLP_TRY_DONE(vlp_db_commit(db));
done:
    if (status != VLP_OK) vlp_db_rollback(db);
    return status;
}

static void tell(const candidate *chunk, int n, const vlp_verify_options *options,
                 vlp_verify_report *report) {
    for (int i = 0; i < n; i++) {
        report->checked++;
        (*(chunk[i].good ? &report->good : &report->bad))++;
        if (!chunk[i].good && options->bad)
            options->bad(chunk[i].path.data, 0, VLP_SKIP_UNDECODABLE, chunk[i].reason,
                         options->user);
    }
}

static vlp_status verify_all(vlp_db *db, vlp_stmt *select, vlp_stmt *update, candidate *chunk,
                             workspace *work, int threads, const vlp_verify_options *options,
                             vlp_verify_report *report) {
    vlp_decode_options decode = vlp_decode_defaults;
    if (options->max_pixels) decode.max_pixels = options->max_pixels;
    if (options->max_bytes) decode.max_bytes = options->max_bytes;
    int64_t last = 0;
    while (true) {
        int n;
        VLP_TRY(next_chunk(select, last, chunk, &n));
        if (n == 0) return VLP_OK;
        last = chunk[n - 1].id;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int i = 0; i < n; i++) check(&chunk[i], &work[omp_get_thread_num()], &decode);
        VLP_TRY(save_chunk(db, update, chunk, n));
        tell(chunk, n, options, report);
        if (options->progress && !options->progress(report->checked, report->total, options->user))
            return VLP_FAIL(VLP_ERR_INTERRUPTED,
                            "%s: interrupted; %lld images are checked and "
                            "saved, run again to go on",
                            vlp_db_path(db), (long long)report->checked);
    }
}

vlp_status vlp_index_verify(vlp_index *index, const vlp_verify_options *options,
                            vlp_verify_report *report) {
    *report = (vlp_verify_report){0};
    vlp_db *db = vlp_index_db(index);
    int threads = options->threads > 0 ? options->threads : vlp_threads_get();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    vlp_stmt *select = NULL, *update = NULL;
    vlp_status status = VLP_OK;
    candidate *chunk = vlp_alloc_zero(CHUNK, sizeof *chunk);
    workspace *work = vlp_alloc_zero((size_t)threads, sizeof *work);
    if (!chunk || !work) {
        status = VLP_ERR_MEMORY;
        goto done;
    }
    VLP_TRY_DONE(vlp_stmt_new(&select, db,
                              "SELECT id, path, offset, length, stored FROM images WHERE"
                              " state=0 AND id>?1"
                              " ORDER BY id"));
    VLP_TRY_DONE(vlp_stmt_new(&update, db,
                              "UPDATE images SET state=?2, reason=?3, look=?6,"
                              " width=CASE WHEN ?4 THEN ?4 ELSE width END,"
                              " height=CASE WHEN ?5 THEN ?5 ELSE height END"
                              " WHERE id=?1"));
    VLP_TRY_DONE(vlp_db_int(db, "SELECT count(*) FROM images WHERE state=0", &report->total));
    VLP_TRY_DONE(verify_all(db, select, update, chunk, work, threads, options, report));
done:
    vlp_stmt_free(select);
    vlp_stmt_free(update);
    for (int i = 0; chunk && i < CHUNK; i++) vlp_buf_free(&chunk[i].path);
    for (int i = 0; work && i < threads; i++) {
        vlp_image_free(&work[i].image);
        vlp_buf_free(&work[i].file);
        vlp_container_close(&work[i].container);
        vlp_look_scratch_free(&work[i].look);
    }
    vlp_free(chunk);
    vlp_free(work);
    return status;
}

/* Whether a killed import or images that were never decoded are left. */
static vlp_status is_ready(const vlp_index *index, bool *ready) {
    int64_t missing, open;
    VLP_TRY(vlp_bulk_missing(vlp_index_db(index), &missing));
    VLP_TRY(vlp_db_int(vlp_index_db(index), "SELECT EXISTS(SELECT 1 FROM images WHERE state=0)",
                       &open));
    *ready = missing == 0 && open == 0;
    return VLP_OK;
}

vlp_status vlp_index_open_verified(vlp_index **out, const char *path,
                                   const vlp_verify_options *options, vlp_verify_report *report) {
    *report = (vlp_verify_report){0};
    vlp_status status = vlp_index_open(out, path, VLP_DB_READ); /* never creates one */
    if (status == VLP_ERR_NOT_FOUND) return status;
    bool ready = false;
    if (status == VLP_OK) status = is_ready(*out, &ready);
    if (status == VLP_OK && ready) return VLP_OK;
    vlp_index_free(*out);
    VLP_TRY(vlp_index_open(out, path, VLP_DB_WRITE));
    status = vlp_index_verify(*out, options, report);
    if (status == VLP_OK) return VLP_OK;
    vlp_index_free(*out);
    *out = NULL;
    return status;
}
