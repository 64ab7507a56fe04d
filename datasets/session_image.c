#include "core/file.h"
#include "datasets/bulk.h"
#include "datasets/probe.h"
#include "datasets/session_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* An image row as the index has it. */
typedef struct {
    int64_t id, size, mtime, group;
    vlp_hash hash;
    char asked[64], reason[256];
    vlp_image_state state;
} known_row;

/* What is learnt of an image now. */
typedef struct {
    int64_t size, mtime;
    vlp_hash hash;
    int width, height;
    vlp_image_state state;
} found_file;

static vlp_status find_row(vlp_session *s, const vlp_session_image *image, known_row *row) {
    VLP_TRY(vlp_session_written(s));
    vlp_stmt *find = s->query[Q_IMAGE_FIND];
    vlp_bind_text(find, 1, image->path, -1);
    vlp_bind_int(find, 2, image->offset);
    bool there;
    VLP_TRY(vlp_stmt_step(find, &there));
    *row = (known_row){0};
    if (!there) return VLP_OK;
    int64_t len;
    const void *hash = vlp_column_blob(find, 3, &len);
    row->hash = vlp_hash_stored(hash, len);
    row->id = vlp_column_int(find, 0);
    row->size = vlp_column_int(find, 1);
    row->mtime = vlp_column_int(find, 2);
    snprintf(row->asked, sizeof row->asked, "%s", vlp_column_text(find, 4, NULL));
    row->state = (vlp_image_state)vlp_column_int(find, 5);
    snprintf(row->reason, sizeof row->reason, "%s", vlp_column_text(find, 6, NULL));
    row->group = vlp_column_int(find, 7);
    vlp_stmt_reset(find);
    return VLP_OK;
}

static const char *asked_split(const vlp_session *s, const vlp_session_image *image,
                               vlp_hash hash) {
    if (s->options->split) return s->options->split;
    if (s->shares.used) return vlp_split_of(&s->shares, hash);
    return image->split && image->split[0] ? image->split : "train";
}

static vlp_status settle(vlp_session *s, vlp_hash hash) {
    uint8_t key[16];
    if (s->bulk) return VLP_OK; /* at the end, for all */
    vlp_hash_store(hash, key);
    return vlp_group_settle(s->query[Q_GROUP_ASKED], s->query[Q_SETTLE], key);
}

/* A listed file that is not there any more may come back, or turn up elsewhere: its row, captions
 * and embeddings wait, marked. */
static vlp_status file_is_gone(vlp_session *s, int64_t id, bool *gone) {
    vlp_stmt *place = s->query[Q_IMAGE_PLACE];
    vlp_bind_int(place, 1, id);
    bool row;
    VLP_TRY(vlp_stmt_step(place, &row));
    *gone =
        row && vlp_column_int(place, 1) == 0 && !vlp_path_exists(vlp_column_text(place, 0, NULL));
    vlp_stmt_reset(place);
    return VLP_OK;
}

vlp_status vlp_session_drop_image(vlp_session *s, int64_t id) {
    bool gone;
    VLP_TRY(file_is_gone(s, id, &gone));
    if (gone) {
        s->report->gone++;
        vlp_bind_int(s->query[Q_IMAGE_GONE], 1, id);
        return vlp_stmt_run(s->query[Q_IMAGE_GONE]);
    }
    vlp_stmt *drop = s->query[Q_IMAGE_DROP];
    vlp_bind_int(drop, 1, id);
    bool row;
    VLP_TRY(vlp_stmt_step(drop, &row));
    int64_t len;
    const void *blob = vlp_column_blob(drop, 0, &len);
    vlp_hash hash = vlp_hash_stored(blob, len);
    VLP_TRY(vlp_stmt_run(drop));
    s->report->removed++;
    return settle(s, hash);
}

/* The file's time and size; false when there is none, with the reason. */
static bool stat_file(const char *path, found_file *file, vlp_skip_reason *reason,
                      const char **detail) {
    struct stat st;
    *detail = "";
    if (stat(path, &st) != 0) {
        *reason = errno == ENOENT || errno == ENOTDIR ? VLP_SKIP_MISSING : VLP_SKIP_UNREADABLE;
        *detail = strerror(errno);
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        *reason = VLP_SKIP_UNREADABLE;
        *detail = "not a regular file";
        return false;
    }
    file->size = st.st_size;
    file->mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return true;
}

