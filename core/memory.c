#include "core/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int_fast64_t allocations;
static atomic_int_fast64_t fail_at;

int64_t vlp_alloc_count(void) {
    return atomic_load(&allocations);
}

void vlp_alloc_fail_at(int64_t n) {
    atomic_store(&fail_at, n);
}

static int may_allocate(void) {
    atomic_fetch_add(&allocations, 1);
    return atomic_load(&fail_at) == 0 || atomic_fetch_sub(&fail_at, 1) != 1;
}

static void *checked(void *pointer, size_t bytes) {
    if (!pointer) VLP_FAIL(VLP_ERR_MEMORY, "out of memory: %zu bytes wanted", bytes);
    return pointer;
}

void *vlp_alloc(size_t bytes) {
    return checked(may_allocate() ? malloc(bytes ? bytes : 1) : NULL, bytes);
}

void *vlp_alloc_zero(size_t count, size_t size) {
    return checked(may_allocate() ? calloc(count ? count : 1, size ? size : 1) : NULL,
                   count * size);
}

void *vlp_realloc(void *pointer, size_t bytes) {
    return checked(may_allocate() ? realloc(pointer, bytes ? bytes : 1) : NULL, bytes);
}

char *vlp_strndup(const char *text, size_t bytes) {
    char *copy = vlp_alloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *vlp_strdup(const char *text) {
    return vlp_strndup(text, strlen(text));
}

void vlp_free(void *pointer) {
    free(pointer);
}

vlp_status vlp_buf_reserve(vlp_buf *buf, size_t extra) {
    if (extra > SIZE_MAX / 2 - buf->len - 1)
        return VLP_FAIL(VLP_ERR_MEMORY, "out of memory: %zu bytes wanted", extra);
    size_t need = buf->len + extra + 1;
    if (need <= buf->cap) return VLP_OK;
    size_t cap = buf->cap * 2 > need ? buf->cap * 2 : need < 64 ? 64 : need;
    char *data = vlp_realloc(buf->data, cap);
    if (!data) return VLP_ERR_MEMORY;
    buf->data = data;
    buf->cap = cap;
    return VLP_OK;
}

vlp_status vlp_buf_append(vlp_buf *buf, const void *data, size_t len) {
    VLP_TRY(vlp_buf_reserve(buf, len));
    if (len) memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return VLP_OK;
}

vlp_status vlp_buf_puts(vlp_buf *buf, const char *text) {
    return vlp_buf_append(buf, text, strlen(text));
}

vlp_status vlp_buf_printf(vlp_buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) return VLP_FAIL(VLP_ERR_USAGE, "unprintable text for format \"%s\"", format);
    VLP_TRY(vlp_buf_reserve(buf, (size_t)n));
    va_start(args, format);
    vsnprintf(buf->data + buf->len, (size_t)n + 1, format, args);
    va_end(args);
    buf->len += (size_t)n;
    return VLP_OK;
}

void vlp_buf_clear(vlp_buf *buf) {
    buf->len = 0;
    if (buf->data) buf->data[0] = '\0';
}

void vlp_buf_free(vlp_buf *buf) {
    vlp_free(buf->data);
    *buf = (vlp_buf){0};
}

size_t vlp_resident_bytes(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
