/* For any CPU of the target: SSE2 on x86-64, NEON on aarch64. */
#define SET_NAME "plain"
#define SET_FUNCTION vlp_product_set_plain
#define VECTOR_BYTES 16
#define TILE_ROWS 4
#define A_WIDTH 4
#include "core/product_impl.inc"
