#include "apps/commands.h"
#include "apps/open_index.h"

#include "core/file.h"
#include "core/json.h"
#include "train/report.h"

#include <stdio.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--data", 'd', "DB", "the index to evaluate on"},
    {"--split", 0, "NAME", "its split (test)"},
    {"--source", 0, "NAME", "only this source (vlp stats lists the names)"},
    {"--max", 0, "N", "the first N pictures, in the index's order by content"},
    {"--rerank", 0, "K", "retrieval: the matching head orders the best K anew (ALBEF: 128)"},
    {"--only", 0, "WHAT", "retrieval or zero-shot"},
    {"--classes", 'c', "FILE|A,B,C", "class names: zero-shot accuracy against the rows' labels"},
    {"--templates", 't', "FILE", "prompts with {} for the class, one a line; averaged"},
    {"--pixels", 0, NULL, "adds the yardstick without learning: the nearest training picture"},
    {"--train-split", 0, "NAME", "where the yardstick looks (train)"},
    {"--train-source", 0, "NAME", "the source it looks in (default: --source)"},
    {"--pixel-side", 0, "N", "it compares pictures of N x N pixels (32)"},
    {"--confusion", 0, "FILE", "writes the confusion matrix as CSV"},
    {"--report", 0, "FILE", "writes a self-contained HTML page"},
    {"--batch", 'b', "N", "pictures encoded at a time (64)"},
    {"--json", 0, NULL, "the figures as one JSON object on stdout"},
    {NULL, 0, NULL, NULL},
};

static const cli_pair needs[] = {{"--templates", "--classes"},   {"--confusion", "--classes"},
                                 {"--pixel-side", "--pixels"},   {"--train-split", "--pixels"},
                                 {"--train-source", "--pixels"}, {NULL, NULL}};

typedef struct {
    vlp_embedder *e;
    vlp_index *index;
    vlp_eval_set set;
    cli_list classes, templates;
    vlp_eval_watch watch;
    const char *doing; /* for the progress line */
    bool want_retrieval, want_zero_shot, want_pixels;
    vlp_retrieval retrieval;
    vlp_zero_shot zero_shot;
    vlp_pixel_yardstick pixels;
} evaluation;

static const char *const *texts_of(const cli_list *list) {
    return (const char *const *)list->items;
}

static void print_recall(const char *what, const double *got, const double *chance) {
    printf("%s", what);
    for (int k = 0; k < VLP_RECALL_LEVELS; k++)
        printf("  R@%d %.2f %% (chance %.2f %%)", vlp_recall_at[k], 100 * got[k], 100 * chance[k]);
    putchar('\n');
}

static void print_classes(const evaluation *v) {
    for (int64_t c = 0; c < v->zero_shot.classes; c++) {
        int64_t pictures, right;
        vlp_class_recall(&v->zero_shot, c, &pictures, &right);
        if (pictures > 0)
            printf("  %-24s %6.2f %%  (%lld of %lld)\n", v->classes.items[c],
                   100 * (double)right / (double)pictures, (long long)right, (long long)pictures);
    }
}

static void print_pixels(const vlp_pixel_yardstick *p) {
    printf("yardstick: %lld pictures against %lld training pictures\n", (long long)p->images,
           (long long)p->train_images);
    if (p->label_top1 >= 0) printf("label top-1 %.2f %%\n", 100 * p->label_top1);
    if (p->caption_at1 >= 0) printf("caption right at 1 %.2f %%\n", 100 * p->caption_at1);
    printf("  (%s)\n", vlp_protocol_pixels);
}

static void print_text(const evaluation *v) {
    const char *split = v->set.split;
    if (v->want_retrieval) {
        printf("retrieval, split %s: %lld pictures, %lld captions\n", split,
               (long long)v->retrieval.images, (long long)v->retrieval.captions);
        print_recall("image to text", v->retrieval.image_to_text,
                     v->retrieval.image_to_text_chance);
        print_recall("text to image", v->retrieval.text_to_image,
                     v->retrieval.text_to_image_chance);
        printf("  (%s)\n", vlp_protocol_retrieval);
        if (v->set.rerank > 0)
            printf("  (the best %lld both ways in the order of the matching head)\n",
                   (long long)v->set.rerank);
    }
    if (v->want_zero_shot) {
        const vlp_zero_shot *z = &v->zero_shot;
        double five = 5 * z->chance < 1 ? 5 * z->chance : 1;
        printf("zero-shot, split %s: %lld pictures, %lld classes, %lld templates\n", split,
               (long long)z->images, (long long)z->classes, (long long)z->templates);
        printf("top-1 %.2f %% (chance %.2f %%)  top-5 %.2f %% (chance %.2f %%)\n", 100 * z->top1,
               100 * z->chance, 100 * z->top5, 100 * five);
        print_classes(v);
        printf("  (%s)\n", vlp_protocol_zero_shot);
    }
    if (v->want_pixels) print_pixels(&v->pixels);
}

