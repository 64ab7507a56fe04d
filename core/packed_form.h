/* What a vlp_packed holds, for those who pack: the form of one direction. */
#ifndef VLP_CORE_PACKED_FORM_H
#define VLP_CORE_PACKED_FORM_H

#include "core/product.h"

typedef struct {
    vlp_operand x; /* without its vlp_packed */
    int64_t k, n;
    bool bf16;
    const void *maker; /* who packs, and how: an address of its own */
} vlp_packed_key;

/* The form made for this key, made now if there is none or it is stale: make(ctx, to) fills `bytes`
 * at `to`, 64-byte aligned. NULL without memory. */
const void *vlp_packed_form(vlp_packed *packed, const vlp_packed_key *key, size_t bytes,
                            void (*make)(void *ctx, void *to), void *ctx);

#endif
