#include "apps/commands.h"
#include "apps/generate_flags.h"

#include "core/json.h"
#include "train/answerer.h"

#include <stdio.h>

static const cli_flag flags[] = {
    {"--choices", 'c', "FILE|A,B,C",
     "the answer is one of these: a file with one a line, or a list"},
    {"--top", 'k', "K", "choices told for each question (1)"},
    CLI_GENERATE_FLAGS("1", "10"),
    {"--json", 0, NULL, "a JSON object a question"},
    {NULL, 0, NULL, NULL},
};

enum { READ_WHOLE = 128 }; /* choices, as in the references */

typedef struct {
    const char *image;
    bool json, choices;
    int64_t top;
} job;

static void print_json(const job *j, const char *question, const vlp_answer *answers) {
    vlp_json *line = vlp_json_new_object(), *list = vlp_json_new_array();
    vlp_json_set_string(line, "image", j->image);
    vlp_json_set_string(line, "question", question);
    vlp_json_set_string(line, "answer", answers[0].text);
    for (int64_t i = 0; j->choices && i < j->top; i++) {
        vlp_json *one = vlp_json_new_object();
        vlp_json_set_string(one, "answer", answers[i].text);
        vlp_json_set_double(one, "score", answers[i].score);
        vlp_json_append(list, one);
    }
    if (j->choices)
        vlp_json_set(line, "choices", list);
    else
        vlp_json_free(list);
    cli_print_json(line);
}

static void print(const job *j, const char *question, const vlp_answer *answers) {
    if (j->json) {
        print_json(j, question, answers);
        return;
    }
    fputs(answers[0].text, stdout);
    if (j->choices) printf("\t%.4f", answers[0].score);
    for (int64_t i = 1; j->choices && i < j->top; i++)
        printf("\t%s\t%.4f", answers[i].text, answers[i].score);
    putchar('\n');
}

static vlp_status answer(const cli_args *args, job *j, vlp_answerer *a) {
    VLP_TRY(vlp_answerer_look(a, j->image));
    for (int i = 2; i < args->n_positional && !cli_stop; i++) {
        const vlp_answer *answers;
        int64_t n;
        VLP_TRY(vlp_answerer_ask(a, args->positional[i], &answers, &n));
        if (j->top > n) j->top = n;
        print(j, args->positional[i], answers);
    }
    return cli_stop ? VLP_FAIL(VLP_ERR_INTERRUPTED, "interrupted") : VLP_OK;
}

static vlp_status run_all(const cli_args *args, job *j, cli_list *choices) {
    vlp_answerer_options o = {.generate = vlp_generate_defaults(), .k = READ_WHOLE};
    vlp_answerer *a;
    o.generate.min_length = 1;
    o.generate.max_length = 10;
    VLP_TRY(cli_generate(args, &o.generate));
    VLP_TRY(cli_int(args, "--top", 1, 1, READ_WHOLE, &j->top));
    if (j->choices) VLP_TRY(cli_classes_read(choices, cli_text(args, "--choices", "")));
    o.choices = (const char *const *)choices->items;
    o.n_choices = choices->count;
    VLP_TRY(vlp_answerer_open(&a, args->positional[0], &o));
    vlp_status status = answer(args, j, a);
    vlp_answerer_free(a);
    return status;
}

static int run(const cli_args *args) {
    if (args->n_positional < 3)
        return cli_usage("answer needs a model, a picture and a question: vlp answer vqa photo.jpg "
                         "\"what colour is the car?\"");
    cli_list choices = {0};
    job j = {.image = args->positional[1],
             .json = cli_has(args, "--json"),
             .choices = cli_has(args, "--choices")};
    cli_watch_signals();
    vlp_status status = run_all(args, &j, &choices);
    cli_list_free(&choices);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}

const cli_command cmd_answer = {
    .name = "answer",
    .summary = "answers questions about a picture",
    .usage = "MODEL IMAGE QUESTION... [options]",
    .details =
        "MODEL is a folder with BLIP's or ALBEF's checkpoint for visual question answering. An\n"
        "answer a line: written by the model, or the best of --choices with its probability. "
        "ALBEF\n"
        "was made to choose.",
    .examples =
        "  vlp answer vqa photo.jpg \"what colour is the car?\" \"how many people are there?\"\n"
        "  vlp answer vqa photo.jpg \"what is this?\" --choices answers.txt --top 3 --json\n",
    .flags = flags,
    .run = run,
};
