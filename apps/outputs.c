#include "apps/outputs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const outputs[] = {"--html", "--report", "--confusion", "--errors"};

static bool is_output(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(outputs); i++)
        if (strcmp(name, outputs[i]) == 0) return true;
    return false;
}

/* The file itself, or one inside the folder; st = NULL when there is no such file yet. */
static bool touches(const char *output, const struct stat *st, const char *input) {
    struct stat other;
    if (strcmp(output, input) == 0) return true;
    if (!st || !*input || stat(input, &other) != 0) return false;
    if (other.st_dev == st->st_dev && other.st_ino == st->st_ino) return true;
    if (!S_ISDIR(other.st_mode)) return false;
    char *inner = realpath(output, NULL), *outer = realpath(input, NULL);
    size_t n = outer ? strlen(outer) : 0;
    bool inside = inner && outer && strncmp(inner, outer, n) == 0 && inner[n] == '/';
    free(inner);
    free(outer);
    return inside;
}

static bool is_index(const char *path) {
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic] = "";
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t n = fread(head, 1, sizeof head, file);
    fclose(file);
    return n == sizeof head && memcmp(head, magic, sizeof magic) == 0;
}

static vlp_status check(const cli_args *args, const char *name, const char *path) {
    struct stat st;
    bool exists = stat(path, &st) == 0, input = exists && S_ISREG(st.st_mode) && is_index(path);
    if (exists && !S_ISREG(st.st_mode))
        return VLP_FAIL(VLP_ERR_USAGE, "%s %s: not a regular file; name one to write", name, path);
    for (int i = 0; i < args->n_positional && !input; i++)
        input = touches(path, exists ? &st : NULL, args->positional[i]);
    for (int i = 0; i < args->n_given && !input; i++)
        input = !is_output(args->given[i].name) &&
                touches(path, exists ? &st : NULL, args->given[i].value);
    if (!input) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "%s %s would overwrite a file that this command reads; name another", name,
                    path);
}

vlp_status cli_check_outputs(const cli_args *args) {
    for (int i = 0; i < args->n_given; i++)
        if (is_output(args->given[i].name))
            VLP_TRY(check(args, args->given[i].name, args->given[i].value));
    return VLP_OK;
}
