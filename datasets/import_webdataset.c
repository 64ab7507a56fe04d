/* Tar shards as WebDataset writes them, and zip files of pictures: members that share a name up to
 * its first dot are one sample (a.jpg, a.txt, a.json, a.cls). Pictures stay in the archive. */
#include "core/file.h"
#include "datasets/archive.h"
#include "datasets/json_row.h"
#include "datasets/json_scan.h"
#include "datasets/shards.h"
#include "datasets/stored.h"
#include "datasets/templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef enum { PICTURE, TEXT, JSON, CLASS, OTHER, KINDS } member_kind;

static const struct {
    const char *extension;
    member_kind kind;
} extensions[] = {{"txt", TEXT},  {"text", TEXT}, {"caption", TEXT}, {"caption.txt", TEXT},
                  {"json", JSON}, {"cls", CLASS}, {"cls.txt", CLASS}};

typedef struct {
    vlp_session *session;
    vlp_templates templates;
    vlp_buf classes, scratch, fields, where;
    vlp_db *db; /* for what waits for its other half */
    vlp_stmt *add_image, *add_text, *join;
    vlp_map map; /* of the shard */
    const char *shard;
    int64_t file_size, file_mtime, row;
    int64_t shards, pictures, of_kind[KINDS];
    /* the sample that is being gathered */
    vlp_buf key, item, text, json, class_text, unpacked;
    vlp_session_image image;
    bool has_image, has_text, has_json, has_class;
} shard_run;

/* "a/b.v1.jpg" has the key "a/b"; where that leaves no known kind, "a/b.v1". */
static member_kind kind_of(const char *name, size_t *key_len) {
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *first = strchr(base, '.'), *last = strrchr(base, '.');
    *key_len = strlen(name);
    if (!first || first == base) return OTHER;
    const char *ends[] = {first, last};
    for (size_t e = 0; e < VLP_COUNT(ends); e++) {
        *key_len = (size_t)(ends[e] - name);
        if (!strchr(ends[e] + 1, '.') && vlp_is_image_name(name)) return PICTURE;
        for (size_t i = 0; i < VLP_COUNT(extensions); i++)
            if (strcasecmp(ends[e] + 1, extensions[i].extension) == 0) return extensions[i].kind;
    }
    return OTHER;
}

static vlp_status copy(vlp_buf *to, const void *data, size_t len) {
    vlp_buf_clear(to);
    VLP_TRY(vlp_buf_reserve(to, len + 1));
    return vlp_buf_append(to, data, len);
}

/* Classes are numbers, named by --classes, or names. */
static vlp_status class_of(shard_run *run, char label[256]) {
    const char *text = run->class_text.data ? run->class_text.data : "";
    text += strspn(text, " \t\r\n");
    size_t n = strcspn(text, "\r\n");
    snprintf(label, 256, "%.*s", (int)(n < 255 ? n : 255), text);
    char *end;
    long number = strtol(label, &end, 10);
    if (end == label || *end || number < 0 || number > 1000000) return VLP_OK;
    return vlp_class_name(&run->classes, (int)number, label);
}

static vlp_status add_captions(shard_run *run, int64_t id, const vlp_json *caption,
                               const char *label, bool *any) {
    bool asked = vlp_session_options(run->session)->caption_key != NULL;
    *any = true;
    if (asked && caption) return vlp_json_row_captions(run->session, id, caption, run->row);
    if (run->has_text)
        return vlp_session_caption(run->session, id, run->text.data, run->text.len, "caption",
                                   run->row);
    if (caption) return vlp_json_row_captions(run->session, id, caption, run->row);
    if (label[0]) return vlp_templates_apply(&run->templates, run->session, id, label, run->row);
    *any = false;
    return VLP_OK;
}

static vlp_status add_sample(shard_run *run, const vlp_json *object) {
    const vlp_import_options *options = vlp_session_options(run->session);
    const char *key = NULL;
    const vlp_json *caption =
        object ? vlp_json_row_key(object, options->caption_key, vlp_caption_keys, &key) : NULL;
    char label[256] = "";
    if (run->has_class) VLP_TRY(class_of(run, label));
    vlp_session_image *image = &run->image;
    image->item = run->item.data;
    image->row = ++run->row;
    image->label = label[0] ? label : NULL;
    image->split = object ? vlp_json_string(object, "split", NULL) : NULL;
    if (object) VLP_TRY(vlp_json_row_fields(object, NULL, key, &run->fields, &image->fields));
    int64_t id;
    vlp_row_news news;
    VLP_TRY(vlp_session_image_row(run->session, image, &id, &news));
    run->pictures += id != 0;
    if (id == 0) return VLP_OK;
    bool any;
    VLP_TRY(add_captions(run, id, caption, label, &any));
    if (any) return VLP_OK;
    vlp_bind_text(run->add_image, 1, run->key.data, -1);
    vlp_bind_int(run->add_image, 2, id);
    return vlp_stmt_run(run->add_image);
}

