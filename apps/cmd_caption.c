#include "apps/commands.h"
#include "apps/generate_flags.h"
#include "apps/open_index.h"
#include "apps/paths.h"

#include "core/json.h"
#include "train/captioner.h"

#include <stdio.h>

static const cli_flag flags[] = {
    {"--prompt", 'p', "TEXT", "what every caption begins with"},
    CLI_GENERATE_FLAGS("5", "20"),
    {"--batch", 'b', "N", "pictures at a time (16)"},
    {"--errors", 0, "FILE", "writes every skipped picture with its reason to FILE"},
    {"--json", 0, NULL, "a JSON object a picture"},
    {NULL, 0, NULL, NULL},
};

typedef struct {
    FILE *errors;
    bool json;
    int64_t done, total, skipped;
} job;

static void print(const vlp_captioned *p, const job *j) {
    if (!j->json) {
        printf("%s\t%s\n", p->path, p->caption);
        return;
    }
    vlp_json *line = vlp_json_new_object();
    vlp_json_set_string(line, "image", p->path);
    vlp_json_set_string(line, "caption", p->caption);
    cli_print_json(line);
}

static bool on_picture(const vlp_captioned *p, void *user) {
    job *j = user;
    j->done++;
    if (p->reason) {
        j->skipped++;
        cli_skipped(p->path, p->reason, j->errors);
    } else {
        print(p, j);
    }
    if (j->total > 1)
        cli_progress("%lld of %lld pictures", (long long)j->done, (long long)j->total);
    return !cli_stop && !ferror(stdout);
}

static void on_unreadable(const char *path, void *user) {
    job *j = user;
    j->skipped++;
    cli_skipped(path, "this folder cannot be listed", j->errors);
}

static vlp_status caption(const cli_args *args, job *j, const cli_list *paths) {
    vlp_captioner_options o = {.generate = vlp_generate_defaults(),
                               .prompt = cli_text(args, "--prompt", NULL)};
    vlp_captioner *c;
    VLP_TRY(cli_generate(args, &o.generate));
    VLP_TRY(cli_int(args, "--batch", 16, 1, 1024, &o.batch));
    if (o.batch > paths->count) o.batch = paths->count;
    VLP_TRY(vlp_captioner_open(&c, args->positional[0], &o));
    vlp_status status =
        vlp_captioner_files(c, (const char *const *)paths->items, paths->count, on_picture, j);
    vlp_captioner_free(c);
    if (status == VLP_OK && cli_stop)
        return VLP_FAIL(VLP_ERR_INTERRUPTED, "interrupted after %lld of %lld pictures",
                        (long long)j->done, (long long)j->total);
    return status;
}

static vlp_status find(const cli_args *args, job *j, cli_list *paths) {
    VLP_TRY(cli_open_errors(&j->errors, cli_text(args, "--errors", NULL)));
    VLP_TRY(cli_paths(paths, args->positional + 1, args->n_positional - 1, on_unreadable, j));
    j->total = paths->count;
    if (j->total > 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "no pictures under %s", args->positional[1]);
}

static int run(const cli_args *args) {
    if (args->n_positional < 2)
        return cli_usage("caption needs a model and pictures: vlp caption run photo.jpg");
    cli_list paths = {0};
    job j = {.json = cli_has(args, "--json")};
    cli_watch_signals();
    vlp_status status = find(args, &j, &paths);
    if (status == VLP_OK) status = caption(args, &j, &paths);
    if (j.errors) fclose(j.errors);
    cli_list_free(&paths);
    if (status != VLP_OK) return cli_fail(status);
    return j.skipped > 0 ? EXIT_SKIPPED : EXIT_DONE;
}

const cli_command cmd_caption = {
    .name = "caption",
    .summary = "writes captions for pictures",
    .usage = "MODEL IMAGE... [options]",
    .details =
        "MODEL is a run of the recipe blip, or a folder with BLIP's captioning checkpoint "
        "(official\n"
        "or Hugging Face's names). IMAGE is a file, a folder (walked in name order), or - for a "
        "list\n"
        "of paths on standard input. Lengths count tokens, the first and the prompt's included.\n"
        "Pictures that cannot be read are named on stderr; exit code 3 then.",
    .examples = "  vlp caption run photo.jpg\n"
                "  vlp caption run photos/ --json >captions.jsonl\n"
                "  vlp caption run photo.jpg --prompt \"a picture of\" --beams 5 --max-length 30\n"
                "  vlp caption run photo.jpg --sample --top-p 0.9 --seed 7\n",
    .flags = flags,
    .run = run,
};
