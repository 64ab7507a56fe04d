#include "datasets/bulk.h"
#include "datasets/caption.h"
#include "datasets/fulltext.h"
#include "datasets/session_state.h"
#include "datasets/shards.h"
#include "vision/image.h"

#include "core/file.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sql[Q_COUNT] = {
    [Q_IMAGE_FIND] = "SELECT id, size, mtime, hash, asked, state, reason, group_id FROM images"
                     " WHERE path=?1 AND offset=?2",
    [Q_IMAGE_CHANGE] = "UPDATE images SET length=?2, size=?3, mtime=?4, hash=?5, width=?6,"
                       " height=?7, asked=?8, label=?9, fields=?10, state=?11, reason=NULL"
                       " WHERE id=?1",
    [Q_IMAGE_ASKED] = "UPDATE images SET asked=?2 WHERE id=?1",
    [Q_GROUP] = "SELECT group_id, split FROM images WHERE hash=?1 ORDER BY id LIMIT 1",
    [Q_TWINS] = "SELECT id, path, asked FROM images WHERE hash=?1 AND length=0 ORDER BY id",
    [Q_IMAGE_MOVE] = "UPDATE images SET source_id=?2, path=?3, size=?4, mtime=?5, asked=?6,"
                     " label=?7, fields=?8, captions_mtime=NULL,"
                     " state=CASE WHEN state=2 THEN 0 ELSE state END, reason=NULL WHERE id=?1",
    [Q_CAPTIONS_MOVE] = "UPDATE captions SET source_id=?2 WHERE image_id=?1 AND source_id="
                        "(SELECT source_id FROM images WHERE id=?1)",
    [Q_IMAGE_PLACE] = "SELECT path, length FROM images WHERE id=?1",
    [Q_IMAGE_GONE] = "UPDATE images SET state=2, reason='gone: no such file' WHERE id=?1",
    [Q_GROUP_ASKED] = VLP_GROUP_ASKED,
    [Q_SETTLE] = VLP_GROUP_SETTLE,
    [Q_EMBEDDINGS_DROP] = "DELETE FROM embeddings WHERE image_id=?1",
    [Q_IMAGE_DROP] = "DELETE FROM images WHERE id=?1 RETURNING hash",
    [Q_IMAGES_OF_SOURCE] = "SELECT id FROM images WHERE source_id=?1 AND id>?2 ORDER BY id",
    [Q_CAPTION_FIND] = "SELECT id FROM captions WHERE image_id=?1 AND hash=?2 AND text=?3",
    [Q_TEXT_FIND] = "SELECT id FROM captions WHERE image_id IS NULL AND hash=?2 AND text=?3",
    [Q_CAPTION_DROP] = "DELETE FROM captions WHERE id=?1",
    [Q_CAPTIONS_OF_SOURCE] = "SELECT id FROM captions WHERE source_id=?1 AND id>?2 ORDER BY id",
    [Q_CAPTIONS_OF_IMAGE] = "SELECT id FROM captions WHERE image_id=?1",
    [Q_CAPTIONS_FORGET] = "DELETE FROM captions WHERE image_id=?1 AND source_id=?2",
    [Q_CAPTIONS_TIME] = "SELECT coalesce(captions_mtime, -1) FROM images WHERE id=?1",
    [Q_CAPTIONS_SET_TIME] = "UPDATE images SET captions_mtime=?2 WHERE id=?1",
    [Q_QUESTION_ADD] = "INSERT INTO questions(image_id, source_id, number, text, kind)"
                       " VALUES(?1,?2,?3,?4,?5) ON CONFLICT(source_id, number) DO UPDATE"
                       " SET image_id=?1, text=?4, kind=?5 RETURNING id",
    [Q_QUESTION_FIND] = "SELECT id FROM questions WHERE source_id=?1 AND number=?2",
    [Q_QUESTIONS_DROP] = "DELETE FROM questions WHERE source_id=?1",
    [Q_ANSWER_ADD] = "INSERT INTO answers VALUES(?1,?2,1) ON CONFLICT DO UPDATE SET votes=votes+1",
    [Q_NEXT_ID] = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name='images'), 0) + 1",
};

