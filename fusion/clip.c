#include "fusion/clip.h"

static int32_t *count_up(vlp_tape *tape, int64_t n) {
    int32_t *numbers = vlp_tape_alloc(tape, (size_t)n * sizeof *numbers);
    for (int64_t i = 0; numbers && !vlp_tape_planning(tape) && i < n; i++) numbers[i] = (int32_t)i;
    return numbers;
}

vlp_tensor *vlp_clip_loss(vlp_tape *tape, vlp_tensor *logits) {
    if (!logits) return NULL;
    int32_t *diagonal = count_up(tape, logits->shape[0]);
    if (!diagonal) return NULL;
    vlp_tensor *terms[] = {vlp_cross_entropy(tape, logits, diagonal, 0),
                           vlp_cross_entropy(tape, vlp_transpose(tape, logits), diagonal, 0)};
    return vlp_weighted_sum(tape, terms, (double[]){0.5, 0.5}, 2);
}

vlp_tensor *vlp_siglip_loss(vlp_tape *tape, vlp_tensor *logits, int64_t first) {
    if (!logits) return NULL;
    int64_t rows = logits->shape[0], cols = logits->shape[1];
    vlp_real *target = vlp_tape_alloc(tape, (size_t)(rows * cols) * sizeof *target);
    if (!target) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < rows * cols; i++)
        target[i] = i % cols == first + i / cols ? 1 : 0;
    /* a mean over all elements; the paper's is over images */
    return vlp_scale(tape, vlp_regression_loss(tape, logits, target, VLP_LOSS_BINARY),
                     (double)cols);
}
