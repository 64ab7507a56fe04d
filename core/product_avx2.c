/* Compiled with -mavx2 -mfma on x86-64; run only where the CPU has both. */
#if defined(__AVX2__) && defined(__FMA__)

#define SET_NAME "avx2"
#define SET_FUNCTION vlp_product_set_avx2
#define VECTOR_BYTES 32
#define TILE_ROWS 6
#define A_WIDTH 8
#include "core/product_impl.inc"

#else

#include "core/product_sets.h"

const vlp_product_set *vlp_product_set_avx2(bool bf16) {
    (void)bf16;
    return NULL;
}

#endif