static vlp_status skip_member(shard_run *run, const char *name, vlp_skip_reason reason,
                              const char *detail) {
    vlp_buf_clear(&run->where);
    VLP_TRY(vlp_buf_printf(&run->where, "%s#%s", run->shard, name));
    return vlp_session_skip(run->session, run->where.data, 0, reason, detail);
}

/* A text without its picture waits for one further on: zip files of folders are in any order. */
static vlp_status keep_text(shard_run *run) {
    if (!run->has_text) return VLP_OK;
    vlp_bind_text(run->add_text, 1, run->key.data, -1);
    vlp_bind_text(run->add_text, 2, run->text.data, (int64_t)run->text.len);
    return vlp_stmt_run(run->add_text);
}

static vlp_status end_sample(shard_run *run) {
    vlp_json *object = NULL;
    vlp_status status = VLP_OK;
    if (run->has_json && run->has_image) {
        status = vlp_json_parse_repaired(&object, run->json.data, run->json.len, run->key.data,
                                         &run->scratch);
        if (status == VLP_ERR_FORMAT)
            status = skip_member(run, run->item.data, VLP_SKIP_BAD_ROW, vlp_error());
        if (object && !vlp_json_is_object(object)) {
            vlp_json_free(object);
            object = NULL;
        }
    }
    if (status == VLP_OK) status = run->has_image ? add_sample(run, object) : keep_text(run);
    vlp_json_free(object);
    run->has_image = run->has_text = run->has_json = run->has_class = false;
    run->image = (vlp_session_image){0};
    vlp_buf_clear(&run->key);
    return status;
}

static vlp_status take_picture(shard_run *run, const vlp_member *m) {
    if (run->has_image) return skip_member(run, m->name, VLP_SKIP_BAD_ROW, "a second picture");
    const uint8_t *data = m->data;
    if (m->stored == VLP_STORED_ZIPPED) { /* the reader's memory is for one member */
        VLP_TRY(copy(&run->unpacked, m->data, m->len));
        data = (const uint8_t *)run->unpacked.data;
    }
    VLP_TRY(copy(&run->item, m->name, strlen(m->name)));
    run->has_image = true;
    run->image = (vlp_session_image){.path = run->shard,
                                     .offset = m->offset,
                                     .length = m->length,
                                     .stored = m->stored,
                                     .bytes = data,
                                     .n_bytes = m->len,
                                     .file_size = run->file_size,
                                     .file_mtime = run->file_mtime};
    return VLP_OK;
}

static vlp_status take_part(shard_run *run, member_kind kind, const vlp_member *m) {
    if (kind == PICTURE) return take_picture(run, m);
    const struct {
        vlp_buf *to;
        bool *has;
    } parts[] = {[TEXT] = {&run->text, &run->has_text},
                 [JSON] = {&run->json, &run->has_json},
                 [CLASS] = {&run->class_text, &run->has_class}};
    *parts[kind].has = true;
    return copy(parts[kind].to, m->data, m->len);
}

static bool unsafe(const char *name) {
    return name[0] == '/' || strncmp(name, "../", 3) == 0 || strstr(name, "/../");
}

static vlp_status each_member(const vlp_member *m, void *user) {
    shard_run *run = user;
    size_t key_len;
    member_kind kind = kind_of(m->name, &key_len);
    run->of_kind[kind]++;
    if (kind == OTHER) return VLP_OK;
    if (unsafe(m->name))
        return skip_member(run, m->name, VLP_SKIP_OUTSIDE, "a name that leaves the archive");
    if (!m->plain) return skip_member(run, m->name, VLP_SKIP_BAD_ROW, "a link, not a file");
    if (!m->data) return skip_member(run, m->name, VLP_SKIP_TOO_LARGE, "unpacks to too many bytes");
    if (run->key.len != key_len || memcmp(run->key.data, m->name, key_len) != 0) {
        if (run->key.len) VLP_TRY(end_sample(run));
        vlp_map_pass(&run->map, (size_t)m->offset);
        VLP_TRY(copy(&run->key, m->name, key_len));
    }
    return take_part(run, kind, m);
}

/* Pictures and texts that were not neighbours. */
static vlp_status join_rest(shard_run *run) {
    bool more = true;
    while (true) {
        VLP_TRY(vlp_stmt_step(run->join, &more));
        if (!more) return VLP_OK;
        int64_t len;
        const char *text = vlp_column_text(run->join, 1, &len);
        VLP_TRY(vlp_session_caption(run->session, vlp_column_int(run->join, 0), text, (size_t)len,
                                    "caption", 0));
    }
}

