/* Sizes and options of a BERT from the configuration file that its users have. */
#ifndef VLP_TEXT_BERT_CONFIG_H
#define VLP_TEXT_BERT_CONFIG_H

#include "core/json.h"
#include "text/bert.h"

/* config.json of Hugging Face's BERT; keys of other parts of a model are passed over. `where` is
 * the file. VLP_ERR_UNSUPPORTED for an unknown activation (the message lists the known ones),
 * relative positions or a decoder. */
vlp_status vlp_bert_config_read(vlp_bert_config *out, const vlp_json *json, const char *where);

#endif
