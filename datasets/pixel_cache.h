/* Decoded pictures kept in memory, up to a bound. What fits first stays: with a new random order
 * each epoch no other choice is better, and nothing is thrown out that was paid for. */
#ifndef VLP_DATASETS_PIXEL_CACHE_H
#define VLP_DATASETS_PIXEL_CACHE_H

#include "vision/image.h"

typedef struct vlp_pixel_cache vlp_pixel_cache;

/* bytes = 0: a cache that never holds anything. All functions may be called by several threads. */
vlp_status vlp_pixel_cache_new(vlp_pixel_cache **out, int64_t bytes);
void vlp_pixel_cache_free(vlp_pixel_cache *cache);

/* A borrowed, read-only image that stays until the cache is freed. */
bool vlp_pixel_cache_get(vlp_pixel_cache *cache, int64_t id, vlp_image *out);
/* Copies the image in, if there is room. */
void vlp_pixel_cache_put(vlp_pixel_cache *cache, int64_t id, const vlp_image *image);

#endif
