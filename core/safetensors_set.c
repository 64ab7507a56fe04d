/* Sets of named tensors: built by the readers of files, asked by everybody. */
#include "core/safetensors_internal.h"
#include "core/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

vlp_shown_name vlp_shown(const char *name) {
    vlp_shown_name out;
    size_t n = 0;
    for (; name[n] && n + 4 < sizeof out.text; n++)
        out.text[n] = (unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n];
    strcpy(out.text + n, name[n] ? "..." : "");
    return out;
}

vlp_status vlp_safetensors_new(vlp_safetensors **out, const char *path) {
    vlp_safetensors *file = *out = vlp_alloc_zero(1, sizeof *file);
    if (!file) return VLP_ERR_MEMORY;
    file->path = vlp_strdup(path);
    return file->path ? VLP_OK : VLP_ERR_MEMORY;
}

void vlp_safetensors_close(vlp_safetensors *file) {
    if (!file) return;
    for (size_t i = 0; i < file->part_count; i++) vlp_safetensors_close(file->parts[i]);
    for (size_t i = 0; i < file->block_count; i++) vlp_free(file->blocks[i]);
    vlp_free(file->parts);
    vlp_free(file->blocks);
    vlp_free(file->tensors);
    vlp_free(file->by_name);
    vlp_json_free(file->header);
    vlp_map_close(&file->map);
    vlp_free(file->path);
    vlp_free(file);
}

vlp_status vlp_safetensors_add(vlp_safetensors *file, const vlp_safetensor *tensor) {
    if (file->count == file->capacity) {
        size_t more = file->capacity ? 2 * file->capacity : 64;
        vlp_safetensor *tensors = vlp_realloc(file->tensors, more * sizeof *tensors);
        if (!tensors) return VLP_ERR_MEMORY;
        file->tensors = tensors;
        file->capacity = more;
    }
    file->tensors[file->count++] = *tensor;
    return VLP_OK;
}

/* One more pointer at the end of a list. */
static vlp_status push(void ***list, size_t *count, void *item) {
    void **longer = vlp_realloc(*list, (*count + 1) * sizeof *longer);
    if (!longer) return VLP_ERR_MEMORY;
    longer[(*count)++] = item;
    *list = longer;
    return VLP_OK;
}

vlp_status vlp_safetensors_keep(vlp_safetensors *file, void *block) {
    vlp_status status = push(&file->blocks, &file->block_count, block);
    if (status != VLP_OK) vlp_free(block);
    return status;
}

vlp_status vlp_safetensors_add_part(vlp_safetensors *file, vlp_safetensors *part) {
    void **parts = (void **)file->parts;
    vlp_status status = push(&parts, &file->part_count, part);
    file->parts = (vlp_safetensors **)parts;
    if (status != VLP_OK) vlp_safetensors_close(part);
    return status;
}

vlp_status vlp_safetensor_size(vlp_safetensor *t) {
    t->numel = 1;
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(t->numel, t->shape[i], &t->numel))
            return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "the shape overflows at dimension %d", i);
    int64_t bytes;
    if (__builtin_mul_overflow(t->numel, (int64_t)dtypes[t->dtype].size, &bytes))
        return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "the shape overflows: %lld elements",
                               (long long)t->numel);
    t->bytes = (size_t)bytes;
    return VLP_OK;
}

static vlp_status check_name(const vlp_safetensor *t) {
    for (const unsigned char *p = (const unsigned char *)t->name; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", "control characters in its name");
    return VLP_OK;
}

static int compare_name(const void *a, const void *b) {
    const vlp_safetensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

vlp_status vlp_safetensors_finish(vlp_safetensors *file) {
    file->by_name = vlp_alloc_zero(file->count, sizeof *file->by_name);
    if (!file->by_name) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < file->count; i++) {
        VLP_TRY(check_name(&file->tensors[i]));
        file->by_name[i] = &file->tensors[i];
    }
    if (file->count == 0) return VLP_OK;
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_name);
    for (size_t i = 1; i < file->count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, file->by_name[i], "%s", "it is there twice");
    return VLP_OK;
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

void vlp_safetensors_release(const vlp_safetensors *file, const vlp_safetensor *tensor,
                             int64_t first, int64_t n) {
    size_t size = dtypes[tensor->dtype].size;
    for (size_t i = 0; i < file->part_count; i++)
        vlp_safetensors_release(file->parts[i], tensor, first, n);
    if (n > 0)
        vlp_map_release(&file->map, (const uint8_t *)tensor->data + (size_t)first * size,
                        (size_t)n * size);
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
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no tensor \"%s\"%s%s%s", file->path,
                    vlp_shown(name).text, near ? "; the nearest name is \"" : "",
                    near ? vlp_shown(near).text : "", near ? "\"" : "");
}
