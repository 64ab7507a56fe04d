/* What the configurations and layouts of ALBEF and BLIP have in common: a ViT of timm's names and a
 * BERT. */
#ifndef VLP_FUSION_OFFICIAL_H
#define VLP_FUSION_OFFICIAL_H

#include "fusion/model.h"

/* A BERT's config.json; two segments where the model has none. */
vlp_json *vlp_bert_json(const vlp_bert_config *config);
/* The image tower's keys; `size_key` is the one of the image's side. */
void vlp_official_vision_json(vlp_json *json, const vlp_vit_config *config, const char *size_key);
/* The same tower as Hugging Face has it; `type` is its model_type. */
vlp_json *vlp_hf_vision_json(const vlp_vit_config *config, const char *type);
/* What a class token's plain ViT and a BERT cannot hold of a model; NULL = nothing. */
const char *vlp_official_vision_misfit(const vlp_model_config *config);

#endif
