#include "core/packed.h"

#include "core/memory.h"

struct vlp_packed {
    size_t bytes;
};

vlp_status vlp_packed_new(vlp_packed **out) {
    *out = vlp_alloc_zero(1, sizeof **out);
    return *out ? VLP_OK : VLP_ERR_MEMORY;
}

void vlp_packed_free(vlp_packed *packed) {
    vlp_free(packed);
}

void vlp_packed_stale(vlp_packed *packed) {
    (void)packed;
}

size_t vlp_packed_bytes(const vlp_packed *packed) {
    return packed->bytes;
}