static vlp_json *recall_json(const double *recall) {
    vlp_json *json = vlp_json_new_object();
    for (int k = 0; k < VLP_RECALL_LEVELS; k++) {
        char key[16];
        snprintf(key, sizeof key, "R@%d", vlp_recall_at[k]);
        vlp_json_set_double(json, key, recall[k]);
    }
    return json;
}

static void add_retrieval(vlp_json *json, const vlp_retrieval *r) {
    vlp_json_set(json, "image_to_text", recall_json(r->image_to_text));
    vlp_json_set(json, "text_to_image", recall_json(r->text_to_image));
    vlp_json *chance = vlp_json_new_object();
    vlp_json_set(chance, "image_to_text", recall_json(r->image_to_text_chance));
    vlp_json_set(chance, "text_to_image", recall_json(r->text_to_image_chance));
    vlp_json_set(json, "chance", chance);
}

static void add_zero_shot(vlp_json *json, const evaluation *v) {
    const vlp_zero_shot *z = &v->zero_shot;
    vlp_json *out = vlp_json_new_object(), *classes = vlp_json_new_object();
    vlp_json_set_double(out, "top1", z->top1);
    vlp_json_set_double(out, "top5", z->top5);
    vlp_json_set_double(out, "chance", z->chance);
    vlp_json_set_int(out, "images", z->images);
    vlp_json_set_int(out, "classes", z->classes);
    vlp_json_set_int(out, "templates", z->templates);
    for (int64_t c = 0; c < z->classes; c++) {
        int64_t pictures, right;
        vlp_class_recall(z, c, &pictures, &right);
        if (pictures > 0)
            vlp_json_set_double(classes, v->classes.items[c], (double)right / (double)pictures);
    }
    vlp_json_set(out, "per_class", classes);
    vlp_json_set(json, "zero_shot", out);
}

static void print_json(const evaluation *v) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "split", v->set.split);
    if (v->set.source) vlp_json_set_string(json, "source", v->set.source);
    vlp_json_set_int(json, "images", v->want_retrieval ? v->retrieval.images : v->zero_shot.images);
    if (v->want_retrieval) {
        vlp_json_set_int(json, "captions", v->retrieval.captions);
        if (v->set.rerank > 0) vlp_json_set_int(json, "rerank", v->set.rerank);
        add_retrieval(json, &v->retrieval);
    }
    if (v->want_zero_shot) add_zero_shot(json, v);
    if (v->want_pixels) {
        vlp_json *pixels = vlp_json_new_object();
        vlp_json_set_int(pixels, "train_images", v->pixels.train_images);
        if (v->pixels.label_top1 >= 0)
            vlp_json_set_double(pixels, "label_top1", v->pixels.label_top1);
        if (v->pixels.caption_at1 >= 0)
            vlp_json_set_double(pixels, "caption_at1", v->pixels.caption_at1);
        vlp_json_set(json, "pixels", pixels);
    }
    cli_print_json(json);
}

static void on_progress(const char *what, int64_t done, int64_t total, void *user) {
    const evaluation *v = user;
    cli_progress("%s: %lld of %lld %s", v->doing, (long long)done, (long long)total, what);
}

static vlp_status measure(const cli_args *args, evaluation *v) {
    v->watch = (vlp_eval_watch){&cli_stop, on_progress, v};
    v->set.watch = &v->watch;
    if (v->want_retrieval) {
        v->doing = "retrieval";
        VLP_TRY(vlp_evaluate_retrieval(v->e, v->index, &v->set, &v->retrieval));
    }
    if (v->want_zero_shot) {
        v->doing = "zero-shot";
        VLP_TRY(vlp_evaluate_zero_shot(v->e, v->index, &v->set, texts_of(&v->classes),
                                       v->classes.count, texts_of(&v->templates),
                                       v->templates.count, &v->zero_shot));
    }
    if (!v->want_pixels) return VLP_OK;
    int64_t side;
    VLP_TRY(cli_int(args, "--pixel-side", 32, 1, 512, &side));
    vlp_eval_set train = {.split = cli_text(args, "--train-split", "train"),
                          .source = cli_text(args, "--train-source", v->set.source),
                          .watch = &v->watch};
    v->doing = "yardstick";
    return vlp_evaluate_pixels(v->index, &train, &v->set, (int)side, &v->pixels);
}

