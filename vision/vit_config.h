/* Sizes and options of a ViT from the configuration files that its users have. */
#ifndef VLP_VISION_VIT_CONFIG_H
#define VLP_VISION_VIT_CONFIG_H

#include "core/json.h"
#include "vision/vit.h"

/* Either config.json of Hugging Face's ViT (told by "hidden_size" or "model_type"), or the
 * constructor's keys of timm and of ALBEF, BLIP and MAE ("embed_dim" or "vision_width"). Keys of
 * other parts of a model are passed over. `where` is the file. VLP_ERR_UNSUPPORTED for an unknown
 * activation (the message lists the known ones) or patches that are not square. */
vlp_status vlp_vit_config_read(vlp_vit_config *out, const vlp_json *json, const char *where);

#endif
