#include "objectives/lm.h"

#include "core/ops.h"

#include <math.h>
#include <string.h>

void vlp_lm_targets(const vlp_tokens *tokens, int64_t prompt, int32_t *targets) {
    int64_t length = tokens->length;
    for (int64_t b = 0; b < tokens->batch; b++)
        for (int64_t l = 0; l < length; l++) {
            int64_t next = b * length + l + 1;
            bool given = l + 1 == length || l + 1 < prompt ||
                         (tokens->attention_mask && !tokens->attention_mask[next]);
            targets[b * length + l] = given ? -1 : tokens->ids[next];
        }
}

/* scale ((1 - s) onehot + s / V), or (1 - alpha) of it and alpha softmax(soft) */
static void fill_row(const vlp_answers *a, int32_t target, double scale, const vlp_real *soft,
                     int64_t vocab, vlp_real *q) {
    double hard = soft ? scale * (1 - a->alpha) : scale, sum = 0, most = -INFINITY;
    for (int64_t v = 0; v < vocab; v++)
        q[v] = (vlp_real)(hard * a->label_smoothing / (double)vocab);
    q[target] += (vlp_real)(hard * (1 - a->label_smoothing));
    if (!soft) return;
    for (int64_t v = 0; v < vocab; v++) most = fmax(most, (double)soft[v]);
    for (int64_t v = 0; v < vocab; v++) sum += exp((double)soft[v] - most);
    for (int64_t v = 0; v < vocab; v++)
        q[v] += (vlp_real)(scale * a->alpha * exp((double)soft[v] - most) / sum);
}

vlp_tensor *vlp_answer_loss(vlp_tape *tape, vlp_tensor *logits, const vlp_answers *a) {
    if (!logits) return NULL;
    int64_t batch = logits->shape[0], length = logits->shape[1], vocab = logits->shape[2];
    vlp_real *q = vlp_tape_alloc(tape, (size_t)vlp_numel(logits) * sizeof *q);
    if (!q) return NULL;
    for (int64_t r = 0; !vlp_tape_planning(tape) && r < batch * length; r++) {
        vlp_real *row = q + r * vocab;
        /* the loss below is a mean over rows */
        double scale = (double)a->weights[r / length] * (double)(batch * length) / a->divisor;
        memset(row, 0, (size_t)vocab * sizeof *row);
        if (a->targets[r] >= 0)
            fill_row(a, a->targets[r], scale, a->soft ? a->soft + r * vocab : NULL, vocab, row);
    }
    return vlp_soft_cross_entropy(tape, logits, q);
}
