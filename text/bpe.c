#include "text/bpe.h"

#include <limits.h>

enum { NONE = INT_MAX, STALE = INT_MIN };

void vlp_bpe_free(vlp_bpe *bpe) {
    vlp_free(bpe->slots);
    *bpe = (vlp_bpe){0};
}

static size_t slot_of(const vlp_bpe *bpe, uint64_t key) {
    size_t mask = bpe->slot_count - 1;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (bpe->slots[at].rank >= 0 && bpe->slots[at].key != key) at = (at + 1) & mask;
    return at;
}

static vlp_status grow(vlp_bpe *bpe) {
    vlp_bpe old = *bpe;
    size_t count = old.slot_count ? 2 * old.slot_count : 1024;
    vlp_bpe_pair *slots = vlp_alloc_zero(count, sizeof *slots);
    if (!slots) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) slots[i].rank = -1;
    bpe->slots = slots;
    bpe->slot_count = count;
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].rank >= 0) slots[slot_of(bpe, old.slots[i].key)] = old.slots[i];
    vlp_free(old.slots);
    return VLP_OK;
}

static uint64_t key_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

vlp_status vlp_bpe_add(vlp_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t merged) {
    if (2 * (bpe->size + 1) > bpe->slot_count) VLP_TRY(grow(bpe));
    uint64_t key = key_of(left, right);
    size_t at = slot_of(bpe, key);
    bpe->size += bpe->slots[at].rank < 0;
    bpe->slots[at] = (vlp_bpe_pair){key, rank, merged};
    return VLP_OK;
}

static const vlp_bpe_pair *find(const vlp_bpe *bpe, int32_t left, int32_t right) {
    if (!bpe->size || left < 0 || right < 0) return NULL;
    const vlp_bpe_pair *pair = &bpe->slots[slot_of(bpe, key_of(left, right))];
    return pair->rank >= 0 ? pair : NULL;
}

static int rank_of(const vlp_bpe *bpe, int32_t left, int32_t right) {
    const vlp_bpe_pair *pair = find(bpe, left, right);
    return pair ? pair->rank : NONE;
}

/* ranks[i] is that of symbols i and i + 1, which is all that a round has to look at. */
static int merge_rank(const vlp_bpe *bpe, int32_t *symbols, int32_t *ranks, int n, int rank) {
    int kept = 0;
    for (int i = 0; i < n; kept++) {
        bool merge = ranks[i] == rank;
        symbols[kept] = merge ? find(bpe, symbols[i], symbols[i + 1])->merged : symbols[i];
        ranks[kept] = merge ? STALE : ranks[i];
        if (merge && kept > 0) ranks[kept - 1] = STALE;
        i += 1 + merge;
    }
    ranks[kept - 1] = NONE;
    for (int i = 0; i + 1 < kept; i++)
        if (ranks[i] == STALE) ranks[i] = rank_of(bpe, symbols[i], symbols[i + 1]);
    return kept;
}

int vlp_bpe_merge(const vlp_bpe *bpe, int32_t *symbols, int32_t *ranks, int n) {
    for (int i = 0; i < n; i++)
        ranks[i] = i + 1 < n ? rank_of(bpe, symbols[i], symbols[i + 1]) : NONE;
    for (;;) {
        int best = NONE;
        for (int i = 0; i < n; i++)
            if (ranks[i] < best) best = ranks[i];
        if (best == NONE) return n;
        n = merge_rank(bpe, symbols, ranks, n, best);
    }
}

static bool is_visible(uint32_t byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint32_t vlp_byte_char(uint8_t byte) {
    if (is_visible(byte)) return byte;
    uint32_t before = 0;
    for (uint32_t b = 0; b < byte; b++) before += !is_visible(b);
    return 256 + before;
}

int vlp_char_byte(uint32_t code) {
    if (code < 256) return is_visible(code) ? (int)code : -1;
    uint32_t left = code - 256;
    for (int b = 0; b < 256; b++)
        if (!is_visible((uint32_t)b) && left-- == 0) return b;
    return -1;
}