static vlp_status read_shard(shard_run *run, const vlp_map *map) {
    VLP_TRY(vlp_db_exec(run->db, "DELETE FROM member_images; DELETE FROM member_texts"));
    vlp_status status =
        vlp_archive_each(run->shard, map->data, map->len, VLP_MEMBER_MAX, each_member, run);
    if (status == VLP_ERR_FORMAT) /* what could be read counts */
        status = vlp_session_skip(run->session, run->shard, 0, VLP_SKIP_UNREADABLE, vlp_error());
    VLP_TRY(status);
    if (run->key.len) VLP_TRY(end_sample(run));
    return join_rest(run);
}

static vlp_status add_shard(shard_run *run, const char *path) {
    struct stat st;
    run->shard = path;
    run->row = 0;
    if (stat(path, &st) != 0)
        return vlp_session_skip(run->session, path, 0, VLP_SKIP_MISSING, "no such shard");
    if (st.st_size == 0)
        return vlp_session_skip(run->session, path, 0, VLP_SKIP_ZERO_BYTES, "an empty shard");
    run->file_size = st.st_size;
    run->file_mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    VLP_TRY(vlp_map_open(&run->map, path));
    vlp_status status = read_shard(run, &run->map);
    vlp_map_close(&run->map);
    run->shards++;
    return status;
}

static vlp_status prepare(shard_run *run) {
    VLP_TRY(vlp_session_scratch(run->session, &run->db));
    vlp_db *db = run->db;
    const vlp_import_options *options = vlp_session_options(run->session);
    VLP_TRY(vlp_templates_open(&run->templates, options->templates));
    if (options->classes) VLP_TRY(vlp_file_read(options->classes, 1 << 20, &run->classes));
    VLP_TRY(vlp_db_exec(db, "CREATE TABLE IF NOT EXISTS member_images(key TEXT PRIMARY KEY,"
                            " id INTEGER NOT NULL);"
                            "CREATE TABLE IF NOT EXISTS member_texts(key TEXT NOT NULL,"
                            " text TEXT NOT NULL)"));
    VLP_TRY(
        vlp_stmt_new(&run->add_image, db, "INSERT OR REPLACE INTO member_images VALUES(?1, ?2)"));
    VLP_TRY(vlp_stmt_new(&run->add_text, db, "INSERT INTO member_texts VALUES(?1, ?2)"));
    return vlp_stmt_new(&run->join, db,
                        "SELECT i.id, t.text FROM member_texts t JOIN member_images i"
                        " ON i.key=t.key ORDER BY t.rowid");
}

static void recognised(const shard_run *run) {
    static const char *const names[] = {[PICTURE] = "pictures",
                                        [TEXT] = "texts",
                                        [JSON] = "json",
                                        [CLASS] = "classes",
                                        [OTHER] = "others that are not used"};
    vlp_import_report *report = vlp_session_report(run->session);
    size_t size = sizeof report->recognised;
    size_t at = (size_t)snprintf(report->recognised, size, "%s: webdataset, %lld archives with",
                                 vlp_session_source(run->session), (long long)run->shards);
    bool any = false;
    for (int k = 0; k < KINDS && at < size; k++) {
        if (!run->of_kind[k]) continue;
        at += (size_t)snprintf(report->recognised + at, size - at, "%s %lld %s", any ? "," : "",
                               (long long)run->of_kind[k], names[k]);
        any = true;
    }
    if (!any && at < size) snprintf(report->recognised + at, size - at, " no members");
}

static void run_free(shard_run *run) {
    vlp_stmt_free(run->add_image);
    vlp_stmt_free(run->add_text);
    vlp_stmt_free(run->join);
    vlp_templates_free(&run->templates);
    vlp_buf *all[] = {&run->classes, &run->scratch, &run->fields, &run->where,      &run->key,
                      &run->item,    &run->text,    &run->json,   &run->class_text, &run->unpacked};
    for (size_t i = 0; i < VLP_COUNT(all); i++) vlp_buf_free(all[i]);
}

static vlp_status webdataset_import(vlp_session *session) {
    shard_run run = {.session = session};
    vlp_shards shards = {0};
    vlp_status status = prepare(&run);
    if (status == VLP_OK) status = vlp_shards_open(&shards, vlp_session_source(session));
    for (int64_t i = 0; i < shards.count && status == VLP_OK; i++)
        status = add_shard(&run, shards.paths[i]);
    if (status == VLP_OK) recognised(&run);
    vlp_shards_close(&shards);
    run_free(&run);
    return status;
}

static int webdataset_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    vlp_shards shards;
    if (!is_folder) {
        const char *dot = vlp_extension(path);
        return len && (vlp_is_archive(head, len) || strcasecmp(dot, ".tar") == 0 ||
                       strcasecmp(dot, ".tgz") == 0 || strcasestr(path, ".tar."))
                   ? 95
                   : 0;
    }
    bool some = vlp_shards_open(&shards, path) == VLP_OK;
    vlp_shards_close(&shards);
    return some ? 70 : 0;
}

const vlp_importer vlp_importer_webdataset = {"webdataset", webdataset_sniff, webdataset_import};
