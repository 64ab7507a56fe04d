#include "datasets/shards.h"

#include "core/file.h"

#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    vlp_shards *out;
    int64_t capacity;
} collector;

static vlp_status add(collector *c, const char *path) {
    vlp_shards *s = c->out;
    if (s->count == VLP_SHARDS_MAX)
        return VLP_FAIL(VLP_ERR_LIMIT, "more than %d files in one source; name fewer",
                        VLP_SHARDS_MAX);
    if (s->count == c->capacity) {
        int64_t capacity = c->capacity ? 2 * c->capacity : 64;
        char **paths = vlp_realloc(s->paths, (size_t)capacity * sizeof *paths);
        if (!paths) return VLP_ERR_MEMORY;
        s->paths = paths;
        c->capacity = capacity;
    }
    s->paths[s->count] = vlp_strdup(path);
    return s->paths[s->count] ? (s->count++, VLP_OK) : VLP_ERR_MEMORY;
}

bool vlp_is_pattern(const char *source) {
    return strpbrk(source, "*?[{") && !vlp_path_exists(source);
}

static vlp_status add_matches(collector *c, const char *pattern) {
    if (!strpbrk(pattern, "*?[")) return add(c, pattern);
    glob_t found;
    vlp_status status = VLP_OK;
    if (glob(pattern, 0, NULL, &found) != 0) return VLP_OK;
    for (size_t i = 0; i < found.gl_pathc && status == VLP_OK; i++)
        status = add(c, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

static vlp_status expand(collector *c, const char *pattern);

/* One choice in place of the braces from open to close. */
static vlp_status choose(collector *c, const char *pattern, const char *open, const char *close,
                         const char *choice, size_t len) {
    vlp_buf one = {0};
    vlp_status status = vlp_buf_append(&one, pattern, (size_t)(open - pattern));
    if (status == VLP_OK) status = vlp_buf_append(&one, choice, len);
    if (status == VLP_OK) status = vlp_buf_puts(&one, close + 1);
    if (status == VLP_OK) status = expand(c, one.data);
    vlp_buf_free(&one);
    return status;
}

/* "000..012": every number, as wide as the first. */
static bool is_range(const char *text, long long *from, long long *to, int *width) {
    int a = 0, b = 0;
    if (sscanf(text, "%18lld%n..%18lld%n", from, &a, to, &b) != 2 || text[b] != '}') return false;
    *width = isdigit((unsigned char)text[0]) ? a : 0;
    return *from >= 0 && *from <= *to && *to - *from < VLP_SHARDS_MAX;
}

static vlp_status expand(collector *c, const char *pattern) {
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close) return add_matches(c, pattern);
    long long from, to;
    int width;
    if (is_range(open + 1, &from, &to, &width)) {
        for (long long i = from; i <= to; i++) {
            char number[32];
            int n = snprintf(number, sizeof number, "%0*lld", width, i);
            VLP_TRY(choose(c, pattern, open, close, number, (size_t)n));
        }
        return VLP_OK;
    }
    for (const char *at = open + 1; at <= close;) {
        size_t n = strcspn(at, ",}");
        VLP_TRY(choose(c, pattern, open, close, at, n));
        at += n + 1;
    }
    return VLP_OK;
}

static int archives_only(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && entry->d_name[0] != '.' &&
           (strcasecmp(dot, ".tar") == 0 || strcasecmp(dot, ".zip") == 0);
}

static vlp_status add_folder(collector *c, const char *folder) {
    struct dirent **entries;
    int n = scandir(folder, &entries, archives_only, alphasort);
    if (n < 0) return VLP_FAIL(VLP_ERR_IO, "%s: the folder cannot be read", folder);
    vlp_status status = VLP_OK;
    vlp_buf path = {0};
    for (int i = 0; i < n; i++) {
        if (status == VLP_OK) status = vlp_path_join(&path, folder, entries[i]->d_name);
        if (status == VLP_OK) status = add(c, path.data);
        free(entries[i]); /* scandir's own */
    }
    free(entries);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_shards_open(vlp_shards *out, const char *source) {
    *out = (vlp_shards){0};
    collector c = {.out = out};
    vlp_status status = vlp_is_pattern(source)  ? expand(&c, source)
                        : vlp_is_folder(source) ? add_folder(&c, source)
                                                : add(&c, source);
    if (status == VLP_OK && out->count == 0)
        status = VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: matches no file; check the pattern", source);
    if (status != VLP_OK) vlp_shards_close(out);
    return status;
}

void vlp_shards_close(vlp_shards *shards) {
    for (int64_t i = 0; i < shards->count; i++) vlp_free(shards->paths[i]);
    vlp_free(shards->paths);
    *shards = (vlp_shards){0};
}
