/* Compiled with -mavx2 -mfma on x86-64; run only where the CPU has both. */
#if defined(__AVX2__) && defined(__FMA__)

#define ATTENTION_NAME "avx2"
#define ATTENTION_FUNCTION vlp_attention_set_avx2
#define VECTOR_BYTES 32
#include "core/op_attention_kernels.inc"

#else

#include "core/op_attention_kernels.h"

const vlp_attention_kernels *vlp_attention_set_avx2(void) {
    return NULL;
}

#endif
