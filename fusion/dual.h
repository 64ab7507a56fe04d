/* Hugging Face's VisionTextDualEncoderModel, as far as it is one of our models: written by vlp. Its
 * others read their towers through poolers that our models do not have. */
#ifndef VLP_FUSION_DUAL_H
#define VLP_FUSION_DUAL_H

#include "fusion/model.h"

#define vlp_dual_type "vision-text-dual-encoder"

/* Whether the file's poolers pass on what they are given. */
bool vlp_dual_is_file(const vlp_safetensors *file);
void vlp_dual_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                    bool momentum);

#endif
