#include "datasets/pixel_cache.h"

#include "core/memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES_A_SLOT = 4096 };

typedef struct {
    int64_t id; /* 0 = empty */
    int64_t at;
    int width, height;
} entry;

struct vlp_pixel_cache {
    pthread_mutex_t lock;
    uint8_t *arena; /* address space only, until pages are written */
    int64_t size, used;
    entry *table; /* open addressing; slots is a power of two, at most half full */
    uint64_t slots, filled;
};

vlp_status vlp_pixel_cache_new(vlp_pixel_cache **out, int64_t bytes) {
    *out = NULL;
    vlp_pixel_cache *cache = vlp_alloc_zero(1, sizeof *cache);
    if (!cache) return VLP_ERR_MEMORY;
    pthread_mutex_init(&cache->lock, NULL);
    vlp_status status = VLP_OK;
    if (bytes > 0) {
        cache->slots = 16;
        while (cache->slots < (uint64_t)bytes / BYTES_A_SLOT * 2) cache->slots *= 2;
        cache->table = vlp_alloc_zero(cache->slots, sizeof *cache->table);
        void *arena = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        cache->arena = arena == MAP_FAILED ? NULL : arena;
        cache->size = cache->arena ? bytes : 0;
        if (!cache->table || !cache->arena)
            status = VLP_FAIL(VLP_ERR_MEMORY,
                              "no room for a picture cache of %lld MiB; make it"
                              " smaller",
                              (long long)(bytes >> 20));
    }
    if (status != VLP_OK)
        vlp_pixel_cache_free(cache);
    else
        *out = cache;
    return status;
}

void vlp_pixel_cache_free(vlp_pixel_cache *cache) {
    if (!cache) return;
    if (cache->arena) munmap(cache->arena, (size_t)cache->size);
    pthread_mutex_destroy(&cache->lock);
    vlp_free(cache->table);
    vlp_free(cache);
}

/* The id's entry, or the empty one where it belongs. */
static entry *find(const vlp_pixel_cache *cache, int64_t id) {
    uint64_t slot = ((uint64_t)id * 0x9E3779B97F4A7C15u) >> 20;
    while (true) {
        entry *e = &cache->table[slot & (cache->slots - 1)];
        if (e->id == id || e->id == 0) return e;
        slot++;
    }
}

bool vlp_pixel_cache_get(vlp_pixel_cache *cache, int64_t id, vlp_image *out) {
    if (!cache->slots) return false;
    pthread_mutex_lock(&cache->lock);
    entry e = *find(cache, id);
    pthread_mutex_unlock(&cache->lock);
    if (e.id != id) return false;
    *out = (vlp_image){.width = e.width, .height = e.height, .pixels = cache->arena + e.at};
    return true;
}

void vlp_pixel_cache_put(vlp_pixel_cache *cache, int64_t id, const vlp_image *image) {
    if (!cache->slots) return;
    int64_t bytes = (int64_t)image->width * image->height * 3;
    pthread_mutex_lock(&cache->lock);
    entry *e = find(cache, id);
    bool room =
        e->id == 0 && cache->filled < cache->slots / 2 && bytes <= cache->size - cache->used;
    if (room) {
        *e = (entry){id, cache->used, image->width, image->height};
        memcpy(cache->arena + cache->used, image->pixels, (size_t)bytes);
        cache->used += bytes;
        cache->filled++;
    }
    pthread_mutex_unlock(&cache->lock);
}
