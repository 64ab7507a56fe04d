/* What other implementations call the parameters of a BERT. */
#ifndef VLP_TEXT_BERT_NAMES_H
#define VLP_TEXT_BERT_NAMES_H

#include "core/checkpoint.h"

/* Adds the tables that read `file` into a BERT that was declared under the prefix `ours` ("" or
 * "text."), with its heads beside it: "pooler", the masked language head under "mlm.", the
 * sentence relationship "nsp", "classifier" and the span head "answer". Known are the names of
 * Hugging Face's BertModel, on its own or as "bert." of a larger model; otherwise
 * VLP_ERR_UNSUPPORTED. */
vlp_status vlp_bert_names(vlp_name_map *map, const vlp_safetensors *file, const char *ours);

/* The same file's encoder cut in two: its first `middle` layers, with what is in no layer, below
 * `first`, and the others below `rest`. */
vlp_status vlp_bert_names_split(vlp_name_map *map, const vlp_safetensors *file, const char *first,
                                const char *rest, int64_t middle);

/* The table of the encoder alone, for models that hold BERT's layers first .. end - 1 (with or
 * without cross-attention) under a prefix of their own; what is not in a layer comes with each. */
void vlp_bert_names_layers(vlp_name_map *map, const char *theirs, const char *ours, int64_t first,
                           int64_t end);

/* The rows of self-attention alone: what vlp_bert_declare_shared declares. */
void vlp_bert_names_attention(vlp_name_map *map, const char *theirs, const char *ours);
/* All but those: what such a decoder shares. */
void vlp_bert_names_others(vlp_name_map *map, const char *theirs, const char *ours);
/* The head of a decoder that writes: below `ours`, but its words below `words`: those that it is
 * tied to, or its own. */
void vlp_bert_names_writer(vlp_name_map *map, const char *theirs, const char *ours,
                           const char *words);

#endif
