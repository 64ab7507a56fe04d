/* The ops: coarse, fused, differentiable functions on the tape. One file per family holds an op's
 * constructor, forward and backward side by side (core/op_*.c); core/ops.c lists every op, and a
 * test demands a double-precision gradient check for each row of that list.
 *
 * Conventions. Shapes are row-major: B batch, L text length, P patches, D width, H heads, K head
 * width, N rows, R selected rows, V vocabulary. "..." stands for any leading dimensions. Every
 * constructor returns a tensor in step memory, or NULL when the tape has failed. Arguments that may
 * be NULL say so. A shape that does not fit is a programming error (VLP_ASSERT). Host arrays passed
 * as pointers (ids, masks, row lists) are read again during backward and must outlive the step; use
 * vlp_tape_alloc for them. While rehearsing they may hold anything. */
#ifndef VLP_CORE_OPS_H
#define VLP_CORE_OPS_H

#include "core/comm.h"
#include "core/kernels.h"
#include "core/tape.h"

/* op_linear.c ---------------------------------------------------------------------------------- */

/* y = act(x w^T + bias).  x [..., I]   w [O, I]   bias [O] or NULL   ->   [..., O]
 * w may itself be an activation: similarity matrices are vlp_linear(a, b, NULL, VLP_ACT_NONE).
 * With precision VLP_BF16 a product with a parameter is a bfloat16 one and gives VLP_BF16. */
vlp_tensor *vlp_linear(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias, vlp_act act);
/* The same for a last layer, whose result losses and people read: always VLP_REAL. */
vlp_tensor *vlp_readout(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias);

/* op_attention.c ------------------------------------------------------------------------------- */

/* Multi-head attention of rows that projections have already made (Vaswani et al., 2017).
 * q, k and v are column ranges of 2- or 3-dimensional tensors, so a fused projection [B, L, 3D]
 * serves as all three with offsets 0, D and 2D.
 *   scores = scale q k^T + bias;  p = softmax(scores over the allowed keys);  y = dropout(p) v
 *   q [B, Lq, >= H K]   k, v [Bk, Lk, >= H K]   ->   [B, Lq, H K]
 * q, k and v are all VLP_REAL or all VLP_BF16, which then is the output's type; softmax and sums
 * are in vlp_real. Keys and queries meet in blocks (Dao et al., 2022) that stay in cache; only the
 * row log-sum-exp [B, H, Lq] is kept, and backward computes the scores again. Keys behind the last
 * one that the mask allows cost nothing. A query whose keys are all masked gives 0. */
typedef struct {
    vlp_tensor *q, *k, *v;
    int64_t q_offset, k_offset, v_offset; /* first column */
    int64_t heads, head_width;
    double scale;             /* 0 = 1 / sqrt(head_width) */
    const uint8_t *key_mask;  /* [Bk, Lk], 0 = may not be attended to; NULL = all may */
    bool mask_by_query_batch; /* key_mask is [B, Lk]: indexed by the query's sample */
    bool causal;              /* query i sees keys j <= i + Lk - Lq */
    vlp_tensor *bias; /* [B or 1, H or 1, Lq, Lk] added to the scores, or NULL; gets a gradient */
    const int32_t *kv_index; /* [B]: sample b attends to row kv_index[b] of k and v; NULL = b.
                                Many texts can so attend to one image's keys, projected once. */
    double dropout;          /* of the probabilities, in training */
} vlp_attention_args;
vlp_tensor *vlp_attention(vlp_tape *tape, const vlp_attention_args *args);

/* op_norm.c ------------------------------------------------------------------------------------ */

/* LayerNorm over the last axis (Ba et al., 2016).  x [..., D]   weight, bias [D] (bias or NULL) */
vlp_tensor *vlp_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *weight, vlp_tensor *bias,
                           double eps);
/* h = x + residual; y = LayerNorm(h). *sum, if asked for, is h: the residual stream of pre-norm
 * blocks, without a separate pass over memory. */
