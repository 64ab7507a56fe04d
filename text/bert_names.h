/* What other implementations call the parameters of a BERT. */
#ifndef VLP_TEXT_BERT_NAMES_H
#define VLP_TEXT_BERT_NAMES_H

#include "core/checkpoint.h"

/* Adds the tables that read `file` into a BERT that was declared under the prefix `ours` ("" or
 * "text."), with its heads beside it: "pooler", the masked language head under "mlm." and the
 * sentence relationship "nsp". Known are the names of Hugging Face's BertModel, on its own or as
 * "bert." of a larger model; otherwise VLP_ERR_UNSUPPORTED. */
vlp_status vlp_bert_names(vlp_name_map *map, const vlp_safetensors *file, const char *ours);

#endif
