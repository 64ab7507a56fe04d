#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[1024];

vlp_status vlp_fail(vlp_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

vlp_status vlp_fail_in(vlp_status code, const char *format, ...) {
    char inner[sizeof message];
    memcpy(inner, message, sizeof inner);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n + 3 < sizeof message) {
        size_t at = (size_t)n + 2, room = sizeof message - at - 1, len = strlen(inner);
        if (len > room) len = room;
        memcpy(message + at - 2, ": ", 2);
        memcpy(message + at, inner, len);
        message[at + len] = '\0';
    }
    return code;
}

const char *vlp_error(void) {
    return message;
}

const char *vlp_status_name(vlp_status code) {
    static const char *const names[] = {
        [VLP_OK] = "ok",
        [VLP_ERR_USAGE] = "usage",
        [VLP_ERR_IO] = "input or output",
        [VLP_ERR_NOT_FOUND] = "not found",
        [VLP_ERR_FORMAT] = "format",
        [VLP_ERR_UNSUPPORTED] = "unsupported",
        [VLP_ERR_LIMIT] = "limit",
        [VLP_ERR_MEMORY] = "memory",
        [VLP_ERR_NUMERIC] = "numeric",
        [VLP_ERR_INTERRUPTED] = "interrupted",
    };
    return (size_t)code < VLP_COUNT(names) ? names[code] : "unknown";
}

void vlp_assert_failed(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "vlp: internal error at %s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
