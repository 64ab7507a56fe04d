#include "tools/picture.h"
#include "core/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

vlp_status corpus_add(corpus_list *list, const char *file, const char *source, const char *series,
                      corpus_picture **out) {
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 1024;
        void *grown = vlp_realloc(list->item, (size_t)capacity * sizeof *list->item);
        if (!grown) return VLP_ERR_MEMORY;
        list->item = grown;
        list->capacity = capacity;
    }
    corpus_picture *picture = &list->item[list->count];
    memset(picture, 0, sizeof *picture);
    picture->file = vlp_strdup(file);
    picture->series = series ? vlp_strdup(series) : NULL;
    if (!picture->file || (series && !picture->series)) {
        vlp_free(picture->file);
        return VLP_ERR_MEMORY;
    }
    picture->source = source;
    list->count++;
    *out = picture;
    return VLP_OK;
}

vlp_status corpus_caption(corpus_picture *picture, const char *text) {
    if (!text || text[0] == '\0' || picture->captions == CORPUS_CAPTIONS) return VLP_OK;
    for (int i = 0; i < picture->captions; i++) {
        if (strcmp(picture->caption[i], text) == 0) return VLP_OK;
    }
    char *copy = vlp_strdup(text);
    if (!copy) return VLP_ERR_MEMORY;
    picture->caption[picture->captions++] = copy;
    return VLP_OK;
}

void corpus_free(corpus_list *list) {
    for (int i = 0; i < list->count; i++) {
        corpus_picture *picture = &list->item[i];
        vlp_free(picture->file);
        vlp_free(picture->image);
        vlp_free(picture->series);
        for (int k = 0; k < picture->captions; k++) vlp_free(picture->caption[k]);
    }
    vlp_free(list->item);
    *list = (corpus_list){0};
}

static int not_hidden(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), n = strlen(end);
    return len > n && strcmp(text + len - n, end) == 0;
}

static vlp_status walk(const char *folder, const char *below, const char *extension,
                       corpus_visit *visit, void *user) {
    vlp_buf path = {0};
    struct dirent **entries = NULL;
    vlp_status status = vlp_path_join(&path, folder, below);
    if (status != VLP_OK) return status;
    int count = scandir(path.data, &entries, not_hidden, by_bytes);
    if (count < 0) {
        status = VLP_FAIL(VLP_ERR_IO, "%s: cannot read this folder; unpack its package first",
                          path.data);
    }
    for (int i = 0; i < count; i++) {
        vlp_buf_clear(&path);
        if (status == VLP_OK) {
            status =
                vlp_buf_printf(&path, "%s%s%s", below, below[0] ? "/" : "", entries[i]->d_name);
        }
        if (status == VLP_OK && entries[i]->d_type == DT_DIR)
            status = walk(folder, path.data, extension, visit, user);
        else if (status == VLP_OK && entries[i]->d_type == DT_REG &&
                 ends_with(entries[i]->d_name, extension))
            status = visit(folder, path.data, user);
        free(entries[i]);
    }
    free(entries);
    vlp_buf_free(&path);
    return status;
}

vlp_status corpus_walk(const char *folder, const char *extension, corpus_visit *visit, void *user) {
    return walk(folder, "", extension, visit, user);
}
