/* Compiled with AVX-512 F, BW, DQ and VL on x86-64; run only where the CPU has them. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)

#define KERNELS_NAME "avx512"
#define KERNELS_ISA VLP_ISA_AVX512
#define KERNELS_FUNCTION vlp_kernel_set_avx512
#define VECTOR_BYTES 64
#include "core/kernels_impl.inc"

#else

#include "core/kernels_sets.h"

const vlp_kernel_set *vlp_kernel_set_avx512(void) {
    return NULL;
}

#endif
