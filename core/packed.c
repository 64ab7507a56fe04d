#include "core/packed.h"

#include "core/memory.h"
#include "core/packed_form.h"

#include <pthread.h>

enum { ALIGN = 64, DIRECTIONS = 2 };

typedef struct {
    vlp_packed_key key;
    bool fresh;
    char *block, *data; /* data: block, aligned */
    size_t bytes;       /* at data */
} form;

struct vlp_packed {
    pthread_mutex_t lock;
    form forms[DIRECTIONS];
};

vlp_status vlp_packed_new(vlp_packed **out) {
    vlp_packed *packed = *out = vlp_alloc_zero(1, sizeof *packed);
    if (!packed) return VLP_ERR_MEMORY;
    pthread_mutex_init(&packed->lock, NULL);
    return VLP_OK;
}

void vlp_packed_free(vlp_packed *packed) {
    if (!packed) return;
    for (int i = 0; i < DIRECTIONS; i++) vlp_free(packed->forms[i].block);
    pthread_mutex_destroy(&packed->lock);
    vlp_free(packed);
}

void vlp_packed_stale(vlp_packed *packed) {
    if (!packed) return;
    pthread_mutex_lock(&packed->lock);
    for (int i = 0; i < DIRECTIONS; i++) packed->forms[i].fresh = false;
    pthread_mutex_unlock(&packed->lock);
}

size_t vlp_packed_bytes(const vlp_packed *packed) {
    size_t bytes = 0;
    for (int i = 0; i < DIRECTIONS; i++) bytes += packed->forms[i].bytes;
    return bytes;
}

static bool same_key(const vlp_packed_key *a, const vlp_packed_key *b) {
    return a->x.data == b->x.data && a->x.dtype == b->x.dtype && a->x.ld == b->x.ld &&
           a->k == b->k && a->n == b->n && a->bf16 == b->bf16 && a->maker == b->maker;
}

static bool grow(form *f, size_t bytes) {
    if (bytes <= f->bytes) return true;
    vlp_free(f->block);
    f->block = vlp_alloc(bytes + ALIGN);
    f->bytes = f->block ? bytes : 0;
    f->data = f->block ? f->block + (ALIGN - (uintptr_t)f->block % ALIGN) : NULL;
    return f->block != NULL;
}

const void *vlp_packed_form(vlp_packed *packed, const vlp_packed_key *key, size_t bytes,
                            void (*make)(void *ctx, void *to), void *ctx) {
    pthread_mutex_lock(&packed->lock);
    form *f = &packed->forms[key->x.transposed];
    if (!f->fresh || !same_key(&f->key, key)) {
        f->fresh = grow(f, bytes);
        f->key = *key;
        if (f->fresh) make(ctx, f->data);
    }
    const void *data = f->fresh ? f->data : NULL;
    pthread_mutex_unlock(&packed->lock);
    return data;
}