static double seconds_since(struct timespec then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then.tv_sec) + 1e-9 * (double)(now.tv_nsec - then.tv_nsec);
}

static vlp_status begin(vlp_session *s) {
    VLP_TRY(vlp_db_begin(s->db));
    s->in_transaction = true;
    clock_gettime(CLOCK_MONOTONIC, &s->committed);
    bool row;
    VLP_TRY(vlp_stmt_step(s->query[Q_NEXT_ID], &row));
    s->next_image = vlp_column_int(s->query[Q_NEXT_ID], 0);
    vlp_stmt_reset(s->query[Q_NEXT_ID]);
    return VLP_OK;
}

static vlp_status commit(vlp_session *s) {
    if (!s->in_transaction) return VLP_OK;
    VLP_TRY(vlp_session_written(s));
    s->in_transaction = false;
    return vlp_db_commit(s->db);
}

/* A transaction holds at most about a second of work, so that a kill loses little and another
 * writer gets its turn. */
vlp_status vlp_session_tick(vlp_session *s) {
    if (++s->operations % 64) return VLP_OK;
    if (s->options->progress && seconds_since(s->reported) > 0.5) {
        clock_gettime(CLOCK_MONOTONIC, &s->reported);
        if (!s->options->progress(s->rows, s->options->user)) {
            VLP_TRY(commit(s));
            return VLP_FAIL(VLP_ERR_INTERRUPTED,
                            "%s: interrupted; %lld rows are saved, run again"
                            " to go on",
                            s->source, (long long)s->rows);
        }
    }
    double most = s->options->commit_seconds > 0 ? s->options->commit_seconds : 1;
    if (seconds_since(s->committed) < most) return VLP_OK;
    VLP_TRY(commit(s));
    return begin(s);
}

/* A source's name: the file's name without extension, with its folder in front when taken. */
static vlp_status name_source(vlp_session *s, vlp_buf *name) {
    if (s->options->name) return vlp_buf_puts(name, s->options->name);
    const char *base = strrchr(s->source, '/');
    base = base && base[1] ? base + 1 : s->source;
    size_t stem = strlen(base) - (vlp_is_folder(s->source) ? 0 : strlen(vlp_extension(base)));
    VLP_TRY(vlp_buf_append(name, base, stem));
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, s->db, "SELECT 1 FROM sources WHERE name=?1 AND path<>?2"));
    vlp_bind_text(stmt, 1, name->data, -1);
    vlp_bind_text(stmt, 2, s->source, -1);
    bool taken;
    vlp_status status = vlp_stmt_step(stmt, &taken);
    vlp_stmt_free(stmt);
    VLP_TRY(status);
    if (!taken) return VLP_OK;
    vlp_buf_clear(name);
    const char *parent = base - 1;
    while (parent > s->source && parent[-1] != '/') parent--;
    return vlp_buf_append(name, parent, (size_t)(base - parent) + stem);
}

static vlp_status register_source(vlp_session *s, const char *format) {
    vlp_buf name = {0};
    vlp_stmt *add = NULL, *clear = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(name_source(s, &name));
    VLP_TRY_DONE(vlp_stmt_new(&add, s->db,
                              "INSERT INTO sources(path, name, format) VALUES(?1,?2,?3)"
                              " ON CONFLICT(path) DO UPDATE SET name=?2, format=?3, complete=0"
                              " RETURNING id"));
    vlp_bind_text(add, 1, s->source, -1);
    vlp_bind_text(add, 2, name.data, -1);
    vlp_bind_text(add, 3, format, -1);
    bool row;
    VLP_TRY_DONE(vlp_stmt_step(add, &row));
    s->source_id = vlp_column_int(add, 0);
    VLP_TRY_DONE(vlp_stmt_run(add));
    VLP_TRY_DONE(vlp_stmt_new(&clear, s->db, "DELETE FROM skipped WHERE source_id=?1"));
    vlp_bind_int(clear, 1, s->source_id);
    VLP_TRY_DONE(vlp_stmt_run(clear));
done:
    vlp_stmt_free(add);
    vlp_stmt_free(clear);
    vlp_buf_free(&name);
    return status;
}

