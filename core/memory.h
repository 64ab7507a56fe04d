/* The one door to the heap, and a growable byte buffer.
 *
 * Every allocation of the library goes through vlp_alloc and its kin, so that tests can count them
 * and make the n-th one fail. All return NULL after recording VLP_ERR_MEMORY; callers return it. */
#ifndef VLP_CORE_MEMORY_H
#define VLP_CORE_MEMORY_H

#include "core/status.h"

#include <stdint.h>

void *vlp_alloc(size_t bytes);                   /* uninitialised */
void *vlp_alloc_zero(size_t count, size_t size); /* zeroed, overflow checked */
void *vlp_realloc(void *pointer, size_t bytes);  /* the old block stays valid on failure */
char *vlp_strdup(const char *text);
char *vlp_strndup(const char *text, size_t bytes);
void vlp_free(void *pointer); /* NULL is legal */

/* Allocations made so far by all threads: a warm training step must not change it. */
int64_t vlp_alloc_count(void);

/* Bytes of the process that are in memory now; 0 where the system does not say. */
size_t vlp_resident_bytes(void);

/* Tests: the n-th allocation from now fails (1 = the next); 0 = none. */
void vlp_alloc_fail_at(int64_t n);

/* A growable byte string, always NUL-terminated after the first append. {0} is empty and valid. */
typedef struct {
    char *data;
    size_t len, cap;
} vlp_buf;

vlp_status vlp_buf_reserve(vlp_buf *buf, size_t extra);
vlp_status vlp_buf_append(vlp_buf *buf, const void *data, size_t len);
vlp_status vlp_buf_puts(vlp_buf *buf, const char *text);
vlp_status vlp_buf_printf(vlp_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void vlp_buf_clear(vlp_buf *buf); /* keeps the memory */
void vlp_buf_free(vlp_buf *buf);

#endif
