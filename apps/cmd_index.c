#include "apps/commands.h"

#include "core/file.h"
#include "datasets/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--format", 'f', "NAME",
     "auto, folder, imagefolder, csv, tsv, jsonl, coco, karpathy, albef, webdataset (tar, zip), "
     "vqa, "
     "genome, llava, cc, flickr, idx, text"},
    {"--name", 'n', "NAME", "the source's name in mixtures and stats (default: from its path)"},
    {"--images", 0, "DIR",
     "the folder that holds the images, and all of them (default: beside the source)"},
    {"--image-key", 0, "KEY", "column or key of the image path"},
    {"--caption-key", 0, "KEY", "column or key of the caption"},
    {"--split", 0, "NAME", "every row goes to this split"},
    {"--split-hash", 0, "A,B,C", "train,val,test in per cent, by image content"},
    {"--classes", 0, "FILE", "idx, webdataset: a class name a line"},
    {"--templates", 0, "FILE", "class datasets: a caption a line, {} = the class"},
    {"--annotations", 0, "FILE",
     "vqa: the answers (default: the file that goes with the questions)"},
    {"--map", 0, "FILE", "cc: lines of a web address, a tab and the image file"},
    {"--max-pixels", 0, "N", "larger images are skipped (default: 178956970)"},
    {"--max-bytes", 0, "N", "images with longer files are skipped (default: 1073741824)"},
    {"--clean", 0, "HOW", "captions: basic, or albef (lower case, no punctuation, 30 words)"},
    {"--dedupe", 0, NULL, "the same bytes come in once; their captions join the first picture's"},
    {"--check", 0, NULL, "decodes every image, in parallel"},
    {"--errors", 0, "FILE", "writes every skipped row with its reason to FILE"},
    {"--json", 0, NULL, "counts as one JSON object on stdout"},
    {NULL, 0, NULL, NULL},
};

static const cli_pair clashes[] = {{"--split", "--split-hash"}, {NULL, NULL}};

static bool progress(int64_t rows, void *user) {
    (void)user;
    cli_progress("%lld rows", (long long)rows);
    return !cli_stop;
}

static bool checking(int64_t done, int64_t total, void *user) {
    (void)user;
    cli_progress("checking pictures: %lld of %lld", (long long)done, (long long)total);
    return !cli_stop;
}

typedef struct {
    FILE *errors;
    const char *source; /* as the user wrote it */
    char *real;         /* as the index has it */
} import_context;

/* "SOURCE:12: bad row: no tab", or "a.jpg (SOURCE:12): missing: ...": a row number stands with the
 * file whose rows it counts, never with the picture. */
static void describe(char *out, size_t size, const import_context *c, const char *path,
                     int64_t row) {
    bool source = c->real && strcmp(path, c->real) == 0;
    if (row > 0 && source)
        snprintf(out, size, "%s:%lld", c->source, (long long)row);
    else if (row > 0)
        snprintf(out, size, "%s (%s:%lld)", path, c->source, (long long)row);
    else
        snprintf(out, size, "%s", source ? c->source : path);
}

static void skipped(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                    void *user) {
    const import_context *c = user;
    char place[4352];
    describe(place, sizeof place, c, path, row);
    cli_progress_end();
    const char *colon = detail[0] ? ": " : "";
    if (!cli_quiet())
        fprintf(stderr, "skipped %s: %s%s%s\n", place, vlp_skip_name(reason), colon, detail);
    if (c->errors) fprintf(c->errors, "%s\t%s\t%s\n", place, vlp_skip_name(reason), detail);
}

