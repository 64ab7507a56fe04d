/* For any CPU of the target: SSE2 on x86-64, NEON on aarch64. */
#define KERNELS_NAME "plain"
#define KERNELS_ISA VLP_ISA_PLAIN
#define KERNELS_FUNCTION vlp_kernel_set_plain
#define VECTOR_BYTES 16
#include "core/kernels_impl.inc"
