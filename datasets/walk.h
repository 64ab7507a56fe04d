/* Walks a folder tree in name order, so that two machines see files in the same order. */
#ifndef VLP_DATASETS_WALK_H
#define VLP_DATASETS_WALK_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct {
    const char *path;   /* of the file */
    const char *folder; /* the parts between the root and the file: "a/b", or "" */
    bool has_captions;  /* a .txt of the same name lies beside it */
} vlp_walk_file;

/* Calls `image` for every file that is named like an image; hidden entries and linked folders are
 * passed over. An unreadable sub-folder is given to `unreadable`. */
vlp_status vlp_walk(const char *root, vlp_status (*image)(const vlp_walk_file *file, void *user),
                    vlp_status (*unreadable)(const char *path, void *user), void *user);

#endif
