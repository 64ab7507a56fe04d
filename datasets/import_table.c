/* CSV and TSV: a header row names the columns, or the columns are told by what they hold. */
#include "core/file.h"
#include "datasets/csv.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NONE = -1, MAX_CAPTIONS = 16, FIELDS_MAX = 4096 };

typedef struct {
    vlp_session *session;
    vlp_csv csv;
    vlp_map map;
    vlp_json *header; /* array of names; NULL without a header row */
    int image, split, label, captions[MAX_CAPTIONS], n_captions;
    vlp_buf fields;
} table_run;

/* Column names are compared without case and surrounding blanks. */
static int column(const vlp_csv *csv, const char *name) {
    for (size_t i = 0; i < csv->fields; i++)
        if (strcasecmp(vlp_csv_field(csv, i), name) == 0) return (int)i;
    return NONE;
}

static int first_column(const vlp_csv *csv, const char *const *names) {
    for (; *names; names++) {
        int found = column(csv, *names);
        if (found != NONE) return found;
    }
    return NONE;
}

static vlp_status key_missing(table_run *run, const char *option, const char *key) {
    vlp_buf names = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < run->csv.fields && i < 32 && status == VLP_OK; i++)
        status = vlp_buf_printf(&names, "%s\"%.64s\"", i ? ", " : "", vlp_csv_field(&run->csv, i));
    status = VLP_FAIL(VLP_ERR_USAGE, "%s:1: no column for %s%s%s; it has %s; name one with %s",
                      vlp_session_source(run->session), option, key ? " " : "", key ? key : "",
                      names.data ? names.data : "no columns", option);
    vlp_buf_free(&names);
    return status;
}

static void all_caption_columns(table_run *run) {
    int first = first_column(&run->csv, vlp_caption_keys);
    if (first != NONE) run->captions[run->n_captions++] = first;
    for (size_t i = 0; i < run->csv.fields && run->n_captions < MAX_CAPTIONS; i++) {
        const char *name = vlp_csv_field(&run->csv, i);
        bool numbered =
            strncasecmp(name, "caption", 7) == 0 || strncasecmp(name, "sentence", 8) == 0;
        bool number_like = strcasestr(name, "number") || strcasestr(name, "id");
        if (numbered && !number_like && (int)i != first) run->captions[run->n_captions++] = (int)i;
    }
}

/* Without known names: a first row with a file name in it is data already. */
static bool headerless(table_run *run) {
    run->image = NONE;
    size_t longest = 0, best = 0;
    for (size_t i = 0; i < run->csv.fields; i++)
        if (run->image == NONE && vlp_is_image_name(vlp_csv_field(&run->csv, i)))
            run->image = (int)i;
    for (size_t i = 0; i < run->csv.fields; i++) {
        if ((int)i == run->image || vlp_csv_field_len(&run->csv, i) < longest) continue;
        longest = vlp_csv_field_len(&run->csv, i);
        best = i;
    }
    if (run->image == NONE || longest == 0) return false;
    run->captions[0] = (int)best;
    run->n_captions = 1;
    return true;
}

static vlp_status keep_header(table_run *run) {
    run->header = vlp_json_new_array();
    for (size_t i = 0; i < run->csv.fields; i++)
        vlp_json_append(run->header, vlp_json_new_string(vlp_csv_field(&run->csv, i)));
    return VLP_OK;
}

/* Reads the first record and decides the columns; *data tells that it is a row of data. */
static vlp_status find_columns(table_run *run, bool *data) {
    const vlp_import_options *options = vlp_session_options(run->session);
    *data = false;
    run->image = options->image_key ? column(&run->csv, options->image_key)
                                    : first_column(&run->csv, vlp_image_keys);
    if (options->image_key && run->image == NONE)
        return key_missing(run, "--image-key", options->image_key);
    if (options->caption_key) {
        run->captions[0] = column(&run->csv, options->caption_key);
        if (run->captions[0] == NONE)
            return key_missing(run, "--caption-key", options->caption_key);
        run->n_captions = 1;
    } else {
        all_caption_columns(run);
    }
    bool asked = options->image_key || options->caption_key;
    if (run->image == NONE && run->n_captions == 0 && !asked && headerless(run)) {
        *data = true;
        return VLP_OK;
    }
    if (run->image == NONE && run->n_captions == 0) return key_missing(run, "--image-key", NULL);
    run->split = column(&run->csv, "split");
    run->label = column(&run->csv, "label");
    return keep_header(run);
}

static bool is_caption(const table_run *run, int index) {
    for (int c = 0; c < run->n_captions; c++)
        if (run->captions[c] == index) return true;
    return false;
}

static vlp_status other_fields(table_run *run, const char **out) {
    *out = NULL;
    vlp_json *fields = NULL;
    for (size_t i = 0; run->header && i < run->csv.fields; i++) {
        int index = (int)i;
        if (index == run->image || index == run->split || is_caption(run, index)) continue;
        const char *name = vlp_json_as_string(vlp_json_at(run->header, i));
        if (!name[0] || !vlp_csv_field_len(&run->csv, i)) continue;
        if (!fields) fields = vlp_json_new_object();
        vlp_json_set_string(fields, name, vlp_csv_field(&run->csv, i));
    }
    if (!fields) return VLP_OK;
    vlp_buf_clear(&run->fields);
    vlp_status status = vlp_json_dump(fields, 0, &run->fields);
    vlp_json_free(fields);
    if (run->fields.len <= FIELDS_MAX) *out = run->fields.data;
    return status;
}

static bool all_blank(const table_run *run) {
    for (int c = 0; c < run->n_captions; c++) {
        size_t i = (size_t)run->captions[c];
        if (!vlp_session_blank(vlp_csv_field(&run->csv, i), vlp_csv_field_len(&run->csv, i)))
            return false;
    }
    return run->n_captions > 0;
}

