/* Files that options name for writing must not be files that the command reads. */
#ifndef VLP_APPS_OUTPUTS_H
#define VLP_APPS_OUTPUTS_H

#include "apps/cli.h"

/* Refuses an output (--html, --report, --confusion, --errors) that is an existing input, lies among
 * the files of an input folder, is an index, or is no regular file. */
vlp_status cli_check_outputs(const cli_args *args);

#endif
