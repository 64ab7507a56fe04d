#include "apps/files.h"

#include "core/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

bool cli_is_index(const char *path) {
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = "";
    FILE *file = vlp_is_special(path) ? NULL : fopen(path, "re");
    if (!file) return false;
    size_t n = fread(start, 1, sizeof start, file);
    fclose(file);
    return n == sizeof start && memcmp(start, magic, sizeof magic) == 0;
}

vlp_status cli_each_line(const char *path, cli_line_fn each, void *user) {
    bool standard = strcmp(path, "-") == 0;
    if (!standard && vlp_is_special(path))
        return VLP_FAIL(VLP_ERR_USAGE, "%s is not a regular file; pipe it in and name -", path);
    FILE *file = standard ? stdin : fopen(path, "re");
    if (!file) return VLP_FAIL(VLP_ERR_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    vlp_status status = VLP_OK;
    for (int64_t number = 1; status == VLP_OK && (n = getline(&line, &room, file)) >= 0; number++) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = '\0';
        status = each(line, (size_t)n, number, user);
    }
    if (status == VLP_OK && ferror(file))
        status = VLP_FAIL(VLP_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    free(line); /* getline's own */
    if (!standard) fclose(file);
    return status;
}
