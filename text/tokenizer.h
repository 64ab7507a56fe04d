/* Tokenizers: UTF-8 text to ids and back. A tokenizer is immutable after opening and may be shared
 * by threads; encoding allocates nothing.
 *
 *     vlp_tokenizer *tokenizer;
 *     VLP_TRY(vlp_tokenizer_open(&tokenizer, "model/"));
 *     int n = vlp_tokenizer_encode(tokenizer, text, strlen(text), true, ids, 64);
 *     vlp_tokenizer_free(tokenizer);
 */
#ifndef VLP_TEXT_TOKENIZER_H
#define VLP_TEXT_TOKENIZER_H

#include "core/hash.h"
#include "core/json.h"
#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct vlp_tokenizer vlp_tokenizer;

/* Ids of the special tokens; -1 where the kind or the vocabulary has none. cls and sep are what
 * stands around a text: for CLIP they are <|startoftext|> and <|endoftext|>, which are bos and eos
 * too. */
typedef struct {
    int32_t pad, unk, cls, sep, mask, bos, eos;
} vlp_special_ids;

/* Opens a model folder's tokenizer in Hugging Face layout, or one of these files. The first that is
 * there decides:
 *     vocab.txt                                  WordPiece (BERT)
 *     vocab.json, merges.txt                     byte-level BPE (GPT-2, RoBERTa) or CLIP's BPE
 *     encoder.json, vocab.bpe                    the same under OpenAI's names
 *     spiece.model                               SentencePiece, unigram or BPE (T5, SigLIP, ALBERT,
 *                                                XLNet, LLaMA)
 *     tokenizer.json                             all of these but SigLIP, ALBERT and XLNet
 *     tokenizer.model                            SentencePiece (LLaMA)
 *     bpe_simple_vocab_16e6.txt or .txt.gz       CLIP's BPE as OpenAI published it
 * tokenizer_config.json and added_tokens.json beside them are read. Errors name the file and the
 * line or key. */
vlp_status vlp_tokenizer_open(vlp_tokenizer **out, const char *path);
bool vlp_tokenizer_in_folder(const char *folder); /* whether one of them is there */
void vlp_tokenizer_free(vlp_tokenizer *tokenizer);

/* Writes what open reads into folder (made if absent): the vocabulary's files with
 * tokenizer_config.json, or the tokenizer.json that it came from. */
vlp_status vlp_tokenizer_save(const vlp_tokenizer *tokenizer, const char *folder);

const char *vlp_tokenizer_kind_name(const vlp_tokenizer *tokenizer); /* "wordpiece", "clip_bpe" */

/* Of the kind and all tokens in order: weights belong to one such list. */
vlp_hash vlp_tokenizer_hash(const vlp_tokenizer *tokenizer);
/* Writes that hash into a model's config.json, as "tokenizer_hash". Opening a folder whose
 * config.json has another one is VLP_ERR_FORMAT: the same words would get other ids. */
void vlp_tokenizer_mark(const vlp_tokenizer *tokenizer, vlp_json *config);

int32_t vlp_tokenizer_size(const vlp_tokenizer *tokenizer);
vlp_special_ids vlp_tokenizer_special(const vlp_tokenizer *tokenizer);
const char *vlp_tokenizer_token(const vlp_tokenizer *tokenizer,
                                int32_t id); /* borrowed; NULL out of range */
int32_t vlp_tokenizer_find(const vlp_tokenizer *tokenizer, const char *token); /* its id, or -1 */
/* Whether the token continues a word ("##ing"): whole-word masking masks it with its head. */
bool vlp_tokenizer_continues_word(const vlp_tokenizer *tokenizer, int32_t id);

/* text [len] bytes -> at most `max` ids, written as [CLS] ... [SEP] or as the kind has it when
 * `special` (max >= 2 then; each is left out where the vocabulary has none), truncated at the right
 * so that [SEP] stays. Returns how many were written. WordPiece and CLIP drop malformed UTF-8 and
 * NUL, byte-level BPE keeps every byte; CLIP reads the first 64 KiB. "[MASK]" and the like in the
 * text become the special tokens, as in Hugging Face's. */
int vlp_tokenizer_encode(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool special,
                         int32_t *ids, int max);

/* Without [CLS] and [SEP], and special tokens in the text are ordinary text, as in Google's BERT.
 * SentencePiece: as the model alone reads the text, whatever its class does beforehand. */
int vlp_tokenizer_encode_literal(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int32_t *ids, int max);

/* The same as encode with `special`, then padded to exactly `length` ids; mask[i] = 1 for real
 * tokens. mask may be NULL. */
void vlp_tokenizer_encode_padded(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int length, int32_t *ids, uint8_t *mask);

/* Which text of a pair gives tokens up when both do not fit. */
typedef enum {
    VLP_TRUNCATE_LONGEST, /* token by token from the longer, the second when equal */
    VLP_TRUNCATE_FIRST,
    VLP_TRUNCATE_SECOND,
} vlp_truncate;

typedef struct {
    const char *text;
    size_t len;
} vlp_text;

/* [CLS] first [SEP] second [SEP] in at most `max` >= 4 ids; types[i] = 0 up to the first [SEP],
 * then 1; types may be NULL. [CLS] and [SEP] are left out where the vocabulary has none; RoBERTa
 * has two [SEP] in the middle and only type 0. Returns
 * how many ids; -1, with nothing meaningful written, when the text that `truncate` names would have
 * to vanish and the other does not fit. */
int vlp_tokenizer_encode_pair(const vlp_tokenizer *tokenizer, vlp_text first, vlp_text second,
                              vlp_truncate truncate, int32_t *ids, uint8_t *types, int max);

/* Appends the text of ids; `skip_special` leaves [CLS], [SEP], [PAD] and the like out. Spaces
 * before punctuation and English contractions are cleaned up as Hugging Face does. An id out of
 * range is VLP_ERR_USAGE. */
vlp_status vlp_tokenizer_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                bool skip_special, vlp_buf *out);

#endif
