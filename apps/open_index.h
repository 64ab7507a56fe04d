/* An index opened for a command, with pictures that nobody has decoded yet verified first. */
#ifndef VLP_APPS_OPEN_INDEX_H
#define VLP_APPS_OPEN_INDEX_H

#include "datasets/index.h"

#include <stdio.h>

/* For reading. The index must exist. Bad pictures found now are named on stderr and, with `errors`,
 * there; *bad counts them. */
vlp_status cli_open_verified(vlp_index **out, const char *path, FILE *errors, int64_t *bad);

/* "skipped PATH: REASON" on stderr, "PATH\tREASON" in errors (may be NULL). */
void cli_skipped(const char *path, const char *reason, FILE *errors);

/* The file behind --errors, or NULL without the option; an error says why it cannot be written. */
vlp_status cli_open_errors(FILE **out, const char *path);

#endif