static vlp_status bind_image(vlp_session *s, const vlp_session_image *image, const found_file *file,
                             const uint8_t key[16]) {
    vlp_stmt *group = s->query[Q_GROUP];
    vlp_bind_blob(group, 1, key, 16);
    bool twin = false;
    if (!s->bulk) VLP_TRY(vlp_stmt_step(group, &twin));
    int64_t id = s->next_image++, group_id = twin ? vlp_column_int(group, 0) : id;
    const char *asked = asked_split(s, image, file->hash), *split = asked;
    char first[64];
    if (twin) {
        snprintf(first, sizeof first, "%s", vlp_column_text(group, 1, NULL));
        split = first;
        s->report->duplicates++;
        s->report->crossed += strcmp(asked, split) != 0;
        vlp_stmt_reset(group);
    }
    const vlp_value values[] = {
        vlp_value_int(id),
        vlp_value_int(s->source_id),
        vlp_value_text(image->path),
        vlp_value_int(image->offset),
        vlp_value_int(image->length),
        vlp_value_int(image->stored),
        vlp_value_int(file->size),
        vlp_value_int(file->mtime),
        vlp_value_bytes(VLP_VALUE_BLOB, key, 16),
        vlp_value_int(file->width),
        vlp_value_int(file->height),
        vlp_value_text(split),
        vlp_value_text(asked),
        vlp_value_int(group_id),
        vlp_value_text(image->label),
        vlp_value_text(image->fields),
        vlp_value_int(file->state),
        vlp_value_text(image->item),
        [VLP_IMAGES_CAPTIONS_TIME] = vlp_value_text(NULL),
    };
    VLP_TRY(vlp_session_insert(s, VLP_TABLE_IMAGES, values));
    s->last_id = id;
    return twin && vlp_split_rank(asked) > vlp_split_rank(split) ? settle(s, file->hash) : VLP_OK;
}

/* The first image of these bytes whose file has left its place; 0 = none. */
static vlp_status find_moved(vlp_session *s, const uint8_t key[16], int64_t *id) {
    vlp_stmt *twins = s->query[Q_TWINS];
    *id = 0;
    vlp_bind_blob(twins, 1, key, 16);
    bool row = true;
    while (row && *id == 0) {
        VLP_TRY(vlp_stmt_step(twins, &row));
        if (row && !vlp_bitset_has(&s->images_seen, vlp_column_int(twins, 0)) &&
            !vlp_path_exists(vlp_column_text(twins, 1, NULL)))
            *id = vlp_column_int(twins, 0);
    }
    vlp_stmt_reset(twins);
    return VLP_OK;
}

static vlp_status move_image(vlp_session *s, const vlp_session_image *image, int64_t id,
                             const found_file *file) {
    vlp_stmt *captions = s->query[Q_CAPTIONS_MOVE], *move = s->query[Q_IMAGE_MOVE];
    vlp_bind_int(captions, 1, id);
    vlp_bind_int(captions, 2, s->source_id);
    VLP_TRY(vlp_stmt_run(captions));
    vlp_bind_int(move, 1, id);
    vlp_bind_int(move, 2, s->source_id);
    vlp_bind_text(move, 3, image->path, -1);
    vlp_bind_int(move, 4, file->size);
    vlp_bind_int(move, 5, file->mtime);
    vlp_bind_text(move, 6, asked_split(s, image, file->hash), -1);
    vlp_bind_text(move, 7, image->label, -1);
    vlp_bind_text(move, 8, image->fields, -1);
    VLP_TRY(vlp_stmt_run(move));
    s->report->moved++;
    s->last_id = id;
    return settle(s, file->hash);
}

/* With `dedupe`: the id of an image of these bytes, whose split then rises to what is asked. */
static vlp_status join_twin(vlp_session *s, const vlp_session_image *image, const uint8_t key[16],
                            vlp_hash hash, bool *joined) {
    vlp_stmt *group = s->query[Q_GROUP];
    vlp_bind_blob(group, 1, key, 16);
    VLP_TRY(vlp_stmt_step(group, joined));
    if (!*joined) return VLP_OK;
    const char *asked = asked_split(s, image, hash), *split = vlp_column_text(group, 1, NULL);
    bool rises = vlp_split_rank(asked) > vlp_split_rank(split);
    s->report->duplicates++;
    s->report->crossed += strcmp(asked, split) != 0;
    s->last_id = vlp_column_int(group, 0);
    vlp_stmt_reset(group);
    if (!rises) return VLP_OK;
    vlp_bind_int(s->query[Q_IMAGE_ASKED], 1, s->last_id);
    vlp_bind_text(s->query[Q_IMAGE_ASKED], 2, asked, -1);
    VLP_TRY(vlp_stmt_run(s->query[Q_IMAGE_ASKED]));
    return settle(s, hash);
}