static vlp_status copy_real(char **out, const char *path) {
    char *real = realpath(path, NULL);
    if (!real)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no such file or folder; check the path", path);
    *out = vlp_strdup(real);
    free(real); /* from realpath */
    return *out ? VLP_OK : VLP_ERR_MEMORY;
}

/* A pattern's folder up to its first special sign is made absolute, the rest stays. */
static vlp_status copy_pattern(char **out, const char *pattern) {
    size_t end = strcspn(pattern, "*?[{");
    while (end > 0 && pattern[end - 1] != '/') end--;
    char *folder = end ? vlp_strndup(pattern, end) : vlp_strdup("."), *real = NULL;
    vlp_buf joined = {0};
    vlp_status status = folder ? copy_real(&real, folder) : VLP_ERR_MEMORY;
    if (status == VLP_OK) status = vlp_path_join(&joined, real, pattern + end);
    vlp_free(folder);
    vlp_free(real);
    *out = joined.data;
    return status;
}

static vlp_status find_places(vlp_session *s, const char *source) {
    VLP_TRY(vlp_is_pattern(source) ? copy_pattern(&s->source, source)
                                   : copy_real(&s->source, source));
    if (s->options->images) return copy_real(&s->root, s->options->images);
    const char *slash = strrchr(s->source, '/');
    s->root = vlp_is_folder(s->source) ? vlp_strdup(s->source)
                                       : vlp_strndup(s->source, (size_t)(slash - s->source));
    return s->root ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_status choose_cleaning(vlp_session *s) {
    const char *clean = s->options->clean ? s->options->clean : "basic";
    s->albef = strcmp(clean, "albef") == 0;
    if (s->albef || strcmp(clean, "basic") == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "--clean %s: it is basic or albef", clean);
}

vlp_status vlp_session_open(vlp_session **out, vlp_index *index, const char *source,
                            const char *format, const vlp_import_options *options,
                            vlp_import_report *report) {
    *out = NULL;
    vlp_session *s = vlp_alloc_zero(1, sizeof *s);
    if (!s) return VLP_ERR_MEMORY;
    s->index = index;
    s->db = vlp_index_db(index);
    s->options = options;
    s->report = report;
    const vlp_decode_options *decode = &vlp_decode_defaults;
    s->limits.max_pixels = options->max_pixels ? options->max_pixels : decode->max_pixels;
    s->limits.max_bytes = options->max_bytes ? options->max_bytes : decode->max_bytes;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(choose_cleaning(s));
    VLP_TRY_DONE(vlp_split_parse(&s->shares, options->split_hash));
    VLP_TRY_DONE(find_places(s, source));
    s->bulk = !options->dedupe && vlp_index_is_empty(index);
    if (s->bulk) VLP_TRY_DONE(vlp_bulk_begin(s->db));
    for (int q = 0; q < Q_COUNT; q++) VLP_TRY_DONE(vlp_stmt_new(&s->query[q], s->db, sql[q]));
    VLP_TRY_DONE(vlp_session_inserts_open(s));
    VLP_TRY_DONE(begin(s));
    VLP_TRY_DONE(register_source(s, format));
    if (s->bulk) VLP_TRY_DONE(vlp_seen_open(&s->seen));
done:
    if (status != VLP_OK)
        vlp_session_free(s);
    else
        *out = s;
    return status;
}

void vlp_session_free(vlp_session *s) {
    if (!s) return;
    if (s->in_transaction && s->source_id) commit(s);
    vlp_session_inserts_close(s);
    for (int q = 0; q < Q_COUNT; q++) vlp_stmt_free(s->query[q]);
    vlp_db_rollback(s->db);
    vlp_db_free(s->scratch);
    vlp_seen_close(&s->seen);
    if (s->bulk)
        vlp_bulk_end(s->db, NULL); /* after a failure; opening the index makes up for another */
    vlp_bitset_free(&s->images_seen);
    vlp_bitset_free(&s->captions_seen);
    vlp_buf_free(&s->file);
    vlp_buf_free(&s->caption);
    vlp_buf_free(&s->last_path);
    vlp_buf_free(&s->named);
    vlp_free(s->source);
    vlp_free(s->root);
    vlp_free(s);
}

/* Ids of the source's rows that were not seen go, a thousand at a time: a statement must not delete
 * from the table that another one walks. */
static vlp_status drop_unseen(vlp_session *s, vlp_session_query walk, const vlp_bitset *seen,
                              vlp_status (*drop)(vlp_session *, int64_t)) {
    int64_t gone[1000], last = 0;
    size_t n;
    do {
        n = 0;
        bool row = true;
        vlp_bind_int(s->query[walk], 1, s->source_id);
        vlp_bind_int(s->query[walk], 2, last);
        while (n < VLP_COUNT(gone)) {
            VLP_TRY(vlp_stmt_step(s->query[walk], &row));
            if (!row) break;
            last = vlp_column_int(s->query[walk], 0);
            if (!vlp_bitset_has(seen, last)) gone[n++] = last;
        }
        if (row) vlp_stmt_reset(s->query[walk]);
        for (size_t i = 0; i < n; i++) {
            VLP_TRY(drop(s, gone[i]));
            VLP_TRY(vlp_session_tick(s));
        }
    } while (n == VLP_COUNT(gone));
    return VLP_OK;
}

static vlp_status drop_caption(vlp_session *s, int64_t id) {
    vlp_bind_int(s->query[Q_CAPTION_DROP], 1, id);
    return vlp_stmt_run(s->query[Q_CAPTION_DROP]);
}

/* What could not be counted while the rows came in. */
static vlp_status count_duplicates(vlp_session *s) {
    int64_t duplicates, crossed;
    VLP_TRY(vlp_db_int(s->db, "SELECT count(*) FROM images WHERE group_id<>id", &duplicates));
    VLP_TRY(vlp_db_int(s->db, "SELECT count(*) FROM images WHERE asked<>split", &crossed));
    s->report->duplicates += duplicates;
    s->report->crossed += crossed;
    return VLP_OK;
}

static vlp_status end_bulk(vlp_session *s) {
    if (!s->bulk) return VLP_OK;
    if (s->rows > 1000000)
        vlp_log(VLP_LOG_INFO, "sorting %lld rows into the indexes", (long long)s->rows);
    vlp_stream_free(s->stream);
    s->stream = NULL;
    int64_t shared = 0;
    VLP_TRY(vlp_bulk_end(s->db, &shared));
    s->bulk = false;
    return shared ? count_duplicates(s) : VLP_OK;
}

vlp_status vlp_session_finish(vlp_session *s) {
    if (s->usable == 0)
        return VLP_FAIL(
            VLP_ERR_FORMAT, "%s: no usable row (%lld rows skipped%s%s); nothing of it was removed",
            s->source, (long long)s->report->skipped, s->report->skipped ? ", the last one: " : "",
            s->report->skipped ? vlp_skip_name(s->final_reason) : "");
    if (!s->bulk) {
        VLP_TRY(drop_unseen(s, Q_CAPTIONS_OF_SOURCE, &s->captions_seen, drop_caption));
        VLP_TRY(drop_unseen(s, Q_IMAGES_OF_SOURCE, &s->images_seen, vlp_session_drop_image));
    }
    VLP_TRY(vlp_session_written(s));
    char done[96];
    snprintf(done, sizeof done, "UPDATE sources SET complete=1 WHERE id=%lld",
             (long long)s->source_id);
    VLP_TRY(vlp_db_exec(s->db, done));
    VLP_TRY(commit(s));
    VLP_TRY(end_bulk(s));
    return vlp_fulltext_near(s->index);
}

/* Malformed UTF-8 and U+FFFD, which stands for it, say nothing either. */
bool vlp_session_blank(const char *text, size_t len) {
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = vlp_utf8_sequence(text + i, len - i);
        bool replaced = n == 3 && memcmp(text + i, "\xEF\xBF\xBD", 3) == 0;
        if (n && (unsigned char)text[i] > ' ' && text[i] != 0x7F && !replaced) return false;
    }
    return true;
}

