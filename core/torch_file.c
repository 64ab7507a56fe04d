#include "core/torch_file.h"

#include "core/pickle.h"
#include "core/safetensors_internal.h"
#include "core/zip.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 40, MOST_VISITS = 1 << 20, NAME_BYTES = 512 };

static const struct {
    const char *name;
    vlp_st_dtype dtype;
} storages[] = {
    {"torch.DoubleStorage", VLP_ST_F64}, {"torch.FloatStorage", VLP_ST_F32},
    {"torch.HalfStorage", VLP_ST_F16},   {"torch.BFloat16Storage", VLP_ST_BF16},
    {"torch.LongStorage", VLP_ST_I64},   {"torch.IntStorage", VLP_ST_I32},
    {"torch.ShortStorage", VLP_ST_I16},  {"torch.CharStorage", VLP_ST_I8},
    {"torch.ByteStorage", VLP_ST_U8},    {"torch.BoolStorage", VLP_ST_BOOL},
};

static const char rebuild[] = "torch._utils._rebuild_tensor_v2",
                  rebuild_old[] = "torch._utils._rebuild_tensor",
                  parameter[] = "torch._utils._rebuild_parameter",
                  ordered_dict[] = "collections.OrderedDict", script_module[] = "__torch__";

static bool allowed(const char *module, const char *name) {
    static const char *const others[] = {rebuild, rebuild_old, parameter, ordered_dict};
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%s.%s", module, name);
    for (size_t i = 0; i < VLP_COUNT(others); i++)
        if (strcmp(full, others[i]) == 0) return true;
    for (size_t i = 0; i < VLP_COUNT(storages); i++)
        if (strcmp(full, storages[i].name) == 0) return true;
    size_t n = strlen(script_module);
    return strncmp(full, script_module, n) == 0 && full[n] == '.';
}

static bool is_module(const vlp_pickle_value *value) {
    return value->kind == VLP_PICKLE_CALL &&
           strncmp(value->callee->text, script_module, strlen(script_module)) == 0;
}

/* What holds names and values: a dict, or a module's attributes. */
static const vlp_pickle_value *dict_of(const vlp_pickle_value *value) {
    if (value->kind == VLP_PICKLE_DICT || vlp_pickle_is_call(value, ordered_dict)) return value;
    if (is_module(value) && value->state && value->state->kind == VLP_PICKLE_DICT)
        return value->state;
    return NULL;
}

/* The tensor's arguments (storage, offset, shape, strides, ...); NULL for another value. */
static const vlp_pickle_value *tensor_of(const vlp_pickle_value *value) {
    if (vlp_pickle_is_call(value, parameter) && value->arguments->count > 0)
        value = value->arguments->items[0];
    if (vlp_pickle_is_call(value, rebuild) || vlp_pickle_is_call(value, rebuild_old))
        return value->arguments;
    return NULL;
}

typedef struct {
    vlp_safetensors *file;
    vlp_zip zip;
    char folder[NAME_BYTES]; /* of the archive, with its slash */
    size_t visits;           /* dicts so far: they may hold one another */
    size_t copied, most;     /* bytes of copies so far, and the bound */
} reader;

static vlp_status odd(const vlp_safetensor *t, const char *what) {
    return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "%s", what);
}

/* A storage: ("storage", torch.FloatStorage, "0", "cpu", 24). */
static vlp_status find_storage(const reader *r, const vlp_pickle_value *value, vlp_safetensor *t,
                               const vlp_zip_member **out) {
    const vlp_pickle_value *id = value->kind == VLP_PICKLE_PERSISTENT ? value->arguments : NULL;
    if (!id || id->kind != VLP_PICKLE_TUPLE || id->count < 5 ||
        !vlp_pickle_is_text(id->items[0], "storage") || id->items[2]->kind != VLP_PICKLE_TEXT)
        return odd(t, "its storage is not described");
    bool known = false;
    for (size_t i = 0; i < VLP_COUNT(storages); i++)
        if (vlp_pickle_is_global(id->items[1], storages[i].name)) {
            t->dtype = storages[i].dtype;
            known = true;
        }
    if (!known) return odd(t, "its storage is of no known type");
    char name[2 * NAME_BYTES];
    int length = id->items[2]->bytes < 64 ? (int)id->items[2]->bytes : 64;
    snprintf(name, sizeof name, "%sdata/%.*s", r->folder, length, id->items[2]->text);
    *out = vlp_zip_find(&r->zip, name);
    if (!*out) return VLP_FAIL_TENSOR(VLP_ERR_FORMAT, t, "there is no record \"%.96s\"", name);
    return (*out)->data ? VLP_OK
                        : VLP_FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t,
                                          "record \"%.96s\" is compressed or encrypted; PyTorch "
                                          "itself stores it as it is",
                                          name);
}

