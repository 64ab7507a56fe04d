/* IDX, as MNIST and its kin come: images and labels in two files. Pixels stay in the file and are
 * addressed by offset; classes become captions through templates. */
#include "core/file.h"
#include "datasets/session.h"
#include "datasets/templates.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { IMAGES_MAGIC = 0x0803, LABELS_MAGIC = 0x0801, HEADER = 16, MAX_SIDE = 4096 };

typedef struct {
    vlp_session *session;
    vlp_templates templates;
    vlp_buf classes, path, labels_path;
} idx_run;

static int64_t big_endian(const uint8_t *bytes) {
    return (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

typedef struct {
    const uint8_t *pixels, *labels; /* [count, height, width], [count] or NULL */
    int64_t count, labelled;
    int height, width;
} idx_pair;

static vlp_status read_images(const char *path, const vlp_map *map, idx_pair *pair) {
    if (map->len < HEADER || big_endian(map->data) != IMAGES_MAGIC)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: not an IDX file of images%s", path,
                        strstr(path, ".gz") ? "; unpack it first with gunzip -k" : "");
    int64_t height = big_endian(map->data + 8), width = big_endian(map->data + 12);
    if (height < 1 || width < 1 || height > MAX_SIDE || width > MAX_SIDE)
        return VLP_FAIL(VLP_ERR_LIMIT, "%s: images of %lld x %lld pixels; the limit is %d a side",
                        path, (long long)width, (long long)height, MAX_SIDE);
    int64_t there = (int64_t)(map->len - HEADER) / (height * width);
    pair->count = big_endian(map->data + 4);
    if (there < pair->count)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: cut off: %lld images of %lld; fetch it again", path,
                        (long long)there, (long long)pair->count);
    pair->pixels = map->data + HEADER;
    pair->height = (int)height;
    pair->width = (int)width;
    return VLP_OK;
}

static vlp_status read_labels(const char *path, const vlp_map *map, idx_pair *pair) {
    if (map->len < 8 || big_endian(map->data) != LABELS_MAGIC)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: not an IDX file of labels", path);
    if (big_endian(map->data + 4) != pair->count || (int64_t)map->len - 8 < pair->count)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: holds not one label for each of the %lld images", path,
                        (long long)pair->count);
    pair->labels = map->data + 8;
    return VLP_OK;
}

static vlp_status add_rows(idx_run *run, vlp_map *map, const char *path, const char *split,
                           const idx_pair *pair) {
    struct stat st;
    if (stat(path, &st) != 0) return VLP_FAIL(VLP_ERR_IO, "%s: cannot be read", path);
    int64_t bytes = (int64_t)pair->height * pair->width;
    char item[24];
    vlp_session_image image = {.path = path,
                               .length = bytes,
                               .stored = VLP_STORED_GREY,
                               .n_bytes = (size_t)bytes,
                               .item = item,
                               .width = pair->width,
                               .height = pair->height,
                               .split = split,
                               .file_size = st.st_size};
    image.file_mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    for (int64_t i = 0; i < pair->count; i++) {
        char label[256];
        if (pair->labels) VLP_TRY(vlp_class_name(&run->classes, pair->labels[i], label));
        image.label = pair->labels ? label : NULL;
        image.offset = HEADER + i * bytes;
        image.bytes = pair->pixels + i * bytes;
        snprintf(item, sizeof item, "%lld", (long long)i);
        image.row = i + 1;
        int64_t id;
        vlp_row_news news;
        VLP_TRY(vlp_session_image_row(run->session, &image, &id, &news));
        vlp_map_pass(map, (size_t)image.offset);
        if (id && pair->labels)
            VLP_TRY(vlp_templates_apply(&run->templates, run->session, id, label, i + 1));
    }
    return VLP_OK;
}

/* "train-images-idx3-ubyte" -> "train-labels-idx1-ubyte". */
static vlp_status labels_beside(vlp_buf *out, const char *images) {
    vlp_buf_clear(out);
    const char *at = NULL;
    for (const char *p = images; (p = strstr(p, "images")); p++) at = p;
    if (!at) return VLP_OK;
    VLP_TRY(vlp_buf_append(out, images, (size_t)(at - images)));
    VLP_TRY(vlp_buf_puts(out, "labels"));
    VLP_TRY(vlp_buf_puts(out, at + strlen("images")));
    char *dims = strstr(out->data + (at - images), "idx3");
    if (dims) dims[3] = '1';
    return VLP_OK;
}

static vlp_status add_file(idx_run *run, const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const char *split =
        strncmp(base, "t10k", 4) == 0 || strncmp(base, "test", 4) == 0 ? "test" : "train";
    vlp_map images, labels = {0};
    idx_pair pair = {0};
    vlp_status status = VLP_OK;
    VLP_TRY(vlp_map_open(&images, path));
    VLP_TRY_DONE(read_images(path, &images, &pair));
    VLP_TRY_DONE(labels_beside(&run->labels_path, path));
    if (run->labels_path.len && vlp_path_exists(run->labels_path.data)) {
        VLP_TRY_DONE(vlp_map_open(&labels, run->labels_path.data));
        VLP_TRY_DONE(read_labels(run->labels_path.data, &labels, &pair));
    }
    vlp_import_report *report = vlp_session_report(run->session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: idx, %lld images of %d x %d, %s labels", path, (long long)pair.count, pair.width,
             pair.height, pair.labels ? "with" : "without");
    VLP_TRY_DONE(add_rows(run, &images, path, split, &pair));
done:
    vlp_map_close(&images);
    vlp_map_close(&labels);
    return status;
}

static bool is_images_name(const char *name) {
    return strstr(name, "images") && strstr(name, "idx3") &&
           strcmp(vlp_extension(name), ".gz") != 0;
}

/* The two usual names first: a fixed order without sorting a folder. */
static vlp_status add_folder(idx_run *run, const char *folder) {
    static const char *const names[] = {"train-images-idx3-ubyte", "train-images.idx3-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"};
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        VLP_TRY(vlp_path_join(&run->path, folder, names[i]));
        if (vlp_path_exists(run->path.data)) VLP_TRY(add_file(run, run->path.data));
    }
    return VLP_OK;
}

static vlp_status idx_import(vlp_session *session) {
    const vlp_import_options *options = vlp_session_options(session);
    const char *source = vlp_session_source(session);
    idx_run run = {.session = session};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_templates_open(&run.templates, options->templates));
    if (options->classes) VLP_TRY_DONE(vlp_file_read(options->classes, 1 << 20, &run.classes));
    VLP_TRY_DONE(vlp_is_folder(source) ? add_folder(&run, source) : add_file(&run, source));
done:
    vlp_templates_free(&run.templates);
    vlp_buf_free(&run.classes);
    vlp_buf_free(&run.path);
    vlp_buf_free(&run.labels_path);
    return status;
}

static bool folder_has_idx(const char *path) {
    DIR *folder = opendir(path);
    bool found = false;
    struct dirent *entry;
    while (folder && !found && (entry = readdir(folder))) found = is_images_name(entry->d_name);
    if (folder) closedir(folder);
    return found;
}

static int idx_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    if (is_folder) return folder_has_idx(path) ? 90 : 0;
    return len >= 4 && memcmp(head, "\0\0\x08\x03", 4) == 0 ? 95 : 0;
}

const vlp_importer vlp_importer_idx = {"idx", idx_sniff, idx_import};
