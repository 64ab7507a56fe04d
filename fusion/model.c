#include "fusion/model.h"

#include "core/memory.h"

#include <math.h>

enum { MATCH_CLASSES = 2 };
static const double norm_eps = 1e-12;

static int64_t text_width(const vlp_model_config *c) {
    return c->clip_text.width > 0 ? c->clip_text.width : c->text.width;
}

static void declare_space(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    vlp_params *params = model->params;
    int64_t image = vlp_vit_pool_width(&c->pool, &c->vision), text = text_width(c);
    if (!c->no_image_projection)
        vlp_dense_declare(&model->image_projection, params, "image_projection", image, c->embedding,
                          c->projection_bias, 1 / sqrt((double)image));
    vlp_dense_declare(&model->text_projection, params, "text_projection", text, c->embedding,
                      c->projection_bias || c->text_projection_bias, 1 / sqrt((double)text));
}

static void declare_scale(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    if (c->plain_temperature)
        model->temperature =
            vlp_params_add(model->params, "temperature",
                           VLP_INIT_CONSTANT(exp(-c->logit_scale_init)), VLP_NO_DECAY, 0, NULL);
    else
        model->logit_scale =
            vlp_params_add(model->params, "logit_scale", VLP_INIT_CONSTANT(c->logit_scale_init),
                           VLP_NO_DECAY, 0, NULL);
    if (c->logit_bias)
        model->logit_bias =
            vlp_params_add(model->params, "logit_bias", VLP_INIT_CONSTANT(c->logit_bias_init),
                           VLP_NO_DECAY, 0, NULL);
}

static vlp_status declare_fusion(vlp_model *model) {
    vlp_params_push(model->params, "fusion");
    vlp_status status = vlp_fusion_declare(&model->fusion, model->params, &model->config.fusion);
    vlp_params_pop(model->params);
    return status;
}

static vlp_status declare_decoder(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    vlp_params *params = model->params;
    vlp_params_push(params, "decoder");
    VLP_TRY(c->decoder_shared ? vlp_bert_declare_shared(&model->decoder, params, &model->text)
                              : vlp_bert_declare(&model->decoder, params, &c->decoder));
    vlp_params_pop(params);
    vlp_params_push(params, "lm");
    vlp_mlm_head_declare(&model->lm, params, &model->decoder.config);
    if (c->decoder_untied) vlp_mlm_head_untie(&model->lm, params, &model->decoder.config);
    vlp_params_pop(params);
    return VLP_OK;
}

static vlp_status declare_text(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    if (text_width(c) == 0) return VLP_OK;
    vlp_params_push(model->params, "text");
    vlp_status status = c->clip_text.width > 0
                            ? vlp_clip_text_declare(&model->clip_text, model->params, &c->clip_text)
                            : vlp_bert_declare(&model->text, model->params, &c->text);
    vlp_params_pop(model->params);
    return status;
}

static vlp_status declare_towers(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    vlp_params_push(model->params, "vision");
    VLP_TRY(vlp_vit_declare(&model->vision, model->params, &c->vision));
    vlp_vit_pool_declare(&model->pool, model->params, &c->pool, &c->vision);
    vlp_params_pop(model->params);
    return declare_text(model);
}

static vlp_status declare(vlp_model *model, unsigned parts) {
    const vlp_model_config *c = &model->config;
    VLP_TRY(declare_towers(model));
    if (parts & VLP_MODEL_SPACE) declare_space(model);
    if (parts & VLP_MODEL_SCALE) declare_scale(model);
    if (c->fusion.depth > 0) VLP_TRY(declare_fusion(model));
    if ((parts & VLP_MODEL_MATCH) && vlp_model_can_fuse(model))
        vlp_dense_declare(&model->match_head, model->params, "match_head", c->text.width,
                          MATCH_CLASSES, true, 0.02);
    return vlp_model_can_write(model) ? declare_decoder(model) : VLP_OK;
}

