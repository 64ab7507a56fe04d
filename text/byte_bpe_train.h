/* Training byte-level byte-pair encoding from text (Radford et al., 2019): pieces cut as GPT-2 cuts
 * them, the 256 bytes as alphabet, then the most frequent pairs merged until the vocabulary is
 * full, as Hugging Face's ByteLevelBPETokenizer.train does. The tokenizer is RoBERTa's kind. The
 * result depends on the texts alone, not on their order. Used as vlp_wordpiece_trainer is. */
#ifndef VLP_TEXT_BYTE_BPE_TRAIN_H
#define VLP_TEXT_BYTE_BPE_TRAIN_H

#include "text/tokenizer.h"

typedef struct {
    int32_t vocab_size;    /* at most; with <s> <pad> </s> <unk> <mask> as ids 0 to 4 */
    int32_t min_frequency; /* of a pair that is merged; 0 = 2 */
} vlp_byte_bpe_train_options;

typedef struct vlp_byte_bpe_trainer vlp_byte_bpe_trainer;

/* VLP_ERR_USAGE when vocab_size cannot hold the special tokens and the bytes. */
vlp_status vlp_byte_bpe_trainer_new(vlp_byte_bpe_trainer **out,
                                    const vlp_byte_bpe_train_options *options);
void vlp_byte_bpe_trainer_free(vlp_byte_bpe_trainer *trainer);

/* Counts the pieces of one text; pieces of more than 1000 bytes are left out. */
vlp_status vlp_byte_bpe_trainer_add(vlp_byte_bpe_trainer *trainer, const char *text, size_t len);

/* Fails with VLP_ERR_USAGE when there was no text. */
vlp_status vlp_byte_bpe_trainer_finish(vlp_byte_bpe_trainer *trainer, vlp_tokenizer **out);

#endif
