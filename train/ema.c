#include "train/ema.h"

#include "core/checkpoint.h"
#include "core/memory.h"
#include "core/threads.h"

#include <string.h>

enum { GRAIN = 16384 };

vlp_status vlp_ema_new(vlp_ema **out, vlp_params *params, double decay, bool warmup) {
    *out = NULL;
    if (!(decay >= 0 && decay < 1))
        return VLP_FAIL(VLP_ERR_USAGE, "EMA decay %g must lie in [0, 1)", decay);
    vlp_ema *ema = vlp_alloc_zero(1, sizeof *ema);
    vlp_real *shadow = vlp_alloc_zero((size_t)params->total, sizeof *shadow);
    if (!ema || !shadow) {
        vlp_free(ema);
        vlp_free(shadow);
        return VLP_ERR_MEMORY;
    }
    memcpy(shadow, params->values, (size_t)params->total * sizeof *shadow);
    *ema = (vlp_ema){.params = params, .shadow = shadow, .decay = decay, .warmup = warmup};
    *out = ema;
    return VLP_OK;
}

void vlp_ema_free(vlp_ema *ema) {
    if (!ema) return;
    if (ema->swapped) vlp_ema_swap(ema);
    vlp_free(ema->shadow);
    vlp_free(ema);
}

typedef struct {
    vlp_real *shadow, *values;
    vlp_real rate; /* 1 - d */
} ema_range;

static void update_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const ema_range *r = ctx;
    for (int64_t i = begin; i < end; i++) r->shadow[i] += r->rate * (r->values[i] - r->shadow[i]);
}

void vlp_ema_update(vlp_ema *ema) {
    VLP_ASSERT(!ema->swapped, "EMA update while the shadow is swapped in");
    double t = (double)ema->updates++, d = ema->decay;
    if (ema->warmup && (1 + t) / (10 + t) < d) d = (1 + t) / (10 + t);
    ema_range range = {ema->shadow, ema->params->values, (vlp_real)(1 - d)};
    vlp_parallel_for(ema->params->total, GRAIN, update_body, &range);
}

static void swap_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const ema_range *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        vlp_real value = r->values[i];
        r->values[i] = r->shadow[i];
        r->shadow[i] = value;
    }
}

void vlp_ema_swap(vlp_ema *ema) {
    ema_range range = {ema->shadow, ema->params->values, 0};
    vlp_parallel_for(ema->params->total, GRAIN, swap_body, &range);
    ema->swapped = !ema->swapped;
    vlp_params_changed(ema->params);
}

vlp_status vlp_ema_save(const vlp_ema *ema, const char *path) {
    VLP_ASSERT(!ema->swapped, "EMA saved while the shadow is swapped in");
    return vlp_params_save(ema->params, ema->shadow, path);
}

vlp_status vlp_ema_load(vlp_ema *ema, const char *path, int64_t updates) {
    VLP_ASSERT(!ema->swapped, "EMA loaded while the shadow is swapped in");
    vlp_safetensors *file;
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_ema_swap(ema); /* loading fills params->values */
    vlp_status status = vlp_params_load(ema->params, file, (vlp_name_map){0}, NULL);
    vlp_ema_swap(ema);
    vlp_safetensors_close(file);
    if (status == VLP_OK) ema->updates = updates;
    return status;
}
