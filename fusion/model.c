#include "fusion/model.h"

#include "core/memory.h"

#include <math.h>

enum { MATCH_CLASSES = 2 };
static const double norm_eps = 1e-12;

static vlp_status declare(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    vlp_params *params = model->params;
    vlp_params_push(params, "vision");
    VLP_TRY(vlp_vit_declare(&model->vision, params, &c->vision));
    vlp_params_pop(params);
    vlp_params_push(params, "text");
    VLP_TRY(vlp_bert_declare(&model->text, params, &c->text));
    vlp_params_pop(params);
    double image_std = 1 / sqrt((double)c->vision.width),
           text_std = 1 / sqrt((double)c->text.width);
    vlp_dense_declare(&model->image_projection, params, "image_projection", c->vision.width,
                      c->embedding, false, image_std);
    vlp_dense_declare(&model->text_projection, params, "text_projection", c->text.width,
                      c->embedding, false, text_std);
    model->logit_scale = vlp_params_add(
        params, "logit_scale", VLP_INIT_CONSTANT(c->logit_scale_init), VLP_NO_DECAY, 0, NULL);
    if (c->fusion.depth == 0) return VLP_OK;
    vlp_params_push(params, "fusion");
    VLP_TRY(vlp_fusion_declare(&model->fusion, params, &c->fusion));
    vlp_params_pop(params);
    vlp_dense_declare(&model->match_head, params, "match_head", c->fusion.width, MATCH_CLASSES,
                      true, 0.02);
    return VLP_OK;
}

vlp_status vlp_model_new(vlp_model **out, const vlp_model_config *config) {
    *out = NULL;
    vlp_model *model = vlp_alloc_zero(1, sizeof *model);
    if (!model) return VLP_ERR_MEMORY;
    model->config = *config;
    vlp_status status = vlp_params_new(&model->params);
    if (status == VLP_OK) status = declare(model);
    if (status != VLP_OK) {
        vlp_model_free(model);
        return status;
    }
    *out = model;
    return VLP_OK;
}

void vlp_model_free(vlp_model *model) {
    if (!model) return;
    vlp_vit_free(&model->vision);
    vlp_bert_free(&model->text);
    vlp_fusion_free(&model->fusion);
    vlp_params_free(model->params);
    vlp_free(model);
}

bool vlp_model_can_match(const vlp_model *model) {
    return model->config.fusion.depth > 0;
}

vlp_tensor *vlp_model_image_tokens(vlp_tape *tape, const vlp_model *model, vlp_tensor *pixels) {
    return vlp_vit_forward(tape, &model->vision, pixels, NULL, NULL);
}

vlp_tensor *vlp_model_text_tokens(vlp_tape *tape, const vlp_model *model,
                                  const vlp_tokens *tokens) {
    return vlp_bert_forward(tape, &model->text, tokens, NULL);
}

static vlp_tensor *project(vlp_tape *tape, const vlp_dense *projection, vlp_tensor *tokens) {
    vlp_tensor *x = vlp_first_tokens(tape, tokens);
    return vlp_l2_normalize(tape, vlp_dense_forward(tape, projection, x, VLP_ACT_NONE), norm_eps);
}

vlp_tensor *vlp_model_image_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens) {
    return project(tape, &model->image_projection, tokens);
}

vlp_tensor *vlp_model_text_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens) {
    return project(tape, &model->text_projection, tokens);
}

vlp_tensor *vlp_model_match(vlp_tape *tape, const vlp_model *model, vlp_tensor *fused) {
    return vlp_dense_forward(tape, &model->match_head, vlp_first_tokens(tape, fused), VLP_ACT_NONE);
}
