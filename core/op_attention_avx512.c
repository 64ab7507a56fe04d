/* Compiled with AVX-512 F, BW, DQ and VL on x86-64; run only where the CPU has them. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)

#define ATTENTION_NAME "avx512"
#define ATTENTION_FUNCTION vlp_attention_set_avx512
#define VECTOR_BYTES 64
#include "core/op_attention_kernels.inc"

#else

#include "core/op_attention_kernels.h"

const vlp_attention_kernels *vlp_attention_set_avx512(void) {
    return NULL;
}

#endif
