#include "core/rng.h"

#include <math.h>

enum { ROUNDS = 10 };

void vlp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* splitmix64's finaliser */
static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

vlp_rng vlp_rng_at(uint64_t seed, vlp_rng_stream stream, uint64_t epoch, uint64_t id) {
    uint64_t key = mix(mix(seed) ^ mix((uint64_t)stream << 32) ^ mix(mix(epoch)));
    return (vlp_rng){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)id, (uint32_t)(id >> 32)},
    };
}

uint32_t vlp_rng_u32(vlp_rng *rng) {
    if (rng->left == 0) {
        vlp_philox(rng->counter, rng->key, rng->out);
        if (++rng->counter[0] == 0) rng->counter[1]++;
        rng->left = 4;
    }
    return rng->out[4 - rng->left--];
}

uint64_t vlp_rng_u64(vlp_rng *rng) {
    uint64_t high = vlp_rng_u32(rng);
    return high << 32 | vlp_rng_u32(rng);
}

double vlp_rng_double(vlp_rng *rng) {
    return (double)(vlp_rng_u64(rng) >> 11) * 0x1p-53;
}

uint64_t vlp_rng_below(vlp_rng *rng, uint64_t bound) {
    uint64_t reject = -bound % bound;
    uint64_t x;
    do x = vlp_rng_u64(rng);
    while (x < reject);
    return x % bound;
}

double vlp_rng_normal(vlp_rng *rng) {
    double u = 1.0 - vlp_rng_double(rng);
    double v = vlp_rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

double vlp_rng_truncated_normal(vlp_rng *rng, double limit) {
    double x;
    do x = vlp_rng_normal(rng);
    while (fabs(x) > limit);
    return x;
}

uint64_t vlp_rng_name(const char *name) {
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return mix(h);
}
