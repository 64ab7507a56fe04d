/* Lists of lines with a tab: Flickr8k and Flickr30k tokens ("1.jpg#0<tab>A dog ."), and Conceptual
 * Captions ("a dog<tab>https://..."), whose addresses a map leads to files. */
#include "core/file.h"
#include "datasets/session.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    vlp_session *session;
    vlp_stmt *add, *find;
    vlp_buf key, name;
    const char *prefix; /* folder of the pictures below the root, or "" */
    int64_t row, rows;
} list_run;

typedef vlp_status (*pair_fn)(list_run *run, const char *left, size_t left_len, const char *right,
                              size_t right_len);

static vlp_status skip(list_run *run, const char *path, vlp_skip_reason reason,
                       const char *detail) {
    return vlp_session_skip(run->session, path, run->row, reason, detail);
}

/* Lines of two parts; blank lines are passed over. */
static vlp_status each_pair(list_run *run, const char *path, pair_fn pair) {
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, path));
    const char *line = (const char *)map.data, *end = line ? line + map.len : NULL;
    vlp_status status = VLP_OK;
    run->row = 0;
    while (line < end && status == VLP_OK) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        size_t n = len && line[len - 1] == '\r' ? len - 1 : len;
        const char *tab = memchr(line, '\t', n);
        run->row++;
        if (tab)
            status = pair(run, line, (size_t)(tab - line), tab + 1, (size_t)(line + n - tab - 1));
        else if (!vlp_session_blank(line, n))
            status = skip(run, path, VLP_SKIP_BAD_ROW, "no tab in the line");
        line += len + 1;
    }
    vlp_map_close(&map);
    return status;
}

static vlp_status keep(vlp_buf *to, const char *text, size_t len) {
    vlp_buf_clear(to);
    VLP_TRY(vlp_buf_reserve(to, 1));
    return vlp_buf_append(to, text, len);
}

/* The value that the temporary table has for run->key; false without one. */
static vlp_status look_up(list_run *run, vlp_buf *value, bool *found) {
    vlp_bind_text(run->find, 1, run->key.data, (int64_t)run->key.len);
    VLP_TRY(vlp_stmt_step(run->find, found));
    vlp_buf_clear(value);
    if (!*found) return VLP_OK;
    vlp_status status = vlp_buf_puts(value, vlp_column_text(run->find, 0, NULL));
    vlp_stmt_reset(run->find);
    return status;
}

static vlp_status put(list_run *run, const char *key, size_t key_len, const char *value,
                      size_t value_len) {
    vlp_bind_text(run->add, 1, key, (int64_t)key_len);
    vlp_bind_text(run->add, 2, value, (int64_t)value_len);
    return vlp_stmt_run(run->add);
}

static vlp_status open_table(list_run *run) {
    vlp_db *db;
    VLP_TRY(vlp_session_scratch(run->session, &db));
    VLP_TRY(vlp_db_exec(db, "CREATE TABLE IF NOT EXISTS list_map(key TEXT PRIMARY KEY,"
                            " value TEXT NOT NULL) WITHOUT ROWID; DELETE FROM list_map"));
    VLP_TRY(vlp_stmt_new(&run->add, db, "INSERT OR REPLACE INTO list_map VALUES(?1, ?2)"));
    return vlp_stmt_new(&run->find, db, "SELECT value FROM list_map WHERE key=?1");
}

static void close_run(list_run *run) {
    vlp_stmt_free(run->add);
    vlp_stmt_free(run->find);
    vlp_buf_free(&run->key);
    vlp_buf_free(&run->name);
}

static vlp_status add_pair(list_run *run, const char *name, const char *split, const char *caption,
                           size_t len) {
    if (vlp_session_blank(caption, len)) return skip(run, name, VLP_SKIP_EMPTY_CAPTION, "");
    vlp_session_image image = {.row = run->row, .split = split};
    int64_t id;
    VLP_TRY(vlp_session_named_image(run->session, name, &image, &id));
    if (!id) return VLP_OK;
    run->rows++;
    return vlp_session_caption(run->session, id, caption, len, "caption", run->row);
}

static vlp_status map_line(list_run *run, const char *url, size_t url_len, const char *path,
                           size_t path_len) {
    return put(run, url, url_len, path, path_len);
}

static vlp_status cc_line(list_run *run, const char *caption, size_t len, const char *url,
                          size_t url_len) {
    bool found;
    size_t n = strcspn(url, "\t\r\n");
    VLP_TRY(keep(&run->key, url, n < url_len ? n : url_len));
    VLP_TRY(look_up(run, &run->name, &found));
    if (!found) return skip(run, run->key.data, VLP_SKIP_MISSING, "the map has no file for it");
    return add_pair(run, run->name.data, NULL, caption, len);
}

static void recognised(const list_run *run, const char *what) {
    vlp_import_report *report = vlp_session_report(run->session);
    snprintf(report->recognised, sizeof report->recognised, "%s: %s, %lld captions",
             vlp_session_source(run->session), what, (long long)run->rows);
}

