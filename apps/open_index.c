#include "apps/open_index.h"

#include "apps/cli.h"
#include "datasets/verify.h"

#include <errno.h>
#include <string.h>

void cli_skipped(const char *path, const char *reason, FILE *errors) {
    cli_progress_end();
    if (!cli_quiet()) fprintf(stderr, "skipped %s: %s\n", path, reason);
    if (errors) fprintf(errors, "%s\t%s\n", path, reason);
}

static bool on_progress(int64_t done, int64_t total, void *user) {
    (void)user;
    cli_progress("checking pictures: %lld of %lld", (long long)done, (long long)total);
    return !cli_stop;
}

static void on_bad(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                   void *user) {
    (void)row;
    (void)reason;
    cli_skipped(path, detail, user);
}

vlp_status cli_open_verified(vlp_index **out, const char *path, FILE *errors, int64_t *bad) {
    vlp_verify_options options = {.progress = on_progress, .bad = on_bad, .user = errors};
    vlp_verify_report report = {0};
    vlp_status status = vlp_index_open_verified(out, path, &options, &report);
    cli_progress_end();
    *bad = report.bad;
    return status;
}

vlp_status cli_open_errors(FILE **out, const char *path) {
    *out = path ? fopen(path, "we") : NULL;
    if (path && !*out) return VLP_FAIL(VLP_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    return VLP_OK;
}