vlp_tensor *vlp_add_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual,
                               vlp_tensor *weight, vlp_tensor *bias, double eps, vlp_tensor **sum);
/* The same for a norm whose result only linear layers read: VLP_BF16 with that precision. */
vlp_tensor *vlp_branch_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual,
                                  vlp_tensor *weight, vlp_tensor *bias, double eps,
                                  vlp_tensor **sum);
/* y = h / sqrt(mean(h^2) + eps) weight, h = x + residual (residual, sum may be NULL) */
vlp_tensor *vlp_rms_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual, vlp_tensor *weight,
                         double eps, vlp_tensor **sum);
/* y = x / max(|x|, eps) over the last axis */
vlp_tensor *vlp_l2_normalize(vlp_tape *tape, vlp_tensor *x, double eps);

/* op_embedding.c ------------------------------------------------------------------------------- */

/* Rows of a table.  table [V, D]   ids [N] (host, each in [0, V))   ->   shape [..., D] where the
 * leading shape is given and multiplies to N. The row padding_idx (-1 = none) gets no gradient. */
vlp_tensor *vlp_embedding(vlp_tape *tape, vlp_tensor *table, const int32_t *ids, int ndim,
                          const int64_t *leading, int32_t padding_idx);
/* y[b, l] = x[b, l] + table[l + offset].  x [B, L, D]   table [>= L + offset, D] */
vlp_tensor *vlp_add_positions(vlp_tape *tape, vlp_tensor *x, vlp_tensor *table, int64_t offset);
/* y = [tokens; x] along the second axis.  tokens [n, D]   x [B, P, D]   ->   [B, n + P, D] */
vlp_tensor *vlp_prepend_tokens(vlp_tape *tape, vlp_tensor *tokens, vlp_tensor *x);
/* y[n] = mask[n] ? token : x[n].  x [..., D], N rows   token [D]   mask [N] (host) */
vlp_tensor *vlp_mask_rows(vlp_tape *tape, vlp_tensor *x, vlp_tensor *token, const uint8_t *mask);

/* op_patch.c ----------------------------------------------------------------------------------- */

/* Non-overlapping patches times a matrix (a strided convolution).  pixels [B, C, H, W]
 * w [D, C p p] (order c, y, x)   bias [D] or NULL   ->   [B, (H/p) (W/p), D], row-major patches. */
vlp_tensor *vlp_patch_embed(vlp_tape *tape, vlp_tensor *pixels, vlp_tensor *w, vlp_tensor *bias,
                            int64_t patch);

/* op_rows.c ------------------------------------------------------------------------------------ */

/* y[r] = x[rows[r]].  x [..., D], N rows   rows [R] (host, in [0, N))   ->   [R, D]; R may be 0 */
vlp_tensor *vlp_gather_rows(vlp_tape *tape, vlp_tensor *x, const int32_t *rows, int64_t count);
/* y[rows[r]] += x[r], elsewhere 0.  x [R, D]   ->   [N, D] */
vlp_tensor *vlp_scatter_rows(vlp_tape *tape, vlp_tensor *x, const int32_t *rows, int64_t total);
/* y[b] = mean over l with mask[b, l] of x[b, l].  x [B, L, D]   mask [B, L] (host) or NULL */
vlp_tensor *vlp_mean_rows(vlp_tape *tape, vlp_tensor *x, const uint8_t *mask);
/* The same numbers in another shape (shares memory). */
vlp_tensor *vlp_reshape(vlp_tape *tape, vlp_tensor *x, int ndim, const int64_t *shape);
/* x [M, N] -> [N, M] */
vlp_tensor *vlp_transpose(vlp_tape *tape, vlp_tensor *x);
/* Rows of both, one after the other.  a [M, D]   b [N, D]   ->   [M + N, D] */
vlp_tensor *vlp_concat_rows(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b);

/* op_gather_ranks.c ---------------------------------------------------------------------------- */

/* x [B, D] of every rank, one after the other: y [ranks B, D]. Backward gives this rank's rows of
 * the sum over ranks of dy; of its own dy alone; or nothing (contrastive losses, whose negatives
 * come from all ranks). */
