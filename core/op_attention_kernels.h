/* The in-cache loops of attention: one table of functions per instruction set, the same C source
 * compiled with different flags. Private to core/op_attention*.c.
 *
 * Scores are kept transposed, S^T [keys, queries]: neighbouring queries lie side by side in a
 * vector, so that maxima, sums and masks over keys need nothing across lanes, and any number of
 * keys is free of padding. Queries are padded to whole vectors.
 *
 * Operands are made of elements. In most sets an element is a vlp_real. In the bf16 set it is two
 * neighbouring bfloat16 along the dimension that a product sums over, first one low; sizes below
 * in "elements" count such pairs. An operand "by rows" [rows, width] has its pairs along the
 * width; a "stacked" one [rows / pair, width] has them down the rows. */
#ifndef VLP_CORE_OP_ATTENTION_KERNELS_H
#define VLP_CORE_OP_ATTENTION_KERNELS_H

#include "core/cpu.h"
#include "core/tensor.h"

enum {
    VLP_ATTENTION_PAD = 16,     /* widths and tiles of queries are padded to a multiple of it */
    VLP_ATTENTION_QUERIES = 64, /* most queries of a tile */
    VLP_ATTENTION_KEYS = 128,   /* most keys of a block */
};

typedef struct {
    const char *name;
    int lanes; /* vlp_real in a vector */
    int pair;  /* numbers in an element: 1 or 2 */

    /* y [padded, ldy] elements by rows from x [rows, width], ld apart; zeros elsewhere */
    void (*load)(int64_t rows, int64_t width, const void *x, vlp_dtype dtype, int64_t ld,
                 vlp_real *y, int64_t ldy, int64_t padded);
    /* The same into vlp_real in every set. */
    void (*load_real)(int64_t rows, int64_t width, const void *x, vlp_dtype dtype, int64_t ld,
                      vlp_real *y, int64_t ldy, int64_t padded);
    /* y [cols, ldy] = x [rows, ldx]^T in elements; rows and cols are rounded up to 8. */
    void (*transpose)(int64_t rows, int64_t cols, const vlp_real *x, int64_t ldx, vlp_real *y,
                      int64_t ldy);
    /* Stacked from by rows, width numbers (a multiple of the padding); NULL where pair is 1 and
     * both are the same. An odd last row is followed by zeros. */
    void (*stack)(int64_t rows, int64_t width, const vlp_real *x, int64_t ldx, vlp_real *y);
    /* Elements from numbers [keys, ld]: pairs down the keys [keys / 2, ld], or along the queries
     * [keys, ld / 2]. NULL where pair is 1. */
    void (*pair_keys)(int64_t keys, int64_t ld, const vlp_real *x, vlp_real *y);
    void (*pair_queries)(int64_t keys, int64_t ld, const vlp_real *x, vlp_real *y);

    /* C [m, vectors] = A B, or += with add; A(i, k) = a[i a_row + k a_step], B [k, ldb],
     * k in elements */
    void (*product)(int64_t m, int64_t vectors, int64_t k, const vlp_real *a, int64_t a_row,
                    int64_t a_step, const vlp_real *b, int64_t ldb, vlp_real *c, int64_t ldc,
                    bool add);

    /* s [keys, ld] = exp(factor s - most), most and total [vectors] being brought up to date with
     * these keys; grow = what sums over earlier keys have to be multiplied by. */
    void (*softmax)(int64_t keys, int64_t vectors, int64_t ld, vlp_real *s, vlp_real factor,
                    vlp_real *most, vlp_real *total, vlp_real *grow);
    /* lse = most + log(total), inverse = 1 / total; -inf and 0 where total is 0 */
    void (*finish)(int64_t vectors, const vlp_real *most, const vlp_real *total, vlp_real *lse,
                   vlp_real *inverse);
    /* With p = exp(factor s - lse):  s = p drop;  dp = p (dp drop - delta).  drop NULL = 1; delta
     * NULL: these are all keys, and delta is the sum of p dp drop over them. */
    void (*gradient)(int64_t keys, int64_t vectors, int64_t ld, vlp_real *s, vlp_real *dp,
                     vlp_real factor, const vlp_real *lse, const vlp_real *delta,
                     const vlp_real *drop);

    /* x [rows, ld] *= factor [rows], whole vectors */
    void (*scale_rows)(int64_t rows, int64_t vectors, vlp_real *x, int64_t ld,
                       const vlp_real *factor);
    /* y [rows, width] = factor [rows] x, rounded where y is bfloat16 */
    void (*store)(int64_t rows, int64_t width, const vlp_real *x, int64_t ldx,
                  const vlp_real *factor, void *y, vlp_dtype dtype, int64_t ldy);
    /* y = factor x, or y += factor x with add, rounded where y is bfloat16 */
    void (*add_to)(int64_t rows, int64_t width, const vlp_real *x, int64_t ldx, vlp_real factor,
                   void *y, vlp_dtype dtype, int64_t ldy, bool add);
    /* out [rows] = sum over width of x y; x is bfloat16 only where y is */
    void (*row_dots)(int64_t rows, int64_t width, const void *x, vlp_dtype x_type, const void *y,
                     vlp_dtype y_type, int64_t ld, vlp_real *out);
} vlp_attention_kernels;

/* For operands of this type under vlp_isa_chosen(): the bf16 set where both are there. */
const vlp_attention_kernels *vlp_attention_kernels_for(vlp_dtype dtype);

/* NULL where the build's target lacks the set */
const vlp_attention_kernels *vlp_attention_set_plain(void);
const vlp_attention_kernels *vlp_attention_set_avx2(void);
const vlp_attention_kernels *vlp_attention_set_avx512(void);
const vlp_attention_kernels *vlp_attention_set_bf16(void);

#endif
