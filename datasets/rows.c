#include "datasets/rows.h"

#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ?1 = split or NULL, ?2 = source id or 0 */
#define FILTER " AND (?1 IS NULL OR i.split=?1) AND (?2=0 OR i.source_id=?2)"

/* The plus keeps the index of hashes from giving the order: each row would be fetched from another
 * page, where a scan and a sort read the table once. */
static const struct {
    const char *select, *order, *place;
} queries[] = {
    [VLP_ROWS_PAIRS] = {"SELECT i.id FROM images i WHERE i.state=1" FILTER
                        " AND EXISTS(SELECT 1 FROM captions c WHERE c.image_id=i.id)",
                        "+i.hash, i.path, i.offset", "i.path, i.offset"},
    [VLP_ROWS_IMAGES] = {"SELECT i.id FROM images i WHERE i.state=1" FILTER,
                         "+i.hash, i.path, i.offset", "i.path, i.offset"},
    [VLP_ROWS_CAPTIONS] = {"SELECT c.id FROM captions c JOIN images i ON i.id=c.image_id"
                           " WHERE i.state=1" FILTER,
                           "+i.hash, i.path, i.offset, c.hash, c.text, c.id",
                           "i.path, i.offset, c.hash, c.text, c.id"},
    [VLP_ROWS_TEXTS] = {"SELECT c.id FROM captions c LEFT JOIN images i ON i.id=c.image_id"
                        " WHERE (c.image_id IS NULL OR i.state=1)"
                        " AND (?1 IS NULL OR coalesce(i.split, c.split)=?1)"
                        " AND (?2=0 OR c.source_id=?2)",
                        "c.hash, c.text, i.hash, c.id", "c.id"},
    [VLP_ROWS_QUESTIONS] = {"SELECT q.id FROM questions q JOIN images i ON i.id=q.image_id"
                            " WHERE i.state=1" FILTER
                            " AND EXISTS(SELECT 1 FROM answers a WHERE a.question_id=q.id"
                            " AND a.votes>0)",
                            "i.hash, i.path, i.offset, q.text, q.number, q.id",
                            "i.path, i.offset, q.text, q.number, q.id"},
};

static vlp_status bound_int(vlp_db *db, const char *sql, const char *split, int64_t source,
                            int64_t *out) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, sql));
    vlp_bind_text(stmt, 1, split, -1);
    vlp_bind_int(stmt, 2, source);
    bool row;
    vlp_status status = vlp_stmt_step(stmt, &row);
    *out = status == VLP_OK && row ? vlp_column_int(stmt, 0) : 0;
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status source_id(vlp_db *db, const char *name, int64_t *id) {
    *id = 0;
    if (!name) return VLP_OK;
    VLP_TRY(bound_int(db, "SELECT id FROM sources WHERE name=?1 AND ?2=?2", name, 0, id));
    if (*id) return VLP_OK;
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no source named \"%s\"; `vlp stats` lists the names",
                    vlp_db_path(db), name);
}

static vlp_status refuse_unverified(vlp_db *db, const char *split, int64_t source) {
    int64_t open;
    VLP_TRY(bound_int(db, "SELECT count(*) FROM images i WHERE i.state=0" FILTER, split, source,
                      &open));
    if (open == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "%s: %lld images were never decoded; run `vlp index --check`",
                    vlp_db_path(db), (long long)open);
}

enum { IN_MEMORY = 1 << 20 };

/* A mapping that grows with its file. */
typedef struct {
    int fd;
    int64_t capacity;
} id_file;

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] ? folder : P_tmpdir;
}

static vlp_status file_failed(void) {
    return VLP_FAIL(VLP_ERR_IO,
                    "no room for the list of rows in %s: %s; set TMPDIR to another folder",
                    temporary_folder(), strerror(errno));
}

