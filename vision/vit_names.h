/* What other implementations call the parameters of a ViT. */
#ifndef VLP_VISION_VIT_NAMES_H
#define VLP_VISION_VIT_NAMES_H

#include "core/checkpoint.h"

/* Adds the tables that read `file` into a ViT that was declared under the prefix `ours` ("" or
 * "vision."), with a pooler ("pooler") and a classifier ("classifier") beside it where the file has
 * them. Known are timm (also ALBEF, BLIP, MAE) and Hugging Face, each on its own or inside a larger
 * model; otherwise VLP_ERR_UNSUPPORTED. */
vlp_status vlp_vit_names(vlp_name_map *map, const vlp_safetensors *file, const char *ours);

/* timm's or Hugging Face's table alone, for models that hold a ViT under a prefix of their own. */
void vlp_vit_names_timm(vlp_name_map *map, const char *theirs, const char *ours);
void vlp_vit_names_hf(vlp_name_map *map, const char *theirs, const char *ours);

/* For a row's `convert`: positions learned at another image size, as open_clip resamples them. */
vlp_status vlp_vit_resample_smooth(const vlp_safetensor *theirs, const vlp_tensor *ours,
                                   vlp_real *out);

#endif
