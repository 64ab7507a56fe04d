/* Compiled with -mavx2 -mfma on x86-64; run only where the CPU has both. */
#if defined(__AVX2__) && defined(__FMA__)

#define KERNELS_NAME "avx2"
#define KERNELS_ISA VLP_ISA_AVX2
#define KERNELS_FUNCTION vlp_kernel_set_avx2
#define VECTOR_BYTES 32
#include "core/kernels_impl.inc"

#else

#include "core/kernels_sets.h"

const vlp_kernel_set *vlp_kernel_set_avx2(void) {
    return NULL;
}

#endif
