#include "apps/pictures.h"

#include "apps/open_index.h"

static void on_unreadable(const char *path, void *user) {
    cli_pictures *p = user;
    p->skipped++;
    cli_skipped(path, "this folder cannot be listed", p->errors);
}

vlp_status cli_pictures_find(cli_pictures *out, const cli_args *args) {
    *out = (cli_pictures){0};
    VLP_TRY(cli_open_errors(&out->errors, cli_text(args, "--errors", NULL)));
    VLP_TRY(
        cli_paths(&out->paths, args->positional + 1, args->n_positional - 1, on_unreadable, out));
    if (out->paths.count > 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "no pictures under %s", args->positional[1]);
}

bool cli_pictures_count(cli_pictures *p, const char *path, const char *reason, int64_t quiet) {
    p->done++;
    if (reason) {
        p->skipped++;
        cli_skipped(path, reason, p->errors);
    }
    if (p->paths.count > quiet)
        cli_progress("%lld of %lld pictures", (long long)p->done, (long long)p->paths.count);
    return !cli_stop && !ferror(stdout);
}

vlp_status cli_pictures_interrupted(const cli_pictures *p) {
    if (!cli_stop) return VLP_OK;
    return VLP_FAIL(VLP_ERR_INTERRUPTED, "interrupted after %lld of %lld pictures",
                    (long long)p->done, (long long)p->paths.count);
}

int cli_pictures_end(cli_pictures *p, vlp_status status) {
    if (p->errors) fclose(p->errors);
    cli_list_free(&p->paths);
    if (status != VLP_OK) return cli_fail(status);
    return p->skipped > 0 ? EXIT_SKIPPED : EXIT_DONE;
}
