/* A checkpoint under another implementation's names: the same numbers, bit for bit and in the type
 * that they were stored in, cut, joined and transposed as the two name maps say. */
#ifndef VLP_CORE_CHECKPOINT_RENAME_H
#define VLP_CORE_CHECKPOINT_RENAME_H

#include "core/checkpoint.h"

/* One side of a conversion, and what the shape of a patch embedding needs. */
typedef struct {
    const vlp_safetensors *from;
    const vlp_name_map *from_names, *to_names;
    const vlp_params *params; /* declared: our names and shapes; no memory is needed */
    int64_t channels, patch;  /* C and p of VLP_SHAPE_PATCH */
} vlp_rename;

/* Writes `path` atomically, as safetensors. Every parameter must be in `from`, complete and of one
 * type, and have a name there; tensors that no row knows are VLP_ERR_FORMAT. One parameter is in
 * memory at a time. */
vlp_status vlp_checkpoint_rename(const vlp_rename *rename, const char *path);

#endif
