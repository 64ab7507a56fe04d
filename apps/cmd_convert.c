#include "apps/commands.h"

#include "core/suggest.h"
#include "fusion/convert.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const cli_flag flags[] = {
    {"--to", 0, "FORMAT", "hf, openclip, openai, albef, blip or vlp"},
    {"--config", 0, "FILE", "the sizes of a file of weights; default: config.json beside it"},
    {NULL, 0, NULL, NULL},
};

/* Writing over what is read would destroy it. */
static bool same_place(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int run(const cli_args *args) {
    if (args->n_positional != 2)
        return cli_usage("convert needs a model and a new folder: vlp convert SRC DST --to hf");
    const char *format = cli_text(args, "--to", NULL);
    if (!format) return cli_usage("convert needs --to hf, openclip, openai, albef, blip or vlp");
    size_t n = 0;
    bool known = false;
    for (; vlp_convert_formats[n]; n++) known |= strcmp(format, vlp_convert_formats[n]) == 0;
    char hint[64];
    if (!known)
        return cli_usage(
            "--to %s is not a format%s; there are hf, openclip, openai, albef, blip, vlp", format,
            vlp_suggest_text(format, vlp_convert_formats, n, hint, sizeof hint));
    const char *from = args->positional[0], *to = args->positional[1];
    if (same_place(from, to)) return cli_usage("%s is read and would be written; name another", to);
    vlp_status status = vlp_convert(from, cli_text(args, "--config", NULL), to, format);
    if (status != VLP_OK) return cli_fail(status);
    puts(to);
    return EXIT_DONE;
}

const cli_command cmd_convert = {
    .name = "convert",
    .summary = "writes a model in another implementation's format",
    .usage = "SRC DST --to hf|openclip|openai|albef|blip|vlp [--config FILE]",
    .details =
        "SRC is a model folder or a file of weights: a run of vlp pretrain, OpenAI's CLIP (its\n"
        ".pt too), open_clip, Hugging Face's CLIPModel, SiglipModel or BLIP, ALBEF, BLIP. Numbers\n"
        "keep their bits and their type; what the format cannot hold is said. Tokenizer and\n"
        "preprocessing files go along. --to hf writes the class that fits the model.\n",
    .examples = "  vlp convert ViT-B-32.pt clip-hf --to hf\n"
                "  vlp convert clip-vit-base-patch32 clip-open --to openclip\n"
                "  vlp convert run albef --to albef\n",
    .flags = flags,
    .run = run,
};
