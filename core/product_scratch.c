#include "core/product_scratch.h"

#include "core/memory.h"
#include "core/real.h"

#include <pthread.h>
#include <string.h>

enum { ALIGN = 64 };

typedef struct {
    char *block, *data; /* data: block, aligned */
    int64_t bytes;
} space;

static _Atomic int64_t held;
static _Thread_local space mine[VLP_SCRATCH_COUNT];
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release(void *spaces) {
    space *all = spaces;
    for (int i = 0; i < VLP_SCRATCH_COUNT; i++) {
        held -= all[i].bytes;
        vlp_free(all[i].block);
    }
    memset(all, 0, VLP_SCRATCH_COUNT * sizeof *all);
}

static void make_key(void) {
    (void)pthread_key_create(&at_exit, release);
}

void *vlp_product_scratch(vlp_scratch kind, int64_t bytes) {
    space *s = &mine[kind];
    if (s->data && bytes <= s->bytes) return s->data;
    pthread_once(&once, make_key);
    pthread_setspecific(at_exit, mine);
    vlp_free(s->block);
    s->block = vlp_alloc((size_t)bytes + ALIGN);
    held += (s->block ? bytes : 0) - s->bytes;
    s->bytes = s->block ? bytes : 0;
    s->data = s->block ? s->block + (ALIGN - (uintptr_t)s->block % ALIGN) : NULL;
    return s->data;
}

int64_t vlp_product_scratch_held(void) {
    return held;
}

int64_t vlp_product_scratch_most(int64_t largest, int threads) {
    enum { PANELS = 2 << 20, CHUNK = 17 << 20 };
    return threads * (PANELS + largest * (int64_t)sizeof(vlp_real)) + CHUNK;
}
