/* The loops between the matrix products: one table of functions per instruction set, the same C
 * source compiled with different flags.
 *
 *     const vlp_kernels *k = vlp_kernels_get();
 *     k->layer_norm(rows, cols, x, NULL, weight, bias, 1e-6, NULL, y, mean, rstd);
 *
 * Every function is serial over the range it is given; the caller splits rows or elements by
 * vlp_parallel_for. Matrices are row-major; without an ld the row stride is cols. Counts may be 0.
 * "+=" means that the function adds to what is there. NULL is legal only where said. An output may
 * be the same pointer as an input only where said; partial overlap never.
 *
 * Accuracy in float, the largest error against double libm over 44 million floats (every 97th bit
 * pattern, all magnitudes), on any set, in units in the last place of the result; elsewhere "abs"
 * is the error divided by max(1, |x|). NaN stays NaN. Double builds take exp, tanh, erf from libm.
 *     exp 1.1 ulp     tanh 2.5 ulp     erf 2.6 ulp     sigmoid 2.8 ulp
 *     silu, quick_gelu, gelu, gelu_tanh     1.5e-7 abs
 *     their derivatives                     3.1e-7 abs
 * The same code with and without fused multiply-add: sets agree within these bounds, not in bits.
 */
#ifndef VLP_CORE_KERNELS_H
#define VLP_CORE_KERNELS_H

#include "core/cpu.h"
#include "core/real.h"
#include "core/rng.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    VLP_ACT_NONE,
    VLP_ACT_GELU,       /* x Phi(x), by erf */
    VLP_ACT_GELU_TANH,  /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    VLP_ACT_QUICK_GELU, /* x sigmoid(1.702 x) */
    VLP_ACT_RELU,
    VLP_ACT_SILU, /* x sigmoid(x) */
    VLP_ACT_TANH,
    VLP_ACT_SIGMOID,
    VLP_ACT_COUNT
} vlp_act;

/* One step of AdamW (Loshchilov and Hutter, 2019); all as the caller has computed for step t. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    double bias1, bias2; /* 1 - beta1^t and 1 - beta2^t; 1 = no correction */
    double grad_scale;   /* the gradient is multiplied by it first (clipping, accumulation) */
    bool decay_last;     /* the decay shrinks the updated, not the old parameter */
} vlp_adamw;

