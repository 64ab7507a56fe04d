#include "text/vocab.h"

#include "text/unicode.h"

#include <string.h>

#define MAX_NODES (1u << 24) /* (node << 8 | byte) is 32 bits */

static vlp_status resize_slots(vlp_vocab *vocab, uint32_t bits) {
    uint64_t *old = vocab->slots;
    size_t count = old ? (size_t)1 << vocab->slot_bits : 0;
    uint64_t *slots = vlp_alloc_zero((size_t)1 << bits, sizeof *slots);
    if (!slots) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!old[i]) continue;
        uint32_t at = ((uint32_t)(old[i] >> 32) * 0x9E3779B1u) >> (32 - bits);
        while (slots[at]) at = (at + 1) & ((1u << bits) - 1);
        slots[at] = old[i];
    }
    vlp_free(old);
    vocab->slots = slots;
    vocab->slot_bits = bits;
    return VLP_OK;
}

static vlp_status new_node(vlp_vocab *vocab) {
    if (vocab->nodes == MAX_NODES)
        return VLP_FAIL(VLP_ERR_LIMIT, "the vocabulary's tokens exceed %u distinct prefixes",
                        MAX_NODES);
    if (vocab->nodes == vocab->node_cap) {
        uint32_t cap = vocab->node_cap ? 2 * vocab->node_cap : 1024;
        int32_t *ids = vlp_realloc(vocab->ids, cap * sizeof *ids);
        if (!ids) return VLP_ERR_MEMORY;
        vocab->ids = ids;
        vocab->node_cap = cap;
    }
    vocab->ids[vocab->nodes++] = -1;
    return VLP_OK;
}

vlp_status vlp_vocab_init(vlp_vocab *vocab) {
    VLP_TRY(resize_slots(vocab, 10));
    return new_node(vocab);
}

void vlp_vocab_free(vlp_vocab *vocab) {
    vlp_buf_free(&vocab->bytes);
    vlp_free(vocab->offsets);
    vlp_free(vocab->slots);
    vlp_free(vocab->ids);
    *vocab = (vlp_vocab){0};
}

static vlp_status add_edge(vlp_vocab *vocab, uint32_t node, uint8_t byte, uint32_t *child) {
    if (vocab->nodes > 1u << (vocab->slot_bits - 1))
        VLP_TRY(resize_slots(vocab, vocab->slot_bits + 1));
    uint32_t key = node << 8 | byte, mask = (1u << vocab->slot_bits) - 1;
    *child = vocab->nodes;
    VLP_TRY(new_node(vocab));
    uint32_t at = (key * 0x9E3779B1u) >> (32 - vocab->slot_bits);
    while (vocab->slots[at]) at = (at + 1) & mask;
    vocab->slots[at] = (uint64_t)key << 32 | *child;
    return VLP_OK;
}

static vlp_status reserve(vlp_vocab *vocab, size_t len) {
    if (vocab->size == INT32_MAX / 2 || vocab->bytes.len + len >= UINT32_MAX)
        return VLP_FAIL(VLP_ERR_LIMIT, "the vocabulary is too large");
    VLP_TRY(vlp_buf_reserve(&vocab->bytes, len + 1));
    if (vocab->size < vocab->cap) return VLP_OK;
    int32_t cap = vocab->cap ? 2 * vocab->cap : 256;
    uint32_t *offsets = vlp_realloc(vocab->offsets, (size_t)cap * sizeof *offsets);
    if (!offsets) return VLP_ERR_MEMORY;
    vocab->offsets = offsets;
    vocab->cap = cap;
    return VLP_OK;
}

vlp_status vlp_vocab_add(vlp_vocab *vocab, const char *token, size_t len) {
    if (len == 0) return VLP_FAIL(VLP_ERR_FORMAT, "empty token");
    if (memchr(token, 0, len)) return VLP_FAIL(VLP_ERR_FORMAT, "a token with a NUL byte");
    if (!vlp_utf8_valid(token, len)) return VLP_FAIL(VLP_ERR_FORMAT, "not valid UTF-8");
    VLP_TRY(reserve(vocab, len));
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t child = vlp_vocab_step(vocab, node, (uint8_t)token[i]);
        if (!child) VLP_TRY(add_edge(vocab, node, (uint8_t)token[i], &child));
        node = child;
    }
    if (vocab->ids[node] >= 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "token \"%.*s\" occurs twice, first as id %d", (int)len,
                        token, vocab->ids[node]);
    vocab->ids[node] = vocab->size;
    vocab->offsets[vocab->size++] = (uint32_t)vocab->bytes.len;
    VLP_TRY(vlp_buf_append(&vocab->bytes, token, len));
    return vlp_buf_append(&vocab->bytes, "", 1);
}

const char *vlp_vocab_token(const vlp_vocab *vocab, int32_t id) {
    return vocab->bytes.data + vocab->offsets[id];
}

int32_t vlp_vocab_find(const vlp_vocab *vocab, const char *token, size_t len) {
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++)
        if (!(node = vlp_vocab_step(vocab, node, (uint8_t)token[i]))) return -1;
    return vocab->ids[node];
}
