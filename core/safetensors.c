#include "core/safetensors.h"

#include "core/file.h"
#include "core/json.h"
#include "core/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_HEADER ((uint64_t)100000000)

static const struct {
    const char *name;
    size_t size;
    bool is_float;
} dtypes[VLP_ST_COUNT] = {
    [VLP_ST_F64] = {"F64", 8, true},  [VLP_ST_F32] = {"F32", 4, true},
    [VLP_ST_F16] = {"F16", 2, true},  [VLP_ST_BF16] = {"BF16", 2, true},
    [VLP_ST_I64] = {"I64", 8, false}, [VLP_ST_I32] = {"I32", 4, false},
    [VLP_ST_I16] = {"I16", 2, false}, [VLP_ST_I8] = {"I8", 1, false},
    [VLP_ST_U8] = {"U8", 1, false},   [VLP_ST_BOOL] = {"BOOL", 1, false},
};

const char *vlp_st_dtype_name(vlp_st_dtype dtype) {
    return dtypes[dtype].name;
}

size_t vlp_st_dtype_size(vlp_st_dtype dtype) {
    return dtypes[dtype].size;
}

bool vlp_st_is_float(vlp_st_dtype dtype) {
    return dtypes[dtype].is_float;
}

struct vlp_safetensors {
    char *path;
    vlp_map map;
    vlp_json *header; /* owns the names */
    vlp_safetensor *tensors;
    const vlp_safetensor **by_name;
    size_t count;
};

/* A name from a file, fit for one line of a message. */
typedef struct {
    char text[100];
} shown_name;

static shown_name shown(const char *name) {
    shown_name out;
    size_t n = 0;
    for (; name[n] && n + 4 < sizeof out.text; n++)
        out.text[n] = (unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n];
    strcpy(out.text + n, name[n] ? "..." : "");
    return out;
}

#define FAIL_TENSOR(code, tensor, format, ...)                                                     \
    VLP_FAIL(code, "%s: tensor \"%s\": " format, (tensor)->file, shown((tensor)->name).text,       \
             __VA_ARGS__)

static vlp_status check_name(const vlp_safetensor *t) {
    for (const unsigned char *p = (const unsigned char *)t->name; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "control characters in its name");
    return VLP_OK;
}

static vlp_status parse_dtype(vlp_safetensor *t, const vlp_json *entry) {
    const char *name = vlp_json_string(entry, "dtype", NULL);
    if (!name) return FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "no dtype");
    for (int i = 0; i < VLP_ST_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) != 0) continue;
        t->dtype = (vlp_st_dtype)i;
        return VLP_OK;
    }
    return FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "dtype %s is not supported; convert it to F32",
                       shown(name).text);
}

static vlp_status parse_shape(vlp_safetensor *t, const vlp_json *entry) {
    const vlp_json *shape = vlp_json_key(entry, "shape");
    size_t n = vlp_json_len(shape);
    if (!vlp_json_is_array(shape)) return FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "no shape");
    if (n > VLP_SAFETENSORS_DIMS)
        return FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "%zu dimensions; at most %d are supported", n,
                           VLP_SAFETENSORS_DIMS);
    t->ndim = (int)n;
    t->numel = 1;
    for (size_t i = 0; i < n; i++) {
        const vlp_json *size = vlp_json_at(shape, i);
        t->shape[i] = vlp_json_as_int(size);
        if (!vlp_json_is_integer(size) || t->shape[i] < 0)
            return FAIL_TENSOR(VLP_ERR_FORMAT, t, "dimension %zu is not a size", i);
        if (__builtin_mul_overflow(t->numel, t->shape[i], &t->numel))
            return FAIL_TENSOR(VLP_ERR_FORMAT, t, "the shape overflows at dimension %zu", i);
    }
    int64_t bytes;
    if (__builtin_mul_overflow(t->numel, (int64_t)dtypes[t->dtype].size, &bytes))
        return FAIL_TENSOR(VLP_ERR_FORMAT, t, "the shape overflows: %lld elements",
                           (long long)t->numel);
    t->bytes = (size_t)bytes;
    return VLP_OK;
}

static vlp_status parse_offsets(vlp_safetensor *t, const vlp_json *entry, const uint8_t *data,
                                size_t len) {
    const vlp_json *offsets = vlp_json_key(entry, "data_offsets");
    const vlp_json *first = vlp_json_at(offsets, 0), *second = vlp_json_at(offsets, 1);
    if (vlp_json_len(offsets) != 2 || !vlp_json_is_integer(first) || !vlp_json_is_integer(second))
        return FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "data_offsets is not a pair of integers");
    int64_t begin = vlp_json_as_int(first), end = vlp_json_as_int(second);
    if (begin < 0 || end < begin || (uint64_t)end > len)
        return FAIL_TENSOR(VLP_ERR_FORMAT, t,
                           "offsets %lld..%lld lie outside the %zu bytes of data; the file is "
                           "truncated or damaged",
                           (long long)begin, (long long)end, len);
    if ((uint64_t)(end - begin) != t->bytes)
        return FAIL_TENSOR(VLP_ERR_FORMAT, t,
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
                            file->path, shown(vlp_json_iter_key(it)).text);
    return VLP_OK;
}

