/* Sources of many files: "shards/{000..012}.tar", "shards/part-*.tar", or a folder of archives. */
#ifndef VLP_DATASETS_SHARDS_H
#define VLP_DATASETS_SHARDS_H

#include "core/memory.h"

#include <stdbool.h>

enum { VLP_SHARDS_MAX = 1000000 };

typedef struct {
    char **paths;
    int64_t count;
} vlp_shards;

/* Whether the text holds * ? [ or a {range}; a path that exists is no pattern, whatever it holds.
 */
bool vlp_is_pattern(const char *source);

/* The files of a source in a fixed order: {a..b} counts with a's width, {x,y} lists, * ? [] match
 * names; a folder gives its .tar and .zip files; anything else itself. Files of a range need not
 * exist. A pattern that matches nothing is VLP_ERR_NOT_FOUND. */
vlp_status vlp_shards_open(vlp_shards *out, const char *source);
void vlp_shards_close(vlp_shards *shards);

#endif