typedef struct {
    const char *name; /* "plain", "avx2", "avx512" */
    vlp_isa isa;

    /* x [rows,cols] += bias [cols] (NULL = none): now the pre-activation; y = act(x). y == x is
     * legal and forgets the pre-activation. */
    void (*bias_act)(int64_t rows, int64_t cols, const vlp_real *bias, vlp_act act, vlp_real *x,
                     vlp_real *y);
    /* y = act(x); y == x is legal */
    void (*act)(int64_t n, vlp_act act, const vlp_real *x, vlp_real *y);
    /* dx = dy act'(pre); dx == dy is legal */
    void (*act_backward)(int64_t n, vlp_act act, const vlp_real *pre, const vlp_real *dy,
                         vlp_real *dx);
    /* Both for results that are rounded to bfloat16, whose half unit is 2^-9 of them: the erf and
     * tanh forms of GELU are polynomials, within 1.3e-4 of act, where |x| > 8 within 1e-6 |x|, and
     * within 2.1e-4 |dy| of act_backward. */
    void (*act_half)(int64_t n, vlp_act act, const vlp_real *x, vlp_real *y);
    void (*act_half_backward)(int64_t n, vlp_act act, const vlp_real *pre, const vlp_real *dy,
                              vlp_real *dx);

    void (*add)(int64_t n, const vlp_real *x, vlp_real *y);                    /* y += x */
    void (*axpy)(int64_t n, vlp_real a, const vlp_real *x, vlp_real *y);       /* y += a x */
    void (*scale)(int64_t n, vlp_real a, vlp_real *x);                         /* x *= a */
    void (*mul)(int64_t n, const vlp_real *x, const vlp_real *y, vlp_real *z); /* z = x y; z any */
    void (*fill)(int64_t n, vlp_real a, vlp_real *x);
    void (*lerp)(int64_t n, vlp_real t, const vlp_real *x, vlp_real *y); /* y += t (x - y): ema */

    /* out [cols] += sum over rows of x; summed in blocks, so many rows stay accurate */
    void (*column_sum)(int64_t rows, int64_t cols, const vlp_real *x, int64_t ldx, vlp_real *out);

    /* h = x + residual (residual NULL: h = x; sum NULL: h is not kept);
     * y = (h - mean) rstd weight + bias, rstd = 1 / sqrt(var + eps), var over cols (two passes).
     * weight, bias, mean, rstd may be NULL; sum or y may be x or residual. mean, rstd [rows]. */
    void (*layer_norm)(int64_t rows, int64_t cols, const vlp_real *x, const vlp_real *residual,
                       const vlp_real *weight, const vlp_real *bias, double eps, vlp_real *sum,
                       vlp_real *y, vlp_real *mean, vlp_real *rstd);
    /* x is the normalised input (h above). dx += ..., dweight += ..., dbias += ...; weight, dx,
     * dweight, dbias may be NULL. With g = dy weight, n = (x - mean) rstd:
     * dx += rstd (g - avg(g) - n avg(g n)). */
    void (*layer_norm_backward)(int64_t rows, int64_t cols, const vlp_real *x,
                                const vlp_real *weight, const vlp_real *mean, const vlp_real *rstd,
                                const vlp_real *dy, vlp_real *dx, vlp_real *dweight,
                                vlp_real *dbias);
    /* y = h rstd weight, rstd = 1 / sqrt(avg(h^2) + eps) (Zhang and Sennrich, 2019) */
    void (*rms_norm)(int64_t rows, int64_t cols, const vlp_real *x, const vlp_real *residual,
                     const vlp_real *weight, double eps, vlp_real *sum, vlp_real *y,
                     vlp_real *rstd);
    void (*rms_norm_backward)(int64_t rows, int64_t cols, const vlp_real *x, const vlp_real *weight,
                              const vlp_real *rstd, const vlp_real *dy, vlp_real *dx,
                              vlp_real *dweight);

    /* In place, rows ld apart: x = softmax(scale x) over the cols with valid[col] != 0 (NULL =
     * all); others become 0. A row without a valid finite score (all masked, all -inf) becomes 0
     * with lse -inf. lse [rows] (NULL = not kept) = log sum exp(scale x). */
    void (*softmax)(int64_t rows, int64_t cols, int64_t ld, vlp_real *x, const uint8_t *valid,
                    vlp_real scale, vlp_real *lse);
    /* The probabilities again from raw scores and the kept lse: x = exp(scale x - lse[row]). */
    void (*exp_lse)(int64_t rows, int64_t cols, int64_t ld, vlp_real *x, vlp_real scale,
                    const vlp_real *lse, const uint8_t *valid);
    /* dp [rows,cols] in place becomes the gradient of the raw scores: scale p (dp - delta[row]);
     * delta NULL: computed as sum p dp. Both matrices have rows ld apart. */
    void (*softmax_backward)(int64_t rows, int64_t cols, int64_t ld, const vlp_real *p,
                             vlp_real *dp, const vlp_real *delta, vlp_real scale);

    /* out [rows] = log sum exp over cols of x; -inf for cols = 0 or a row of -inf */
    void (*log_sum_exp)(int64_t rows, int64_t cols, int64_t ld, const vlp_real *x, vlp_real *out);
    /* One row: dlogits += scale (exp(logits - lse) - [col == target]); target < 0 adds nothing. */
    void (*cross_entropy_backward)(int64_t cols, const vlp_real *logits, vlp_real lse,
                                   int64_t target, vlp_real scale, vlp_real *dlogits);

    /* y = x / max(norm, eps), norm [rows] = |x| (NULL = not kept); y == x is legal */
    void (*l2_normalize)(int64_t rows, int64_t cols, const vlp_real *x, double eps, vlp_real *y,
                         vlp_real *norm);
    /* dx += (dy - y (y . dy)) / norm, or dy / eps where norm < eps */
    void (*l2_normalize_backward)(int64_t rows, int64_t cols, const vlp_real *y,
                                  const vlp_real *norm, double eps, const vlp_real *dy,
                                  vlp_real *dx);

    double (*sum)(int64_t n, const vlp_real *x); /* these three accumulate in double */
    double (*sum_squares)(int64_t n, const vlp_real *x);
    double (*dot)(int64_t n, const vlp_real *x, const vlp_real *y);
    bool (*all_finite)(int64_t n, const vlp_real *x);

    /* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
     * p = (1 - lr wd) p - lr (m / bias1) / (sqrt(v / bias2) + eps), in one pass */
    void (*adamw)(int64_t n, const vlp_adamw *step, vlp_real *p, const vlp_real *g, vlp_real *m,
                  vlp_real *v);

    /* y[i] = x[i] / (1 - rate), or 0 with probability rate, drawn from the stream rng (as given by
     * vlp_rng_at) at element first + i: the caller may split the range anywhere, and the backward
     * pass calls the same with dy. y == x is legal. 0 <= rate < 1. */
    void (*dropout)(int64_t first, int64_t n, const vlp_rng *rng, double rate, const vlp_real *x,
                    vlp_real *y);

    /* bfloat16, round to nearest even; NaN stays a (quiet) NaN */
    void (*to_bf16)(int64_t n, const float *x, uint16_t *y);
    void (*from_bf16)(int64_t n, const uint16_t *x, float *y);

    /* y = f(x) elementwise; y == x is legal */
    void (*exp)(int64_t n, const vlp_real *x, vlp_real *y);
    void (*tanh)(int64_t n, const vlp_real *x, vlp_real *y);
    void (*erf)(int64_t n, const vlp_real *x, vlp_real *y);
} vlp_kernels;

const vlp_kernels *vlp_kernels_get(void); /* for vlp_isa_chosen() */

/* A certain set, for tests; NULL if this CPU or build lacks it. */
const vlp_kernels *vlp_kernels_of(vlp_isa isa);

#endif
