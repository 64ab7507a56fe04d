#include "train/step.h"

#include "train/contrast.h"

vlp_tensor *vlp_step_loss(const vlp_step *step, const vlp_pairs *pairs,
                          const vlp_cotangents *cotangents, vlp_tensor **terms) {
    vlp_encodings e;
    vlp_encodings_begin(&e, step->tape, step->model, pairs);
    e.cotangents = cotangents;
    return vlp_objectives_loss(step->objectives, &e, terms);
}

static bool multiplies_bf16(void) {
    return vlp_cpu()->avx512_bf16 || vlp_cpu()->amx_bf16;
}

vlp_dtype vlp_step_precision(const vlp_recipe *recipe) {
    bool bf16 = recipe->precision == VLP_PRECISION_BF16 ||
                (recipe->precision == VLP_PRECISION_AUTO && multiplies_bf16());
    return bf16 ? VLP_BF16 : VLP_REAL;
}

const char *vlp_step_precision_auto(void) {
    return multiplies_bf16() ? "bf16" : "fp32";
}

const char *vlp_step_precision_name(const vlp_recipe *recipe) {
    return vlp_step_precision(recipe) == VLP_BF16 ? "bf16" : "fp32";
}

void vlp_step_prepare(vlp_tape *tape, const vlp_recipe *recipe) {
    vlp_tape_set_precision(tape, vlp_step_precision(recipe));
    vlp_tape_set_recompute(tape, recipe->recompute);
    vlp_tape_set_reuse(tape, true);
}

vlp_status vlp_step_rehearse(const vlp_step *step, int64_t batch, int64_t length,
                             vlp_contrast *contrast, double *flops) {
    enum { SLACK = 1 << 20 };
    vlp_pairs pairs = {.batch = batch, .tokens = {.batch = batch, .length = length}};
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    VLP_TRY(vlp_tape_plan(step->tape));
    vlp_tape_set_training(step->tape, true);
    vlp_tensor *loss =
        vlp_step_loss(step, &pairs, contrast ? vlp_contrast_cotangents(contrast, 0) : NULL, terms);
    VLP_TRY(vlp_tape_backward(step->tape, loss));
    *flops = vlp_tape_flops(step->tape);
    if (contrast) VLP_TRY(vlp_contrast_rehearse(contrast, step));
    /* Other lengths of captions leave other holes between tensors. What is not touched is only
     * addresses. */
    return vlp_tape_open(step->tape, vlp_tape_bytes(step->tape) + SLACK);
}

vlp_optimizer_options vlp_step_optimizer(const vlp_recipe *recipe) {
    vlp_optimizer_options options = vlp_optimizer_defaults();
    options.beta1 = recipe->beta1;
    options.beta2 = recipe->beta2;
    options.eps = recipe->eps;
    options.weight_decay = recipe->weight_decay;
    options.max_grad_norm = recipe->clip_grad;
    return options;
}