static int compare_place(const void *a, const void *b) {
    const vlp_safetensor *x = a, *y = b;
    if (x->data != y->data) return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1; /* empty ones first */
    return strcmp(x->name, y->name);
}

static int compare_name(const void *a, const void *b) {
    const vlp_safetensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Sorted by place, every tensor begins where the one before ends, and the last ends the file. */
static vlp_status check_contiguous(const vlp_safetensors *file, const uint8_t *data, size_t len) {
    const uint8_t *at = data;
    for (size_t i = 0; i < file->count; i++) {
        const vlp_safetensor *t = &file->tensors[i];
        if (t->data != at)
            return FAIL_TENSOR(VLP_ERR_FORMAT, t, "its data %s",
                               (const uint8_t *)t->data < at ? "overlaps another tensor's"
                                                             : "follows a hole in the file");
        at += t->bytes;
    }
    if (at != data + len)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %zu bytes follow the last tensor", file->path,
                        (size_t)(data + len - at));
    return VLP_OK;
}

static vlp_status parse_tensors(vlp_safetensors *file, const uint8_t *data, size_t len) {
    size_t most = 0;
    for (void *it = vlp_json_first(file->header); it; it = vlp_json_next(file->header, it)) most++;
    file->tensors = vlp_alloc_zero(most, sizeof *file->tensors);
    file->by_name = vlp_alloc_zero(most, sizeof *file->by_name);
    if (!file->tensors || !file->by_name) return VLP_ERR_MEMORY;
    for (void *it = vlp_json_first(file->header); it; it = vlp_json_next(file->header, it)) {
        const vlp_json *entry = vlp_json_iter_value(it);
        if (strcmp(vlp_json_iter_key(it), "__metadata__") == 0) {
            VLP_TRY(parse_metadata(file, entry));
            continue;
        }
        vlp_safetensor *t = &file->tensors[file->count++];
        t->name = vlp_json_iter_key(it);
        t->file = file->path;
        VLP_TRY(check_name(t));
        VLP_TRY(parse_dtype(t, entry));
        VLP_TRY(parse_shape(t, entry));
        VLP_TRY(parse_offsets(t, entry, data, len));
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_place);
    for (size_t i = 0; i < file->count; i++) file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_name);
    return check_contiguous(file, data, len);
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

static vlp_status new_file(vlp_safetensors **out, const char *path) {
    vlp_safetensors *file = *out = vlp_alloc_zero(1, sizeof *file);
    if (!file) return VLP_ERR_MEMORY;
    file->path = vlp_strdup(path);
    return file->path ? VLP_OK : VLP_ERR_MEMORY;
}

vlp_status vlp_safetensors_open_memory(vlp_safetensors **out, const void *data, size_t len,
                                       const char *where) {
    vlp_status status = new_file(out, where);
    if (status == VLP_OK) status = parse(*out, data, len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}

vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path) {
    vlp_status status = new_file(out, path);
    if (status == VLP_OK) status = vlp_map_open(&(*out)->map, path);
    if (status == VLP_OK) status = parse(*out, (*out)->map.data, (*out)->map.len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}

void vlp_safetensors_close(vlp_safetensors *file) {
    if (!file) return;
    vlp_free(file->tensors);
    vlp_free(file->by_name);
    vlp_json_free(file->header);
    vlp_map_close(&file->map);
    vlp_free(file->path);
    vlp_free(file);
}

size_t vlp_safetensors_count(const vlp_safetensors *file) {
    return file->count;
}

const vlp_safetensor *vlp_safetensors_at(const vlp_safetensors *file, size_t i) {
    VLP_ASSERT(i < file->count, "tensor %zu of %zu", i, file->count);
    return &file->tensors[i];
}

const vlp_safetensor *vlp_safetensors_find(const vlp_safetensors *file, const char *name) {
    const vlp_safetensor key = {.name = name}, *wanted = &key, **hit = NULL;
    if (file->count)
        hit = bsearch(&wanted, file->by_name, file->count, sizeof *file->by_name, compare_name);
    return hit ? *hit : NULL;
}

const char *vlp_safetensors_metadata(const vlp_safetensors *file, const char *key) {
    const vlp_json *value = vlp_json_key(vlp_json_key(file->header, "__metadata__"), key);
    return value ? vlp_json_as_string(value) : NULL;
}

vlp_status vlp_safetensors_get(const vlp_safetensors *file, const char *name,
                               const vlp_safetensor **out) {
    *out = vlp_safetensors_find(file, name);
    if (*out) return VLP_OK;
    const char **names = vlp_alloc_zero(file->count, sizeof *names);
    if (!names) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < file->count; i++) names[i] = file->tensors[i].name;
    const char *near = vlp_suggest(name, names, file->count);
    vlp_free(names);
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no tensor \"%s\"%s%s%s", file->path, shown(name).text,
                    near ? "; the nearest name is \"" : "", near ? shown(near).text : "",
                    near ? "\"" : "");
}