static vlp_status change_image(vlp_session *s, const vlp_session_image *image,
                               const known_row *known, const found_file *file,
                               const uint8_t key[16]) {
    vlp_stmt *change = s->query[Q_IMAGE_CHANGE];
    vlp_bind_int(change, 1, known->id);
    vlp_bind_int(change, 2, image->length);
    vlp_bind_int(change, 3, file->size);
    vlp_bind_int(change, 4, file->mtime);
    vlp_bind_blob(change, 5, key, 16);
    vlp_bind_int(change, 6, file->width);
    vlp_bind_int(change, 7, file->height);
    vlp_bind_text(change, 8, asked_split(s, image, file->hash), -1);
    vlp_bind_text(change, 9, image->label, -1);
    vlp_bind_text(change, 10, image->fields, -1);
    vlp_bind_int(change, 11, file->state);
    VLP_TRY(vlp_stmt_run(change));
    vlp_bind_int(s->query[Q_EMBEDDINGS_DROP], 1, known->id);
    VLP_TRY(vlp_stmt_run(s->query[Q_EMBEDDINGS_DROP]));
    VLP_TRY(settle(s, known->hash));
    s->last_id = known->id;
    return settle(s, file->hash);
}

static vlp_status keep_image(vlp_session *s, const vlp_session_image *image,
                             const known_row *known) {
    s->last_id = known->id;
    s->report->duplicates += known->group != known->id;
    const char *asked = asked_split(s, image, known->hash);
    if (strcmp(asked, known->asked) == 0) return VLP_OK;
    vlp_bind_int(s->query[Q_IMAGE_ASKED], 1, known->id);
    vlp_bind_text(s->query[Q_IMAGE_ASKED], 2, asked, -1);
    VLP_TRY(vlp_stmt_run(s->query[Q_IMAGE_ASKED]));
    return settle(s, known->hash);
}

/* A skip that the next rows of the same image repeat. */
static vlp_status skip_image(vlp_session *s, const vlp_session_image *image, vlp_skip_reason reason,
                             const char *detail) {
    s->last_id = 0;
    s->last_reason = reason;
    if (detail != s->last_detail) snprintf(s->last_detail, sizeof s->last_detail, "%s", detail);
    return vlp_session_skip(s, image->path, image->row, reason, s->last_detail);
}

static vlp_status store_image(vlp_session *s, const vlp_session_image *image, known_row *known,
                              found_file *file, vlp_row_news *news) {
    if (image->stored == VLP_STORED_GREY) {
        int dims[2] = {image->width, image->height};
        file->hash = vlp_hash_more(vlp_hash_bytes(dims, sizeof dims), image->bytes, image->n_bytes);
        file->width = image->width;
        file->height = image->height;
        file->state = VLP_IMAGE_GOOD;
    } else {
        vlp_probe probe;
        if (image->bytes)
            VLP_TRY(vlp_probe_bytes(&probe, image->bytes, image->n_bytes, &s->limits, &s->file));
        else
            VLP_TRY(vlp_probe_file(&probe, image->path, file->size, &s->limits, &s->file));
        if (!probe.usable) return skip_image(s, image, probe.reason, probe.detail);
        file->hash = probe.hash;
        file->width = probe.width;
        file->height = probe.height;
    }
    uint8_t key[16];
    vlp_hash_store(file->hash, key);
    if (!known->id && !image->bytes && !s->bulk) {
        int64_t moved;
        VLP_TRY(find_moved(s, key, &moved));
        *news = VLP_ROW_CHANGED;
        if (moved) return move_image(s, image, moved, file);
    }
    if (!known->id && s->options->dedupe) {
        bool joined;
        VLP_TRY(join_twin(s, image, key, file->hash, &joined));
        *news = VLP_ROW_UNCHANGED;
        if (joined) return VLP_OK;
    }
    *news = known->id ? VLP_ROW_CHANGED : VLP_ROW_NEW;
    (*(known->id ? &s->report->changed : &s->report->added))++;
    return known->id ? change_image(s, image, known, file, key) : bind_image(s, image, file, key);
}

