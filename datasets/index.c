#include "datasets/index.h"

#include "core/file.h"
#include "core/memory.h"
#include "datasets/bulk.h"

#include <stdio.h>
#include <unistd.h>

struct vlp_index {
    vlp_db *db;
};

enum { APPLICATION_ID = 0x766C7031 }; /* "vlp1" */

/* One script a schema version; PRAGMA user_version counts those that ran.
 *   images.hash      128-bit content hash; `group_id` is the smallest id with the same hash
 *   images.asked     the split that the source or the user asked for; `split` is the group's
 *   images.captions_mtime  of the side-car file, for formats that have one
 *   captions.hash    64-bit hash of the normalised text; captions.split only without an image
 *   images.item      which picture of its file: a member's name, a number
 *   images.look      64-bit perceptual hash, once decoded
 *   captions.original  what the source says, where cleaning changed it
 *   answers.votes    how many people gave the answer */
static const char *const migrations[] = {
    "CREATE TABLE sources(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " format TEXT NOT NULL, complete INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE images(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " source_id INTEGER NOT NULL REFERENCES sources(id) ON DELETE CASCADE,"
    " path TEXT NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,"
    " stored INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,"
    " captions_mtime INTEGER, hash BLOB NOT NULL, width INTEGER NOT NULL,"
    " height INTEGER NOT NULL, split TEXT NOT NULL, asked TEXT NOT NULL,"
    " group_id INTEGER NOT NULL, label TEXT, fields TEXT, state INTEGER NOT NULL, reason TEXT,"
    " UNIQUE(path, offset));"
    "CREATE INDEX images_hash ON images(hash);"
    "CREATE INDEX images_source ON images(source_id);"
    "CREATE INDEX images_unverified ON images(id) WHERE state = 0;"
    "CREATE TABLE captions(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " image_id INTEGER REFERENCES images(id) ON DELETE CASCADE,"
    " source_id INTEGER NOT NULL REFERENCES sources(id) ON DELETE CASCADE,"
    " text TEXT NOT NULL, kind TEXT NOT NULL, hash INTEGER NOT NULL, split TEXT);"
    "CREATE INDEX captions_image ON captions(image_id, hash);"
    "CREATE INDEX captions_source ON captions(source_id);"
    "CREATE VIRTUAL TABLE captions_fts USING fts5(text, content='captions', content_rowid='id',"
    " tokenize='unicode61 remove_diacritics 2');"
    "CREATE TRIGGER captions_added AFTER INSERT ON captions BEGIN"
    " INSERT INTO captions_fts(rowid, text) VALUES(new.id, new.text); END;"
    "CREATE TRIGGER captions_removed AFTER DELETE ON captions BEGIN"
    " INSERT INTO captions_fts(captions_fts, rowid, text) VALUES('delete', old.id, old.text); END;"
    "CREATE TABLE skipped(id INTEGER PRIMARY KEY,"
    " source_id INTEGER NOT NULL REFERENCES sources(id) ON DELETE CASCADE,"
    " path TEXT NOT NULL, row INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE INDEX skipped_source ON skipped(source_id);"
    "CREATE TABLE embeddings(id INTEGER PRIMARY KEY,"
    " model TEXT NOT NULL, image_id INTEGER NOT NULL REFERENCES images(id) ON DELETE CASCADE,"
    " dim INTEGER NOT NULL, vector BLOB NOT NULL, UNIQUE(model, image_id));"
    "CREATE INDEX embeddings_image ON embeddings(image_id);",
    "ALTER TABLE images ADD COLUMN item TEXT;"
    "ALTER TABLE images ADD COLUMN look INTEGER;"
    "ALTER TABLE captions ADD COLUMN original TEXT;"
    "CREATE TABLE questions(id INTEGER PRIMARY KEY,"
    " image_id INTEGER NOT NULL REFERENCES images(id) ON DELETE CASCADE,"
    " source_id INTEGER NOT NULL REFERENCES sources(id) ON DELETE CASCADE,"
    " number INTEGER NOT NULL, text TEXT NOT NULL, kind TEXT, UNIQUE(source_id, number));"
    "CREATE INDEX questions_image ON questions(image_id);"
    "CREATE TABLE answers(question_id INTEGER NOT NULL REFERENCES questions(id) ON DELETE CASCADE,"
    " text TEXT NOT NULL, votes INTEGER NOT NULL, PRIMARY KEY(question_id, text)) WITHOUT ROWID;"
    "DROP TRIGGER captions_added; DROP TRIGGER captions_removed;" /* see datasets/fulltext.h */
    "CREATE TRIGGER captions_removed AFTER DELETE ON captions"
    " WHEN EXISTS(SELECT 1 FROM captions_fts_docsize WHERE id=old.id) BEGIN"
    " INSERT INTO captions_fts(captions_fts, rowid, text) VALUES('delete', old.id, old.text); END;",
};

static vlp_status run_migration(vlp_db *db, size_t version) {
    VLP_TRY(vlp_db_exec(db, migrations[version]));
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA user_version=%zu; PRAGMA application_id=%d", version + 1,
             APPLICATION_ID);
    return vlp_db_exec(db, sql);
}

