/* Attention of some rows to others, laid out as PyTorch's MultiheadAttention: the poolers of SigLIP
 * and CoCa, and CoCa's cross-attention. */
#ifndef VLP_CORE_ATTEND_H
#define VLP_CORE_ATTEND_H

#include "core/nn.h"

/* Rows of the fused weight and of the bias: q | k | v, each `width`. Where the rows attended to are
 * of another width there are three weights. */
typedef struct {
    int64_t width, heads;
    vlp_tensor *qkv;       /* [3 D, D], or NULL and */
    vlp_tensor *q, *k, *v; /* [D, D], [D, C], [D, C] */
    vlp_tensor *bias;      /* [3 D] */
    vlp_dense proj;        /* [D, D] */
} vlp_attend;

void vlp_attend_declare(vlp_attend *attend, vlp_params *params, const char *name, int64_t width,
                        int64_t context_width, int64_t heads);
/* x [B, Lq, D] attends to context [B, Lk, C] -> [B, Lq, D] */
vlp_tensor *vlp_attend_forward(vlp_tape *tape, const vlp_attend *attend, vlp_tensor *x,
                               vlp_tensor *context);

/* The same rows for every sample: x [n, D] -> [batch, n, D] */
vlp_tensor *vlp_repeat_rows(vlp_tape *tape, vlp_tensor *x, int64_t batch);
/* y[..., i] = x[..., i] gamma[i]: layer scale (Touvron et al., 2021).  x [..., D]   gamma [D] */
vlp_tensor *vlp_scale_features(vlp_tape *tape, vlp_tensor *x, vlp_tensor *gamma);
/* x + s, s a scalar parameter */
vlp_tensor *vlp_add_scalar(vlp_tape *tape, vlp_tensor *x, vlp_tensor *s);

#endif