/* The id of an equal caption not yet seen in this run, or 0: equal captions stay as many as the
 * source has. */
static vlp_status find_caption(vlp_session *s, int64_t image_id, int64_t hash, int64_t *id) {
    vlp_stmt *find = s->query[image_id ? Q_CAPTION_FIND : Q_TEXT_FIND];
    if (image_id) vlp_bind_int(find, 1, image_id);
    vlp_bind_int(find, 2, hash);
    vlp_bind_text(find, 3, s->caption.data, (int64_t)s->caption.len);
    *id = 0;
    bool row = true;
    while (row && *id == 0) {
        VLP_TRY(vlp_stmt_step(find, &row));
        if (row && !vlp_bitset_has(&s->captions_seen, vlp_column_int(find, 0)))
            *id = vlp_column_int(find, 0);
    }
    vlp_stmt_reset(find);
    return VLP_OK;
}

static const char *text_split(const vlp_session *s, int64_t hash) {
    if (s->options->split) return s->options->split;
    if (!s->shares.used) return "train";
    return vlp_split_of(&s->shares, (vlp_hash){(uint64_t)hash, (uint64_t)hash});
}

typedef struct {
    const char *text;
    size_t len;
} given_text;

static vlp_status add_caption(vlp_session *s, int64_t image_id, const char *kind, int64_t hash,
                              given_text given, int64_t *id) {
    bool same = given.len == s->caption.len && memcmp(given.text, s->caption.data, given.len) == 0;
    const vlp_value null = vlp_value_text(NULL);
    const vlp_value values[] = {
        image_id ? vlp_value_int(image_id) : null,
        vlp_value_int(s->source_id),
        vlp_value_bytes(VLP_VALUE_TEXT, s->caption.data, s->caption.len),
        vlp_value_text(kind),
        vlp_value_int(hash),
        image_id ? null : vlp_value_text(text_split(s, hash)),
        same ? null : vlp_value_bytes(VLP_VALUE_BLOB, given.text, given.len),
    };
    VLP_TRY(vlp_session_insert(s, VLP_TABLE_CAPTIONS, values));
    *id = s->stream ? 0 : vlp_db_last_id(s->db);
    return VLP_OK;
}

