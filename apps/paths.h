/* Pictures named on a command line: files, folders (recursively, sorted), "-" = a list on stdin. */
#ifndef VLP_APPS_PATHS_H
#define VLP_APPS_PATHS_H

#include "apps/cli.h"

/* Fills out; free with cli_list_free. Folders that cannot be listed are told to `unreadable`. */
vlp_status cli_paths(cli_list *out, const char *const *arguments, int n,
                     void (*unreadable)(const char *path, void *user), void *user);

#endif
