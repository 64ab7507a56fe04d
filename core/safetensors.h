/* safetensors files: named, typed, dense arrays behind a JSON header.
 *
 *     bytes 0..7     N, the header's length, little endian
 *     bytes 8..8+N   {"__metadata__": {"format": "pt"},
 *                     "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *     the rest       the arrays; offsets count from the first byte after the header
 *
 * Reading maps the file and copies nothing; everything is checked at open, so a tensor that was
 * handed out lies inside the file. Data may be unaligned: read it through the helpers or memcpy.
 *
 *     vlp_safetensors *file;
 *     VLP_TRY(vlp_safetensors_open(&file, path));
 *     const vlp_safetensor *t;
 *     VLP_TRY_DONE(vlp_safetensors_get(file, "visual.proj", &t));
 *     VLP_TRY_DONE(vlp_safetensors_read_real(t, out, n));
 *
 * Errors name the file and the tensor. The machine is little endian, as the format is. */
#ifndef VLP_CORE_SAFETENSORS_H
#define VLP_CORE_SAFETENSORS_H

#include "core/real.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { VLP_SAFETENSORS_DIMS = 8 };

typedef enum {
    VLP_ST_F64,
    VLP_ST_F32,
    VLP_ST_F16,
    VLP_ST_BF16,
    VLP_ST_I64,
    VLP_ST_I32,
    VLP_ST_I16,
    VLP_ST_I8,
    VLP_ST_U8,
    VLP_ST_BOOL,
    VLP_ST_COUNT
} vlp_st_dtype;

const char *vlp_st_dtype_name(vlp_st_dtype dtype); /* "F32" */
size_t vlp_st_dtype_size(vlp_st_dtype dtype);
bool vlp_st_is_float(vlp_st_dtype dtype);

typedef struct {
    const char *name;
    vlp_st_dtype dtype;
    int ndim;
    int64_t shape[VLP_SAFETENSORS_DIMS];
    int64_t numel;
    const void *data; /* little endian, not necessarily aligned */
    size_t bytes;
    const char *file; /* the path, for messages */
} vlp_safetensor;

typedef struct vlp_safetensors vlp_safetensors;

/* Refuses (VLP_ERR_FORMAT, VLP_ERR_LIMIT, VLP_ERR_UNSUPPORTED) a truncated file, a header beyond
 * 100,000,000 bytes, duplicate names, sizes that contradict the shape, overlaps, holes and trailing
 * bytes. */
vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path);
/* The same for bytes in memory, which the caller keeps alive; `where` stands for the path. */
vlp_status vlp_safetensors_open_memory(vlp_safetensors **out, const void *data, size_t len,
                                       const char *where);
void vlp_safetensors_close(vlp_safetensors *file); /* NULL is legal */

/* Tensors in the order of their data; all results are borrowed until close. */
size_t vlp_safetensors_count(const vlp_safetensors *file);
const vlp_safetensor *vlp_safetensors_at(const vlp_safetensors *file, size_t i);
const vlp_safetensor *vlp_safetensors_find(const vlp_safetensors *file, const char *name);
const char *vlp_safetensors_metadata(const vlp_safetensors *file, const char *key); /* or NULL */

/* Elements first .. first + n have been read: their pages need not stay in memory. They can be read
 * again. A hint. */
void vlp_safetensors_release(const vlp_safetensors *file, const vlp_safetensor *tensor,
                             int64_t first, int64_t n);

/* find, or VLP_ERR_NOT_FOUND with the nearest name. */
vlp_status vlp_safetensors_get(const vlp_safetensors *file, const char *name,
                               const vlp_safetensor **out);

/* F16, BF16, F32 or F64 to out [n]; n must be the number of elements. */
vlp_status vlp_safetensors_read_real(const vlp_safetensor *tensor, vlp_real *out, int64_t n);
/* The same for n elements from the first on. */
vlp_status vlp_safetensors_read_part(const vlp_safetensor *tensor, int64_t first, int64_t n,
                                     vlp_real *out);
/* Any integer type or BOOL to out [n]; a value beyond int32 is VLP_ERR_LIMIT. */
vlp_status vlp_safetensors_read_i32(const vlp_safetensor *tensor, int32_t *out, int64_t n);
/* Element i as a number, whatever the type: for comparing and printing, not for bulk. */
double vlp_safetensor_value(const vlp_safetensor *tensor, int64_t i);

/* Writing: the header first, then every tensor's data in the order of the specs, in pieces of any
 * size, so that nothing is held twice. The same calls give the same bytes. */
typedef struct {
    const char *name;
    vlp_st_dtype dtype;
    int ndim;
    int64_t shape[VLP_SAFETENSORS_DIMS];
} vlp_safetensor_spec;

typedef struct {
    const char *key, *value;
} vlp_st_pair;

typedef struct vlp_safetensors_writer vlp_safetensors_writer;

/* Metadata is {"format": "pt"} and the pairs. A duplicate or reserved name is VLP_ERR_USAGE. For
 * aligned data put the wider types first. Specs and names must live until commit. */
vlp_status vlp_safetensors_writer_begin(vlp_safetensors_writer **out, const char *path,
                                        const vlp_safetensor_spec *specs, size_t n,
                                        const vlp_st_pair *metadata, size_t pairs);
/* The next bytes, already in the tensors' type. */
vlp_status vlp_safetensors_writer_write(vlp_safetensors_writer *writer, const void *data,
                                        size_t bytes);
/* The next values of an F32 tensor. */
vlp_status vlp_safetensors_writer_real(vlp_safetensors_writer *writer, const vlp_real *values,
                                       int64_t n);
/* Puts the file in place; data that is missing or left over is a programming error. Frees the
 * writer, also on failure. */
vlp_status vlp_safetensors_writer_commit(vlp_safetensors_writer *writer);
void vlp_safetensors_writer_abandon(vlp_safetensors_writer *writer); /* NULL is legal */

#endif
