/* How a set of named tensors is put together, whatever file they come from; private to core. */
#ifndef VLP_CORE_SAFETENSORS_INTERNAL_H
#define VLP_CORE_SAFETENSORS_INTERNAL_H

#include "core/file.h"
#include "core/json.h"
#include "core/safetensors.h"

struct vlp_safetensors {
    char *path;
    vlp_map map;
    vlp_json *header; /* safetensors: owns the names */
    vlp_safetensor *tensors;
    const vlp_safetensor **by_name;
    size_t count, capacity;
    void **blocks; /* owned: names and copies of what does not lie in one piece */
    size_t block_count;
    vlp_safetensors **parts; /* owned: the files that a set of several was put together from */
    size_t part_count;
};

vlp_status vlp_safetensors_new(vlp_safetensors **out, const char *path);
/* Appends a copy of *tensor; its shape, type and data are filled in, name and file live as long. */
vlp_status vlp_safetensors_add(vlp_safetensors *file, const vlp_safetensor *tensor);
/* Hands over a block, to be freed at close; also on failure. */
vlp_status vlp_safetensors_keep(vlp_safetensors *file, void *block);
vlp_status vlp_safetensors_add_part(vlp_safetensors *file, vlp_safetensors *part);
/* After the last one: by_name; equal names and control characters in names are errors. */
vlp_status vlp_safetensors_finish(vlp_safetensors *file);

/* A name from a file, fit for one line of a message. */
typedef struct {
    char text[100];
} vlp_shown_name;
vlp_shown_name vlp_shown(const char *name);

#define VLP_FAIL_TENSOR(code, tensor, format, ...)                                                 \
    VLP_FAIL(code, "%s: tensor \"%s\": " format, (tensor)->file, vlp_shown((tensor)->name).text,   \
             __VA_ARGS__)

/* numel and bytes from the shape; VLP_ERR_FORMAT when they overflow. */
vlp_status vlp_safetensor_size(vlp_safetensor *t);

#endif
