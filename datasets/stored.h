/* The bytes of an image wherever they lie: in a file of their own, or inside another file. */
#ifndef VLP_DATASETS_STORED_H
#define VLP_DATASETS_STORED_H

#include "core/memory.h"
#include "datasets/index.h"

enum { VLP_MEMBER_MAX = 1 << 28 }; /* bytes that one picture's encoded form may have */

/* The container stays open between calls: neighbours mostly come from the same one. */
typedef struct {
    int fd; /* of an open container, valid while path is not empty */
    vlp_buf path, packed;
} vlp_container;
void vlp_container_close(vlp_container *container);

/* Replaces out by the bytes. length 0 = the file itself. */
vlp_status vlp_stored_read(vlp_container *container, const char *path, int64_t offset,
                           int64_t length, vlp_stored stored, vlp_buf *out);

#endif
