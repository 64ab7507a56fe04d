/* JSON Lines, and the JSON files of COCO captions, Karpathy's splits and ALBEF. */
#include "core/file.h"
#include "datasets/json_row.h"
#include "datasets/json_scan.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    vlp_session *session;
    vlp_map map;          /* of JSON Lines */
    vlp_stmt *add, *find; /* COCO: image number -> row id */
    vlp_buf scratch, fields;
    const char *image_key, *caption_key;
    int64_t row;
} json_run;

static vlp_status bad_row(json_run *run, const char *detail) {
    return vlp_session_skip(run->session, vlp_session_source(run->session), run->row,
                            VLP_SKIP_BAD_ROW, detail);
}

static vlp_status add_pair(json_run *run, const vlp_json *object, const vlp_json *image,
                           const vlp_json *caption) {
    const char *name = vlp_json_as_string(image);
    vlp_session_image row = {.row = run->row};
    if (caption && !vlp_json_row_says(caption))
        return vlp_session_skip(run->session, name, run->row, VLP_SKIP_EMPTY_CAPTION, "");
    VLP_TRY(
        vlp_json_row_fields(object, run->image_key, run->caption_key, &run->fields, &row.fields));
    row.split = vlp_json_string(object, "split", NULL);
    row.label = vlp_json_string(object, "label", NULL);
    int64_t id;
    VLP_TRY(vlp_session_named_image(run->session, name, &row, &id));
    return id && caption ? vlp_json_row_captions(run->session, id, caption, run->row) : VLP_OK;
}

/* {"image": ..., "caption": ...} under whatever names; without an image, texts. */
static vlp_status pair_row(const char *text, size_t len, int64_t number, void *user) {
    json_run *run = user;
    run->row = number;
    if (run->map.data) vlp_map_pass(&run->map, (size_t)(text - (const char *)run->map.data));
    const vlp_import_options *options = vlp_session_options(run->session);
    vlp_json *object;
    vlp_status status = vlp_json_parse_repaired(&object, text, len, "row", &run->scratch);
    if (status == VLP_ERR_MEMORY) return status;
    if (status != VLP_OK) return bad_row(run, vlp_error());
    run->image_key = run->caption_key = NULL;
    const vlp_json *image =
        vlp_json_row_key(object, options->image_key, vlp_image_keys, &run->image_key);
    const vlp_json *caption =
        vlp_json_row_key(object, options->caption_key, vlp_caption_keys, &run->caption_key);
    if (!vlp_json_is_object(object))
        status = bad_row(run, "not an object");
    else if (image && vlp_json_as_string(image)[0])
        status = add_pair(run, object, image, caption);
    else if (image || options->image_key)
        status = bad_row(run, "the image is not a file name");
    else if (!caption)
        status = bad_row(run, "neither an image nor a caption key; name them with --image-key and "
                              "--caption-key");
    else if (!vlp_json_row_says(caption))
        status = vlp_session_skip(run->session, vlp_session_source(run->session), run->row,
                                  VLP_SKIP_EMPTY_CAPTION, "");
    else
        status = vlp_json_row_captions(run->session, 0, caption, run->row);
    vlp_json_free(object);
    return status;
}

static void run_free(json_run *run) {
    vlp_stmt_free(run->add);
    vlp_stmt_free(run->find);
    vlp_buf_free(&run->scratch);
    vlp_buf_free(&run->fields);
}

static void recognised(const json_run *run, const char *what) {
    vlp_import_report *report = vlp_session_report(run->session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: %s, image key \"%s\", caption key "
             "\"%s\"",
             vlp_session_source(run->session), what, run->image_key ? run->image_key : "none",
             run->caption_key ? run->caption_key : "none");
}

static vlp_status jsonl_import(vlp_session *session) {
    json_run run = {.session = session};
    VLP_TRY(vlp_map_open(&run.map, vlp_session_source(session)));
    vlp_status status = vlp_json_each(run.map.len ? (const char *)run.map.data : "", run.map.len,
                                      vlp_session_source(session), pair_row, &run);
    recognised(&run, "jsonl");
    vlp_map_close(&run.map);
    run_free(&run);
    return status;
}

static vlp_status scan_file(vlp_session *session, const char *key, vlp_json_element_fn element,
                            json_run *run) {
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, vlp_session_source(session)));
    vlp_status status = vlp_json_scan(map.len ? (const char *)map.data : "", map.len, key,
                                      vlp_session_source(session), element, run);
    vlp_map_close(&map);
    return status;
}

static vlp_status albef_import(vlp_session *session) {
    json_run run = {.session = session};
    vlp_status status = scan_file(session, NULL, pair_row, &run);
    recognised(&run, "albef");
    run_free(&run);
    return status;
}

/* Parses an element; *object stays NULL when it was skipped. */
static vlp_status element_object(json_run *run, const char *text, size_t len, int64_t number,
                                 vlp_json **object) {
    run->row = number;
    vlp_status status = vlp_json_parse_repaired(object, text, len, "element", &run->scratch);
    if (status == VLP_ERR_MEMORY) return status;
    if (status != VLP_OK) return bad_row(run, vlp_error());
    return VLP_OK;
}

/* Karpathy: filepath (a folder, optional), filename, split, sentences [{raw}]. */
static vlp_status karpathy_image(const char *text, size_t len, int64_t number, void *user) {
    json_run *run = user;
    vlp_json *object;
    VLP_TRY(element_object(run, text, len, number, &object));
    if (!object) return VLP_OK;
    const char *name = vlp_json_string(object, "filename", ""),
               *folder = vlp_json_string(object, "filepath", "");
    vlp_status status = VLP_OK;
    if (!name[0]) {
        status = bad_row(run, "no filename");
    } else {
        vlp_buf joined = {0};
        status = vlp_path_join(&joined, folder, name);
        if (status == VLP_OK) {
            vlp_json *image = vlp_json_new_string(joined.data);
            run->image_key = "filename";
            run->caption_key = "sentences";
            status = add_pair(run, object, image, vlp_json_key(object, "sentences"));
            vlp_json_free(image);
        }
        vlp_buf_free(&joined);
    }
    vlp_json_free(object);
    return status;
}

