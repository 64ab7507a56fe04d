#include "datasets/sampler.h"

#include "core/memory.h"
#include "core/rng.h"

#include <math.h>

enum { ROUNDS = 6, BLOCK = 4096 };

typedef struct {
    int64_t rows;
    int64_t first, count; /* its places in a block of BLOCK */
} pool_share;

struct vlp_sampler {
    uint64_t seed;
    int n;
    int64_t rows;
    pool_share *pools;
    int64_t run; /* positions in a row from one pool */
    int64_t block, window;
};

/* splitmix64's finaliser as the round function */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A permutation of [0, 4^half). */
static uint64_t feistel(uint64_t key, int half, uint64_t x) {
    uint64_t mask = ((uint64_t)1 << half) - 1, left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (mix(key + 0x9E3779B97F4A7C15u * (round + 1) + right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

int64_t vlp_permute(uint64_t key, int64_t n, int64_t i) {
    VLP_ASSERT(n > 0 && i >= 0 && i < n, "row %lld of %lld", (long long)i, (long long)n);
    int half = 1;
    while (half < 31 && (int64_t)1 << (2 * half) < n) half++;
    uint64_t x = (uint64_t)i;
    do x = feistel(key, half, x); /* the domain is less than 4 n: few turns */
    while (x >= (uint64_t)n);
    return (int64_t)x;
}

/* Largest remainder, but at least one place a pool. */
static void share_block(vlp_sampler *s, const vlp_pool *pools, double sum) {
    int64_t used = 0;
    for (int p = 0; p < s->n; p++) {
        int64_t count = (int64_t)floor(BLOCK * pools[p].weight / sum);
        s->pools[p].count = count > 0 ? count : 1;
        used += s->pools[p].count;
    }
    for (; used != BLOCK; used += used < BLOCK ? 1 : -1) {
        int best = 0;
        double most = -1e300;
        for (int p = 0; p < s->n; p++) {
            double lack = BLOCK * pools[p].weight / sum - (double)s->pools[p].count;
            if (used > BLOCK) lack = s->pools[p].count > 1 ? -lack : -1e200;
            if (lack > most) best = p;
            if (lack > most) most = lack;
        }
        s->pools[best].count += used < BLOCK ? 1 : -1;
    }
    for (int p = 1; p < s->n; p++)
        s->pools[p].first = s->pools[p - 1].first + s->pools[p - 1].count;
}

vlp_status vlp_sampler_new(vlp_sampler **out, uint64_t seed, const vlp_pool *pools, int n) {
    *out = NULL;
    if (n < 1 || n > BLOCK / 4)
        return VLP_FAIL(VLP_ERR_USAGE, "a mixture of %d sources; from 1 to %d are possible", n,
                        BLOCK / 4);
    double sum = 0;
    for (int p = 0; p < n; p++) {
        if (pools[p].rows < 1 || !(pools[p].weight > 0) || !isfinite(pools[p].weight))
            return VLP_FAIL(VLP_ERR_USAGE,
                            "source %d of the mixture has %lld rows and weight %g; both must be"
                            " positive",
                            p + 1, (long long)pools[p].rows, pools[p].weight);
        sum += pools[p].weight;
    }
    vlp_sampler *s = vlp_alloc_zero(1, sizeof *s);
    if (!s) return VLP_ERR_MEMORY;
    s->pools = vlp_alloc_zero((size_t)n, sizeof *s->pools);
    if (!s->pools) {
        vlp_free(s);
        return VLP_ERR_MEMORY;
    }
    s->seed = seed;
    s->n = n;
    s->run = 1;
    for (int p = 0; p < n; p++) {
        s->pools[p].rows = pools[p].rows;
        s->rows += pools[p].rows;
    }
    share_block(s, pools, sum);
    *out = s;
    return VLP_OK;
}

void vlp_sampler_set_run(vlp_sampler *sampler, int64_t run) {
    VLP_ASSERT(run > 0, "runs of %lld samples", (long long)run);
    sampler->run = run;
}

void vlp_sampler_free(vlp_sampler *sampler) {
    if (!sampler) return;
    vlp_free(sampler->pools);
    vlp_free(sampler);
}

static uint64_t order_key(uint64_t seed, int64_t pass, int pool) {
    vlp_rng rng = vlp_rng_at(seed, VLP_RNG_ORDER, (uint64_t)pass, (uint64_t)pool);
    return vlp_rng_u64(&rng);
}

void vlp_sampler_set_blocks(vlp_sampler *sampler, int64_t block, int64_t window) {
    VLP_ASSERT(block >= 0 && window > 0, "blocks of %lld rows, %lld at a time", (long long)block,
               (long long)window);
    sampler->block = block;
    sampler->window = window;
}

/* Whole blocks first, in windows; the rows behind the last whole block come at the end. */
static int64_t permute_blocks(const vlp_sampler *s, uint64_t key, int64_t rows, int64_t i) {
    int64_t blocks = rows / s->block, whole = blocks * s->block;
    if (i >= whole) return whole + vlp_permute(key, rows - whole, i - whole);
    int64_t window = i / (s->block * s->window), first = window * s->window;
    int64_t count = blocks - first < s->window ? blocks - first : s->window;
    int64_t at = vlp_permute(key + 1 + (uint64_t)window, count * s->block, i - first * s->block);
    return vlp_permute(key, blocks, first + at / s->block) * s->block + at % s->block;
}

static vlp_sample draw(const vlp_sampler *s, int pool, int64_t nth) {
    int64_t rows = s->pools[pool].rows, pass = nth / rows, i = nth % rows;
    uint64_t key = order_key(s->seed, pass, pool);
    return (vlp_sample){
        pool, s->block > 0 ? permute_blocks(s, key, rows, i) : vlp_permute(key, rows, i), pass};
}

vlp_sample vlp_sampler_at(const vlp_sampler *s, int64_t position) {
    VLP_ASSERT(position >= 0, "position %lld", (long long)position);
    if (s->n == 1) return draw(s, 0, position);
    int64_t unit = position / s->run, block = unit / BLOCK;
    int64_t place = vlp_permute(order_key(s->seed, block, -1), BLOCK, unit % BLOCK);
    int low = 0, high = s->n - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (s->pools[middle].first <= place)
            low = middle;
        else
            high = middle - 1;
    }
    const pool_share *share = &s->pools[low];
    int64_t run = block * share->count + (place - share->first);
    return draw(s, low, run * s->run + position % s->run);
}

int64_t vlp_sampler_epoch_size(const vlp_sampler *sampler) {
    return sampler->rows;
}
