/* A parameter store to and from safetensors, also under the names of other implementations. */
#ifndef VLP_CORE_CHECKPOINT_H
#define VLP_CORE_CHECKPOINT_H

#include "core/params.h"
#include "core/safetensors.h"

/* How another implementation names our parameters. "{}" stands for one or more digits and is
 * carried over. A tensor of theirs may be one of `parts` equal row slices of ours (q, k and v of a
 * fused projection), or its transpose. ours = NULL: known, and not needed. */
typedef struct {
    const char *theirs, *ours;
    int part, parts; /* 0, 0 = the whole */
    bool transpose;  /* theirs is [I, O] where ours is [O, I] */
} vlp_name_row;

typedef struct {
    const vlp_name_row *rows;
    size_t count;
} vlp_name_map;

enum { VLP_NAME_BYTES = 256 };

/* The row for a name of theirs and our name for it; NULL when no row fits. */
const vlp_name_row *vlp_name_find(vlp_name_map map, const char *theirs, char ours[VLP_NAME_BYTES]);

/* Fills every parameter. With an empty map the names are ours. A missing or mis-shaped tensor is an
 * error that names the file, the tensor and the nearest known name; tensors that nothing wants are
 * an error too. Names (ours) that start with `optional` may be missing or left over (NULL = none).
 * Shapes must agree up to axes of length 1 and to the flattening of trailing axes. */
vlp_status vlp_params_load(vlp_params *params, const vlp_safetensors *file, vlp_name_map map,
                           const char *optional);

/* Writes all parameters, their values taken from a block laid out like params->values, atomically.
 */
vlp_status vlp_params_save(const vlp_params *params, const vlp_real *values, const char *path);

/* Copies between a parameter's block (values or gradients) and one of their tensors, laid out as
 * the row says: to_theirs false fills ours. `theirs` has numel / parts elements. */
void vlp_name_copy(const vlp_name_row *row, const vlp_tensor *shape, vlp_real *ours,
                   vlp_real *theirs, bool to_theirs);

#endif
