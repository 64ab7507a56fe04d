#include "apps/ceilings.h"

#include "core/ceiling.h"

static const double seconds = 0.5;

vlp_status ceilings_measure(ceilings *out, bool memory) {
    *out = (ceilings){0};
    VLP_TRY(vlp_fma_peak(vlp_isa_chosen(), seconds, &out->fma));
    vlp_status status = vlp_bf16_peak(seconds, &out->bf16, &out->kind);
    if (status != VLP_OK && status != VLP_ERR_UNSUPPORTED) return status;
    return memory ? vlp_memory_peak(seconds, &out->memory) : VLP_OK;
}

double ceilings_gflops(const ceilings *c, vlp_dtype precision) {
    return precision == VLP_BF16 && c->bf16 > 0 ? c->bf16 : c->fma;
}

void ceilings_print(FILE *to, const ceilings *c) {
    fprintf(to, "between registers: fp32 %.0f GFLOP/s", c->fma);
    if (c->bf16 > 0) fprintf(to, ", bf16 %s %.0f GFLOP/s", c->kind, c->bf16);
    if (c->memory > 0) fprintf(to, "; memory reads at %.1f GB/s", c->memory);
    fputc('\n', to);
}

void ceilings_json(vlp_json *json, const ceilings *c) {
    vlp_json_set_double(json, "fma_gflops", c->fma);
    if (c->bf16 > 0) vlp_json_set_double(json, "bf16_gflops", c->bf16);
    if (c->memory > 0) vlp_json_set_double(json, "memory_gb_per_s", c->memory);
}