/* `meaning` is what the caption's group comes from; NULL = its text. */
static vlp_status caption(vlp_session *s, int64_t image_id, const char *text, size_t len,
                          const char *kind, const char *meaning, int64_t row) {
    bool repaired;
    VLP_TRY(vlp_caption_clean(&s->caption, text, len, &repaired));
    if (s->albef) VLP_TRY(vlp_caption_albef(&s->caption, VLP_CAPTION_ALBEF_WORDS));
    if (vlp_session_blank(s->caption.data, s->caption.len))
        return vlp_session_skip(s, s->source, row, VLP_SKIP_EMPTY_CAPTION, "");
    int64_t hash = meaning ? vlp_caption_hash(meaning, strlen(meaning))
                           : vlp_caption_hash(s->caption.data, s->caption.len);
    int64_t id = 0;
    bool known = !s->bulk && (image_id == 0 || s->fresh_image != image_id);
    if (known) VLP_TRY(find_caption(s, image_id, hash, &id));
    bool found = id != 0;
    if (!found) VLP_TRY(add_caption(s, image_id, kind, hash, (given_text){text, len}, &id));
    s->report->captions++;
    s->report->repaired += repaired;
    if (image_id == 0) {
        s->report->texts++;
        s->rows++;
        s->usable++;
        (*(found ? &s->report->unchanged : &s->report->added))++;
    }
    if (id) VLP_TRY(vlp_bitset_add(&s->captions_seen, id));
    return vlp_session_tick(s);
}