static vlp_status map_more(vlp_rows *out, id_file *file) {
    int64_t capacity = file->capacity ? 2 * file->capacity : 2 * IN_MEMORY;
    size_t bytes = (size_t)capacity * sizeof *out->ids;
    if (file->fd < 0) file->fd = open(temporary_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file->fd < 0 || posix_fallocate(file->fd, 0, (off_t)bytes) != 0) return file_failed();
    void *ids = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (ids == MAP_FAILED) return file_failed();
    if (out->mapped)
        munmap(out->ids, out->mapped);
    else
        memcpy(ids, out->ids, (size_t)out->count * sizeof *out->ids);
    if (!out->mapped) vlp_free(out->ids);
    out->ids = ids;
    out->mapped = bytes;
    file->capacity = capacity;
    return VLP_OK;
}

static vlp_status grow(vlp_rows *out, int64_t *capacity, id_file *file) {
    if (*capacity >= IN_MEMORY) {
        VLP_TRY(map_more(out, file));
        *capacity = file->capacity;
        return VLP_OK;
    }
    *capacity = *capacity ? 2 * *capacity : 1024;
    int64_t *ids = vlp_realloc(out->ids, (size_t)*capacity * sizeof *ids);
    if (!ids) return VLP_ERR_MEMORY;
    out->ids = ids;
    return VLP_OK;
}

static vlp_status collect(vlp_rows *out, vlp_stmt *stmt, id_file *file) {
    int64_t capacity = 0;
    while (true) {
        bool row;
        VLP_TRY(vlp_stmt_step(stmt, &row));
        if (!row) return VLP_OK;
        if (out->count == capacity) VLP_TRY(grow(out, &capacity, file));
        out->ids[out->count++] = vlp_column_int(stmt, 0);
    }
}

vlp_status vlp_rows_collect(vlp_rows *out, vlp_stmt *stmt) {
    id_file file = {.fd = -1};
    vlp_status status = collect(out, stmt, &file);
    if (file.fd >= 0) close(file.fd); /* the mapping holds it */
    return status;
}

static vlp_status open_rows(vlp_rows *out, const vlp_index *index, vlp_rows_kind kind,
                            const char *split, const char *source, bool by_place) {
    static const char *const things[] = {"images with captions", "images", "captions of images",
                                         "captions or texts", "answered questions about images"};
    *out = (vlp_rows){0};
    vlp_db *db = vlp_index_db(index);
    int64_t id;
    VLP_TRY(source_id(db, source, &id));
    VLP_TRY(refuse_unverified(db, split, id));
    vlp_stmt *stmt;
    char sql[1024];
    snprintf(sql, sizeof sql, "%s ORDER BY %s", queries[kind].select,
             by_place ? queries[kind].place : queries[kind].order);
    VLP_TRY(vlp_stmt_new(&stmt, db, sql));
    vlp_bind_text(stmt, 1, split, -1);
    vlp_bind_int(stmt, 2, id);
    vlp_status status = vlp_rows_collect(out, stmt);
    vlp_stmt_free(stmt);
    if (status == VLP_OK && out->count == 0)
        status =
            VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no usable %s%s%s%s%s; `vlp stats` shows what is there",
                     vlp_db_path(db), things[kind], split ? " in split " : "", split ? split : "",
                     source ? " of source " : "", source ? source : "");
    if (status != VLP_OK) vlp_rows_close(out);
    return status;
}

vlp_status vlp_rows_open(vlp_rows *out, const vlp_index *index, vlp_rows_kind kind,
                         const char *split, const char *source) {
    return open_rows(out, index, kind, split, source, false);
}

vlp_status vlp_rows_open_by_place(vlp_rows *out, const vlp_index *index, vlp_rows_kind kind,
                                  const char *split, const char *source) {
    return open_rows(out, index, kind, split, source, true);
}

void vlp_rows_close(vlp_rows *rows) {
    if (rows->mapped)
        munmap(rows->ids, rows->mapped);
    else
        vlp_free(rows->ids);
    *rows = (vlp_rows){0};
}
