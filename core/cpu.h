/* What the processor can do, asked once at run time. */
#ifndef VLP_CORE_CPU_H
#define VLP_CORE_CPU_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char model[64]; /* the vendor's name of the processor, "unknown" where it has none */
    /* x86-64; false elsewhere. True only where the operating system saves the registers too. */
    bool sse2, avx2_fma, avx512, avx512_bf16, amx_tile, amx_bf16, amx_int8; /* avx512: f bw dq vl */
    /* aarch64; false elsewhere */
    bool neon, sve, bf16;
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* of one core's data caches; 0 = unknown */
} vlp_cpu_info;

const vlp_cpu_info *vlp_cpu(void); /* thread-safe, never NULL */

/* "sse2 avx2+fma avx512 ..." into text; returns text. */
const char *vlp_cpu_features(char *text, size_t size);

/* The instruction sets that our kernels are compiled for, least first. */
typedef enum { VLP_ISA_PLAIN, VLP_ISA_AVX2, VLP_ISA_AVX512, VLP_ISA_COUNT } vlp_isa;

const char *vlp_isa_name(vlp_isa isa); /* "plain", "avx2", "avx512" */
vlp_isa vlp_isa_best(void);            /* the most that this CPU and this build have */

/* The set in use: the best, or less by the environment's VLP_ISA=plain|avx2|avx512. More than the
 * CPU has is lowered to the best. */
vlp_isa vlp_isa_chosen(void);

/* VLP_ERR_USAGE if VLP_ISA holds an unknown word (vlp_isa_chosen then takes the best). */
vlp_status vlp_isa_check(void);

#endif
