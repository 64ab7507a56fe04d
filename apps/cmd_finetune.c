#include "apps/commands.h"

#include "apps/training.h"

#include "core/suggest.h"

#include <string.h>

static const cli_flag flags[] = {
    {"--model", 'm', "MODEL", "the model folder that is trained further"},
    {"--data", 'd', "DB", "the index to train on"},
    {"--out", 'o', "RUN", "run folder; becomes the model folder"},
    {"--set", 0, "KEY=VALUE", "changes one key of the recipe; repeatable"},
    TRAINING_FLAGS,
    {"--plan", 0, NULL, "prints parameters, FLOPs and memory, and stops"},
    {"--json", 0, NULL, "the summary (or plan) as JSON on stdout"},
    {NULL, 0, NULL, NULL},
};

static const char *const tasks[] = {"caption", "vqa"};

static int check_task(const char *task) {
    char hint[64];
    for (size_t i = 0; i < VLP_COUNT(tasks); i++)
        if (strcmp(task, tasks[i]) == 0) return EXIT_DONE;
    return cli_usage("\"%s\" is no task%s; there are caption and vqa", task,
                     vlp_suggest_text(task, tasks, VLP_COUNT(tasks), hint, sizeof hint));
}

static int run(const cli_args *args) {
    const char *model = cli_text(args, "--model", NULL);
    if (!cli_has(args, "--data"))
        return cli_usage("finetune needs --data DB; make one with vlp index");
    if (!cli_has(args, "--out") && !cli_has(args, "--plan"))
        return cli_usage("finetune needs --out RUN, the folder to write");
    if (cli_has(args, "--resume")) {
        if (args->n_positional > 0 || model || cli_has(args, "--set"))
            return cli_usage(
                "--resume goes on with the run's own recipe and model; leave the task, "
                "--model and --set away");
        return training_run(args, NULL, NULL);
    }
    if (args->n_positional != 1)
        return cli_usage("finetune takes a task: vlp finetune caption|vqa --model MODEL ...");
    if (!model) return cli_usage("finetune needs --model MODEL, a model that writes");
    int code = check_task(args->positional[0]);
    return code == EXIT_DONE ? training_run(args, args->positional[0], model) : code;
}

const cli_command cmd_finetune = {
    .name = "finetune",
    .summary = "trains a model further for captions or questions",
    .usage = "caption|vqa --model MODEL --data DB --out RUN [options]",
    .details =
        "MODEL writes: the recipe blip made it, or it is a BLIP pre-training checkpoint.\n"
        "caption: the index's captions, for vlp caption. vqa: its questions with their answers\n"
        "(vlp index --format vqa), each answer as often as people gave it, for vlp answer.\n"
        "The tasks are recipes; --set changes their keys.\n",
    .examples = "  vlp finetune caption --model run --data pairs.db --out captions --epochs 5\n"
                "  vlp finetune vqa --model run --data vqa.db --out answers --epochs 10\n",
    .flags = flags,
    .run = run,
};
