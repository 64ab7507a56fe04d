/* The parts of reading a tokenizer.json. Private to text/. */
#ifndef VLP_TEXT_TOKENIZER_JSON_H
#define VLP_TEXT_TOKENIZER_JSON_H

#include "text/tokenizer_kind.h"

/* "part: what is not supported", with what is. */
vlp_status vlp_json_refuse(const char *part, const char *what);
/* Refuses keys of another type than the one that is read, by file and key. */
vlp_status vlp_tokenizer_json_types(const vlp_json *json, const char *file);
/* The list "added_tokens". */
vlp_status vlp_json_add_tokens(vlp_tokenizer *t, const vlp_json *tokens);

/* SentencePiece models as this format writes them: scored pieces (T5), and BPE with bytes for what
 * is unknown (LLaMA). *out is set early, for the caller to free on failure. */
vlp_status vlp_json_unigram(vlp_tokenizer **out, const vlp_json *json,
                            const char *names[VLP_SPECIAL_COUNT]);
vlp_status vlp_json_scored_bpe(vlp_tokenizer **out, const vlp_json *json,
                               const char *names[VLP_SPECIAL_COUNT]);

#endif