static vlp_status cc_import(vlp_session *session) {
    list_run run = {.session = session};
    const char *map = vlp_session_options(session)->map, *source = vlp_session_source(session);
    if (!map)
        return VLP_FAIL(
            VLP_ERR_USAGE,
            "%s: its pictures are web addresses, and vlp downloads nothing; name a file "
            "of lines ADDRESS, tab, FILE with --map, or fetch them with: img2dataset "
            "--url_list '%s' --input_format tsv --output_format webdataset",
            source, source);
    vlp_status status = open_table(&run);
    if (status == VLP_OK) status = each_pair(&run, map, map_line);
    if (status == VLP_OK) status = each_pair(&run, source, cc_line);
    recognised(&run, "cc, addresses by map");
    close_run(&run);
    return status;
}

/* Lists of names, one a line, say which split a picture is in. */
static vlp_status read_splits(list_run *run) {
    static const struct {
        const char *file, *split;
    } lists[] = {{"Flickr_8k.trainImages.txt", "train"}, {"Flickr_8k.devImages.txt", "val"},
                 {"Flickr_8k.testImages.txt", "test"},   {"flickr30k_train.txt", "train"},
                 {"flickr30k_val.txt", "val"},           {"flickr30k_test.txt", "test"}};
    const char *source = vlp_session_source(run->session), *slash = strrchr(source, '/');
    vlp_buf path = {0}, text = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(lists); i++) {
        vlp_buf_clear(&path);
        VLP_TRY_DONE(vlp_buf_append(&path, source, (size_t)(slash + 1 - source)));
        VLP_TRY_DONE(vlp_buf_puts(&path, lists[i].file));
        if (!vlp_path_exists(path.data)) continue;
        vlp_buf_clear(&text);
        VLP_TRY_DONE(vlp_file_read(path.data, 1 << 26, &text));
        for (const char *line = text.data; line && *line;) {
            size_t n = strcspn(line, "\r\n");
            if (n) VLP_TRY_DONE(put(run, line, n, lists[i].split, strlen(lists[i].split)));
            line += n + strspn(line + n, "\r\n");
        }
    }
done:
    vlp_buf_free(&path);
    vlp_buf_free(&text);
    return status;
}

/* The first picture's folder is all pictures' folder. */
static vlp_status find_prefix(list_run *run, const char *name) {
    static const char *const folders[] = {
        "",       "Flicker8k_Dataset", "Flickr8k_Dataset", "Images",
        "images", "flickr30k-images",  "flickr30k_images"};
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    run->prefix = "";
    for (size_t i = 0; i < VLP_COUNT(folders); i++) {
        vlp_buf_clear(&path);
        VLP_TRY_DONE(vlp_buf_printf(&path, "%s/%s%s%s", vlp_session_root(run->session), folders[i],
                                    folders[i][0] ? "/" : "", name));
        if (!vlp_path_exists(path.data)) continue;
        run->prefix = folders[i];
        break;
    }
done:
    vlp_buf_free(&path);
    return status;
}

static vlp_status flickr_line(list_run *run, const char *name, size_t name_len, const char *caption,
                              size_t len) {
    bool found;
    const char *hash = memrchr(name, '#', name_len);
    VLP_TRY(keep(&run->key, name, hash ? (size_t)(hash - name) : name_len));
    char split[16] = "";
    VLP_TRY(look_up(run, &run->name, &found));
    if (found) snprintf(split, sizeof split, "%s", run->name.data);
    if (!run->prefix) VLP_TRY(find_prefix(run, run->key.data));
    vlp_buf_clear(&run->name);
    VLP_TRY(vlp_buf_printf(&run->name, "%s%s%s", run->prefix, run->prefix[0] ? "/" : "",
                           run->key.data));
    return add_pair(run, run->name.data, split[0] ? split : NULL, caption, len);
}

static vlp_status flickr_import(vlp_session *session) {
    list_run run = {.session = session};
    vlp_status status = open_table(&run);
    if (status == VLP_OK) status = read_splits(&run);
    if (status == VLP_OK) status = each_pair(&run, vlp_session_source(session), flickr_line);
    recognised(&run, "flickr tokens");
    close_run(&run);
    return status;
}

/* "a dog<tab>http" in the first line */
static int cc_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path;
    const char *tab = is_folder || !len ? NULL : memchr(head, '\t', strcspn(head, "\n"));
    return tab && (strncmp(tab + 1, "http://", 7) == 0 || strncmp(tab + 1, "https://", 8) == 0) ? 96
                                                                                                : 0;
}

/* "name#0<tab>" at the start */
static int flickr_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path;
    size_t n = is_folder || !len ? 0 : strcspn(head, "#\t\n");
    if (!n || head[n] != '#' || !isdigit((unsigned char)head[n + 1]) || head[n + 2] != '\t')
        return 0;
    return 97;
}

const vlp_importer vlp_importer_cc = {"cc", cc_sniff, cc_import};
const vlp_importer vlp_importer_flickr = {"flickr", flickr_sniff, flickr_import};
