/* A set of row ids: one bit an id, grows by doubling. */
#ifndef VLP_DATASETS_BITSET_H
#define VLP_DATASETS_BITSET_H

#include "core/memory.h"

#include <stdbool.h>
#include <string.h>

typedef struct {
    uint64_t *words;
    int64_t count;
} vlp_bitset;

static inline bool vlp_bitset_has(const vlp_bitset *set, int64_t id) {
    return id / 64 < set->count && (set->words[id / 64] >> (id % 64) & 1);
}

static inline vlp_status vlp_bitset_add(vlp_bitset *set, int64_t id) {
    if (id / 64 >= set->count) {
        int64_t count = id / 32 + 64;
        uint64_t *words = vlp_realloc(set->words, (size_t)count * sizeof *words);
        if (!words) return VLP_ERR_MEMORY;
        memset(words + set->count, 0, (size_t)(count - set->count) * sizeof *words);
        *set = (vlp_bitset){words, count};
    }
    set->words[id / 64] |= (uint64_t)1 << (id % 64);
    return VLP_OK;
}

static inline void vlp_bitset_free(vlp_bitset *set) {
    vlp_free(set->words);
    *set = (vlp_bitset){0};
}

#endif
