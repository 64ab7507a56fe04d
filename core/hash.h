/* 128-bit content hash (XXH3), for identity of bytes, not for security. */
#ifndef VLP_CORE_HASH_H
#define VLP_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t high, low;
} vlp_hash;

vlp_hash vlp_hash_bytes(const void *data, size_t len);
vlp_hash vlp_hash_more(vlp_hash so_far, const void *data, size_t len); /* order matters */

/* 32 lower-case hexadecimal digits and a NUL. */
void vlp_hash_hex(vlp_hash hash, char out[33]);

#endif
