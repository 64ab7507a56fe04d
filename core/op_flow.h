/* Loops that several ops share, each split over the threads so that no two add to the same place.
 */
#ifndef VLP_CORE_OP_FLOW_H
#define VLP_CORE_OP_FLOW_H

#include "core/tensor.h"

/* to = from when fresh, else to += from; on the calling thread. */
void vlp_put(bool fresh, int64_t n, const vlp_real *from, vlp_real *to);

/* bfloat16 to vlp_real and, rounded to nearest even, back; on the calling thread. */
void vlp_widen(int64_t n, const uint16_t *from, vlp_real *to);
void vlp_narrow(int64_t n, const vlp_real *from, uint16_t *to);

/* to = from, or += where not fresh; grad is what `to` is part of, from element `at` on. */
void vlp_put_gradient(bool fresh, int64_t n, const vlp_real *from, vlp_gradient grad, int64_t at);
/* n elements of a gradient: its own memory, or widened into `wide`. */
const vlp_real *vlp_real_gradient(vlp_gradient grad, int64_t at, int64_t n, vlp_real *wide);

/* The gradient of `to`, if it wants one, += grad (as many elements as `to`). */
void vlp_flow(vlp_tensor *to, const vlp_real *grad);

/* out [cols] += sum over rows of x [rows, cols], rows ld apart; split by columns. */
void vlp_flow_columns(int64_t rows, int64_t cols, int64_t ld, const vlp_real *x, vlp_real *out);
/* The same of a dense gradient. */
void vlp_gradient_columns(int64_t rows, int64_t cols, vlp_gradient x, vlp_real *out);

/* to[r] = or += from[index[r]].  from [n, cols]   index [count] in [0, n)   to [count, cols] */
void vlp_rows_take(int64_t count, int64_t cols, int64_t n, const int32_t *index, bool fresh,
                   const vlp_real *from, vlp_real *to);
/* The transpose: to[index[r]] += from[r], but rows with index[r] == skip are left out. Repeated
 * indices are fine: the work is split by columns. */
void vlp_rows_spread(int64_t count, int64_t cols, int64_t n, const int32_t *index, int64_t skip,
                     const vlp_real *from, vlp_real *to);

#endif
