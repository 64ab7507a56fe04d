#include "apps/commands.h"
#include "apps/generate_flags.h"
#include "apps/pictures.h"

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
    cli_pictures pictures;
    bool json;
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
    if (!p->reason) print(p, j);
    return cli_pictures_count(&j->pictures, p->path, p->reason, 1);
}

static vlp_status caption(const cli_args *args, job *j) {
    vlp_captioner_options o = {.generate = vlp_generate_defaults(),
                               .prompt = cli_text(args, "--prompt", NULL)};
    const cli_list *paths = &j->pictures.paths;
    vlp_captioner *c;
    VLP_TRY(cli_generate(args, &o.generate));
    VLP_TRY(cli_int(args, "--batch", 16, 1, 1024, &o.batch));
    if (o.batch > paths->count) o.batch = paths->count;
    VLP_TRY(vlp_captioner_open(&c, args->positional[0], &o));
    vlp_status status =
        vlp_captioner_files(c, (const char *const *)paths->items, paths->count, on_picture, j);
    vlp_captioner_free(c);
    return status == VLP_OK ? cli_pictures_interrupted(&j->pictures) : status;
}

static int run(const cli_args *args) {
    if (args->n_positional < 2)
        return cli_usage("caption needs a model and pictures: vlp caption run photo.jpg");
    job j = {.json = cli_has(args, "--json")};
    cli_watch_signals();
    vlp_status status = cli_pictures_find(&j.pictures, args);
    if (status == VLP_OK) status = caption(args, &j);
    return cli_pictures_end(&j.pictures, status);
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
