#include "datasets/meta.h"

/* The table appears with the first fact: an index without one is an index without facts. */
static const char table_sql[] =
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)";

vlp_status vlp_meta_set(vlp_index *index, const char *name, const char *value) {
    vlp_db *db = vlp_index_db(index);
    VLP_TRY(vlp_db_exec(db, table_sql));
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "INSERT OR REPLACE INTO meta(name, value) VALUES(?1, ?2)"));
    vlp_bind_text(stmt, 1, name, -1);
    vlp_bind_text(stmt, 2, value, -1);
    vlp_status status = vlp_stmt_run(stmt);
    vlp_stmt_free(stmt);
    return status;
}

vlp_status vlp_meta_get(const vlp_index *index, const char *name, vlp_buf *out) {
    vlp_db *db = vlp_index_db(index);
    int64_t exists;
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_puts(out, ""));
    VLP_TRY(vlp_db_int(db, "SELECT count(*) FROM sqlite_master WHERE name='meta'", &exists));
    if (!exists) return VLP_OK;
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT value FROM meta WHERE name=?1"));
    vlp_bind_text(stmt, 1, name, -1);
    bool row;
    vlp_status status = vlp_stmt_step(stmt, &row);
    if (status == VLP_OK && row) status = vlp_buf_puts(out, vlp_column_text(stmt, 0, NULL));
    vlp_stmt_free(stmt);
    return status;
}
