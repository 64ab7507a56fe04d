#include "datasets/db.h"

#include "core/memory.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct vlp_db {
    sqlite3 *raw;
    char *path;
};

struct vlp_stmt {
    sqlite3_stmt *raw;
    vlp_db *db;
};

static const struct {
    int code;
    vlp_status status;
    const char *cure;
} cures[] = {
    {SQLITE_BUSY, VLP_ERR_IO, "another program is writing it; wait for it or stop it"},
    {SQLITE_LOCKED, VLP_ERR_IO, "another program is writing it; wait for it or stop it"},
    {SQLITE_NOTADB, VLP_ERR_FORMAT, "this is not an index; name another file"},
    {SQLITE_CORRUPT, VLP_ERR_FORMAT, "the file is damaged; delete it and index again"},
    {SQLITE_FULL, VLP_ERR_IO, "the disk is full; make room and run again"},
    {SQLITE_READONLY, VLP_ERR_IO, "it cannot be written; check its permissions"},
    {SQLITE_CANTOPEN, VLP_ERR_IO, "check that the folder exists and may be read and written"},
    {SQLITE_IOERR, VLP_ERR_IO, "the disk refused; check it and run again"},
    {SQLITE_NOMEM, VLP_ERR_MEMORY, "out of memory"},
    {SQLITE_TOOBIG, VLP_ERR_LIMIT, "a value is too long"},
};

static vlp_status db_error(const vlp_db *db, int code, const char *doing) {
    const char *reason = db->raw ? sqlite3_errmsg(db->raw) : sqlite3_errstr(code);
    for (size_t i = 0; i < VLP_COUNT(cures); i++)
        if (cures[i].code == (code & 0xFF))
            return VLP_FAIL(cures[i].status, "%s: cannot %s: %s (%s)", db->path, doing, reason,
                            cures[i].cure);
    return VLP_FAIL(VLP_ERR_IO, "%s: cannot %s: %s", db->path, doing, reason);
}

static int patience = 30000;

void vlp_db_patience(int milliseconds) {
    patience = milliseconds > 0 ? milliseconds : 30000;
}

static vlp_status db_setup(vlp_db *db, vlp_db_mode mode) {
    sqlite3_extended_result_codes(db->raw, 1);
    sqlite3_busy_timeout(db->raw, patience);
    VLP_TRY(vlp_db_exec(db, "PRAGMA foreign_keys=ON; PRAGMA cache_size=-65536"));
    if (mode == VLP_DB_READ) return vlp_db_exec(db, "PRAGMA query_only=ON");
    return vlp_db_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
}

static vlp_status scratch_setup(vlp_db *db) {
    return vlp_db_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                           " PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-16384; BEGIN");
}

/* Nobody asks how much memory SQLite holds; counting it costs a lock an allocation. */
static void no_memory_statistics(void) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* `name` stands for the file in messages. */
static vlp_status open_raw(vlp_db **out, const char *path, const char *name, int flags) {
    *out = NULL;
    vlp_db *db = vlp_alloc_zero(1, sizeof *db);
    if (!db) return VLP_ERR_MEMORY;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, no_memory_statistics);
    vlp_status status = VLP_ERR_MEMORY;
    db->path = vlp_strdup(name);
    if (db->path) {
        int code = sqlite3_open_v2(path, &db->raw, SQLITE_OPEN_NOMUTEX | flags, NULL);
        status = code == SQLITE_OK ? VLP_OK : db_error(db, code, "open the database");
    }
    if (status != VLP_OK)
        vlp_db_free(db);
    else
        *out = db;
    return status;
}

/* Frees the database when its set-up failed. */
static vlp_status settled(vlp_db **out, vlp_status status) {
    if (status != VLP_OK) vlp_db_free(*out);
    if (status != VLP_OK) *out = NULL;
    return status;
}

/* Whether the database may be taken as it lies: on a read-only file system there is no room for the
 * log's index (-shm) beside it, nor anybody who could change it. */
