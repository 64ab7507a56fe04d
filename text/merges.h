/* Byte-pair merges over counted words (Sennrich et al., 2016, arXiv:1508.07909): which adjacent
 * pair of symbols is most frequent, and what the words look like once it is one symbol. Pair counts
 * are kept up to date, so a merge costs the words that contain it. */
#ifndef VLP_TEXT_MERGES_H
#define VLP_TEXT_MERGES_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct vlp_merges vlp_merges;

vlp_status vlp_merges_new(vlp_merges **out);
void vlp_merges_free(vlp_merges *merges);

/* A word of n symbols (ids >= 0) that occurs `count` times. All words before the first merge. */
vlp_status vlp_merges_add_word(vlp_merges *merges, const int32_t *symbols, int32_t n,
                               int64_t count);

/* The most frequent pair of at least min_count, of equals the one with the smaller left and then
 * right id; false in *found when there is none left. */
vlp_status vlp_merges_best(vlp_merges *merges, int64_t min_count, int32_t *left, int32_t *right,
                           bool *found);
/* Replaces the pair by `symbol` in every word, from the left. */
vlp_status vlp_merges_apply(vlp_merges *merges, int32_t left, int32_t right, int32_t symbol);

#endif