/* Marks that are looked up must be in the vocabulary. */
static vlp_status check_marks(const vlp_model *model) {
    const vlp_model_config *c = &model->config;
    bool writes = vlp_model_can_write(model);
    int64_t written = c->decoder_shared ? c->text.vocab : c->decoder.vocab;
    const struct {
        const char *what;
        int64_t id, vocab;
    } marks[] = {
        {"bos_token_id", c->bos_id, writes ? written : INT64_MAX},
        {"sep_token_id", c->eos_id, writes ? written : INT64_MAX},
        {"enc_token_id", c->enc_id, vlp_model_fuses_anew(model) ? c->text.vocab : INT64_MAX}};
    for (size_t i = 0; i < VLP_COUNT(marks); i++)
        if (marks[i].id < 0 || marks[i].id >= marks[i].vocab)
            return VLP_FAIL(VLP_ERR_FORMAT, "config.json: %s %lld, but vocab_size is %lld",
                            marks[i].what, (long long)marks[i].id, (long long)marks[i].vocab);
    if (!c->decoder_shared || vlp_model_fuses_anew(model)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "config.json: decoder_shared needs encoder_hidden_size");
}

vlp_status vlp_model_new(vlp_model **out, const vlp_model_config *config) {
    return vlp_model_new_parts(out, config, VLP_MODEL_ALL);
}

vlp_status vlp_model_new_parts(vlp_model **out, const vlp_model_config *config, unsigned parts) {
    *out = NULL;
    vlp_model *model = vlp_alloc_zero(1, sizeof *model);
    if (!model) return VLP_ERR_MEMORY;
    model->config = *config;
    vlp_status status = vlp_params_new(&model->params);
    if (status == VLP_OK) status = check_marks(model);
    if (status == VLP_OK) status = declare(model, parts);
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
    vlp_clip_text_free(&model->clip_text);
    vlp_fusion_free(&model->fusion);
    vlp_bert_free(&model->decoder);
    vlp_params_free(model->params);
    vlp_free(model);
}

bool vlp_model_fuses_anew(const vlp_model *model) {
    return model->config.text.context_width > 0;
}

bool vlp_model_can_fuse(const vlp_model *model) {
    return vlp_model_fuses_anew(model) || model->config.fusion.depth > 0;
}

bool vlp_model_can_write(const vlp_model *model) {
    return model->config.decoder_shared || model->config.decoder.width > 0;
}

bool vlp_model_can_match(const vlp_model *model) {
    return model->match_head.weight;
}

vlp_tensor *vlp_model_image_tokens(vlp_tape *tape, const vlp_model *model, vlp_tensor *pixels) {
    return vlp_vit_forward(tape, &model->vision, pixels, NULL, NULL);
}

vlp_tensor *vlp_model_text_tokens(vlp_tape *tape, const vlp_model *model,
                                  const vlp_tokens *tokens) {
    return model->clip_text.words ? vlp_clip_text_forward(tape, &model->clip_text, tokens, NULL)
                                  : vlp_bert_forward(tape, &model->text, tokens, NULL);
}

vlp_tensor *vlp_model_text_pooled(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                                  vlp_tensor *states) {
    return model->clip_text.words ? vlp_clip_text_end(tape, &model->clip_text, states, tokens)
                                  : vlp_first_tokens(tape, states);
}

vlp_tensor *vlp_model_image_features(vlp_tape *tape, const vlp_model *model, vlp_tensor *pooled) {
    return model->config.no_image_projection
               ? pooled
               : vlp_dense_readout(tape, &model->image_projection, pooled);
}

vlp_tensor *vlp_model_text_features(vlp_tape *tape, const vlp_model *model, vlp_tensor *pooled) {
    return vlp_dense_readout(tape, &model->text_projection, pooled);
}

vlp_tensor *vlp_model_image_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens) {
    vlp_tensor *x = vlp_vit_pool_forward(tape, &model->pool, tokens, NULL);
    return vlp_l2_normalize(tape, vlp_model_image_features(tape, model, x), norm_eps);
}