static vlp_status write_files(const cli_args *args, evaluation *v) {
    const char *confusion = cli_text(args, "--confusion", NULL);
    const char *report = cli_text(args, "--report", NULL);
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    if (confusion) status = vlp_confusion_csv(&text, &v->zero_shot, texts_of(&v->classes));
    if (confusion && status == VLP_OK) status = vlp_file_write(confusion, text.data, text.len);
    vlp_buf_clear(&text);
    vlp_report about = {.title = args->positional[0],
                        .data = cli_text(args, "--data", ""),
                        .split = v->set.split,
                        .source = v->set.source,
                        .retrieval = v->want_retrieval ? &v->retrieval : NULL,
                        .zero_shot = v->want_zero_shot ? &v->zero_shot : NULL,
                        .classes = texts_of(&v->classes),
                        .templates = texts_of(&v->templates),
                        .pixels = v->want_pixels ? &v->pixels : NULL};
    if (report && status == VLP_OK)
        status = vlp_report_html(&text, &about, v->e, v->index, &v->set);
    if (report && status == VLP_OK) status = vlp_file_write(report, text.data, text.len);
    vlp_buf_free(&text);
    return status;
}

static vlp_status read_wishes(const cli_args *args, evaluation *v) {
    const char *only = cli_text(args, "--only", NULL);
    bool has_classes = cli_has(args, "--classes");
    if (only && strcmp(only, "retrieval") != 0 && strcmp(only, "zero-shot") != 0)
        return VLP_FAIL(VLP_ERR_USAGE, "--only is \"%s\"; it must be retrieval or zero-shot", only);
    v->want_retrieval = !only || strcmp(only, "retrieval") == 0;
    v->want_zero_shot = has_classes && (!only || strcmp(only, "zero-shot") == 0);
    v->want_pixels = cli_has(args, "--pixels");
    if (!v->want_retrieval && !v->want_zero_shot)
        return VLP_FAIL(VLP_ERR_USAGE, "--only zero-shot needs --classes FILE|A,B,C");
    if (has_classes && !v->want_zero_shot)
        return VLP_FAIL(VLP_ERR_USAGE, "--only retrieval and --classes contradict each other");
    v->set.split = cli_text(args, "--split", "test");
    v->set.source = cli_text(args, "--source", NULL);
    VLP_TRY(cli_int(args, "--max", 0, 1, INT64_MAX / 2, &v->set.max_images));
    VLP_TRY(cli_int(args, "--rerank", 0, 1, 10000, &v->set.rerank));
    if (v->set.rerank > 0 && !v->want_retrieval)
        return VLP_FAIL(VLP_ERR_USAGE, "--rerank is of retrieval; --only zero-shot has none");
    if (has_classes) VLP_TRY(cli_classes_read(&v->classes, cli_text(args, "--classes", "")));
    return cli_has(args, "--templates")
               ? cli_list_read(&v->templates, cli_text(args, "--templates", ""))
               : VLP_OK;
}

static vlp_status evaluate(const cli_args *args, evaluation *v) {
    int64_t batch, bad;
    VLP_TRY(cli_int(args, "--batch", 64, 1, 4096, &batch));
    VLP_TRY(read_wishes(args, v));
    VLP_TRY(vlp_embedder_open(&v->e, args->positional[0], batch));
    VLP_TRY(cli_open_verified(&v->index, cli_text(args, "--data", ""), NULL, &bad));
    VLP_TRY(measure(args, v));
    cli_progress_end();
    if (cli_has(args, "--json"))
        print_json(v);
    else
        print_text(v);
    return write_files(args, v);
}

static int run(const cli_args *args) {
    if (args->n_positional != 1 || !cli_has(args, "--data"))
        return cli_usage("eval needs one model and an index: vlp eval run --data pairs.db");
    evaluation v = {0};
    cli_watch_signals();
    vlp_status status = evaluate(args, &v);
    vlp_zero_shot_free(&v.zero_shot);
    vlp_index_free(v.index);
    vlp_embedder_free(v.e);
    cli_list_free(&v.classes);
    cli_list_free(&v.templates);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}

const cli_command cmd_eval = {
    .name = "eval",
    .summary = "measures retrieval and zero-shot accuracy on held-out pictures",
    .usage = "MODEL --data DB [--split test] [options]",
    .details =
        "Every figure stands beside chance; --pixels adds what the nearest training picture in\n"
        "raw pixels would have answered. A label is a row's label field: a class name, or the\n"
        "number of its line in --classes.",
    .examples = "  vlp eval run --data pairs.db --split test\n"
                "  vlp eval run --data shop.db --classes names.txt --templates prompts.txt \\\n"
                "      --only zero-shot --confusion confusion.csv --pixels\n"
                "  vlp eval run --data pairs.db --report report.html --json\n",
    .flags = flags,
    .needs = needs,
    .run = run,
};
