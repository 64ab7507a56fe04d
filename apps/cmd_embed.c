#include "apps/commands.h"
#include "apps/open_index.h"

#include "core/json.h"
#include "train/embed.h"

#include <stdio.h>

static const cli_flag flags[] = {
    {"--model", 'm', "MODEL", "model folder or run folder"},
    {"--batch", 'b', "N", "pictures encoded at a time (64)"},
    {"--errors", 0, "FILE", "writes every skipped picture with its reason to FILE"},
    {"--json", 0, NULL, "counts as one JSON object on stdout"},
    {NULL, 0, NULL, NULL},
};

static void on_progress(const vlp_embed_progress *p, void *user) {
    (void)user;
    char left[32];
    cli_progress("%lld of %lld pictures  %.1f/s  %s left", (long long)p->done, (long long)p->total,
                 p->per_second, cli_duration(p->seconds_left, left));
}

static void on_skipped(const char *path, const char *reason, void *errors) {
    cli_skipped(path, reason, errors);
}

static void print_report(const cli_args *args, const vlp_embedder *e, const vlp_embed_report *r,
                         int64_t bad) {
    char model[33], time[32];
    vlp_embed_model_id(e, model);
    double rate = r->seconds > 0 ? (double)r->embedded / r->seconds : 0;
    if (r->damaged > 0 && !cli_quiet())
        fprintf(stderr, "%lld damaged embeddings were thrown away and made again\n",
                (long long)r->damaged);
    if (!cli_quiet())
        fprintf(stderr,
                "%lld embedded in %s (%.1f/s), %lld were already, %lld skipped, %lld files gone\n",
                (long long)r->embedded, cli_duration(r->seconds, time), rate, (long long)r->present,
                (long long)(r->skipped + bad), (long long)r->gone);
    if (!cli_has(args, "--json")) return;
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "images", r->present + r->embedded);
    vlp_json_set_int(json, "embedded", r->embedded);
    vlp_json_set_int(json, "already", r->present);
    vlp_json_set_int(json, "skipped", r->skipped + bad);
    vlp_json_set_int(json, "gone", r->gone);
    if (r->damaged > 0) vlp_json_set_int(json, "damaged", r->damaged);
    vlp_json_set_int(json, "dimensions", vlp_embedder_width(e));
    vlp_json_set_string(json, "model", model);
    vlp_json_set_double(json, "images_per_s", rate);
    cli_print_json(json);
}

static vlp_status embed(const cli_args *args, FILE *errors, int64_t *skipped) {
    int64_t batch, bad = 0;
    const char *folder = cli_text(args, "--model", NULL);
    VLP_TRY(cli_int(args, "--batch", 64, 1, 4096, &batch));
    vlp_index *index = NULL;
    vlp_embedder *e = NULL;
    vlp_embed_report report;
    vlp_embed_options options = {.batch = batch,
                                 .stop = &cli_stop,
                                 .progress = on_progress,
                                 .skipped = on_skipped,
                                 .user = errors};
    vlp_status status = vlp_embedder_open(&e, folder, batch);
    if (status == VLP_OK) status = cli_open_verified(&index, args->positional[0], errors, &bad);
    if (status == VLP_OK) {
        vlp_index_free(index);
        status = vlp_index_open(&index, args->positional[0], VLP_DB_WRITE);
    }
    if (status == VLP_OK) status = vlp_embed_catalogue(e, index, folder, &options, &report);
    if (status == VLP_OK) {
        cli_progress_end();
        print_report(args, e, &report, bad);
        *skipped = bad + report.skipped + report.gone;
    }
    vlp_index_free(index);
    vlp_embedder_free(e);
    return status;
}

static int run(const cli_args *args) {
    if (args->n_positional != 1 || !cli_has(args, "--model"))
        return cli_usage("embed needs one index and a model: vlp embed pairs.db --model run");
    FILE *errors;
    int64_t skipped = 0;
    cli_watch_signals();
    vlp_status status = cli_open_errors(&errors, cli_text(args, "--errors", NULL));
    if (status != VLP_OK) return cli_fail(status);
    status = embed(args, errors, &skipped);
    if (errors) fclose(errors);
    if (status != VLP_OK) return cli_fail(status);
    return skipped > 0 ? EXIT_SKIPPED : EXIT_DONE;
}

const cli_command cmd_embed = {
    .name = "embed",
    .summary = "computes what is missing of a catalogue's embeddings",
    .usage = "DB --model MODEL [options]",
    .details =
        "Saved every few seconds: Ctrl-C loses seconds, and the same command goes on. Pictures\n"
        "that cannot be read, and files that have moved or gone, are named; exit code 3 then.",
    .examples =
        "  vlp embed photos.db --model run\n"
        "  vlp index photos.db ~/Pictures && vlp embed photos.db --model run    (nightly)\n",
    .flags = flags,
    .run = run,
};
