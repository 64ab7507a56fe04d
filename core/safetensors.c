#include "core/safetensors_internal.h"

#include "core/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_HEADER ((uint64_t)100000000)

static vlp_status parse_dtype(vlp_safetensor *t, const vlp_json *entry) {
    const char *name = vlp_json_string(entry, "dtype", NULL);
    if (!name) return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "no dtype");
    for (int i = 0; i < VLP_ST_COUNT; i++) {
        if (strcmp(name, vlp_st_dtype_name((vlp_st_dtype)i)) != 0) continue;
        t->dtype = (vlp_st_dtype)i;
        return VLP_OK;
    }
    return VLP_FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "dtype %s is not supported; convert it to F32",
                           vlp_shown(name).text);
}

static vlp_status parse_shape(vlp_safetensor *t, const vlp_json *entry) {
    const vlp_json *shape = vlp_json_key(entry, "shape");
    size_t n = vlp_json_len(shape);
    if (!vlp_json_is_array(shape)) return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "no shape");
    if (n > VLP_SAFETENSORS_DIMS)
        return VLP_FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "%zu dimensions; at most %d are supported",
                               n, VLP_SAFETENSORS_DIMS);
    t->ndim = (int)n;
    for (size_t i = 0; i < n; i++) {
        const vlp_json *size = vlp_json_at(shape, i);
        t->shape[i] = vlp_json_as_int(size);
        if (!vlp_json_is_integer(size) || t->shape[i] < 0)
            return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "dimension %zu is not a size", i);
    }
    return vlp_safetensor_size(t);
}

static vlp_status parse_offsets(vlp_safetensor *t, const vlp_json *entry, const uint8_t *data,
                                size_t len) {
    const vlp_json *offsets = vlp_json_key(entry, "data_offsets");
    const vlp_json *first = vlp_json_at(offsets, 0), *second = vlp_json_at(offsets, 1);
    if (vlp_json_len(offsets) != 2 || !vlp_json_is_integer(first) || !vlp_json_is_integer(second))
        return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "data_offsets is not a pair of integers");
    int64_t begin = vlp_json_as_int(first), end = vlp_json_as_int(second);
    if (begin < 0 || end < begin || (uint64_t)end > len)
        return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t,
                               "offsets %lld..%lld lie outside the %zu bytes of data; the file is "
                               "truncated or damaged",
                               (long long)begin, (long long)end, len);
    if ((uint64_t)(end - begin) != t->bytes)
        return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t,
                               "%lld bytes of data, but its shape and dtype need %zu",
                               (long long)(end - begin), t->bytes);
    t->data = data + begin;
    return VLP_OK;
}

static vlp_status parse_metadata(const vlp_safetensors *file, const vlp_json *metadata) {
    if (!vlp_json_is_object(metadata))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: __metadata__ is not an object", file->path);
    for (void *it = vlp_json_first(metadata); it; it = vlp_json_next(metadata, it))
        if (!vlp_json_is_string(vlp_json_iter_value(it)))
            return VLP_FAIL(VLP_ERR_FORMAT, "%s: __metadata__ key \"%s\" is not a string",
                            file->path, vlp_shown(vlp_json_iter_key(it)).text);
    return VLP_OK;
}

static int compare_place(const void *a, const void *b) {
    const vlp_safetensor *x = a, *y = b;
    if (x->data != y->data) return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1; /* empty ones first */
    return strcmp(x->name, y->name);
}

/* Sorted by place, every tensor begins where the one before ends, and the last ends the file. */
static vlp_status check_contiguous(const vlp_safetensors *file, const uint8_t *data, size_t len) {
    const uint8_t *at = data;
    for (size_t i = 0; i < file->count; i++) {
        const vlp_safetensor *t = &file->tensors[i];
        if (t->data != at)
            return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "its data %s",
                                   (const uint8_t *)t->data < at ? "overlaps another tensor's"
                                                                 : "follows a hole in the file");
        at += t->bytes;
    }
    if (at != data + len)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %zu bytes follow the last tensor", file->path,
                        (size_t)(data + len - at));
    return VLP_OK;
}

static vlp_status parse_tensor(vlp_safetensors *file, void *it, const uint8_t *data, size_t len) {
    const vlp_json *entry = vlp_json_iter_value(it);
    if (strcmp(vlp_json_iter_key(it), "__metadata__") == 0) return parse_metadata(file, entry);
    vlp_safetensor t = {.name = vlp_json_iter_key(it), .file = file->path};
    VLP_TRY(parse_dtype(&t, entry));
    VLP_TRY(parse_shape(&t, entry));
    VLP_TRY(parse_offsets(&t, entry, data, len));
    return vlp_safetensors_add(file, &t);
}

static vlp_status parse_tensors(vlp_safetensors *file, const uint8_t *data, size_t len) {
    for (void *it = vlp_json_first(file->header); it; it = vlp_json_next(file->header, it))
        VLP_TRY(parse_tensor(file, it, data, len));
    if (file->count) qsort(file->tensors, file->count, sizeof *file->tensors, compare_place);
    VLP_TRY(check_contiguous(file, data, len));
    return vlp_safetensors_finish(file);
}

static uint64_t header_length(const uint8_t *data) {
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | data[i];
    return n;
}

static vlp_status parse(vlp_safetensors *file, const uint8_t *data, size_t len) {
    if (len < 8)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file",
                        file->path, len);
    uint64_t n = header_length(data);
    if (n > LONGEST_HEADER)
        return VLP_FAIL(VLP_ERR_LIMIT,
                        "%s: header length %llu is beyond 100000000: not a safetensors file?",
                        file->path, (unsigned long long)n);
    if (n > len - 8)
        return VLP_FAIL(VLP_ERR_FORMAT,
                        "%s: the header of %llu bytes does not fit in %zu bytes; "
                        "the file is truncated",
                        file->path, (unsigned long long)n, len);
    if (n == 0 || data[8] != '{')
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: the header does not begin with {", file->path);
    VLP_TRY(vlp_json_parse(&file->header, (const char *)data + 8, (size_t)n, file->path));
    if (!vlp_json_is_object(file->header))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: the header is not an object", file->path);
    return parse_tensors(file, data + 8 + n, len - 8 - (size_t)n);
}

vlp_status vlp_safetensors_open_memory(vlp_safetensors **out, const void *data, size_t len,
                                       const char *where) {
    vlp_status status = vlp_safetensors_new(out, where);
    if (status == VLP_OK) status = parse(*out, data, len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}

vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path) {
    vlp_status status = vlp_safetensors_new(out, path);
    if (status == VLP_OK) status = vlp_map_open(&(*out)->map, path);
    if (status == VLP_OK) status = parse(*out, (*out)->map.data, (*out)->map.len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}
