/* BLIP (Li et al., 2022): its checkpoints, in the official layout and in Hugging Face's. A model
 * for matching and retrieval, for captions, for questions, or all of pre-training; which of them a
 * file holds is seen from its tensors. */
#ifndef VLP_FUSION_BLIP_H
#define VLP_FUSION_BLIP_H

#include "core/checkpoint.h"
#include "fusion/model.h"

/* Whether config.json is BLIP's: "model_type": "blip", or the official options with its BERT's file
 * under "bert_config" (ALBEF's, which have that too, are asked for first). */
bool vlp_blip_is_config(const vlp_json *json);
/* Sizes of everything that such a model can have; `where` is the file. */
vlp_status vlp_blip_config_read(vlp_model_config *out, const vlp_json *json, const char *where);

bool vlp_blip_is_file(const vlp_safetensors *file);
/* Which of the configuration's towers and decoders the file holds, and what they share: only the
 * tensors say so. */
void vlp_blip_complete(vlp_model_config *config, const vlp_safetensors *file);
unsigned vlp_blip_parts(const vlp_safetensors *file); /* VLP_MODEL_... */

/* Adds the tables that read `file` into a model declared without a prefix. The momentum twin's
 * names are the same behind "objective.momentum."; with `momentum` the two change places. The
 * queues are known, and not needed. */
void vlp_blip_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                    bool momentum);

/* For writing: the model in the official names or Hugging Face's; its momentum twin as a copy of
 * it; what is stored a second time, the head's tied weights and what the decoder shares. */
void vlp_blip_tables(vlp_name_map *map, const vlp_model_config *config, bool hf);
void vlp_blip_twin(vlp_name_map *map);
void vlp_blip_tied(vlp_name_map *map, const vlp_model_config *config);
void vlp_blip_shared(vlp_name_map *map);

#endif
