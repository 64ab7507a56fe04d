/* A checkpoint under another implementation's names: the same numbers, bit for bit and in the type
 * that they were stored in, cut, joined and transposed as the two name maps say. */
#ifndef VLP_CORE_CHECKPOINT_RENAME_H
#define VLP_CORE_CHECKPOINT_RENAME_H

#include "core/checkpoint.h"

/* A tensor that the other implementation has and we have not, because it does nothing. */
typedef enum {
    VLP_FILL_CONSTANT, /* F32: `value` everywhere */
    VLP_FILL_DIAGONAL, /* F32: `value` on the diagonal, else 0 */
    VLP_FILL_COUNT,    /* I64: 0, 1, 2, ... */
} vlp_fill;

typedef struct {
    char name[VLP_NAME_BYTES];
    int ndim;
    int64_t shape[VLP_SAFETENSORS_DIMS];
    vlp_fill fill;
    double value;
} vlp_filler;

/* One side of a conversion, and what the shape of a patch embedding needs. */
typedef struct {
    const vlp_safetensors *from;
    const vlp_name_map *from_names;
    const vlp_name_map *to_names; /* [copies]: a parameter is written under its name in each */
    int copies;
    const vlp_filler *fillers; /* [filler_count], written as well */
    int filler_count;
    const vlp_params *params; /* declared: our names and shapes; no memory is needed */
    int64_t channels, patch;  /* C and p of VLP_SHAPE_PATCH */
    const char *left_out; /* what begins so (our names) and is no parameter stays behind; NULL */
} vlp_rename;

/* Writes `path` atomically, as safetensors. Every parameter must be in `from`, complete and of one
 * type, and have a name in one of the maps; tensors that no row knows are VLP_ERR_FORMAT. One
 * parameter is in memory at a time. */
vlp_status vlp_checkpoint_rename(const vlp_rename *rename, const char *path);

#endif
