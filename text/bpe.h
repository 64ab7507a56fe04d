/* Byte-pair encoding of one word (Sennrich et al., 2016, arXiv:1508.07909): ranked pairs of symbols
 * and the symbol that each becomes. Private to text/. */
#ifndef VLP_TEXT_BPE_H
#define VLP_TEXT_BPE_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct {
    uint64_t key; /* left << 32 | right */
    int32_t rank, merged;
} vlp_bpe_pair;

/* {0} is empty and valid. */
typedef struct {
    vlp_bpe_pair *slots; /* open hash; rank -1 = free */
    size_t slot_count, size;
} vlp_bpe;

void vlp_bpe_free(vlp_bpe *bpe);
/* Ranks in rising order; a pair that is there already keeps the later rank. */
vlp_status vlp_bpe_add(vlp_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t merged);

/* Merges the pair of the lowest rank everywhere, from the left, until none is left. symbols [n];
 * ranks [n] is working memory. Returns how many symbols remain. Negative symbols never merge. */
int vlp_bpe_merge(const vlp_bpe *bpe, int32_t *symbols, int32_t *ranks, int n);

/* The byte alphabet of GPT-2 (Radford et al., 2019): every byte has a visible character; printable
 * Latin-1 its own, the others follow from U+0100. */
uint32_t vlp_byte_char(uint8_t byte);
int vlp_char_byte(uint32_t code); /* or -1 */

#endif