static vlp_status is_fixed(const char *path, bool *fixed) {
    vlp_buf log = {0};
    struct stat st;
    *fixed = access(path, W_OK) != 0 && errno == EROFS;
    if (!*fixed) return VLP_OK;
    VLP_TRY(vlp_buf_printf(&log, "%s-wal", path));
    bool pending = stat(log.data, &st) == 0 && st.st_size > 0;
    vlp_status status =
        !pending ? VLP_OK
                 : VLP_FAIL(VLP_ERR_IO,
                            "%s: the last changes lie in %s, and the file system is read-only; run"
                            " `vlp stats` on a copy of both that can be written",
                            path, log.data);
    vlp_buf_free(&log);
    return status;
}

static vlp_status open_fixed(vlp_db **out, const char *path) {
    vlp_buf uri = {0};
    vlp_status status = vlp_buf_puts(&uri, "file:");
    for (const char *p = path; *p && status == VLP_OK; p++)
        status = strchr("%?#", *p) ? vlp_buf_printf(&uri, "%%%02X", (unsigned)*p)
                                   : vlp_buf_append(&uri, p, 1);
    if (status == VLP_OK) status = vlp_buf_puts(&uri, "?immutable=1");
    if (status == VLP_OK)
        status = open_raw(out, uri.data, path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    vlp_buf_free(&uri);
    return status;
}

vlp_status vlp_db_open(vlp_db **out, const char *path, vlp_db_mode mode) {
    bool fixed = false;
    if (mode == VLP_DB_READ) VLP_TRY(is_fixed(path, &fixed));
    if (fixed) {
        VLP_TRY(open_fixed(out, path));
        return settled(out, db_setup(*out, mode));
    }
    /* A reader opens the file for writing where it may, and then promises not to: only so can the
     * last one to close fold the log (-wal, -shm) into the file and remove it. */
    int flags = SQLITE_OPEN_READWRITE | (mode == VLP_DB_READ ? 0 : SQLITE_OPEN_CREATE);
    VLP_TRY(open_raw(out, path, path, flags));
    return settled(out, db_setup(*out, mode));
}

vlp_status vlp_db_open_scratch(vlp_db **out) {
    VLP_TRY(open_raw(out, "", "temporary database", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    return settled(out, scratch_setup(*out));
}

void vlp_db_free(vlp_db *db) {
    if (!db) return;
    sqlite3_close_v2(db->raw);
    vlp_free(db->path);
    vlp_free(db);
}

const char *vlp_db_path(const vlp_db *db) {
    return db->path;
}

vlp_status vlp_db_exec(vlp_db *db, const char *sql) {
    int code = sqlite3_exec(db->raw, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? VLP_OK : db_error(db, code, "use the database");
}

vlp_status vlp_db_int(vlp_db *db, const char *sql, int64_t *out) {
    *out = 0;
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, sql));
    bool row = false;
    vlp_status status = vlp_stmt_step(stmt, &row);
    if (status == VLP_OK && row) *out = vlp_column_int(stmt, 0);
    vlp_stmt_free(stmt);
    return status;
}

int64_t vlp_db_last_id(const vlp_db *db) {
    return sqlite3_last_insert_rowid(db->raw);
}

int64_t vlp_db_changes(const vlp_db *db) {
    return sqlite3_changes(db->raw);
}

vlp_status vlp_db_begin(vlp_db *db) {
    return vlp_db_exec(db, "BEGIN IMMEDIATE");
}

vlp_status vlp_db_commit(vlp_db *db) {
    return vlp_db_exec(db, "COMMIT");
}

void vlp_db_rollback(vlp_db *db) {
    if (!sqlite3_get_autocommit(db->raw)) sqlite3_exec(db->raw, "ROLLBACK", NULL, NULL, NULL);
}

vlp_status vlp_stmt_new(vlp_stmt **out, vlp_db *db, const char *sql) {
    *out = NULL;
    vlp_stmt *stmt = vlp_alloc_zero(1, sizeof *stmt);
    if (!stmt) return VLP_ERR_MEMORY;
    stmt->db = db;
    int code = sqlite3_prepare_v3(db->raw, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt->raw, NULL);
    if (code != SQLITE_OK) {
        vlp_free(stmt);
        return db_error(db, code, "query the database");
    }
    *out = stmt;
    return VLP_OK;
}

void vlp_stmt_free(vlp_stmt *stmt) {
    if (!stmt) return;
    sqlite3_finalize(stmt->raw);
    vlp_free(stmt);
}

void vlp_stmt_reset(vlp_stmt *stmt) {
    sqlite3_reset(stmt->raw);
    sqlite3_clear_bindings(stmt->raw);
}

/* A parameter number that does not exist is a programming error; out of memory shows in the step.
 */
void vlp_bind_int(vlp_stmt *stmt, int index, int64_t value) {
    int code = sqlite3_bind_int64(stmt->raw, index, value);
    VLP_ASSERT(code != SQLITE_RANGE && code != SQLITE_MISUSE, "parameter %d", index);
}

void vlp_bind_text(vlp_stmt *stmt, int index, const char *text, int64_t len) {
    int code = text ? sqlite3_bind_text64(stmt->raw, index, text,
                                          len < 0 ? strlen(text) : (sqlite3_uint64)len,
                                          SQLITE_STATIC, SQLITE_UTF8)
                    : sqlite3_bind_null(stmt->raw, index);
    VLP_ASSERT(code != SQLITE_RANGE && code != SQLITE_MISUSE, "parameter %d", index);
}

void vlp_bind_blob(vlp_stmt *stmt, int index, const void *data, int64_t len) {
    int code = sqlite3_bind_blob64(stmt->raw, index, data, (sqlite3_uint64)len, SQLITE_STATIC);
    VLP_ASSERT(code != SQLITE_RANGE && code != SQLITE_MISUSE, "parameter %d", index);
}

void vlp_bind_null(vlp_stmt *stmt, int index) {
    int code = sqlite3_bind_null(stmt->raw, index);
    VLP_ASSERT(code != SQLITE_RANGE && code != SQLITE_MISUSE, "parameter %d", index);
}

vlp_status vlp_stmt_step(vlp_stmt *stmt, bool *row) {
    int code = sqlite3_step(stmt->raw);
    *row = code == SQLITE_ROW;
    if (code == SQLITE_ROW) return VLP_OK;
    vlp_status status = code == SQLITE_DONE ? VLP_OK : db_error(stmt->db, code, "use the database");
    vlp_stmt_reset(stmt);
    return status;
}

vlp_status vlp_stmt_run(vlp_stmt *stmt) {
    bool row = true;
    while (row) VLP_TRY(vlp_stmt_step(stmt, &row));
    return VLP_OK;
}

int64_t vlp_column_int(vlp_stmt *stmt, int index) {
    return sqlite3_column_int64(stmt->raw, index);
}

double vlp_column_double(vlp_stmt *stmt, int index) {
    return sqlite3_column_double(stmt->raw, index);
}

bool vlp_column_is_null(vlp_stmt *stmt, int index) {
    return sqlite3_column_type(stmt->raw, index) == SQLITE_NULL;
}

const char *vlp_column_text(vlp_stmt *stmt, int index, int64_t *len) {
    const char *text = (const char *)sqlite3_column_text(stmt->raw, index);
    if (len) *len = sqlite3_column_bytes(stmt->raw, index);
    return text ? text : "";
}

const void *vlp_column_blob(vlp_stmt *stmt, int index, int64_t *len) {
    const void *data = sqlite3_column_blob(stmt->raw, index);
    if (len) *len = sqlite3_column_bytes(stmt->raw, index);
    return data;
}

const char *vlp_db_version(void) {
    return sqlite3_libversion();
}
