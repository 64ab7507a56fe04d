#include "core/packed.h"

#include "core/memory.h"
#include "core/packed_form.h"

#include <pthread.h>

enum { ALIGN = 64 };

struct vlp_packed {
    pthread_mutex_t lock;
    vlp_packed_key key;
    bool fresh;
    char *block, *data; /* data: block, aligned */
    size_t bytes;       /* at data */
};

vlp_status vlp_packed_new(vlp_packed **out) {
    vlp_packed *packed = *out = vlp_alloc_zero(1, sizeof *packed);
    if (!packed) return VLP_ERR_MEMORY;
    pthread_mutex_init(&packed->lock, NULL);
    return VLP_OK;
}

void vlp_packed_free(vlp_packed *packed) {
    if (!packed) return;
    vlp_free(packed->block);
    pthread_mutex_destroy(&packed->lock);
    vlp_free(packed);
}

void vlp_packed_stale(vlp_packed *packed) {
    if (!packed) return;
    pthread_mutex_lock(&packed->lock);
    packed->fresh = false;
    pthread_mutex_unlock(&packed->lock);
}

size_t vlp_packed_bytes(const vlp_packed *packed) {
    return packed->bytes;
}

static bool same_key(const vlp_packed_key *a, const vlp_packed_key *b) {
    return a->x.data == b->x.data && a->x.transposed == b->x.transposed &&
           a->x.dtype == b->x.dtype && a->x.ld == b->x.ld && a->k == b->k && a->n == b->n &&
           a->bf16 == b->bf16 && a->maker == b->maker;
}

static bool grow(vlp_packed *packed, size_t bytes) {
    if (bytes <= packed->bytes) return true;
    vlp_free(packed->block);
    char *block = packed->block = vlp_alloc(bytes + ALIGN);
    packed->bytes = block ? bytes : 0;
    packed->data = block ? block + (ALIGN - (uintptr_t)block % ALIGN) : NULL;
    return block != NULL;
}

const void *vlp_packed_form(vlp_packed *packed, const vlp_packed_key *key, size_t bytes,
                            void (*make)(void *ctx, void *to), void *ctx) {
    pthread_mutex_lock(&packed->lock);
    if (!packed->fresh || !same_key(&packed->key, key)) {
        packed->fresh = grow(packed, bytes);
        packed->key = *key;
        if (packed->fresh) make(ctx, packed->data);
    }
    const void *data = packed->fresh ? packed->data : NULL;
    pthread_mutex_unlock(&packed->lock);
    return data;
}
