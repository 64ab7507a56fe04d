/* Masking for masked language modelling (Devlin et al., 2019; dynamic as in RoBERTa). */
#ifndef VLP_OBJECTIVES_MLM_H
#define VLP_OBJECTIVES_MLM_H

#include "core/rng.h"
#include "objectives/objective.h"

typedef struct {
    double probability, mask, random;
    bool whole_words;
    int32_t vocab;
    vlp_special_ids special;
    const vlp_tokenizer *tokenizer; /* for whole words; may be NULL otherwise */
} vlp_mlm_masking;

enum { VLP_MLM_MAX_LENGTH = 4096 };

/* How many of `length` tokens are wanted: max(1, round(probability length)). */
int64_t vlp_mlm_budget(const vlp_mlm_masking *masking, int64_t length);
/* The most that can be chosen of a text of `length`: the budget, with whole words at least four. */
int64_t vlp_mlm_most(const vlp_mlm_masking *masking, int64_t length);

/* Chooses max(1, round(probability n)) of the n real, non-special tokens of ids [L], without
 * replacement, and writes masked [L] (80 % [MASK], 10 % a random ordinary token, 10 % unchanged by
 * default) and positions [most], ascending. Returns how many were chosen. Whole words are passed
 * over where they exceed what is left of the budget; if none fits, the shortest is chosen all the
 * same (its first four pieces), so that every text with a word teaches something. */
int64_t vlp_mlm_mask(const vlp_mlm_masking *masking, const int32_t *ids, const uint8_t *mask,
                     int64_t length, vlp_rng *rng, int32_t *masked, int32_t *positions);

/* What the head reads: texts fused with their images, whose keys are given (no fusion stack: the
 * texts alone). images [B] as in vlp_fusion_forward. -> [B, L, D] */
vlp_tensor *vlp_mlm_states(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                           vlp_tensor *const *keys, const int32_t *images);

#endif
