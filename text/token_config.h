/* tokenizer_config.json, special_tokens_map.json and added_tokens.json: what the files of a slow
 * Hugging Face tokenizer have in common. Private to text/. */
#ifndef VLP_TEXT_TOKEN_CONFIG_H
#define VLP_TEXT_TOKEN_CONFIG_H

#include "text/tokenizer_kind.h"

/* *out = NULL when the folder has no tokenizer_config.json; *path names it. */
vlp_status vlp_token_config_open(vlp_json **out, const char *folder, vlp_buf *path);

/* Absent or null keeps *value. */
vlp_status vlp_token_config_bool(const vlp_json *config, const char *where, const char *key,
                                 bool *value);
/* The special tokens' names, in the order of vlp_special_ids; what is absent or null stays. A token
 * is written as a string or as {"content": string, ...}. They are borrowed from config. */
vlp_status vlp_token_config_names(const vlp_json *config, const char *where,
                                  const char *names[VLP_SPECIAL_COUNT]);
/* The tokens of {"token": id} by id, borrowed from it; the list is the caller's to free. */
vlp_status vlp_token_names(const vlp_json *tokens, const char ***names, int64_t *count);
/* Adds the tokens of {"token": id}, whose ids are 0 to n - 1. */
vlp_status vlp_token_vocabulary(vlp_vocab *vocab, const vlp_json *tokens);
/* lstrip, rstrip of a token that is written as an object. */
vlp_added_token vlp_token_config_added(const vlp_json *token, int32_t id);

/* added_tokens.json, {"token": id}: ids that follow the vocabulary's, without holes. Sets own_size,
 * also where there is no such file. */
vlp_status vlp_added_tokens_open(vlp_tokenizer *tokenizer, const char *folder);

/* The special tokens that there are, by their keys. */
void vlp_token_config_set_specials(vlp_json *object, const vlp_tokenizer *tokenizer);
/* Writes config as tokenizer_config.json, special_tokens_map.json and, where tokens were added,
 * added_tokens.json; frees config. */
vlp_status vlp_token_config_save(const vlp_tokenizer *tokenizer, vlp_json *config,
                                 const char *folder);

#endif