static vlp_status migrate(vlp_db *db) {
    VLP_TRY(vlp_db_begin(db));
    int64_t version = 0;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_db_int(db, "PRAGMA user_version", &version));
    for (size_t v = (size_t)version; v < VLP_COUNT(migrations); v++)
        VLP_TRY_DONE(run_migration(db, v));
    VLP_TRY_DONE(vlp_db_commit(db));
done:
    if (status != VLP_OK) vlp_db_rollback(db);
    return status;
}

static vlp_status check_schema(vlp_db *db, vlp_db_mode mode) {
    int64_t version, application, tables;
    VLP_TRY(vlp_db_int(db, "PRAGMA user_version", &version));
    VLP_TRY(vlp_db_int(db, "PRAGMA application_id", &application));
    VLP_TRY(vlp_db_int(db, "SELECT count(*) FROM sqlite_master", &tables));
    if (tables > 0 && application != APPLICATION_ID)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: a database of another program; name another file",
                        vlp_db_path(db));
    if (version < 0 || version > (int64_t)VLP_COUNT(migrations))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: made by a newer vlp (schema %lld, this program knows %zu); update vlp",
                        vlp_db_path(db), (long long)version, VLP_COUNT(migrations));
    if (version == (int64_t)VLP_COUNT(migrations)) return VLP_OK;
    if (mode == VLP_DB_WRITE) return migrate(db);
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s; run `vlp index` on it once", vlp_db_path(db),
                    version ? "an older index" : "an empty index");
}

vlp_status vlp_index_open(vlp_index **out, const char *path, vlp_db_mode mode) {
    *out = NULL;
    if (vlp_is_folder(path))
        return VLP_FAIL(VLP_ERR_USAGE, "%s is a folder; the index is a file, for instance %s.db",
                        path, path);
    if (vlp_is_special(path))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "%s is not a regular file; the index is one, for instance"
                        " pairs.db",
                        path);
    if (mode == VLP_DB_READ && !vlp_path_exists(path))
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "no index at %s; make one with `vlp index %s SOURCE`",
                        path, path);
    vlp_index *index = vlp_alloc_zero(1, sizeof *index);
    if (!index) return VLP_ERR_MEMORY;
    vlp_status status = vlp_db_open(&index->db, path, mode);
    if (status == VLP_OK) status = check_schema(index->db, mode);
    if (status == VLP_OK && mode == VLP_DB_WRITE) status = vlp_bulk_end(index->db, NULL);
    if (status != VLP_OK) {
        vlp_index_free(index);
        return status;
    }
    *out = index;
    return VLP_OK;
}

void vlp_index_free(vlp_index *index) {
    if (!index) return;
    vlp_db_free(index->db);
    vlp_free(index);
}

bool vlp_index_is_empty(const vlp_index *index) {
    int64_t rows;
    return vlp_db_int(index->db,
                      "SELECT EXISTS(SELECT 1 FROM images) OR EXISTS(SELECT 1 FROM captions)",
                      &rows) == VLP_OK &&
           rows == 0;
}

void vlp_index_remove(const char *path) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    vlp_buf name = {0};
    for (size_t i = 0; i < VLP_COUNT(ends); i++) {
        vlp_buf_clear(&name);
        if (vlp_buf_printf(&name, "%s%s", path, ends[i]) == VLP_OK) unlink(name.data);
    }
    vlp_buf_free(&name);
}

const char *vlp_index_path(const vlp_index *index) {
    return vlp_db_path(index->db);
}

vlp_db *vlp_index_db(const vlp_index *index) {
    return index->db;
}

vlp_status vlp_index_skipped(const vlp_index *index, vlp_skipped_fn row, void *user) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, index->db,
                         "SELECT path, row, reason, detail FROM"
                         " (SELECT path, row, reason, detail, 0 part, id FROM skipped UNION ALL"
                         "  SELECT path, 0, 'undecodable', reason, 1, id FROM images"
                         "  WHERE state = 2) ORDER BY part, id"));
    bool more = true;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &more)) == VLP_OK && more)
        if (!row(vlp_column_text(stmt, 0, NULL), vlp_column_int(stmt, 1),
                 vlp_column_text(stmt, 2, NULL), vlp_column_text(stmt, 3, NULL), user))
            break;
    vlp_stmt_free(stmt);
    return status;
}

void vlp_hash_store(vlp_hash hash, uint8_t out[16]) {
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(hash.high >> (56 - 8 * i));
        out[8 + i] = (uint8_t)(hash.low >> (56 - 8 * i));
    }
}

vlp_hash vlp_hash_stored(const void *blob, int64_t len) {
    vlp_hash hash = {0, 0};
    if (len != 16) return hash;
    const uint8_t *bytes = blob;
    for (int i = 0; i < 8; i++) {
        hash.high = hash.high << 8 | bytes[i];
        hash.low = hash.low << 8 | bytes[8 + i];
    }
    return hash;
}