static vlp_status read_options(const cli_args *args, vlp_import_options *o) {
    *o = (vlp_import_options){.format = cli_text(args, "--format", NULL),
                              .name = cli_text(args, "--name", NULL),
                              .images = cli_text(args, "--images", NULL),
                              .image_key = cli_text(args, "--image-key", NULL),
                              .caption_key = cli_text(args, "--caption-key", NULL),
                              .split = cli_text(args, "--split", NULL),
                              .split_hash = cli_text(args, "--split-hash", NULL),
                              .classes = cli_text(args, "--classes", NULL),
                              .templates = cli_text(args, "--templates", NULL),
                              .annotations = cli_text(args, "--annotations", NULL),
                              .map = cli_text(args, "--map", NULL),
                              .clean = cli_text(args, "--clean", NULL),
                              .dedupe = cli_has(args, "--dedupe"),
                              .check = cli_has(args, "--check"),
                              .progress = progress,
                              .checking = checking,
                              .skipped = skipped};
    VLP_TRY(cli_int(args, "--max-pixels", 0, 1, (int64_t)1 << 40, &o->max_pixels));
    return cli_int(args, "--max-bytes", 0, 1, (int64_t)1 << 40, &o->max_bytes);
}

static vlp_status import_sources(const cli_args *args, vlp_index *index,
                                 const vlp_import_options *options, import_context *context,
                                 vlp_import_report *report) {
    vlp_status status = VLP_OK;
    for (int i = 1; i < args->n_positional && status == VLP_OK; i++) {
        context->source = args->positional[i];
        context->real = realpath(context->source, NULL);
        status = vlp_index_import(index, context->source, options, report);
        free(context->real); /* realpath's own */
        cli_progress_end();
    }
    return status;
}

/* A first import that fails leaves no file behind, unless rows were saved. */
static vlp_status import_all(const cli_args *args, const vlp_import_options *options,
                             import_context *context, vlp_import_report *report) {
    const char *path = args->positional[0];
    bool existed = vlp_path_exists(path);
    vlp_index *index;
    VLP_TRY(vlp_index_open(&index, path, VLP_DB_WRITE));
    vlp_status status = import_sources(args, index, options, context, report);
    bool empty = vlp_index_is_empty(index);
    vlp_index_free(index);
    if (status != VLP_OK && !existed && empty) vlp_index_remove(path);
    return status;
}

static void print_report(const cli_args *args, const vlp_import_report *r) {
    if (cli_has(args, "--json")) {
        cli_print_json(vlp_import_report_json(r));
        return;
    }
    if (cli_quiet()) return;
    fprintf(stderr,
            "%lld images, %lld captions, %lld texts, %lld questions: %lld new, %lld changed, %lld "
            "unchanged, %lld moved, %lld removed, %lld gone, %lld skipped, %lld duplicates\n",
            (long long)r->images, (long long)r->captions, (long long)r->texts,
            (long long)r->questions, (long long)r->added, (long long)r->changed,
            (long long)r->unchanged, (long long)r->moved, (long long)r->removed, (long long)r->gone,
            (long long)r->skipped, (long long)r->duplicates);
}

static int run(const cli_args *args) {
    if (args->n_positional < 2)
        return cli_usage("index needs a database and a source: vlp index pairs.db photos/");
    vlp_import_options options;
    vlp_import_report report = {0};
    vlp_status status = read_options(args, &options);
    if (status != VLP_OK) return cli_fail(status);
    const char *errors = cli_text(args, "--errors", NULL);
    FILE *file = errors ? fopen(errors, "we") : NULL;
    if (errors && !file) return cli_usage("cannot write %s: %s", errors, strerror(errno));
    import_context context = {.errors = file};
    options.user = &context;
    cli_watch_signals();
    status = import_all(args, &options, &context, &report);
    if (file) fclose(file);
    if (status != VLP_OK) return cli_fail(status);
    print_report(args, &report);
    return report.skipped > 0 ? EXIT_SKIPPED : EXIT_DONE;
}

const cli_command cmd_index = {
    .name = "index",
    .summary = "imports image-caption pairs into an index",
    .usage = "DB SOURCE... [options]",
    .details =
        "The format is sniffed; what was recognised is said in a line. Unchanged files cost a\n"
        "stat, so running it again is cheap. Exit code 3: done, but something was skipped.",
    .examples =
        "  vlp index pairs.db photos/                       (photos with .txt beside them)\n"
        "  vlp index pairs.db captions.csv --split-hash 90,5,5\n"
        "  vlp index pairs.db annotations.json --format coco --images train2017/\n",
    .flags = flags,
    .clashes = clashes,
    .run = run,
};
