/* A folder of images, with side-car .txt captions or alone; and class folders. */
#include "core/file.h"
#include "datasets/session.h"
#include "datasets/templates.h"
#include "datasets/walk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SIDECAR_MAX = 1 << 20 };

typedef struct {
    vlp_session *session;
    vlp_templates templates;
    vlp_buf path, text;
    int64_t with_captions, alone;
} folder_run;

static vlp_status unreadable(const char *path, void *user) {
    folder_run *run = user;
    return vlp_session_skip(run->session, path, 0, VLP_SKIP_UNREADABLE,
                            "the folder cannot be read");
}

/* Every line that is not blank is a caption. */
static vlp_status add_lines(folder_run *run, int64_t id) {
    const char *line = run->text.data, *end = line + run->text.len;
    bool any = false;
    for (int64_t row = 1; line && line < end; row++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        if (!vlp_session_blank(line, len)) {
            any = true;
            VLP_TRY(vlp_session_caption(run->session, id, line, len, "caption", row));
        }
        line = stop ? stop + 1 : end;
    }
    if (any) return VLP_OK;
    return vlp_session_skip(run->session, run->path.data, 0, VLP_SKIP_EMPTY_CAPTION, "");
}

static vlp_status sidecar(folder_run *run, const char *image_path, int64_t id) {
    vlp_buf_clear(&run->path);
    size_t stem = strlen(image_path) - strlen(vlp_extension(image_path));
    VLP_TRY(vlp_buf_append(&run->path, image_path, stem));
    VLP_TRY(vlp_buf_puts(&run->path, ".txt"));
    struct stat st;
    int64_t now = -2, before;
    if (stat(run->path.data, &st) == 0)
        now = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    VLP_TRY(vlp_session_captions_time(run->session, id, &before));
    if (now == before) return vlp_session_keep_captions(run->session, id);
    VLP_TRY(vlp_session_forget_captions(run->session, id));
    vlp_buf_clear(&run->text);
    if (vlp_file_read(run->path.data, SIDECAR_MAX, &run->text) != VLP_OK)
        return vlp_session_skip(run->session, run->path.data, 0, VLP_SKIP_UNREADABLE, vlp_error());
    VLP_TRY(add_lines(run, id));
    return vlp_session_captions_done(run->session, id, now);
}

static vlp_status folder_image(const vlp_walk_file *file, void *user) {
    folder_run *run = user;
    vlp_session_image image = {.path = file->path};
    int64_t id;
    vlp_row_news news;
    VLP_TRY(vlp_session_image_row(run->session, &image, &id, &news));
    if (id == 0) return VLP_OK;
    (*(file->has_captions ? &run->with_captions : &run->alone))++;
    return file->has_captions ? sidecar(run, file->path, id) : VLP_OK;
}

static int folder_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)head, (void)len;
    return is_folder ? 50 : 0;
}

static void folder_free(folder_run *run) {
    vlp_templates_free(&run->templates);
    vlp_buf_free(&run->path);
    vlp_buf_free(&run->text);
}

static vlp_status folder_import(vlp_session *session) {
    folder_run run = {.session = session};
    vlp_status status = vlp_walk(vlp_session_source(session), folder_image, unreadable, &run);
    vlp_import_report *report = vlp_session_report(session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: folder, %lld images with side-car captions, %lld alone",
             vlp_session_source(session), (long long)run.with_captions, (long long)run.alone);
    folder_free(&run);
    return status;
}

/* "train/dog/x" -> split train, class dog; "dog/x" -> class dog. */
static vlp_status class_image(const vlp_walk_file *file, void *user) {
    static const char *const splits[] = {"train", "val", "valid", "validation", "dev", "test"};
    folder_run *run = user;
    vlp_session_image image = {.path = file->path};
    char first[64], class_name[256];
    size_t len = strcspn(file->folder, "/");
    snprintf(first, sizeof first, "%.*s", (int)(len < 63 ? len : 63), file->folder);
    const char *rest = file->folder;
    for (size_t i = 0; i < VLP_COUNT(splits); i++)
        if (strcmp(first, splits[i]) == 0) {
            image.split = splits[i];
            rest = file->folder[len] ? file->folder + len + 1 : "";
        }
    snprintf(class_name, sizeof class_name, "%.*s", (int)strcspn(rest, "/"), rest);
    if (!class_name[0])
        return vlp_session_skip(run->session, file->path, 0, VLP_SKIP_BAD_ROW,
                                "lies in no class folder");
    image.label = class_name;
    int64_t id;
    vlp_row_news news;
    VLP_TRY(vlp_session_image_row(run->session, &image, &id, &news));
    return id ? vlp_templates_apply(&run->templates, run->session, id, class_name, 0) : VLP_OK;
}

static int never(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)is_folder, (void)head, (void)len;
    return 0;
}

static vlp_status imagefolder_import(vlp_session *session) {
    folder_run run = {.session = session};
    vlp_status status = vlp_templates_open(&run.templates, vlp_session_options(session)->templates);
    if (status == VLP_OK)
        status = vlp_walk(vlp_session_source(session), class_image, unreadable, &run);
    folder_free(&run);
    return status;
}

const vlp_importer vlp_importer_folder = {"folder", folder_sniff, folder_import};
const vlp_importer vlp_importer_imagefolder = {"imagefolder", never, imagefolder_import};
