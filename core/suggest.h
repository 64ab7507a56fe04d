/* "Did you mean ...?" for unknown options, keys, tensors and recipe names. */
#ifndef VLP_CORE_SUGGEST_H
#define VLP_CORE_SUGGEST_H

#include <stddef.h>

/* The entry of known [n] nearest to `wanted` by edit distance (insert, delete, replace, swap of two
 * neighbours), the first among equals; NULL when none is near enough to be a slip: at most a third
 * of the letters. NULL entries are passed over, names beyond 255 bytes too. The result is borrowed
 * from `known`. */
const char *vlp_suggest(const char *wanted, const char *const *known, size_t n);

/* For the end of a message: writes "; did you mean \"x\"?" or "" into out [size] and returns out.
 */
const char *vlp_suggest_text(const char *wanted, const char *const *known, size_t n, char *out,
                             size_t size);

#endif
