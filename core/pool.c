#include "core/pool.h"

#include "core/memory.h"

#include <string.h>

enum { SPANS = 4096 };

vlp_status vlp_pool_open(vlp_pool *pool, vlp_arena *arena) {
    *pool = (vlp_pool){.arena = arena, .capacity = SPANS};
    pool->free = vlp_alloc((size_t)SPANS * sizeof *pool->free);
    return pool->free ? VLP_OK : VLP_ERR_MEMORY;
}

void vlp_pool_close(vlp_pool *pool) {
    vlp_free(pool->free);
    *pool = (vlp_pool){0};
}

void vlp_pool_reset(vlp_pool *pool) {
    pool->count = 0;
}

static size_t length(const vlp_pool_span *span) {
    return (size_t)(span->end - span->begin);
}

static void remove_span(vlp_pool *pool, int at) {
    pool->count--;
    memmove(pool->free + at, pool->free + at + 1, (size_t)(pool->count - at) * sizeof *pool->free);
}

/* -1 where no free stretch is long enough */
static int best_fit(const vlp_pool *pool, size_t bytes) {
    int best = -1;
    for (int i = 0; i < pool->count; i++)
        if (length(&pool->free[i]) >= bytes &&
            (best < 0 || length(&pool->free[i]) < length(&pool->free[best])))
            best = i;
    return best;
}

void *vlp_pool_take(vlp_pool *pool, size_t bytes) {
    size_t rounded = vlp_arena_round(bytes);
    int at = rounded < bytes || rounded == 0 ? -1 : best_fit(pool, rounded);
    if (at < 0) return vlp_arena_alloc(pool->arena, bytes);
    uint8_t *data = pool->free[at].begin;
    pool->free[at].begin += rounded;
    if (length(&pool->free[at]) == 0) remove_span(pool, at);
    return data;
}

/* The arena shrinks where its end is free. */
static void trim(vlp_pool *pool) {
    vlp_arena *arena = pool->arena;
    if (pool->count == 0 || pool->free[pool->count - 1].end != arena->base + arena->used) return;
    vlp_arena_reset(arena, (size_t)(pool->free[--pool->count].begin - arena->base));
}

void vlp_pool_give(vlp_pool *pool, void *data, size_t bytes) {
    vlp_pool_span span = {data, (uint8_t *)data + vlp_arena_round(bytes)};
    if (length(&span) == 0) return;
    int at = pool->count;
    while (at > 0 && pool->free[at - 1].begin > span.begin) at--;
    VLP_ASSERT((at == 0 || pool->free[at - 1].end <= span.begin) &&
                   (at == pool->count || pool->free[at].begin >= span.end),
               "step memory given back twice");
    if (at < pool->count && pool->free[at].begin == span.end) {
        span.end = pool->free[at].end;
        remove_span(pool, at);
    }
    if (at > 0 && pool->free[at - 1].end == span.begin) {
        pool->free[at - 1].end = span.end;
    } else {
        VLP_ASSERT(pool->count < pool->capacity, "more than %d holes in step memory", SPANS);
        memmove(pool->free + at + 1, pool->free + at,
                (size_t)(pool->count - at) * sizeof *pool->free);
        pool->free[at] = span;
        pool->count++;
    }
    trim(pool);
}
