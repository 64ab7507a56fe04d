/* The vision-language model: image tower, text tower, fusion stack, projections, temperature and
 * matching head; everything that is used at inference. What exists only to train (MLM and MIM
 * heads) belongs to the objectives.
 *
 *     vlp_model_new(&model, &config);           declares the parameters in model->params
 *     vlp_params_allocate(model->params, ...);  after objectives have declared theirs
 *     vlp_model_load_weights(model, path);      or vlp_params_init
 *
 * A model folder has the Hugging Face layout: config.json, model.safetensors, tokenizer files,
 * preprocessor_config.json. */
#ifndef VLP_FUSION_MODEL_H
#define VLP_FUSION_MODEL_H

#include "core/json.h"
#include "fusion/fusion.h"
#include "text/bert.h"
#include "vision/vit.h"

typedef struct {
    vlp_vit_config vision;
    vlp_bert_config text;
    vlp_fusion_config fusion; /* depth 0: no fusion stack and no matching head (CLIP) */
    int64_t embedding;        /* E, of the shared space */
    double logit_scale_init;  /* log of the initial inverse temperature */
    double logit_scale_max;   /* the clamp, also in logarithms */
    int64_t text_length;      /* L that training used */
} vlp_model_config;

typedef struct {
    vlp_model_config config;
    vlp_params *params; /* owned */
    vlp_vit vision;
    vlp_bert text;
    vlp_fusion fusion;
    vlp_dense image_projection, text_projection; /* [E, D], no bias */
    vlp_tensor *logit_scale;                     /* scalar */
    vlp_dense match_head;                        /* [2, D]: not a pair, a pair */
} vlp_model;

/* Sizes from config.json; a missing or impossible key is named (`where` is the file). */
vlp_status vlp_model_config_read(vlp_model_config *out, const vlp_json *json, const char *where);
vlp_json *vlp_model_config_write(const vlp_model_config *config);

vlp_status vlp_model_new(vlp_model **out, const vlp_model_config *config);
void vlp_model_free(vlp_model *model);

/* Whether there is a fusion stack with a matching head. */
bool vlp_model_can_match(const vlp_model *model);

/* Fills every parameter from a safetensors file by name; a missing or mis-shaped tensor is an
 * error, tensors of training heads ("objective.") are ignored, others unexpected are named. */
vlp_status vlp_model_load_weights(vlp_model *model, const char *path);

/* Opens a model folder for inference: config, parameters without gradients, weights. */
vlp_status vlp_model_open(vlp_model **out, const char *folder);

/* pixels [B, C, H, W] -> tokens [B, 1 + P, D]; tokens [B, L] -> [B, L, D] */
vlp_tensor *vlp_model_image_tokens(vlp_tape *tape, const vlp_model *model, vlp_tensor *pixels);
vlp_tensor *vlp_model_text_tokens(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens);
/* The first token of each sample, projected and L2-normalised -> [B, E] */
vlp_tensor *vlp_model_image_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens);
vlp_tensor *vlp_model_text_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens);
/* Matching logits of fused states [B, L, D] -> [B, 2] */
vlp_tensor *vlp_model_match(vlp_tape *tape, const vlp_model *model, vlp_tensor *fused);

#endif