static vlp_status read_sizes(const vlp_pickle_value *value, const vlp_safetensor *t, int64_t *out,
                             int *n) {
    if (value->kind != VLP_PICKLE_TUPLE) return odd(t, "its shape is no tuple");
    if (value->count > VLP_SAFETENSORS_DIMS)
        return VLP_FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "%zu dimensions; at most %d are supported",
                               value->count, VLP_SAFETENSORS_DIMS);
    *n = (int)value->count;
    for (int i = 0; i < *n; i++) {
        if (value->items[i]->kind != VLP_PICKLE_INT || value->items[i]->integer < 0)
            return odd(t, "a size or stride that is no count");
        out[i] = value->items[i]->integer;
    }
    return VLP_OK;
}

/* One past the last element that the tensor touches, counted from its first; -1 = overflow. */
static int64_t extent(const vlp_safetensor *t, const int64_t *strides) {
    int64_t last = 0, step;
    if (t->numel == 0) return 0;
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(t->shape[i] - 1, strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return -1;
    return last == INT64_MAX ? -1 : last + 1;
}

static bool in_one_piece(const vlp_safetensor *t, const int64_t *strides) {
    int64_t step = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && strides[i] != step) return false;
        step *= t->shape[i];
    }
    return true;
}

/* Copies element by element in the order of the indices. */
static void gather(const vlp_safetensor *t, const int64_t *strides, const uint8_t *from,
                   uint8_t *to) {
    size_t size = vlp_st_dtype_size(t->dtype);
    int64_t index[VLP_SAFETENSORS_DIMS] = {0}, at = 0;
    for (int64_t i = 0; i < t->numel; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < t->shape[d]) break;
            at -= strides[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

static vlp_status copy_strided(reader *r, vlp_safetensor *t, const int64_t *strides,
                               int64_t stored) {
    if (t->numel > stored || t->bytes > r->most - r->copied)
        return VLP_FAIL_TENSOR(VLP_ERR_UNSUPPORTED, t, "%s",
                               "it repeats numbers of its storage; save it with .contiguous()");
    r->copied += t->bytes;
    uint8_t *copy = vlp_alloc(t->bytes);
    if (!copy) return VLP_ERR_MEMORY;
    gather(t, strides, t->data, copy);
    t->data = copy;
    return vlp_safetensors_keep(r->file, copy);
}

static vlp_status fill_tensor(reader *r, const vlp_pickle_value *args, vlp_safetensor *t) {
    const vlp_zip_member *storage = NULL;
    int64_t strides[VLP_SAFETENSORS_DIMS];
    int n;
    if (args->count < 4 || args->items[1]->kind != VLP_PICKLE_INT)
        return odd(t, "its description is incomplete");
    VLP_TRY(find_storage(r, args->items[0], t, &storage));
    VLP_TRY(read_sizes(args->items[2], t, t->shape, &t->ndim));
    VLP_TRY(read_sizes(args->items[3], t, strides, &n));
    if (n != t->ndim) return odd(t, "its shape and its strides differ in length");
    VLP_TRY(vlp_safetensor_size(t));
    int64_t size = (int64_t)vlp_st_dtype_size(t->dtype), stored = (int64_t)storage->bytes / size;
    int64_t first = args->items[1]->integer, touched = extent(t, strides);
    if (first < 0 || first > stored || touched < 0 || touched > stored - first)
        return odd(t, "it reaches beyond its storage; the file is truncated or damaged");
    t->data = storage->data + first * size;
    return in_one_piece(t, strides) ? VLP_OK : copy_strided(r, t, strides, stored);
}

static vlp_status add_tensor(reader *r, const char *name, const vlp_pickle_value *args) {
    char *own = vlp_strdup(name);
    if (!own) return VLP_ERR_MEMORY;
    vlp_safetensor t = {.name = own, .file = r->file->path};
    VLP_TRY(vlp_safetensors_keep(r->file, own));
    VLP_TRY(fill_tensor(r, args, &t));
    return vlp_safetensors_add(r->file, &t);
}

/* All tensors below a dict; other values are of no interest. */
static vlp_status collect(reader *r, const char *prefix, const vlp_pickle_value *value, int depth) {
    const vlp_pickle_value *args = tensor_of(value), *dict = dict_of(value);
    if (args) return add_tensor(r, prefix, args);
    if (!dict) return VLP_OK;
    if (depth > DEEPEST || ++r->visits > MOST_VISITS)
        return VLP_FAIL(VLP_ERR_LIMIT, "%s: its dicts hold one another without end", r->file->path);
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        char name[NAME_BYTES];
        const vlp_pickle_value *key = dict->items[i];
        if (key->kind != VLP_PICKLE_TEXT ||
            !(dict_of(dict->items[i + 1]) || tensor_of(dict->items[i + 1])))
            continue;
        int n = snprintf(name, sizeof name, "%s%s%.*s", prefix, *prefix ? "." : "",
                         (int)(key->bytes < NAME_BYTES ? key->bytes : NAME_BYTES), key->text);
        if (n >= NAME_BYTES)
            return VLP_FAIL(VLP_ERR_LIMIT, "%s: a tensor's name is beyond %d bytes", r->file->path,
                            NAME_BYTES);
        VLP_TRY(collect(r, name, dict->items[i + 1], depth + 1));
    }
    return VLP_OK;
}

/* The dict that holds the model's tensors: a training checkpoint wraps it in another. */
static const vlp_pickle_value *unwrap(const vlp_pickle_value *top) {
    static const char *const wrappers[] = {"state_dict", "model", "model_state_dict"};
    if (top->kind != VLP_PICKLE_DICT && !vlp_pickle_is_call(top, ordered_dict)) return top;
    for (size_t i = 1; i < top->count; i += 2)
        if (tensor_of(top->items[i])) return top;
    for (size_t i = 0; i < VLP_COUNT(wrappers); i++) {
        const vlp_pickle_value *inner = vlp_pickle_key(top, wrappers[i]);
        if (inner && dict_of(inner)) return inner;
    }
    return top;
}

/* What DistributedDataParallel puts before every name. */
static void strip_module(vlp_safetensors *file) {
    static const char module[] = "module.";
    for (size_t i = 0; i < file->count; i++)
        if (strncmp(file->tensors[i].name, module, sizeof module - 1) != 0) return;
    for (size_t i = 0; i < file->count; i++) file->tensors[i].name += sizeof module - 1;
}

static vlp_status find_folder(reader *r, const vlp_zip_member **pickle) {
    static const char record[] = "data.pkl";
    for (size_t i = 0; i < r->zip.count; i++) {
        const char *name = r->zip.members[i].name, *slash = strrchr(name, '/');
        const char *base = slash ? slash + 1 : name;
        if (strcmp(base, record) != 0 || base - name >= NAME_BYTES) continue;
        snprintf(r->folder, sizeof r->folder, "%.*s", (int)(base - name), name);
        *pickle = &r->zip.members[i];
        if ((*pickle)->data) return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: a zip archive without a plain data.pkl; a file that torch.save or "
                    "torch.jit.save wrote is wanted",
                    r->file->path);
}

static vlp_status check_byte_order(const reader *r) {
    char name[NAME_BYTES + 16];
    snprintf(name, sizeof name, "%sbyteorder", r->folder);
    const vlp_zip_member *m = vlp_zip_find(&r->zip, name);
    if (!m || !m->data || m->bytes < 3 || memcmp(m->data, "big", 3) != 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: written on a big-endian machine; save it again on a little-endian one",
                    r->file->path);
}

static vlp_status read_archive(reader *r) {
    const vlp_zip_member *member = NULL;
    vlp_pickle *pickle;
    VLP_TRY(find_folder(r, &member));
    VLP_TRY(check_byte_order(r));
    VLP_TRY(vlp_pickle_read(&pickle, member->data, member->bytes, allowed, r->file->path));
    vlp_status status = collect(r, "", unwrap(vlp_pickle_top(pickle)), 0);
    vlp_pickle_free(pickle);
    if (status != VLP_OK) return status;
    if (r->file->count == 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: holds no named tensors", r->file->path);
    strip_module(r->file);
    return vlp_safetensors_finish(r->file);
}

static vlp_status read_bytes(vlp_safetensors *file, const uint8_t *data, size_t len) {
    reader r = {.file = file, .most = 2 * len};
    VLP_TRY(vlp_zip_open(&r.zip, data, len, file->path));
    vlp_status status = read_archive(&r);
    vlp_zip_close(&r.zip);
    return status;
}

vlp_status vlp_torch_open_memory(vlp_safetensors **out, const void *data, size_t len,
                                 const char *where) {
    vlp_status status = vlp_safetensors_new(out, where);
    if (status == VLP_OK) status = read_bytes(*out, data, len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}

vlp_status vlp_torch_open(vlp_safetensors **out, const char *path) {
    vlp_status status = vlp_safetensors_new(out, path);
    if (status == VLP_OK) status = vlp_map_open(&(*out)->map, path);
    if (status == VLP_OK) status = read_bytes(*out, (*out)->map.data, (*out)->map.len);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}
