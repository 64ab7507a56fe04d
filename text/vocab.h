/* A vocabulary: tokens by id, and a byte trie from text to ids. */
#ifndef VLP_TEXT_VOCAB_H
#define VLP_TEXT_VOCAB_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct {
    vlp_buf bytes;     /* the tokens, each NUL-terminated */
    uint32_t *offsets; /* [size] into bytes */
    int32_t size, cap;

    /* The trie's edges in one open hash: slot = (node << 8 | byte) << 32 | child; 0 = free, since
     * no edge leads to the root, node 0. */
    uint64_t *slots;
    uint32_t slot_bits;
    int32_t *ids; /* [nodes] the token that ends at the node, or -1 */
    uint32_t nodes, node_cap;
} vlp_vocab;

vlp_status
vlp_vocab_init(vlp_vocab *vocab); /* all zero before; freed by vlp_vocab_free on failure */
void vlp_vocab_free(vlp_vocab *vocab);

/* The token gets the next id. A token twice, an empty one, one with a NUL or malformed UTF-8 is
 * VLP_ERR_FORMAT, without saying where: callers put file and line in front. */
vlp_status vlp_vocab_add(vlp_vocab *vocab, const char *token, size_t len);

const char *vlp_vocab_token(const vlp_vocab *vocab, int32_t id);               /* id in range */
int32_t vlp_vocab_find(const vlp_vocab *vocab, const char *token, size_t len); /* or -1 */

/* The node one byte below `node`; 0 (the root) when there is none. */
static inline uint32_t vlp_vocab_step(const vlp_vocab *vocab, uint32_t node, uint8_t byte) {
    uint32_t key = node << 8 | byte, mask = (1u << vocab->slot_bits) - 1;
    for (uint32_t at = (key * 0x9E3779B1u) >> (32 - vocab->slot_bits);; at = (at + 1) & mask) {
        uint64_t slot = vocab->slots[at];
        if (slot == 0) return 0;
        if (slot >> 32 == key) return (uint32_t)slot;
    }
}

#endif
