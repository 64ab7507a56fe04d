/* Pictures that a command takes on its command line, one after the other: found, counted, skipped
 * with their reasons.
 *
 *     cli_pictures pictures;
 *     vlp_status status = cli_pictures_find(&pictures, args);
 *     ...
 *     return cli_pictures_end(&pictures, status); */
#ifndef VLP_APPS_PICTURES_H
#define VLP_APPS_PICTURES_H

#include "apps/cli.h"
#include "apps/paths.h"

#include <stdio.h>

typedef struct {
    cli_list paths;
    FILE *errors; /* --errors, or NULL */
    int64_t done, skipped;
} cli_pictures;

/* Those of the arguments after the model; none at all is an error. Ending is due also after a
 * failure. */
vlp_status cli_pictures_find(cli_pictures *out, const cli_args *args);
/* Counts one that is done, skipped when there is a reason; progress where there are more than
 * `quiet`. False when the command is to stop. */
bool cli_pictures_count(cli_pictures *pictures, const char *path, const char *reason,
                        int64_t quiet);
/* VLP_ERR_INTERRUPTED after a signal. */
vlp_status cli_pictures_interrupted(const cli_pictures *pictures);
/* The exit code. */
int cli_pictures_end(cli_pictures *pictures, vlp_status status);

#endif