static vlp_status karpathy_import(vlp_session *session) {
    json_run run = {.session = session};
    vlp_status status = scan_file(session, "images", karpathy_image, &run);
    recognised(&run, "karpathy");
    run_free(&run);
    return status;
}

static vlp_status coco_image(const char *text, size_t len, int64_t number, void *user) {
    json_run *run = user;
    vlp_json *object;
    VLP_TRY(element_object(run, text, len, number, &object));
    if (!object) return VLP_OK;
    vlp_status status = VLP_OK;
    const char *name = vlp_json_string(object, "file_name", "");
    if (!name[0]) {
        status = bad_row(run, "no file_name");
        goto done;
    }
    vlp_session_image row = {.row = number};
    int64_t id;
    VLP_TRY_DONE(vlp_session_named_image(run->session, name, &row, &id));
    vlp_bind_int(run->add, 1, vlp_json_int(object, "id", -1));
    vlp_bind_int(run->add, 2, id);
    VLP_TRY_DONE(vlp_stmt_run(run->add));
done:
    vlp_json_free(object);
    return status;
}

static vlp_status coco_caption(json_run *run, const vlp_json *object) {
    vlp_bind_int(run->find, 1, vlp_json_int(object, "image_id", -1));
    bool found;
    VLP_TRY(vlp_stmt_step(run->find, &found));
    int64_t id = found ? vlp_column_int(run->find, 0) : 0;
    vlp_stmt_reset(run->find);
    const char *text = vlp_json_string(object, "caption", "");
    if (!found) return bad_row(run, "its image_id is not among the images");
    if (id == 0) return VLP_OK; /* the image was skipped and counted */
    return vlp_session_caption(run->session, id, text, strlen(text), "caption", run->row);
}

static vlp_status coco_annotation(const char *text, size_t len, int64_t number, void *user) {
    json_run *run = user;
    vlp_json *object;
    VLP_TRY(element_object(run, text, len, number, &object));
    if (!object) return VLP_OK;
    vlp_status status = coco_caption(run, object);
    vlp_json_free(object);
    return status;
}

static vlp_status coco_import(vlp_session *session) {
    json_run run = {.session = session, .image_key = "file_name", .caption_key = "caption"};
    vlp_db *db;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_session_scratch(session, &db));
    VLP_TRY_DONE(vlp_db_exec(db, "CREATE TABLE IF NOT EXISTS coco(number INTEGER PRIMARY KEY,"
                                 " id INTEGER NOT NULL); DELETE FROM coco"));
    VLP_TRY_DONE(vlp_stmt_new(&run.add, db, "INSERT OR REPLACE INTO coco VALUES(?1,?2)"));
    VLP_TRY_DONE(vlp_stmt_new(&run.find, db, "SELECT id FROM coco WHERE number=?1"));
    VLP_TRY_DONE(scan_file(session, "images", coco_image, &run));
    VLP_TRY_DONE(scan_file(session, "annotations", coco_annotation, &run));
    recognised(&run, "coco");
done:
    run_free(&run);
    return status;
}

static const char *skip_blank(const char *head) {
    if (memcmp(head, "\xEF\xBB\xBF", 3) == 0) head += 3;
    return head + strspn(head, " \t\r\n");
}

static int jsonl_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)is_folder, (void)len;
    const char *extension = vlp_extension(path);
    if (len && (strcmp(extension, ".jsonl") == 0 || strcmp(extension, ".ndjson") == 0)) return 90;
    return *skip_blank(head) == '{' ? 40 : 0;
}

static int albef_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)is_folder, (void)len;
    return *skip_blank(head) == '[' ? 80 : 0;
}

static vlp_status stop_at_first(const char *text, size_t len, int64_t number, void *user) {
    (void)number;
    bool *karpathy = user;
    *karpathy = memmem(text, len, "\"sentences\"", 11) != NULL;
    return VLP_ERR_INTERRUPTED;
}

/* 2: COCO, 1: Karpathy, 0: neither. Only an object that goes on behind its first line can be one.
 */
static int one_object_kind(const char *path, const char *head) {
    vlp_map map;
    if (*skip_blank(head) != '{' || vlp_map_open(&map, path) != VLP_OK) return 0;
    bool karpathy = false;
    const char *text = map.len ? (const char *)map.data : "";
    vlp_status status = vlp_json_scan(text, map.len, "images", path, stop_at_first, &karpathy);
    bool images = status == VLP_OK || status == VLP_ERR_INTERRUPTED;
    vlp_map_close(&map);
    return !images ? 0 : karpathy ? 1 : 2;
}

static int coco_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)is_folder, (void)len;
    return one_object_kind(path, head) == 2 ? 85 : 0;
}

static int karpathy_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)is_folder, (void)len;
    return one_object_kind(path, head) == 1 ? 85 : 0;
}

const vlp_importer vlp_importer_jsonl = {"jsonl", jsonl_sniff, jsonl_import};
const vlp_importer vlp_importer_albef = {"albef", albef_sniff, albef_import};
const vlp_importer vlp_importer_coco = {"coco", coco_sniff, coco_import};
const vlp_importer vlp_importer_karpathy = {"karpathy", karpathy_sniff, karpathy_import};
