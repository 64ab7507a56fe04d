#include "core/arena.h"

#include <sys/mman.h>

static const size_t page = 4096;
static const size_t plan_most = (size_t)1 << 42, plan_least = (size_t)1 << 32;

static vlp_status reserve(vlp_arena *arena, size_t bytes, int protection) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *base = mmap(NULL, bytes, protection, flags, -1, 0);
    if (base == MAP_FAILED)
        return VLP_FAIL(VLP_ERR_MEMORY,
                        "cannot reserve %.1f MiB of memory; use a smaller batch or model",
                        (double)bytes / 1048576);
    *arena = (vlp_arena){.base = base, .size = bytes};
    return VLP_OK;
}

vlp_status vlp_arena_open(vlp_arena *arena, size_t bytes) {
    bytes = (bytes + page) / page * page;
    VLP_TRY(reserve(arena, bytes + page, PROT_READ | PROT_WRITE));
    arena->size = bytes;
    arena->guard = page;
    mprotect(arena->base + bytes, page, PROT_NONE);
    madvise(arena->base, arena->size, MADV_HUGEPAGE);
    return VLP_OK;
}

vlp_status vlp_arena_plan(vlp_arena *arena) {
    vlp_status status = VLP_ERR_MEMORY;
    for (size_t bytes = plan_most; status != VLP_OK && bytes >= plan_least; bytes /= 2)
        status = reserve(arena, bytes, PROT_READ);
    return status;
}

void vlp_arena_close(vlp_arena *arena) {
    if (arena->base) munmap(arena->base, arena->size + arena->guard);
    *arena = (vlp_arena){0};
}

size_t vlp_arena_round(size_t bytes) {
    return (bytes + VLP_ARENA_ALIGN - 1) / VLP_ARENA_ALIGN * VLP_ARENA_ALIGN;
}

void *vlp_arena_end(const vlp_arena *arena, size_t bytes) {
    size_t rounded = vlp_arena_round(bytes);
    return rounded < bytes || rounded > arena->size ? NULL : arena->base + arena->size - rounded;
}

void *vlp_arena_alloc(vlp_arena *arena, size_t bytes) {
    size_t rounded = vlp_arena_round(bytes);
    if (rounded < bytes || rounded > arena->size - arena->used) return NULL;
    void *pointer = arena->base + arena->used;
    arena->used += rounded;
    if (arena->used > arena->peak) arena->peak = arena->used;
    return pointer;
}

void vlp_arena_reset(vlp_arena *arena, size_t mark) {
    arena->used = mark;
}
