/* What kind of file an argument is, and text files a line at a time. */
#ifndef VLP_APPS_FILES_H
#define VLP_APPS_FILES_H

#include "core/memory.h"

#include <stdbool.h>

/* Whether the file starts as an SQLite database does: an index. */
bool cli_is_index(const char *path);

/* Calls `each` for every line without its end, \n or \r\n; "-" is standard input. `number` counts
 * from 1. A status other than VLP_OK stops and is returned. */
typedef vlp_status (*cli_line_fn)(const char *line, size_t len, int64_t number, void *user);
vlp_status cli_each_line(const char *path, cli_line_fn each, void *user);

#endif
