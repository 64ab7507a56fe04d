#include "apps/paths.h"

#include "core/file.h"
#include "datasets/walk.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    cli_list *list;
    int64_t capacity;
    void (*unreadable)(const char *path, void *user);
    void *user;
} collector;

static vlp_status add(collector *c, const char *path, size_t len) {
    if (c->list->count == c->capacity) {
        int64_t capacity = c->capacity ? 2 * c->capacity : 64;
        char **items = vlp_realloc(c->list->items, (size_t)capacity * sizeof *items);
        if (!items) return VLP_ERR_MEMORY;
        c->list->items = items;
        c->capacity = capacity;
    }
    char *copy = vlp_strndup(path, len);
    if (!copy) return VLP_ERR_MEMORY;
    c->list->items[c->list->count++] = copy;
    return VLP_OK;
}

static vlp_status on_image(const vlp_walk_file *file, void *user) {
    return add(user, file->path, strlen(file->path));
}

static vlp_status on_unreadable(const char *path, void *user) {
    collector *c = user;
    c->unreadable(path, c->user);
    return VLP_OK;
}

static vlp_status add_folder(collector *c, const char *path) {
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    char *root = vlp_strndup(path, len);
    if (!root) return VLP_ERR_MEMORY;
    vlp_status status = vlp_walk(root, on_image, on_unreadable, c);
    vlp_free(root);
    return status;
}

/* Lines, or NUL-separated paths as `find -print0` and `vlp search -0` write them. */
static vlp_status add_stdin(collector *c) {
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    char chunk[4096];
    for (size_t n; status == VLP_OK && (n = fread(chunk, 1, sizeof chunk, stdin)) > 0;)
        status = vlp_buf_append(&text, chunk, n);
    char separator = text.data && memchr(text.data, '\0', text.len) ? '\0' : '\n';
    for (size_t at = 0; status == VLP_OK && at < text.len;) {
        const char *line = text.data + at;
        const char *end = memchr(line, separator, text.len - at);
        size_t len = end ? (size_t)(end - line) : text.len - at;
        at += len + 1;
        if (separator == '\n' && len > 0 && line[len - 1] == '\r') len--;
        if (len > 0) status = add(c, line, len);
    }
    vlp_buf_free(&text);
    return status;
}

vlp_status cli_paths(cli_list *out, const char *const *arguments, int n,
                     void (*unreadable)(const char *path, void *user), void *user) {
    *out = (cli_list){0};
    collector c = {.list = out, .unreadable = unreadable, .user = user};
    vlp_status status = VLP_OK;
    for (int i = 0; i < n && status == VLP_OK; i++) {
        const char *path = arguments[i];
        status = strcmp(path, "-") == 0 ? add_stdin(&c)
                 : vlp_is_folder(path)  ? add_folder(&c, path)
                                        : add(&c, path, strlen(path));
    }
    if (status != VLP_OK) cli_list_free(out);
    return status;
}