static vlp_status add_captions(table_run *run, int64_t id) {
    for (int c = 0; c < run->n_captions; c++) {
        size_t i = (size_t)run->captions[c], len = vlp_csv_field_len(&run->csv, i);
        const char *text = vlp_csv_field(&run->csv, i);
        if (vlp_session_blank(text, len)) continue;
        VLP_TRY(vlp_session_caption(run->session, id, text, len, "caption", run->csv.line));
    }
    return VLP_OK;
}

static const char *field_or_null(const table_run *run, int index) {
    const char *text = index == NONE ? "" : vlp_csv_field(&run->csv, (size_t)index);
    return text[0] ? text : NULL;
}

static vlp_status table_row(table_run *run) {
    const char *source = vlp_session_source(run->session);
    const char *name = run->image == NONE ? NULL : field_or_null(run, run->image);
    if (run->image != NONE && !name)
        return vlp_session_skip(run->session, source, run->csv.line, VLP_SKIP_BAD_ROW,
                                "no file name in the image column");
    if (all_blank(run))
        return vlp_session_skip(run->session, name ? name : source, run->csv.line,
                                VLP_SKIP_EMPTY_CAPTION, "");
    if (!name) return add_captions(run, 0);
    vlp_session_image image = {.row = run->csv.line,
                               .split = field_or_null(run, run->split),
                               .label = field_or_null(run, run->label)};
    VLP_TRY(other_fields(run, &image.fields));
    int64_t id;
    VLP_TRY(vlp_session_named_image(run->session, name, &image, &id));
    return id ? add_captions(run, id) : VLP_OK;
}

static void recognised(const table_run *run) {
    vlp_import_report *report = vlp_session_report(run->session);
    char delimiter[4] = {run->csv.delimiter, '\0'};
    int image = run->image, caption = run->n_captions ? run->captions[0] : NONE;
    const char *image_name = run->header && image != NONE
                                 ? vlp_json_as_string(vlp_json_at(run->header, (size_t)image))
                                 : "";
    const char *caption_name = run->header && caption != NONE
                                   ? vlp_json_as_string(vlp_json_at(run->header, (size_t)caption))
                                   : "";
    snprintf(report->recognised, sizeof report->recognised,
             "%s: table separated by %s%s, image column %d \"%s\", caption column %d \"%s\"%s",
             vlp_session_source(run->session), run->csv.delimiter == '\t' ? "tabs" : delimiter,
             run->header ? "" : ", no header", image + 1, image_name, caption + 1, caption_name,
             run->n_captions > 1 ? " and more" : "");
}

static vlp_status read_table(table_run *run) {
    bool more, data = false;
    const char *bad;
    VLP_TRY(vlp_csv_next(&run->csv, &more, &bad));
    if (!more || bad)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s:%lld: %s", vlp_session_source(run->session),
                        (long long)run->csv.line, bad ? bad : "an empty file");
    VLP_TRY(find_columns(run, &data));
    recognised(run);
    if (data) VLP_TRY(table_row(run));
    while (true) {
        VLP_TRY(vlp_csv_next(&run->csv, &more, &bad));
        if (!more) return VLP_OK;
        vlp_map_pass(&run->map, run->csv.at);
        VLP_TRY(bad ? vlp_session_skip(run->session, vlp_session_source(run->session),
                                       run->csv.line, VLP_SKIP_BAD_ROW, bad)
                    : table_row(run));
    }
}

static vlp_status table_import(vlp_session *session, char delimiter) {
    table_run run = {.session = session, .image = NONE, .split = NONE, .label = NONE};
    VLP_TRY(vlp_map_open(&run.map, vlp_session_source(session)));
    const char *text = run.map.len ? (const char *)run.map.data : "";
    char found = vlp_csv_delimiter(text, run.map.len < 65536 ? run.map.len : 65536);
    vlp_csv_open(&run.csv, text, run.map.len, found ? found : delimiter);
    vlp_status status = read_table(&run);
    vlp_csv_close(&run.csv);
    vlp_json_free(run.header);
    vlp_buf_free(&run.fields);
    vlp_map_close(&run.map);
    return status;
}

static vlp_status csv_import(vlp_session *session) {
    return table_import(session, ',');
}

static vlp_status tsv_import(vlp_session *session) {
    return table_import(session, '\t');
}

/* A first line with a delimiter, and a known column or a file name in it. */
static bool looks_like_table(const char *head, size_t len) {
    char delimiter = vlp_csv_delimiter(head, len);
    if (!delimiter) return false;
    vlp_csv csv;
    vlp_csv_open(&csv, head, len, delimiter);
    bool more, known = false;
    const char *bad;
    if (vlp_csv_next(&csv, &more, &bad) == VLP_OK && more && !bad) {
        known = first_column(&csv, vlp_image_keys) != NONE;
        for (size_t i = 0; i < csv.fields && !known; i++)
            known = vlp_is_image_name(vlp_csv_field(&csv, i));
    }
    vlp_csv_close(&csv);
    return known;
}

static int csv_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    if (is_folder || len == 0) return 0;
    if (strcasecmp(vlp_extension(path), ".csv") == 0) return 90;
    return looks_like_table(head, len) ? 60 : 0;
}

static int tsv_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)head;
    bool named = strcasecmp(vlp_extension(path), ".tsv") == 0;
    return !is_folder && len && named ? 90 : 0;
}

const vlp_importer vlp_importer_csv = {"csv", csv_sniff, csv_import};
const vlp_importer vlp_importer_tsv = {"tsv", tsv_sniff, tsv_import};
