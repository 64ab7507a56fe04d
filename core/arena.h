/* A bump allocator over one reserved range of addresses.
 *
 *     [ step tensors ... | gradients during backward ... |        reserved        ]
 *     base               mark                            used                      size
 *
 * Pages are committed by the kernel when first touched, so a reservation costs nothing by itself.
 * A plan reserves a huge read-only range: allocation only counts, stray writes crash, and reads
 * give zeros, which lets a step be rehearsed to learn its peak before any memory is spent. */
#ifndef VLP_CORE_ARENA_H
#define VLP_CORE_ARENA_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t *base;
    size_t size, used, peak;
    size_t guard; /* bytes beyond size that nobody may touch */
} vlp_arena;

enum { VLP_ARENA_ALIGN = 64 };

/* Reserves bytes of writable memory (rounded up to pages), with a page behind that crashes whoever
 * touches it. */
vlp_status vlp_arena_open(vlp_arena *arena, size_t bytes);
/* Reserves as much read-only address space as the system gives, to rehearse in. */
vlp_status vlp_arena_plan(vlp_arena *arena);
void vlp_arena_close(vlp_arena *arena);

/* What an allocation of so many bytes takes; less than bytes where that is no size_t. */
size_t vlp_arena_round(size_t bytes);
/* 64-byte aligned, uninitialised; NULL when the arena is full (no message is recorded). */
void *vlp_arena_alloc(vlp_arena *arena, size_t bytes);
/* The last bytes of an arena, rounded up to 64, right before the guard page; uncounted. NULL where
 * the arena is smaller. */
void *vlp_arena_end(const vlp_arena *arena, size_t bytes);
/* Forgets everything allocated after `used` was `mark`. */
void vlp_arena_reset(vlp_arena *arena, size_t mark);

#endif
