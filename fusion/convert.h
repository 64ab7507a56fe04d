/* Models from one implementation's files to another's. */
#ifndef VLP_FUSION_CONVERT_H
#define VLP_FUSION_CONVERT_H

#include "fusion/model.h"

/* The formats that can be written, NULL-terminated: "hf", "openclip", "openai". */
extern const char *const vlp_convert_formats[];

/* Reads a model folder, or a file of weights with `config` (NULL: the config.json beside it, or,
 * for OpenAI's CLIP, the tensors themselves), and writes the folder `to`: weights, configuration,
 * and the tokenizer's and the preprocessing's files as they are. Numbers keep their bits and their
 * type. VLP_ERR_UNSUPPORTED says what the format cannot hold. */
vlp_status vlp_convert(const char *from, const char *config, const char *to, const char *format);

#endif
