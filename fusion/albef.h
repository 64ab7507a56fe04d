/* ALBEF's released checkpoints (Li et al., 2021) as a vlp_model: one BERT whose first layers are
 * the text tower and whose last, with cross-attention, are the fusion stack.
 *
 *     vlp_albef_config_read(&config, json, where);
 *     vlp_albef_complete(&config, file);
 *     vlp_model_new_parts(&model, &config, vlp_albef_parts(file));
 *     vlp_albef_names(&map, &config, file, false);
 *     vlp_params_load(model->params, file, map, "objective."); */
#ifndef VLP_FUSION_ALBEF_H
#define VLP_FUSION_ALBEF_H

#include "core/checkpoint.h"
#include "fusion/model.h"

/* Whether config.json holds ALBEF's options: those of its configs/ with its BERT's file under
 * "bert_config" (told by "fusion_layer"). */
bool vlp_albef_is_config(const vlp_json *json);
/* `where` is the file. Without "embed_dim" there is no shared space (embedding 0). */
vlp_status vlp_albef_config_read(vlp_model_config *out, const vlp_json *json, const char *where);

/* Takes out the decoder of answers where the file has none. Of a model that was ours before, says
 * whether what ALBEF adds (types, biases, its temperature) has learnt something since. */
void vlp_albef_complete(vlp_model_config *config, const vlp_safetensors *file);

/* The temperature that stands for a logit_scale, in single precision. */
double vlp_albef_temperature(const vlp_model_config *config, double logit_scale);

/* Whether the file's names are ALBEF's, and which parts (VLP_MODEL_...) are there. */
bool vlp_albef_is_file(const vlp_safetensors *file);
unsigned vlp_albef_parts(const vlp_safetensors *file);

/* Adds the tables that read `file` into a model declared without a prefix and the heads that train
 * it: masked language modelling under "objective.mlm.", visual entailment under "classifier.". Its
 * momentum twin's tensors have the same names behind "objective.momentum."; with `momentum` the
 * two change places. The queues are known and not needed. */
void vlp_albef_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                     bool momentum);
/* The same without a file, for writing one. deep: the text encoder's layers stand behind
 * "text_encoder.bert.", beside its masked language head, as pre-training leaves them; else behind
 * "text_encoder.". */
void vlp_albef_tables(vlp_name_map *map, const vlp_model_config *config, bool deep, bool momentum);
/* The tied weights that pre-training stores a second time; of the twin with `momentum`. */
void vlp_albef_tied(vlp_name_map *map, bool momentum);

#endif