typedef enum { VLP_GATHER_GRAD_SUM, VLP_GATHER_GRAD_OWN, VLP_GATHER_GRAD_NONE } vlp_gather_grad;
vlp_tensor *vlp_gather_ranks(vlp_tape *tape, vlp_tensor *x, vlp_comm *comm, vlp_gather_grad grad);

/* op_convert.c --------------------------------------------------------------------------------- */

/* x itself, or its values in vlp_real where it is VLP_BF16; NULL stays NULL. */
vlp_tensor *vlp_to_real(vlp_tape *tape, vlp_tensor *x);

/* op_elementwise.c ----------------------------------------------------------------------------- */

vlp_tensor *vlp_add(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b); /* same shape; a == b is fine */
vlp_tensor *vlp_mul(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b); /* same shape */
vlp_tensor *vlp_scale(vlp_tape *tape, vlp_tensor *x, double factor); /* y = factor x */
vlp_tensor *vlp_activation(vlp_tape *tape, vlp_tensor *x, vlp_act act);
/* y = x exp(min(s, most)), s a scalar parameter; no gradient into s beyond the clamp (CLIP's
 * logit_scale). */
vlp_tensor *vlp_scale_exp(vlp_tape *tape, vlp_tensor *x, vlp_tensor *s, double most);
/* y = x / t, t a scalar parameter (ALBEF's temperature) */
vlp_tensor *vlp_divide_by(vlp_tape *tape, vlp_tensor *x, vlp_tensor *t);
/* Inverted dropout (Srivastava et al., 2014); the identity outside training or for rate 0. */
vlp_tensor *vlp_dropout(vlp_tape *tape, vlp_tensor *x, double rate);
/* Stochastic depth (Huang et al., 2016): whole samples (first axis) of x are dropped. */
vlp_tensor *vlp_drop_path(vlp_tape *tape, vlp_tensor *x, double rate);

/* op_loss.c ------------------------------------------------------------------------------------ */

/* Cross-entropy over the last axis, mean over rows with target >= 0; 0 when there is none.
 * logits [R, V]   target [R] (host; negative = ignored)   ->   scalar
 * label_smoothing s: target distribution (1 - s) onehot + s / V. */
vlp_tensor *vlp_cross_entropy(vlp_tape *tape, vlp_tensor *logits, const int32_t *target,
                              double label_smoothing);
/* The same of the logits x w^T + bias, which are never all in memory (op_linear_loss.c).
 * x [R, D]   w [V, D]   bias [V] or NULL   target [R] (host)   ->   scalar */
vlp_tensor *vlp_linear_cross_entropy(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias,
                                     const int32_t *target, double label_smoothing);
/* mean over rows of -sum_v target log softmax(logits).  target [R, V] (host data, no gradient) */
vlp_tensor *vlp_soft_cross_entropy(vlp_tape *tape, vlp_tensor *logits, const vlp_real *target);
/* mean |x - target|, mean (x - target)^2 or the mean binary cross-entropy of logits x with
 * probabilities target, over all elements; 0 when there is none.  x [R, D]   target [R, D] (host)
 */
typedef enum { VLP_LOSS_L1, VLP_LOSS_MSE, VLP_LOSS_BINARY } vlp_regression;
vlp_tensor *vlp_regression_loss(vlp_tape *tape, vlp_tensor *x, const vlp_real *target,
                                vlp_regression kind);
/* sum_i weights[i] terms[i] of scalars, at most 8 */
vlp_tensor *vlp_weighted_sum(vlp_tape *tape, vlp_tensor *const *terms, const double *weights,
                             int n);
/* sum(x * c): a scalar whose gradient is the given cotangent.  c like x (host) */
vlp_tensor *vlp_dot_constant(vlp_tape *tape, vlp_tensor *x, const vlp_real *c);

/* The table of all ops ------------------------------------------------------------------------- */

extern const vlp_op *const vlp_ops[];
extern const int vlp_ops_count;

#endif
