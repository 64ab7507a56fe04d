#include "datasets/bulk.h"

#include "datasets/split.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *on;
} indexes[] = {
    {"images_hash", "images(hash)"},
    {"images_source", "images(source_id)"},
    {"images_unverified", "images(id) WHERE state = 0"},
    {"captions_image", "captions(image_id, hash)"},
    {"captions_source", "captions(source_id)"},
};

/* Without a write-ahead log every page is written once, not twice; a rollback journal of a file
 * that only grows stays small. Other readers wait for at most a commit's length. */
vlp_status vlp_bulk_begin(vlp_db *db) {
    VLP_TRY(vlp_db_exec(db, "PRAGMA foreign_keys=OFF; PRAGMA journal_mode=DELETE"));
    for (size_t i = 0; i < VLP_COUNT(indexes); i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "DROP INDEX IF EXISTS %s", indexes[i].name);
        VLP_TRY(vlp_db_exec(db, sql));
    }
    return VLP_OK;
}

vlp_status vlp_group_settle(vlp_stmt *asked, vlp_stmt *settle, const uint8_t key[16]) {
    char best[64] = "";
    vlp_bind_blob(asked, 1, key, 16);
    bool row;
    while (true) {
        VLP_TRY(vlp_stmt_step(asked, &row));
        if (!row) break;
        const char *split = vlp_column_text(asked, 0, NULL);
        if (!best[0] || vlp_split_rank(split) > vlp_split_rank(best))
            snprintf(best, sizeof best, "%s", split);
    }
    if (!best[0]) return VLP_OK;
    vlp_bind_blob(settle, 1, key, 16);
    vlp_bind_text(settle, 2, best, -1);
    return vlp_stmt_run(settle);
}

/* The next hashes behind `last` that several images share. */
static vlp_status next_shared(vlp_stmt *shared, const uint8_t last[16], uint8_t keys[][16],
                              int most, int *n) {
    *n = 0;
    vlp_bind_blob(shared, 1, last, 16);
    bool row = true;
    while (*n < most) {
        VLP_TRY(vlp_stmt_step(shared, &row));
        if (!row) return VLP_OK;
        int64_t len;
        const void *blob = vlp_column_blob(shared, 0, &len);
        if (len == 16) memcpy(keys[(*n)++], blob, 16);
    }
    vlp_stmt_reset(shared);
    return VLP_OK;
}

static vlp_status settle_all(vlp_db *db, int64_t *contents) {
    enum { MOST = 256 };
    uint8_t keys[MOST][16], last[16] = {0};
    vlp_stmt *shared = NULL, *asked = NULL, *settle = NULL;
    vlp_status status = VLP_OK;
    int n = MOST;
    VLP_TRY_DONE(vlp_stmt_new(&shared, db,
                              "SELECT hash FROM images INDEXED BY images_hash WHERE hash>?1"
                              " GROUP BY hash HAVING count(*)>1"));
    VLP_TRY_DONE(vlp_stmt_new(&asked, db, VLP_GROUP_ASKED));
    VLP_TRY_DONE(vlp_stmt_new(&settle, db, VLP_GROUP_SETTLE));
    while (n == MOST) {
        VLP_TRY_DONE(next_shared(shared, last, keys, MOST, &n));
        for (int i = 0; i < n; i++) VLP_TRY_DONE(vlp_group_settle(asked, settle, keys[i]));
        if (n) memcpy(last, keys[n - 1], 16);
        *contents += n;
    }
done:
    vlp_stmt_free(shared);
    vlp_stmt_free(asked);
    vlp_stmt_free(settle);
    return status;
}

vlp_status vlp_bulk_missing(vlp_db *db, int64_t *missing) {
    int64_t there;
    VLP_TRY(vlp_db_int(db,
                       "SELECT count(*) FROM sqlite_master WHERE type='index' AND name IN"
                       " ('images_hash', 'images_source', 'images_unverified', 'captions_image',"
                       " 'captions_source')",
                       &there));
    *missing = (int64_t)VLP_COUNT(indexes) - there;
    return VLP_OK;
}

/* The hashes' index comes last and in one transaction with the groups: as long as it is missing,
 * they are not settled. */
static vlp_status make_indexes(vlp_db *db, int64_t *shared) {
    for (size_t i = VLP_COUNT(indexes); i-- > 0;) {
        char sql[160];
        if (i == 0) VLP_TRY(vlp_db_begin(db));
        snprintf(sql, sizeof sql, "CREATE INDEX IF NOT EXISTS %s ON %s", indexes[i].name,
                 indexes[i].on);
        VLP_TRY(vlp_db_exec(db, sql));
    }
    VLP_TRY(settle_all(db, shared));
    return vlp_db_commit(db);
}

vlp_status vlp_bulk_end(vlp_db *db, int64_t *shared) {
    int64_t missing, contents = 0;
    VLP_TRY(vlp_bulk_missing(db, &missing));
    if (missing == 0) return VLP_OK;
    vlp_status status = vlp_db_exec(db, "PRAGMA threads=2");
    if (status == VLP_OK) status = make_indexes(db, &contents);
    if (shared) *shared = contents;
    if (status != VLP_OK) {
        vlp_db_rollback(db);
        return status;
    }
    return vlp_db_exec(db, "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON");
}
