/* Causal language modelling: what a decoder is trained to write. */
#ifndef VLP_OBJECTIVES_LM_H
#define VLP_OBJECTIVES_LM_H

#include "core/tape.h"
#include "text/tokens.h"

/* Row l of a text predicts token l + 1: targets [B, L], -1 where there is none, where it is padding
 * and where it is one of the first `prompt` tokens, which are given. */
void vlp_lm_targets(const vlp_tokens *tokens, int64_t prompt, int32_t *targets);

/* sum over texts of weights[b] (sum over their targets of -log p), over `divisor`: answers that
 * count more or less.  logits [B, L, V], targets as above, weights [B].
 * label_smoothing as in vlp_cross_entropy. soft [B, L, V] (or NULL) are another model's logits:
 * a share alpha of each target is their softmax instead (momentum distillation, ALBEF). */
typedef struct {
    const int32_t *targets;
    const vlp_real *weights;
    double divisor, label_smoothing;
    const vlp_real *soft;
    double alpha;
} vlp_answers;
vlp_tensor *vlp_answer_loss(vlp_tape *tape, vlp_tensor *logits, const vlp_answers *answers);

#endif
