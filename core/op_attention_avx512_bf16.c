/* Compiled with the flags of AVX-512 and -mavx512bf16 on x86-64; run only where the CPU has them.
 */
#if defined(__AVX512BF16__) && !defined(VLP_REAL_DOUBLE)

#define ATTENTION_NAME "avx512_bf16"
#define ATTENTION_FUNCTION vlp_attention_set_bf16
#define VECTOR_BYTES 64
#define ATTENTION_PAIRS
#include "core/op_attention_kernels.inc"

#else

#include "core/op_attention_kernels.h"

const vlp_attention_kernels *vlp_attention_set_bf16(void) {
    return NULL;
}

#endif