vlp_tensor *vlp_model_text_embedding(vlp_tape *tape, const vlp_model *model,
                                     const vlp_tokens *tokens, vlp_tensor *states) {
    vlp_tensor *x = vlp_model_text_pooled(tape, model, tokens, states);
    return vlp_l2_normalize(tape, vlp_model_text_features(tape, model, x), norm_eps);
}

int64_t vlp_model_vocab(const vlp_model_config *c) {
    return c->clip_text.width > 0 ? c->clip_text.vocab : c->text.vocab;
}

bool vlp_model_reads_padding(const vlp_model_config *c) {
    return c->clip_text.width > 0 && (c->clip_text.reads_padding || c->clip_text.class_token ||
                                      c->clip_text.pool == VLP_TEXT_LAST);
}

vlp_tensor *vlp_model_similarity(vlp_tape *tape, const vlp_model *model, vlp_tensor *a,
                                 vlp_tensor *b) {
    vlp_tensor *cosine = vlp_linear(tape, a, b, NULL, VLP_ACT_NONE);
    if (!model->temperature && !model->logit_scale)
        return vlp_scale(tape, cosine, vlp_model_scale(model));
    vlp_tensor *x = model->temperature ? vlp_divide_by(tape, cosine, model->temperature)
                                       : vlp_scale_exp(tape, cosine, model->logit_scale,
                                                       model->config.logit_scale_max);
    return model->logit_bias ? vlp_add_scalar(tape, x, model->logit_bias) : x;
}

double vlp_model_scale(const vlp_model *model) {
    if (!model->temperature && !model->logit_scale) return exp(model->config.logit_scale_init);
    if (model->temperature) return 1 / (double)vlp_real_data(model->temperature)[0];
    return exp(fmin((double)vlp_real_data(model->logit_scale)[0], model->config.logit_scale_max));
}

void vlp_model_clamp(vlp_model *model) {
    const vlp_model_config *c = &model->config;
    if (!model->temperature) return;
    vlp_real *t = vlp_real_data(model->temperature);
    double most = c->temperature_most > 0 ? c->temperature_most : INFINITY;
    if (!isnan(t[0])) t[0] = (vlp_real)fmin(most, fmax(exp(-c->logit_scale_max), (double)t[0]));
}

vlp_tensor *vlp_model_match(vlp_tape *tape, const vlp_model *model, vlp_tensor *fused) {
    return vlp_dense_readout(tape, &model->match_head, vlp_first_tokens(tape, fused));
}

void vlp_model_image_keys(vlp_tape *tape, const vlp_model *model, vlp_tensor *images,
                          vlp_tensor **keys) {
    const vlp_stack *stack =
        vlp_model_fuses_anew(model) ? &model->text.stack : &model->fusion.stack;
    vlp_stack_context(tape, stack, images, keys);
}

vlp_tensor *vlp_model_fuse(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                           vlp_tensor *text, vlp_tensor *const *keys, const int32_t *image_index) {
    if (!vlp_model_fuses_anew(model))
        return vlp_fusion_forward(tape, &model->fusion, text, tokens->attention_mask, keys,
                                  image_index);
    vlp_tokens begun = *tokens;
    if (model->config.enc_id > 0)
        begun = vlp_tokens_begin_with(tape, tokens, (int32_t)model->config.enc_id);
    return vlp_bert_forward_with(tape, &model->text, &begun,
                                 &(vlp_stack_input){.context = keys, .context_index = image_index});
}

void vlp_model_decoder_keys(vlp_tape *tape, const vlp_model *model, vlp_tensor *context,
                            vlp_tensor **keys) {
    vlp_stack_context(tape, &model->decoder.stack, context, keys);
}

vlp_tensor *vlp_model_decode(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                             const vlp_stack_input *input) {
    vlp_stack_input in = *input;
    in.causal = true;
    vlp_tensor *x = vlp_bert_forward_with(tape, &model->decoder, tokens, &in);
    return vlp_mlm_head_forward(tape, &model->lm, &model->decoder, x);
}
