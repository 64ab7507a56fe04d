/* Byte-pair encoding over bytes: GPT-2 and RoBERTa (Radford et al., 2019), and CLIP's (Radford et
 * al., 2021, arXiv:2103.00020), whose text is cleaned and whose words end with </w>. Private to
 * text/. */
#ifndef VLP_TEXT_BYTE_BPE_H
#define VLP_TEXT_BYTE_BPE_H

#include "text/bpe.h"
#include "text/clip_clean.h"
#include "text/tokenizer_kind.h"

typedef struct {
    vlp_tokenizer base;
    vlp_bpe bpe;
    int32_t bytes[256], ends[256]; /* symbols of a byte, and of one that ends a word (CLIP) */
    vlp_clip_clean clean;          /* CLIP's */
    vlp_buf merges;                /* the lines of merges.txt, for saving */
    int32_t merge_count;
} vlp_byte_bpe;

vlp_status vlp_byte_bpe_new(vlp_byte_bpe **out);

/* The next merge; all three symbols must be in the vocabulary, without saying where otherwise. */
vlp_status vlp_byte_bpe_merge(vlp_byte_bpe *b, const char *left, size_t left_len, const char *right,
                              size_t right_len);
/* After vocabulary and merges: the kind (CLIP's when the vocabulary has <|startoftext|>), the
 * bytes' symbols, the special tokens by the names given or the kind's own, and the templates. */
vlp_status vlp_byte_bpe_finish(vlp_byte_bpe *b, const char *const names[VLP_SPECIAL_COUNT]);

/* byte_bpe_files.c */
vlp_status vlp_byte_bpe_save(const vlp_tokenizer *tokenizer, const char *folder);

#endif
