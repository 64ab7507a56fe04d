#include "fusion/clip.h"

static int32_t *count_up(vlp_tape *tape, int64_t n, int64_t first) {
    int32_t *numbers = vlp_tape_alloc(tape, (size_t)n * sizeof *numbers);
    for (int64_t i = 0; numbers && !vlp_tape_planning(tape) && i < n; i++)
        numbers[i] = (int32_t)(first + i);
    return numbers;
}

vlp_tensor *vlp_clip_loss(vlp_tape *tape, vlp_tensor *logits) {
    if (!logits) return NULL;
    int32_t *diagonal = count_up(tape, logits->shape[0], 0);
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

static vlp_tensor *similarity(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b, vlp_tensor *scale,
                              double most) {
    return vlp_scale_exp(tape, vlp_linear(tape, a, b, NULL, VLP_ACT_NONE), scale, most);
}

vlp_tensor *vlp_clip_loss_ranks(vlp_tape *tape, const vlp_clip_ranks *r, vlp_tensor *image,
                                vlp_tensor *text, vlp_tensor *scale, double most) {
    vlp_gather_grad grad = r->with_grad ? VLP_GATHER_GRAD_SUM
                           : r->local   ? VLP_GATHER_GRAD_NONE
                                        : VLP_GATHER_GRAD_OWN;
    vlp_tensor *images = vlp_gather_ranks(tape, image, r->comm, grad);
    vlp_tensor *texts = vlp_gather_ranks(tape, text, r->comm, grad);
    if (!r->local) return vlp_clip_loss(tape, similarity(tape, images, texts, scale, most));
    int64_t n = image->shape[0];
    int32_t *own = count_up(tape, n, r->comm->rank * n);
    if (!own) return NULL;
    vlp_tensor *terms[] = {
        vlp_cross_entropy(tape, similarity(tape, image, texts, scale, most), own, 0),
        vlp_cross_entropy(tape, similarity(tape, text, images, scale, most), own, 0)};
    return vlp_weighted_sum(tape, terms, (double[]){0.5, 0.5}, 2);
}

vlp_tensor *vlp_siglip_loss_ranks(vlp_tape *tape, vlp_comm *comm, vlp_tensor *image,
                                  vlp_tensor *text, vlp_tensor *scale, vlp_tensor *bias,
                                  double most) {
    vlp_tensor *texts = vlp_gather_ranks(tape, text, comm, VLP_GATHER_GRAD_SUM);
    vlp_tensor *logits = similarity(tape, image, texts, scale, most);
    if (bias) logits = vlp_add_scalar(tape, logits, bias);
    return image ? vlp_siglip_loss(tape, logits, comm->rank * image->shape[0]) : NULL;
}
