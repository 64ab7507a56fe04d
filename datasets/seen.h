/* The places (path and offset) that a run has put into an empty index, so that a new one costs no
 * look-up: a Bloom filter that never calls a known place new, and the ids of about the latest
 * million. 40 MiB, whatever the count; with ten million places 1 of 200 new ones is looked up. */
#ifndef VLP_DATASETS_SEEN_H
#define VLP_DATASETS_SEEN_H

#include "core/hash.h"
#include "core/memory.h"

#include <stdbool.h>
#include <string.h>

enum { VLP_SEEN_BITS = 27, VLP_SEEN_RECENT = 18, VLP_SEEN_WAYS = 4, VLP_SEEN_PROBES = 4 };

typedef struct {
    uint64_t high, low;
    int64_t id; /* 0 = none */
} vlp_seen_place;

typedef struct {
    uint64_t *bits;                          /* [2^27 / 64] */
    vlp_seen_place (*recent)[VLP_SEEN_WAYS]; /* [2^18, 4] the latest first */
} vlp_seen;

static inline vlp_status vlp_seen_open(vlp_seen *seen) {
    seen->bits = vlp_alloc_zero((size_t)1 << (VLP_SEEN_BITS - 6), sizeof *seen->bits);
    if (!seen->bits) return VLP_ERR_MEMORY;
    seen->recent = vlp_alloc_zero((size_t)1 << VLP_SEEN_RECENT, sizeof *seen->recent);
    return seen->recent ? VLP_OK : VLP_ERR_MEMORY;
}

static inline void vlp_seen_close(vlp_seen *seen) {
    vlp_free(seen->bits);
    vlp_free(seen->recent);
    *seen = (vlp_seen){0};
}

static inline vlp_hash vlp_seen_key(const char *path, int64_t offset) {
    return vlp_hash_more(vlp_hash_bytes(&offset, sizeof offset), path, strlen(path));
}

static inline uint64_t vlp_seen_bit(vlp_hash key, int probe) {
    return (key.high + (uint64_t)probe * (key.low | 1)) >> (64 - VLP_SEEN_BITS);
}

static inline vlp_seen_place *vlp_seen_slot(const vlp_seen *seen, vlp_hash key) {
    return seen->recent[key.low >> (64 - VLP_SEEN_RECENT)];
}

/* False: certainly not. */
static inline bool vlp_seen_maybe(const vlp_seen *seen, vlp_hash key) {
    for (int p = 0; p < VLP_SEEN_PROBES; p++) {
        uint64_t bit = vlp_seen_bit(key, p);
        if (!(seen->bits[bit / 64] >> (bit % 64) & 1)) return false;
    }
    return true;
}

/* The id, or 0 when it is not remembered. */
static inline int64_t vlp_seen_id(const vlp_seen *seen, vlp_hash key) {
    const vlp_seen_place *place = vlp_seen_slot(seen, key);
    for (int w = 0; w < VLP_SEEN_WAYS; w++)
        if (place[w].high == key.high && place[w].low == key.low) return place[w].id;
    return 0;
}

static inline void vlp_seen_add(vlp_seen *seen, vlp_hash key, int64_t id) {
    for (int p = 0; p < VLP_SEEN_PROBES; p++) {
        uint64_t bit = vlp_seen_bit(key, p);
        seen->bits[bit / 64] |= (uint64_t)1 << (bit % 64);
    }
    vlp_seen_place *place = vlp_seen_slot(seen, key);
    memmove(place + 1, place, (VLP_SEEN_WAYS - 1) * sizeof *place);
    *place = (vlp_seen_place){key.high, key.low, id};
}

#endif
