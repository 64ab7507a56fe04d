/* A parameter store to and from checkpoints, also under the names of other implementations.
 *
 *     vlp_safetensors *file;
 *     VLP_TRY(vlp_checkpoint_open(&file, "clip-vit-base-patch32"));   any container
 *     VLP_TRY_DONE(vlp_params_load(params, file, map, NULL));         any names
 */
#ifndef VLP_CORE_CHECKPOINT_H
#define VLP_CORE_CHECKPOINT_H

#include "core/memory.h"
#include "core/params.h"
#include "core/safetensors.h"

/* Opens a checkpoint whatever its container is, told by its first bytes: safetensors, PyTorch's zip
 * archives (core/torch_file.h), or the index.json of either in several files. Of a folder, the file
 * that vlp_checkpoint_path finds. PyTorch's older formats are VLP_ERR_UNSUPPORTED, with the cure.
 */
vlp_status vlp_checkpoint_open(vlp_safetensors **out, const char *path);

/* The weights of a model folder: the first there is of model.safetensors, its index,
 * open_clip_model.safetensors, pytorch_model.bin, its index, open_clip_pytorch_model.bin. */
vlp_status vlp_checkpoint_path(const char *folder, vlp_buf *path);

/* How another implementation shapes the same numbers. */
typedef enum {
    VLP_SHAPE_SAME,
    VLP_SHAPE_FLAT,  /* [D] for our [1, D] */
    VLP_SHAPE_BATCH, /* an axis of length 1 in front: [1, P, D] for our [P, D] */
    VLP_SHAPE_TOKEN, /* two of them: [1, 1, D] for our [D], or our [1, D] with one */
    VLP_SHAPE_PATCH, /* [D, C, p, p] for our [D, C p p] */
} vlp_name_shape;

/* How another implementation names our parameters. "{}" stands for one or more digits and is
 * carried over. A tensor of theirs may be one of `parts` equal row slices of ours (q, k and v of a
 * fused projection), or its transpose. ours = NULL: known, and not needed. */
typedef struct {
    const char *theirs, *ours;
    int part, parts;      /* 0, 0 = the whole */
    bool transpose;       /* theirs is [I, O] where ours is [O, I] */
    vlp_name_shape shape; /* of theirs, for writing: reading agrees to all of them */
    /* For a tensor of another shape that can be converted: fills out like `ours`. A failure of
     * VLP_ERR_UNSUPPORTED says that this one cannot. NULL = none can. */
    vlp_status (*convert)(const vlp_safetensor *theirs, const vlp_tensor *ours, vlp_real *out);
} vlp_name_row;

/* Rows for a layer's weight and bias, whole or as part k of n. */
#define VLP_NAME_LAYER(theirs_, ours_) VLP_NAME_PART(theirs_, ours_, 0, 0)
#define VLP_NAME_PART(theirs_, ours_, k, n)                                                        \
    {.theirs = theirs_ ".weight", .ours = ours_ ".weight", .part = (k), .parts = (n)}, {           \
        .theirs = theirs_ ".bias", .ours = ours_ ".bias", .part = (k), .parts = (n)                \
    }

/* Tables of rows, each with what stands in front of its names on either side: "bert." and "text."
 * The first row that fits counts. Without tables the names are ours. */
enum { VLP_NAME_BYTES = 256, VLP_NAME_TABLES = 40 };

typedef struct {
    struct {
        const vlp_name_row *rows;
        size_t count;
        const char *theirs, *ours; /* prefixes, borrowed */
        int64_t first, end;        /* layers of theirs, see vlp_name_map_add_layers */
    } tables[VLP_NAME_TABLES];
    int count;
} vlp_name_map;

void vlp_name_map_add(vlp_name_map *map, const vlp_name_row *rows, size_t count, const char *theirs,
                      const char *ours);
/* The same for a stretch of one stack of layers: where a name holds a number, the first of them
 * must lie in [first, end), and ours counts from 0. So one stack of theirs can be two of ours. */
void vlp_name_map_add_layers(vlp_name_map *map, const vlp_name_row *rows, size_t count,
                             const char *theirs, const char *ours, int64_t first, int64_t end);

/* The row for a name of theirs and our name for it; NULL when no row fits. */
const vlp_name_row *vlp_name_find(const vlp_name_map *map, const char *theirs,
                                  char ours[VLP_NAME_BYTES]);

/* The tensors of theirs that a parameter of ours is written as: one, or its parts in order. Where
 * several rows could name it, the first. Returns how many; 0 when there is no name. Without tables
 * the name is ours. */
enum { VLP_NAME_TARGETS = 4 };
typedef struct {
    char name[VLP_NAME_BYTES];
    const vlp_name_row *row;
} vlp_name_target;
int vlp_name_targets(const vlp_name_map *map, const char *ours,
                     vlp_name_target out[VLP_NAME_TARGETS]);

/* The first of the prefixes (NULL-terminated) for which the file has prefix + name; NULL if none.
 * It tells the variants of a family apart: "vit.embeddings.cls_token", "embeddings.cls_token". */
const char *vlp_name_prefix(const vlp_safetensors *file, const char *const *prefixes,
                            const char *name);

/* Fills every parameter. With an empty map the names are ours. A missing or mis-shaped tensor is an
 * error that names the file, the tensor and the nearest known name; tensors that nothing wants are
 * an error too. Names (ours) that start with `optional` may be missing or left over (NULL = none).
 * Shapes must agree up to axes of length 1 and to the flattening of trailing axes. Several tensors
 * may be one parameter of ours (tied weights stored twice): they must be equal. */
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
