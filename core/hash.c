#include "core/hash.h"

#include <stdio.h>
#include <xxhash.h>

vlp_hash vlp_hash_bytes(const void *data, size_t len) {
    XXH128_hash_t h = XXH3_128bits(data, len);
    return (vlp_hash){h.high64, h.low64};
}

vlp_hash vlp_hash_more(vlp_hash so_far, const void *data, size_t len) {
    vlp_hash parts[2] = {so_far, vlp_hash_bytes(data, len)};
    return vlp_hash_bytes(parts, sizeof parts);
}

void vlp_hash_hex(vlp_hash hash, char out[33]) {
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
