/* Compiled with AVX-512 F, BW, DQ, VL and BF16 on x86-64; run only where the CPU has them. */
#if defined(__AVX512BF16__) && defined(__AVX512BW__) && !defined(VLP_REAL_DOUBLE)

#define SET_NAME "avx512_bf16"
#define SET_PAIRS
#define VECTOR_BYTES 64
#define TILE_ROWS 14
#define A_WIDTH 16
#include "core/product_impl.inc"

#else

#include "core/product_sets.h"

const vlp_product_set *vlp_product_set_avx512_bf16(void) {
    return NULL;
}

#endif
