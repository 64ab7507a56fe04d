#include "objectives/mlm.h"

#include <math.h>
#include <string.h>

enum { MAX_LENGTH = VLP_MLM_MAX_LENGTH, WORD = 4 };

int64_t vlp_mlm_budget(const vlp_mlm_masking *m, int64_t length) {
    int64_t n = llround(m->probability * (double)length);
    return n < 1 ? 1 : n;
}

int64_t vlp_mlm_most(const vlp_mlm_masking *m, int64_t length) {
    int64_t budget = vlp_mlm_budget(m, length);
    return m->whole_words && budget < WORD ? WORD : budget;
}

static bool ordinary(const vlp_mlm_masking *m, int32_t id) {
    const vlp_special_ids *s = &m->special;
    return id != s->pad && id != s->cls && id != s->sep && id != s->mask;
}

/* Units are words (or single tokens): start[i] is the first token of unit i in `tokens`. */
typedef struct {
    int32_t tokens[MAX_LENGTH], start[MAX_LENGTH + 1], order[MAX_LENGTH];
    int32_t n_tokens, n_units;
} units;

static void split(const vlp_mlm_masking *m, const int32_t *ids, const uint8_t *mask, int64_t length,
                  units *u) {
    u->n_tokens = u->n_units = 0;
    for (int64_t i = 0; i < length; i++) {
        if ((mask && !mask[i]) || !ordinary(m, ids[i])) continue;
        bool joined = m->whole_words && u->n_units > 0 && u->tokens[u->n_tokens - 1] == i - 1 &&
                      vlp_tokenizer_continues_word(m->tokenizer, ids[i]);
        if (!joined) u->start[u->n_units++] = u->n_tokens;
        u->tokens[u->n_tokens++] = (int32_t)i;
    }
    u->start[u->n_units] = u->n_tokens;
}

static int32_t random_token(const vlp_mlm_masking *m, vlp_rng *rng) {
    for (int tries = 0; tries < 64; tries++) {
        int32_t id = (int32_t)vlp_rng_below(rng, (uint64_t)m->vocab);
        if (ordinary(m, id)) return id;
    }
    return m->special.mask;
}

static void corrupt(const vlp_mlm_masking *m, int32_t *id, vlp_rng *rng) {
    double u = vlp_rng_double(rng);
    if (u < m->mask)
        *id = m->special.mask;
    else if (u < m->mask + m->random)
        *id = random_token(m, rng);
}

/* Marks whole units in random order until the budget is met, passing over units that exceed it. */
static int64_t choose(units *u, int64_t budget, vlp_rng *rng, uint8_t *chosen) {
    int64_t count = 0;
    for (int32_t i = 0; i < u->n_units; i++) u->order[i] = i;
    for (int32_t i = 0; i < u->n_units && count < budget; i++) {
        int32_t j = i + (int32_t)vlp_rng_below(rng, (uint64_t)(u->n_units - i));
        int32_t unit = u->order[j];
        u->order[j] = u->order[i];
        int32_t size = u->start[unit + 1] - u->start[unit];
        if (count + size > budget) continue;
        for (int32_t k = u->start[unit]; k < u->start[unit + 1]; k++) chosen[u->tokens[k]] = 1;
        count += size;
    }
    return count;
}

/* The first of the shortest from a random one on. */
static void choose_shortest(const units *u, vlp_rng *rng, uint8_t *chosen) {
    int32_t first = (int32_t)vlp_rng_below(rng, (uint64_t)u->n_units), best = first;
    for (int32_t i = 1; i < u->n_units; i++) {
        int32_t unit = (first + i) % u->n_units;
        if (u->start[unit + 1] - u->start[unit] < u->start[best + 1] - u->start[best]) best = unit;
    }
    for (int32_t k = u->start[best]; k < u->start[best + 1] && k < u->start[best] + WORD; k++)
        chosen[u->tokens[k]] = 1;
}

int64_t vlp_mlm_mask(const vlp_mlm_masking *m, const int32_t *ids, const uint8_t *mask,
                     int64_t length, vlp_rng *rng, int32_t *masked, int32_t *positions) {
    static _Thread_local units u;
    static _Thread_local uint8_t chosen[MAX_LENGTH];
    VLP_ASSERT(length <= MAX_LENGTH, "masking a text of %lld tokens", (long long)length);
    memcpy(masked, ids, (size_t)length * sizeof *ids);
    memset(chosen, 0, (size_t)length);
    split(m, ids, mask, length, &u);
    if (u.n_tokens == 0) return 0;
    if (choose(&u, vlp_mlm_budget(m, u.n_tokens), rng, chosen) == 0)
        choose_shortest(&u, rng, chosen);
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++) {
        if (!chosen[i]) continue;
        corrupt(m, &masked[i], rng);
        positions[count++] = (int32_t)i;
    }
    return count;
}
