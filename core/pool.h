/* Blocks of an arena that come back one by one, in any order: step memory whose tensors have
 * different lives. Free stretches of addresses are joined, and the best fit is taken, lowest first;
 * the same calls give the same addresses, so a rehearsal knows the peak. */
#ifndef VLP_CORE_POOL_H
#define VLP_CORE_POOL_H

#include "core/arena.h"

typedef struct {
    uint8_t *begin, *end;
} vlp_pool_span;

typedef struct {
    vlp_arena *arena;    /* borrowed */
    vlp_pool_span *free; /* by address; none touches another or the arena's used end */
    int count, capacity;
} vlp_pool;

vlp_status vlp_pool_open(vlp_pool *pool, vlp_arena *arena);
void vlp_pool_close(vlp_pool *pool);
/* Nothing is free: the arena was reset. */
void vlp_pool_reset(vlp_pool *pool);

/* 64-byte aligned, uninitialised; NULL when the arena is full. */
void *vlp_pool_take(vlp_pool *pool, size_t bytes);
/* Gives back what a take of as many bytes, from the pool or from the arena itself, returned. */
void vlp_pool_give(vlp_pool *pool, void *data, size_t bytes);

#endif
