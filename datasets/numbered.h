/* Pictures that a corpus knows by number only: the usual file names for it are tried in turn. */
#ifndef VLP_DATASETS_NUMBERED_H
#define VLP_DATASETS_NUMBERED_H

#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int usual; /* the name that was right last is tried first */
} vlp_numbered;

/* Writes the name, relative to root, into out: COCO_train2014_000000000042.jpg, 42.jpg,
 * VG_100K/42.jpg, ... `set` is for instance "train2014" or "". Without such a file the first name
 * that people use stays in out, for the message, and the result is false in *found. */
vlp_status vlp_numbered_name(vlp_numbered *numbered, const char *root, int64_t number,
                             const char *set, vlp_buf *out, bool *found);

#endif
