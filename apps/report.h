/* Readable tables that several commands print. */
#ifndef VLP_APPS_REPORT_H
#define VLP_APPS_REPORT_H

#include "core/json.h"

/* vlp_index_stats of the index at path; it is opened for reading only. */
vlp_status cli_index_stats(const char *path, vlp_json **out);
/* For people, to stdout; `all` adds sources, lengths, sizes, scripts and reasons. */
void cli_print_stats(const char *path, const vlp_json *stats, bool all);

#endif
