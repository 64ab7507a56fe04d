/* SQLite behind a thin wrapper: the one place that knows the library. Errors name the database file
 * and the cure. A connection and its statements belong to one thread at a time; several connections
 * to one file may read while one writes (write-ahead log, busy timeout 30 s). */
#ifndef VLP_DATASETS_DB_H
#define VLP_DATASETS_DB_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct vlp_db vlp_db;
typedef struct vlp_stmt vlp_stmt;

/* VLP_DB_WRITE creates the file; VLP_DB_READ also reads one on a read-only file system. */
typedef enum { VLP_DB_READ, VLP_DB_WRITE } vlp_db_mode;

vlp_status vlp_db_open(vlp_db **out, const char *path, vlp_db_mode mode);
/* A private database without a name, in memory and beyond that in a temporary file. */
vlp_status vlp_db_open_scratch(vlp_db **out);
/* How long databases opened from now on wait for another writer; 0 = the 30 s. For tests. */
void vlp_db_patience(int milliseconds);
void vlp_db_free(vlp_db *db); /* after its statements; rolls an open transaction back */
const char *vlp_db_path(const vlp_db *db);

/* Runs one or more statements without results. */
vlp_status vlp_db_exec(vlp_db *db, const char *sql);
/* The first column of the first row, 0 without rows. */
vlp_status vlp_db_int(vlp_db *db, const char *sql, int64_t *out);
int64_t vlp_db_last_id(const vlp_db *db);
int64_t vlp_db_changes(const vlp_db *db);

vlp_status vlp_db_begin(vlp_db *db);
vlp_status vlp_db_commit(vlp_db *db);
void vlp_db_rollback(vlp_db *db); /* a no-op outside a transaction */

/* Statements. Parameters count from 1, columns from 0. Bound text and blobs are borrowed until the
 * statement is reset; NULL binds NULL; len < 0 means a C string. */
vlp_status vlp_stmt_new(vlp_stmt **out, vlp_db *db, const char *sql);
void vlp_stmt_free(vlp_stmt *stmt);
void vlp_stmt_reset(vlp_stmt *stmt);
void vlp_bind_int(vlp_stmt *stmt, int index, int64_t value);
void vlp_bind_text(vlp_stmt *stmt, int index, const char *text, int64_t len);
void vlp_bind_blob(vlp_stmt *stmt, int index, const void *data, int64_t len);
void vlp_bind_null(vlp_stmt *stmt, int index);

/* Advances: *row tells whether a row is there; without one the statement is reset. */
vlp_status vlp_stmt_step(vlp_stmt *stmt, bool *row);
/* Runs to the end and resets. */
vlp_status vlp_stmt_run(vlp_stmt *stmt);

int64_t vlp_column_int(vlp_stmt *stmt, int index);
double vlp_column_double(vlp_stmt *stmt, int index);
bool vlp_column_is_null(vlp_stmt *stmt, int index);
/* Borrowed until the next step or reset; "" for NULL. */
const char *vlp_column_text(vlp_stmt *stmt, int index, int64_t *len);
const void *vlp_column_blob(vlp_stmt *stmt, int index, int64_t *len);

const char *vlp_db_version(void); /* of SQLite, at run time */

#endif
