/* Looks at an image file without decoding it: content hash, size in pixels, or why it is no good.
 */
#ifndef VLP_DATASETS_PROBE_H
#define VLP_DATASETS_PROBE_H

#include "core/hash.h"
#include "core/memory.h"
#include "datasets/import.h"

typedef struct {
    vlp_hash hash;
    int width, height; /* upright, as decoded */
    bool usable;
    vlp_skip_reason reason; /* when not usable */
    char detail[256];
} vlp_probe;

/* What is refused before it is decoded. */
typedef struct {
    int64_t max_pixels, max_bytes; /* of the picture; of its file */
} vlp_probe_limits;

/* size: the file's length. Files up to 1 MiB are hashed whole, larger ones by their size, first MiB
 * and two samples of 64 KiB. Only running out of memory is an error; `scratch` is reused. */
vlp_status vlp_probe_file(vlp_probe *out, const char *path, int64_t size,
                          const vlp_probe_limits *limits, vlp_buf *scratch);
/* The same for an image in memory; such a copy and the file have one hash. */
vlp_status vlp_probe_bytes(vlp_probe *out, const uint8_t *data, size_t len,
                           const vlp_probe_limits *limits, vlp_buf *scratch);

#endif