vlp_status vlp_session_caption(vlp_session *s, int64_t image_id, const char *text, size_t len,
                               const char *kind, int64_t row) {
    return caption(s, image_id, text, len, kind, NULL, row);
}

vlp_status vlp_session_class_caption(vlp_session *s, int64_t image_id, const char *text, size_t len,
                                     const char *class_name, int64_t row) {
    return caption(s, image_id, text, len, "label", class_name, row);
}

vlp_status vlp_session_captions_time(vlp_session *s, int64_t image_id, int64_t *mtime) {
    *mtime = -1;
    if (s->bulk && s->fresh_image == image_id) return VLP_OK;
    VLP_TRY(vlp_session_written(s));
    vlp_stmt *time_of = s->query[Q_CAPTIONS_TIME];
    vlp_bind_int(time_of, 1, image_id);
    bool row;
    VLP_TRY(vlp_stmt_step(time_of, &row));
    *mtime = row ? vlp_column_int(time_of, 0) : -1;
    vlp_stmt_reset(time_of);
    return VLP_OK;
}

vlp_status vlp_session_forget_captions(vlp_session *s, int64_t image_id) {
    if (s->bulk) return VLP_OK; /* there are none, nor an index to find them by */
    vlp_bind_int(s->query[Q_CAPTIONS_FORGET], 1, image_id);
    vlp_bind_int(s->query[Q_CAPTIONS_FORGET], 2, s->source_id);
    return vlp_stmt_run(s->query[Q_CAPTIONS_FORGET]);
}

vlp_status vlp_session_captions_done(vlp_session *s, int64_t image_id, int64_t mtime) {
    if (s->stream && s->fresh_image == image_id &&
        vlp_stream_amend(s->stream, VLP_TABLE_IMAGES, VLP_IMAGES_CAPTIONS_TIME, mtime))
        return VLP_OK;
    VLP_TRY(vlp_session_written(s));
    vlp_bind_int(s->query[Q_CAPTIONS_SET_TIME], 1, image_id);
    vlp_bind_int(s->query[Q_CAPTIONS_SET_TIME], 2, mtime);
    return vlp_stmt_run(s->query[Q_CAPTIONS_SET_TIME]);
}

vlp_status vlp_session_keep_captions(vlp_session *s, int64_t image_id) {
    VLP_TRY(vlp_session_written(s));
    vlp_stmt *all = s->query[Q_CAPTIONS_OF_IMAGE];
    vlp_bind_int(all, 1, image_id);
    bool row = true;
    while (true) {
        VLP_TRY(vlp_stmt_step(all, &row));
        if (!row) return VLP_OK;
        s->report->captions++;
        VLP_TRY(vlp_bitset_add(&s->captions_seen, vlp_column_int(all, 0)));
    }
}

const vlp_import_options *vlp_session_options(const vlp_session *s) {
    return s->options;
}

vlp_import_report *vlp_session_report(const vlp_session *s) {
    return s->report;
}

vlp_status vlp_session_scratch(vlp_session *s, vlp_db **out) {
    if (!s->scratch) VLP_TRY(vlp_db_open_scratch(&s->scratch));
    *out = s->scratch;
    return VLP_OK;
}

const char *vlp_session_source(const vlp_session *s) {
    return s->source;
}

const char *vlp_session_root(const vlp_session *s) {
    return s->root;
}
