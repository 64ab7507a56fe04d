/* Whether tests/valgrind.sh runs the program: some fifty times slower, so that loops are shorter
 * and waits longer, and with an allocator of its own, so that allocations cannot be counted. */
#ifndef VLP_TESTS_VALGRIND_H
#define VLP_TESTS_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool under_valgrind(void) {
    return getenv("VLP_UNDER_VALGRIND") != NULL;
}

#endif
