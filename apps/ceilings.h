/* What this machine can reach, measured in the run of a benchmark, which prints it beside. */
#ifndef VLP_APPS_CEILINGS_H
#define VLP_APPS_CEILINGS_H

#include "core/json.h"
#include "core/tensor.h"

#include <stdio.h>

typedef struct {
    double fma;       /* GFLOP/s of multiply-adds between registers, fp32 */
    double bf16;      /* the same of bfloat16 products; 0 = the CPU has none */
    const char *kind; /* how it multiplies bfloat16: "pairs", "tiles" */
    double memory;    /* GB/s of reading; 0 = not measured */
} ceilings;

/* Half a second each. */
vlp_status ceilings_measure(ceilings *out, bool memory);

/* Of products of this type; without products of bfloat16 they are those of floats. */
double ceilings_gflops(const ceilings *c, vlp_dtype precision);

/* "between registers: fp32 256 GFLOP/s, bf16 pairs 512 GFLOP/s; memory reads at 30.1 GB/s" */
void ceilings_print(FILE *to, const ceilings *c);
/* fma_gflops, bf16_gflops and memory_gb_per_s, those that are known */
void ceilings_json(vlp_json *json, const ceilings *c);

#endif
