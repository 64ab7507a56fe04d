#include "datasets/walk.h"

#include "core/file.h"
#include "datasets/session.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 64 };

/* One folder's entries: names one after another, each with its NUL, and where each starts. */
typedef struct {
    vlp_buf names;
    const char **sorted;
    size_t count;
} listing;

typedef struct {
    const char *root;
    vlp_status (*image)(const vlp_walk_file *, void *);
    vlp_status (*unreadable)(const char *, void *);
    void *user;
    vlp_buf path, captions;
} walker;

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void listing_free(listing *list) {
    vlp_buf_free(&list->names);
    vlp_free(list->sorted);
}

static vlp_status list_folder(listing *list, const char *path, bool *readable) {
    DIR *folder = opendir(path);
    *readable = folder != NULL;
    if (!folder) return VLP_OK;
    vlp_status status = VLP_OK;
    struct dirent *entry;
    while (status == VLP_OK && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.') continue;
        status = vlp_buf_append(&list->names, entry->d_name, strlen(entry->d_name) + 1);
        list->count++;
    }
    closedir(folder);
    VLP_TRY(status);
    list->sorted = vlp_alloc((list->count + 1) * sizeof *list->sorted);
    if (!list->sorted) return VLP_ERR_MEMORY;
    const char *name = list->names.data;
    for (size_t i = 0; i < list->count; i++, name += strlen(name) + 1) list->sorted[i] = name;
    qsort(list->sorted, list->count, sizeof *list->sorted, by_name);
    return VLP_OK;
}

static vlp_status has_captions(walker *w, const listing *list, const char *name, bool *has) {
    vlp_buf_clear(&w->captions);
    VLP_TRY(vlp_buf_append(&w->captions, name, strlen(name) - strlen(vlp_extension(name))));
    VLP_TRY(vlp_buf_puts(&w->captions, ".txt"));
    const char *key = w->captions.data;
    *has = bsearch(&key, list->sorted, list->count, sizeof *list->sorted, by_name) != NULL;
    return VLP_OK;
}

static vlp_status visit(walker *w, int depth);

static vlp_status visit_entry(walker *w, const listing *list, const char *name, int depth) {
    size_t folder_end = w->path.len;
    VLP_TRY(vlp_buf_puts(&w->path, "/"));
    VLP_TRY(vlp_buf_puts(&w->path, name));
    vlp_status status = VLP_OK;
    struct stat st;
    if (vlp_is_image_name(name)) {
        vlp_walk_file file = {.path = w->path.data};
        VLP_TRY(has_captions(w, list, name, &file.has_captions));
        size_t root = strlen(w->root) + 1;
        char *folder = folder_end > root ? vlp_strndup(w->path.data + root, folder_end - root)
                                         : vlp_strdup("");
        if (!folder) return VLP_ERR_MEMORY;
        file.folder = folder;
        status = w->image(&file, w->user);
        vlp_free(folder);
    } else if (!vlp_extension(name)[0] || strcasecmp(vlp_extension(name), ".txt") != 0) {
        if (lstat(w->path.data, &st) == 0 && S_ISDIR(st.st_mode)) status = visit(w, depth + 1);
    }
    w->path.len = folder_end;
    w->path.data[folder_end] = '\0';
    return status;
}

static vlp_status visit(walker *w, int depth) {
    listing list = {0};
    bool readable;
    vlp_status status = list_folder(&list, w->path.data, &readable);
    if (status == VLP_OK && (!readable || depth > MAX_DEPTH))
        status = w->unreadable(w->path.data, w->user);
    for (size_t i = 0; status == VLP_OK && i < list.count; i++)
        status = visit_entry(w, &list, list.sorted[i], depth);
    listing_free(&list);
    return status;
}

vlp_status vlp_walk(const char *root, vlp_status (*image)(const vlp_walk_file *, void *),
                    vlp_status (*unreadable)(const char *, void *), void *user) {
    walker w = {.root = root, .image = image, .unreadable = unreadable, .user = user};
    vlp_status status = vlp_buf_puts(&w.path, root);
    if (status == VLP_OK) status = visit(&w, 0);
    vlp_buf_free(&w.path);
    vlp_buf_free(&w.captions);
    return status;
}
