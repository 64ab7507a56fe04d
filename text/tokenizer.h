/* Tokenizers: UTF-8 text to ids and back. A tokenizer is immutable after opening and may be shared
 * by threads; encoding allocates nothing once a thread's scratch is warm. */
#ifndef VLP_TEXT_TOKENIZER_H
#define VLP_TEXT_TOKENIZER_H

#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct vlp_tokenizer vlp_tokenizer;

/* Ids of the special tokens; -1 where the kind has none. */
typedef struct {
    int32_t pad, unk, cls, sep, mask;
} vlp_special_ids;

/* Opens a model folder's tokenizer (vocab.txt and tokenizer_config.json in Hugging Face layout) or a
 * bare vocab.txt. */
vlp_status vlp_tokenizer_open(vlp_tokenizer **out, const char *path);
void vlp_tokenizer_free(vlp_tokenizer *tokenizer);

/* Writes vocab.txt, tokenizer_config.json and special_tokens_map.json into folder. */
vlp_status vlp_tokenizer_save(const vlp_tokenizer *tokenizer, const char *folder);

int32_t vlp_tokenizer_size(const vlp_tokenizer *tokenizer);
vlp_special_ids vlp_tokenizer_special(const vlp_tokenizer *tokenizer);
const char *vlp_tokenizer_token(const vlp_tokenizer *tokenizer, int32_t id); /* borrowed; NULL out of range */
/* Whether the token continues a word ("##ing"): whole-word masking masks it with its head. */
bool vlp_tokenizer_continues_word(const vlp_tokenizer *tokenizer, int32_t id);

/* text [len] bytes -> at most `max` ids, written as [CLS] ... [SEP] when `special`, truncated at the
 * right so that [SEP] stays. Returns how many were written. Malformed UTF-8 and NUL are dropped. */
int vlp_tokenizer_encode(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool special,
                         int32_t *ids, int max);

/* The same, then padded to exactly `length` ids; mask[i] = 1 for real tokens. mask may be NULL. */
void vlp_tokenizer_encode_padded(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int length, int32_t *ids, uint8_t *mask);

/* Appends the text of ids; `skip_special` leaves [CLS], [SEP], [PAD] and the like out. */
vlp_status vlp_tokenizer_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                bool skip_special, vlp_buf *out);

#endif
