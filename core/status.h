/* Status codes and the thread-local error message: the one error idiom of the project.
 *
 * A function that depends on the outside (files, options, memory) returns vlp_status. On failure
 * the message says what failed, where (file, line, key, tensor) and what to do. A programming
 * error, for instance a shape that does not fit, is a VLP_ASSERT and stays one in release builds.
 *
 *     vlp_status vlp_thing_open(vlp_thing **out, const char *path)
 *     {
 *         if (!path) return VLP_FAIL(VLP_ERR_USAGE, "no path given; pass --data DB");
 *         VLP_TRY(vlp_other_open(...));
 *         ...
 *     }
 */
#ifndef VLP_CORE_STATUS_H
#define VLP_CORE_STATUS_H

#include <stddef.h>

typedef enum {
    VLP_OK = 0,
    VLP_ERR_USAGE,       /* an option, key or argument is wrong */
    VLP_ERR_IO,          /* the operating system refused: open, read, write, rename */
    VLP_ERR_NOT_FOUND,   /* a named file, tensor, row or key does not exist */
    VLP_ERR_FORMAT,      /* the bytes are not what they claim to be */
    VLP_ERR_UNSUPPORTED, /* well formed, but a kind that vlp does not read */
    VLP_ERR_LIMIT,       /* beyond a stated limit: pixels, bytes, lengths */
    VLP_ERR_MEMORY,      /* out of memory, or a plan that does not fit */
    VLP_ERR_NUMERIC,     /* a value that is not finite */
    VLP_ERR_INTERRUPTED, /* stopped by a signal, state saved */
} vlp_status;

/* Records the thread's message (printf style) and returns code. */
vlp_status vlp_fail(vlp_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define VLP_FAIL(code, ...) vlp_fail((code), __VA_ARGS__)

/* Puts "prefix: " in front of the thread's message and returns code. */
vlp_status vlp_fail_in(vlp_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The thread's last message, never NULL; borrowed until the thread's next failure. */
const char *vlp_error(void);

/* The name of a code in words, for instance "not found". */
const char *vlp_status_name(vlp_status code);

/* Returns from the function on failure. */
#define VLP_TRY(expression)                                                                        \
    do {                                                                                           \
        vlp_status vlp_try_status_ = (expression);                                                 \
        if (vlp_try_status_ != VLP_OK) return vlp_try_status_;                                     \
    } while (0)

/* Sets `status` and jumps to the function's one `done:` label on failure. */
#define VLP_TRY_DONE(expression)                                                                   \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != VLP_OK) goto done;                                                           \
    } while (0)

_Noreturn void vlp_assert_failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* VLP_ASSERT(condition, "message %d", value): ends the program on a programming error. */
#define VLP_ASSERT(condition, ...)                                                                 \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) vlp_assert_failed(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

#define VLP_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
