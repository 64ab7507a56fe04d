/* Compiled with AVX-512 F, BW, DQ and VL on x86-64; run only where the CPU has them. */
#if defined(__AVX512F__) && defined(__AVX512BW__)

#define SET_NAME "avx512"
#define SET_FUNCTION vlp_product_set_avx512
#define VECTOR_BYTES 64
#define TILE_ROWS 14
#define A_WIDTH 16
#include "core/product_impl.inc"

#else

#include "core/product_sets.h"

const vlp_product_set *vlp_product_set_avx512(bool bf16) {
    (void)bf16;
    return NULL;
}

#endif
