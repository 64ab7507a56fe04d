#include "datasets/fulltext.h"

#include <stdio.h>

enum { CHUNK = 50000, AT_ONCE = 200000 /* captions that an import adds by itself */ };

/* Ids only grow, so what is missing lies behind the last that is there. */
#define LAST "(SELECT coalesce(max(id), 0) FROM captions_fts_docsize)"

vlp_status vlp_fulltext_behind(const vlp_index *index, int64_t *captions) {
    return vlp_db_int(vlp_index_db(index), "SELECT count(*) FROM captions WHERE id>" LAST,
                      captions);
}

vlp_status vlp_fulltext_near(vlp_index *index) {
    int64_t behind;
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM captions WHERE id>%s LIMIT %d)",
             LAST, AT_ONCE + 1);
    VLP_TRY(vlp_db_int(vlp_index_db(index), sql, &behind));
    return behind <= AT_ONCE ? vlp_fulltext_update(index) : VLP_OK;
}

static vlp_status add_some(vlp_stmt *add, vlp_db *db, int64_t *added) {
    VLP_TRY(vlp_db_begin(db));
    vlp_bind_int(add, 1, CHUNK);
    vlp_status status = vlp_stmt_run(add);
    *added = vlp_db_changes(db);
    if (status == VLP_OK) status = vlp_db_commit(db);
    if (status != VLP_OK) vlp_db_rollback(db);
    return status;
}

vlp_status vlp_fulltext_update(vlp_index *index) {
    vlp_db *db = vlp_index_db(index);
    vlp_stmt *add;
    int64_t behind, added = 1;
    VLP_TRY(vlp_fulltext_behind(index, &behind));
    if (behind == 0) return VLP_OK;
    VLP_TRY(vlp_stmt_new(&add, db,
                         "INSERT INTO captions_fts(rowid, text) SELECT id, text FROM captions"
                         " WHERE id>" LAST " ORDER BY id LIMIT ?1"));
    vlp_status status = VLP_OK;
    for (; behind > 0 && added > 0 && status == VLP_OK; behind -= CHUNK)
        status = add_some(add, db, &added);
    vlp_stmt_free(add);
    return status;
}
