/* For any CPU of the target: SSE2 on x86-64, NEON on aarch64. */
#define ATTENTION_NAME "plain"
#define ATTENTION_FUNCTION vlp_attention_set_plain
#define VECTOR_BYTES 16
#include "core/op_attention_kernels.inc"
