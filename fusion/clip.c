#include "fusion/clip.h"

#include <math.h>

static vlp_status declare_towers(vlp_clip *clip, vlp_params *params) {
    const vlp_clip_config *c = &clip->config;
    vlp_params_push(params, "vision");
    VLP_TRY(vlp_vit_declare(&clip->vision, params, &c->vision));
    vlp_norm_declare(&clip->vision_norm, params, "norm", c->vision.width, c->vision.eps);
    vlp_params_pop(params);
    vlp_params_push(params, "text");
    VLP_TRY(vlp_clip_text_declare(&clip->text, params, &c->text));
    vlp_params_pop(params);
    return VLP_OK;
}

vlp_status vlp_clip_declare(vlp_clip *clip, vlp_params *params, const vlp_clip_config *c) {
    *clip = (vlp_clip){.config = *c};
    VLP_TRY(declare_towers(clip, params));
    vlp_dense_declare(&clip->image_projection, params, "image_projection", c->vision.width,
                      c->embedding, false, 1 / sqrt((double)c->vision.width));
    vlp_dense_declare(&clip->text_projection, params, "text_projection", c->text.width,
                      c->embedding, false, 1 / sqrt((double)c->text.width));
    clip->logit_scale = vlp_params_add(
        params, "logit_scale", VLP_INIT_CONSTANT(c->logit_scale_init), VLP_NO_DECAY, 0, NULL);
    return VLP_OK;
}

void vlp_clip_free(vlp_clip *clip) {
    vlp_vit_free(&clip->vision);
    vlp_clip_text_free(&clip->text);
}

vlp_tensor *vlp_clip_image_tokens(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pixels,
                                  vlp_tensor **hidden) {
    return vlp_vit_forward(tape, &clip->vision, pixels, NULL, hidden);
}

vlp_tensor *vlp_clip_image_pooled(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *tokens) {
    return vlp_norm_forward(tape, &clip->vision_norm, vlp_first_tokens(tape, tokens));
}

vlp_tensor *vlp_clip_text_tokens(vlp_tape *tape, const vlp_clip *clip, const vlp_tokens *tokens,
                                 vlp_tensor **hidden) {
    return vlp_clip_text_forward(tape, &clip->text, tokens, hidden);
}

vlp_tensor *vlp_clip_project_image(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pooled) {
    return vlp_dense_readout(tape, &clip->image_projection, pooled);
}

vlp_tensor *vlp_clip_project_text(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pooled) {
    return vlp_dense_readout(tape, &clip->text_projection, pooled);
}

vlp_tensor *vlp_clip_logits(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *image,
                            vlp_tensor *text) {
    vlp_tensor *cosines = vlp_linear(tape, image, text, NULL, VLP_ACT_NONE);
    return vlp_scale_exp(tape, cosines, clip->logit_scale, INFINITY);
}

vlp_tensor *vlp_clip_loss(vlp_tape *tape, vlp_tensor *logits) {
    if (!logits) return NULL;
    int64_t n = logits->shape[0];
    int32_t *diagonal = vlp_tape_alloc(tape, (size_t)n * sizeof *diagonal);
    if (!diagonal) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < n; i++) diagonal[i] = (int32_t)i;
    vlp_tensor *terms[] = {vlp_cross_entropy(tape, logits, diagonal, 0),
                           vlp_cross_entropy(tape, vlp_transpose(tape, logits), diagonal, 0)};
    return vlp_weighted_sum(tape, terms, (double[]){0.5, 0.5}, 2);
}