static vlp_status look_up(vlp_session *s, const vlp_session_image *image, vlp_row_news *news) {
    known_row known = {0};
    vlp_hash place = {0, 0};
    *news = VLP_ROW_UNCHANGED;
    if (s->bulk) {
        place = vlp_seen_key(image->path, image->offset);
        s->last_id = vlp_seen_id(&s->seen, place);
        if (s->last_id) return VLP_OK;
    }
    if (!s->bulk || vlp_seen_maybe(&s->seen, place)) VLP_TRY(find_row(s, image, &known));
    s->last_id = known.id;
    if (known.id && known.state != VLP_IMAGE_BAD && vlp_bitset_has(&s->images_seen, known.id))
        return VLP_OK;
    found_file file = {image->file_size, image->file_mtime, {0, 0}, 0, 0, VLP_IMAGE_UNVERIFIED};
    vlp_skip_reason reason;
    const char *detail;
    if (!image->bytes && !stat_file(image->path, &file, &reason, &detail))
        return skip_image(s, image, reason, detail);
    bool returned = known.state == VLP_IMAGE_BAD && strncmp(known.reason, "gone", 4) == 0;
    if (!known.id || returned || file.size != known.size || file.mtime != known.mtime) {
        VLP_TRY(store_image(s, image, &known, &file, news));
    } else if (known.state == VLP_IMAGE_BAD) {
        VLP_TRY(vlp_bitset_add(&s->images_seen, known.id));
        return skip_image(s, image, VLP_SKIP_UNDECODABLE, known.reason);
    } else {
        s->report->unchanged++;
        VLP_TRY(keep_image(s, image, &known));
    }
    if (s->last_id == 0) return VLP_OK;
    if (s->bulk) vlp_seen_add(&s->seen, place, s->last_id);
    s->report->images++;
    s->usable++;
    return vlp_bitset_add(&s->images_seen, s->last_id);
}

/* "a/../b" stays, "../b" and "a/../../b" leave. */
static bool leaves(const char *name) {
    int depth = 0;
    while (*name) {
        size_t n = strcspn(name, "/");
        bool up = n == 2 && memcmp(name, "..", 2) == 0, here = n == 1 && *name == '.';
        depth += up ? -1 : n && !here ? 1 : 0;
        if (depth < 0) return true;
        name += n + (name[n] == '/');
    }
    return false;
}

/* An absolute name is fine where no folder was named, or inside it. */
static bool outside(const vlp_session *s, const char *name) {
    if (name[0] != '/') return leaves(name);
    if (!s->options->images) return false;
    size_t n = strlen(s->root);
    bool under = strncmp(name, s->root, n) == 0 && (name[n] == '/' || s->root[n - 1] == '/');
    return !under || leaves(name + n);
}

vlp_status vlp_session_named_image(vlp_session *s, const char *name, vlp_session_image *image,
                                   int64_t *id) {
    *id = 0;
    if (outside(s, name))
        return vlp_session_skip(s, name, image->row, VLP_SKIP_OUTSIDE,
                                "leaves the folder; name the one that holds all with --images");
    VLP_TRY(vlp_path_join(&s->named, s->root, name));
    image->path = s->named.data;
    vlp_row_news news;
    return vlp_session_image_row(s, image, id, &news);
}

vlp_status vlp_session_image_row(vlp_session *s, const vlp_session_image *image, int64_t *id,
                                 vlp_row_news *news) {
    *id = 0;
    *news = VLP_ROW_UNCHANGED;
    s->rows++;
    bool same = s->last_path.len && s->last_offset == image->offset &&
                strcmp(s->last_path.data, image->path) == 0;
    if (same && s->last_id == 0) {
        VLP_TRY(skip_image(s, image, s->last_reason, s->last_detail));
    } else if (!same) {
        s->fresh_image = 0;
        vlp_buf_clear(&s->last_path);
        VLP_TRY(look_up(s, image, news));
        VLP_TRY(vlp_buf_puts(&s->last_path, image->path));
        s->last_offset = image->offset;
        if (*news == VLP_ROW_NEW) s->fresh_image = s->last_id;
    }
    *id = s->last_id;
    if (*id == 0) *news = VLP_ROW_SKIPPED;
    return vlp_session_tick(s);
}
