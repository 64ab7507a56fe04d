/* Matrix products of typed operands with the work that would follow them: C = act(A B + bias).
 *
 *     vlp_multiply(&(vlp_product){
 *         .m = rows, .n = out, .k = in,                    y [rows,out] = gelu(x w^T + bias)
 *         .a = {x, VLP_BF16, in}, .b = {w, VLP_REAL, in, .transposed = true},
 *         .c = {y, VLP_BF16, out}, .pre = {saved, VLP_BF16, out},
 *         .bias = bias, .act = VLP_ACT_GELU, .bf16 = true});
 */
#ifndef VLP_CORE_PRODUCT_H
#define VLP_CORE_PRODUCT_H

#include "core/kernels.h"
#include "core/packed.h"
#include "core/tensor.h"

/* op(A) is stored row-major, `ld` elements between stored rows; transposed: what is stored is its
 * transpose. dtype is VLP_REAL or VLP_BF16. packed, in b only: keeps op(B) in packed form between
 * calls; whoever changes the values says so (core/packed.h). NULL = packed anew each time. */
typedef struct {
    const void *data;
    vlp_dtype dtype;
    int64_t ld;
    bool transposed;
    vlp_packed *packed;
} vlp_operand;

typedef struct {
    void *data; /* NULL = not wanted, where that is legal */
    vlp_dtype dtype;
    int64_t ld;
} vlp_result;

/* pre = alpha op(A) op(B) + beta C + bias;  C = act(pre).
 * op(A) [m,k], op(B) [k,n], C and pre [m,n], bias [n] or NULL. C overlaps neither A nor B.
 * bf16: both operands are rounded to bfloat16 (nearest even) and multiplied as such, with sums in
 * float; otherwise everything is computed in vlp_real, whatever the operands' types. A bfloat16
 * result is rounded once, after the epilogue. beta is 0 or 1, and 0 when C is bfloat16, has an
 * activation or is kept before it; beta = 0 overwrites, NaN included. m, n or k may be 0. Same
 * shapes, types and thread count: same bits. */
typedef struct {
    int64_t m, n, k;
    vlp_operand a, b;
    vlp_result c, pre;
    vlp_real beta;
    vlp_real alpha; /* 0 stands for 1 */
    const vlp_real *bias;
    vlp_act act;
    bool bf16;
} vlp_product;

void vlp_multiply(const vlp_product *p);
/* The same on the calling thread alone, for many small products inside vlp_parallel_for. */
void vlp_multiply_serial(const vlp_product *p);

#endif
