#include "apps/commands.h"
#include "apps/pictures.h"

#include "core/json.h"
#include "train/classify.h"

#include <stdio.h>

static const cli_flag flags[] = {
    {"--classes", 'c', "FILE|A,B,C", "class names: a file with one a line, or a list"},
    {"--templates", 't', "FILE", "prompts with {} for the class, one a line; averaged"},
    {"--top", 'k', "K", "classes told for each picture (1)"},
    {"--threshold", 0, "P", "below this probability the answer is \"unknown\""},
    {"--batch", 'b', "N", "pictures encoded at a time (64)"},
    {"--errors", 0, "FILE", "writes every skipped picture with its reason to FILE"},
    {"--json", 0, NULL, "a JSON object a picture"},
    {"--csv", 0, NULL, "CSV with a header"},
    {NULL, 0, NULL, NULL},
};

static const cli_pair clashes[] = {{"--json", "--csv"}, {NULL, NULL}};

typedef struct {
    cli_pictures pictures;
    cli_list classes, templates;
    int64_t top;
    double threshold;
    void (*print)(const vlp_classified *picture, const char *label, void *job);
} job;

static void print_json(const vlp_classified *p, const char *unknown, void *user) {
    const job *j = user;
    vlp_json *line = vlp_json_new_object(), *list = vlp_json_new_array();
    vlp_json_set_string(line, "image", p->path);
    for (int64_t k = 0; k < j->top; k++) {
        vlp_json *one = vlp_json_new_object();
        vlp_json_set_string(one, "label", j->classes.items[p->order[k]]);
        vlp_json_set_double(one, "score", (double)p->probabilities[p->order[k]]);
        if (k == 0 && unknown) {
            vlp_json_set(line, "best", vlp_json_copy(one));
            vlp_json_set_string(one, "label", unknown);
        }
        vlp_json_append(list, one);
        if (unknown) break;
    }
    vlp_json_set(line, "predictions", list);
    cli_print_json(line);
}

static void print_csv(const vlp_classified *p, const char *unknown, void *user) {
    const job *j = user;
    cli_print_csv(p->path);
    for (int64_t k = 0; k < j->top; k++) {
        putchar(',');
        cli_print_csv(k == 0 && unknown ? unknown : j->classes.items[p->order[k]]);
        printf(",%.6g", (double)p->probabilities[p->order[k]]);
    }
    putchar('\n');
}

static void print_text(const vlp_classified *p, const char *unknown, void *user) {
    const job *j = user;
    fputs(p->path, stdout);
    for (int64_t k = 0; k < j->top; k++)
        printf("\t%s\t%.4f", k == 0 && unknown ? unknown : j->classes.items[p->order[k]],
               (double)p->probabilities[p->order[k]]);
    putchar('\n');
}

static bool on_picture(const vlp_classified *p, void *user) {
    enum { FEW = 64 };
    job *j = user;
    if (!p->reason) {
        bool unknown = (double)p->probabilities[p->order[0]] < j->threshold;
        j->print(p, unknown ? "unknown" : NULL, j);
    }
    return cli_pictures_count(&j->pictures, p->path, p->reason, FEW);
}

static void print_header(const job *j) {
    fputs("image,label,score", stdout);
    for (int64_t k = 2; k <= j->top; k++)
        printf(",label%lld,score%lld", (long long)k, (long long)k);
    putchar('\n');
}

static vlp_status classify(const cli_args *args, job *j) {
    int64_t batch;
    const cli_list *paths = &j->pictures.paths;
    vlp_embedder *e;
    vlp_classifier *classifier = NULL;
    VLP_TRY(cli_int(args, "--batch", 64, 1, 4096, &batch));
    VLP_TRY(
        vlp_embedder_open(&e, args->positional[0], batch < paths->count ? batch : paths->count));
    vlp_status status =
        vlp_classifier_open(&classifier, e, (const char *const *)j->classes.items, j->classes.count,
                            (const char *const *)j->templates.items, j->templates.count);
    if (status == VLP_OK && cli_has(args, "--csv")) print_header(j);
    if (status == VLP_OK)
        status = vlp_classify_files(classifier, (const char *const *)paths->items, paths->count,
                                    on_picture, j);
    vlp_classifier_free(classifier);
    vlp_embedder_free(e);
    return status == VLP_OK ? cli_pictures_interrupted(&j->pictures) : status;
}

static vlp_status prepare(const cli_args *args, job *j) {
    VLP_TRY(cli_classes_read(&j->classes, cli_text(args, "--classes", "")));
    if (cli_has(args, "--templates"))
        VLP_TRY(cli_list_read(&j->templates, cli_text(args, "--templates", "")));
    VLP_TRY(cli_int(args, "--top", 1, 1, 1000000, &j->top));
    if (j->top > j->classes.count) j->top = j->classes.count;
    VLP_TRY(cli_double(args, "--threshold", 0, 0, 1, &j->threshold));
    return cli_pictures_find(&j->pictures, args);
}

static int run(const cli_args *args) {
    if (args->n_positional < 2)
        return cli_usage("classify needs a model and pictures: vlp classify run photo.jpg "
                         "--classes cat,dog");
    if (!cli_has(args, "--classes"))
        return cli_usage("classify needs --classes: a file with one name a line, or cat,dog,car");
    job j = {.print = cli_has(args, "--json")  ? print_json
                      : cli_has(args, "--csv") ? print_csv
                                               : print_text};
    cli_watch_signals();
    vlp_status status = prepare(args, &j);
    if (status == VLP_OK) status = classify(args, &j);
    cli_list_free(&j.classes);
    cli_list_free(&j.templates);
    return cli_pictures_end(&j.pictures, status);
}

const cli_command cmd_classify = {
    .name = "classify",
    .summary = "classifies pictures by names that you choose (zero-shot)",
    .usage = "MODEL IMAGE... --classes FILE|A,B,C [options]",
    .details =
        "IMAGE is a file, a folder (walked in name order), or - for a list of paths on standard\n"
        "input. Scores are probabilities over the classes given. Pictures that cannot be read are\n"
        "named on stderr; exit code 3 then.",
    .examples =
        "  vlp classify run photo.jpg --classes \"a cat,a dog,a car\"\n"
        "  vlp classify run photos/ --classes names.txt --templates prompts.txt --top 3 --csv\n"
        "  find . -name '*.png' | vlp classify run - --classes names.txt --threshold 0.5 --json\n",
    .flags = flags,
    .clashes = clashes,
    .run = run,
};
