#include "core/params.h"

#include "core/memory.h"
#include "core/packed.h"
#include "core/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN_ELEMENTS = 16 };

vlp_status vlp_params_new(vlp_params **out) {
    *out = vlp_alloc_zero(1, sizeof **out);
    return *out ? VLP_OK : VLP_ERR_MEMORY;
}

void vlp_params_free(vlp_params *params) {
    if (!params) return;
    for (int i = 0; i < params->count; i++) {
        vlp_packed_free(params->items[i]->tensor.packed);
        vlp_free(params->items[i]->name);
        vlp_free(params->items[i]);
    }
    vlp_free(params->items);
    vlp_free(params->values);
    vlp_free(params->grads);
    vlp_free(params);
}

void vlp_params_push(vlp_params *params, const char *format, ...) {
    size_t at = strlen(params->prefix);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(params->prefix + at, sizeof params->prefix - at, format, args);
    va_end(args);
    VLP_ASSERT(n > 0 && at + (size_t)n + 2 < sizeof params->prefix, "name too long after %s",
               params->prefix);
    strcat(params->prefix, "/");
}

void vlp_params_pop(vlp_params *params) {
    size_t n = strlen(params->prefix);
    VLP_ASSERT(n > 0, "pop without push");
    params->prefix[n - 1] = '\0';
    char *slash = strrchr(params->prefix, '/');
    *(slash ? slash + 1 : params->prefix) = '\0';
}

/* Levels are kept apart by '/', names are joined by '.'. */
static char *full_name(const vlp_params *params, const char *name) {
    vlp_buf buf = {0};
    if (vlp_buf_printf(&buf, "%s%s", params->prefix, name) != VLP_OK) return NULL;
    for (char *p = buf.data; *p; p++)
        if (*p == '/') *p = '.';
    return buf.data;
}

static bool grow(vlp_params *params) {
    if (params->count < params->capacity) return true;
    int capacity = params->capacity ? 2 * params->capacity : 64;
    void *items = vlp_realloc(params->items, (size_t)capacity * sizeof *params->items);
    if (!items) return false;
    params->items = items;
    params->capacity = capacity;
    return true;
}

vlp_tensor *vlp_params_add(vlp_params *params, const char *name, vlp_init init, vlp_decay decay,
                           int ndim, const int64_t *shape) {
    static vlp_tensor out_of_memory;
    vlp_param *param = vlp_alloc_zero(1, sizeof *param);
    char *full = param && grow(params) ? full_name(params, name) : NULL;
    if (!full) {
        vlp_free(param);
        params->total = -1;
        return &out_of_memory;
    }
    VLP_ASSERT(!vlp_params_find(params, full), "parameter %s declared twice", full);
    *param = (vlp_param){.name = full, .init = init, .decay = decay};
    param->tensor = (vlp_tensor){.ndim = ndim, .parameter = true, .needs_grad = true};
    for (int i = 0; i < ndim; i++) param->tensor.shape[i] = shape[i];
    params->items[params->count++] = param;
    return &param->tensor;
}

vlp_status vlp_params_allocate(vlp_params *params, bool with_grads) {
    if (params->total < 0) return VLP_FAIL(VLP_ERR_MEMORY, "out of memory for parameter names");
    int64_t at = 0;
    for (int i = 0; i < params->count; i++) {
        int64_t n = vlp_numel(&params->items[i]->tensor);
        params->items[i]->offset = at;
        params->learnt += n;
        at += (n + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    }
    params->total = at;
    params->values = vlp_alloc_zero((size_t)at, sizeof(vlp_real));
    if (with_grads) params->grads = vlp_alloc_zero((size_t)at, sizeof(vlp_real));
    if (!params->values || (with_grads && !params->grads)) return VLP_ERR_MEMORY;
    for (int i = 0; i < params->count; i++) {
        vlp_param *param = params->items[i];
        param->tensor.data = params->values + param->offset;
        param->tensor.grad = with_grads ? params->grads + param->offset : NULL;
        param->tensor.needs_grad = with_grads;
    }
    return VLP_OK;
}

static double draw(vlp_rng *rng, vlp_init init) {
    switch (init.kind) {
    case VLP_INIT_KIND_NORMAL:
        return init.value * vlp_rng_normal(rng);
    case VLP_INIT_KIND_TRUNCATED:
        return init.value * vlp_rng_truncated_normal(rng, 2);
    case VLP_INIT_KIND_UNIFORM:
        return init.value * (2 * vlp_rng_double(rng) - 1);
    case VLP_INIT_KIND_CONSTANT:
        break;
    }
    return init.value;
}

void vlp_params_init(vlp_params *params, uint64_t seed) {
    for (int i = 0; i < params->count; i++) {
        vlp_param *param = params->items[i];
        vlp_rng rng = vlp_rng_at(seed, VLP_RNG_INIT, 0, vlp_rng_name(param->name));
        vlp_real *values = param->tensor.data;
        int64_t n = vlp_numel(&param->tensor);
        for (int64_t k = 0; k < n; k++) values[k] = (vlp_real)draw(&rng, param->init);
    }
    vlp_params_changed(params);
}

vlp_status vlp_params_keep_packed(vlp_params *params) {
    for (int i = 0; i < params->count; i++) {
        vlp_tensor *tensor = &params->items[i]->tensor;
        if (tensor->ndim == 2 && !tensor->packed) VLP_TRY(vlp_packed_new(&tensor->packed));
    }
    return VLP_OK;
}

void vlp_params_changed(vlp_params *params) {
    for (int i = 0; i < params->count; i++) vlp_packed_stale(params->items[i]->tensor.packed);
}

void vlp_params_zero_grads(vlp_params *params) {
    if (params->grads) memset(params->grads, 0, (size_t)params->total * sizeof(vlp_real));
    for (int i = 0; i < params->count; i++) params->items[i]->tensor.reached = false;
}

void vlp_params_reached(const vlp_params *params, bool *out) {
    for (int i = 0; i < params->count; i++) {
        const vlp_tensor *tensor = &params->items[i]->tensor;
        out[i] = tensor->reached && tensor->needs_grad;
    }
}

vlp_param *vlp_params_find(const vlp_params *params, const char *name) {
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->items[i]->name, name) == 0) return params->items[i];
    return NULL;
}

int vlp_params_freeze(vlp_params *params, const char *prefix, bool frozen) {
    int hits = 0;
    size_t n = strlen(prefix);
    for (int i = 0; i < params->count; i++) {
        if (strncmp(params->items[i]->name, prefix, n) != 0) continue;
        params->items[i]->tensor.needs_grad = !frozen && params->grads;
        hits++;
    }
    return hits;
}
