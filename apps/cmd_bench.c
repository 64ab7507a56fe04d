#include "apps/bench.h"
#include "apps/commands.h"

#include "core/suggest.h"

#include <string.h>

static const cli_flag flags[] = {
    {"--size", 's', "SIZE", "train, encode, gemm, optimizer: nano, tiny, small or base"},
    {"--batch", 'b', "N", "train, encode, gemm, load, attention: pairs or images at a time"},
    {"--steps", 0, "N", "train: steps that count, after two that warm up (5)"},
    {"--precision", 0, "P", "train, encode, attention: fp32 or bf16; train also takes auto"},
    {"--recompute", 0, NULL, "train: less memory, blocks are computed a second time"},
    {"--set", 0, "KEY=VALUE",
     "train, encode, optimizer: changes one key of the recipe; repeatable"},
    {"--vocab", 0, "N", "train: tokens of the vocabulary (8000)"},
    {"--profile", 0, NULL, "train: where the time goes, op by op, beside the roofline"},
    {"--seconds", 0, "S",
     "encode, load, attention, optimizer: how long to measure (3; 0.3 a line)"},
    {"--image-size", 0, "N", "load: pixels a side that images become (224)"},
    {"--split", 0, "NAME", "load: the split that is read (all)"},
    {"--rows", 0, "N", "search: vectors in the catalogue (100000)"},
    {"--dim", 0, "D", "search: their width (256)"},
    {"--queries", 0, "Q", "search: queries that are timed (20)"},
    {"--top", 'k', "K", "search: hits a query (10)"},
    {"--json", 0, NULL, "JSON on stdout"},
    {NULL, 0, NULL, NULL},
};

vlp_status bench_recipe(const cli_args *args, const char *size, vlp_recipe *out) {
    const char *name = args->n_positional > 1 ? args->positional[1] : "vlp";
    VLP_TRY(vlp_recipe_open(out, name, size));
    for (int i = 0; cli_nth(args, "--set", i); i++)
        VLP_TRY(vlp_recipe_set(out, cli_nth(args, "--set", i)));
    static const char *const keys[][2] = {{"--batch", "batch"}, {"--precision", "precision"}};
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        const char *value = cli_text(args, keys[i][0], NULL);
        if (value) VLP_TRY(vlp_options_set(vlp_recipe_options, out, keys[i][1], value, keys[i][0]));
    }
    if (cli_has(args, "--recompute")) out->recompute = true;
    if (out->steps == 0) out->steps = 1; /* how long a run is plays no part */
    return vlp_recipe_check(out);
}

static const struct {
    const char *name;
    int (*run)(const cli_args *args);
} rows[] = {
    {"gemm", bench_gemm},           {"attention", bench_attention}, {"train", bench_train},
    {"optimizer", bench_optimizer}, {"encode", bench_encode},       {"load", bench_load},
    {"search", bench_search},
};

static int run(const cli_args *args) {
    const char *known[VLP_COUNT(rows)], *what = args->n_positional ? args->positional[0] : "";
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        known[i] = rows[i].name;
        if (strcmp(what, known[i]) != 0) continue;
        if (args->n_positional > 2)
            return cli_usage("bench %s: what is \"%s\"?", what, args->positional[2]);
        cli_watch_signals();
        vlp_status status = cli_check_job(args, what);
        return status == VLP_OK ? rows[i].run(args) : cli_fail(status);
    }
    char hint[128];
    return cli_usage(
        "bench measures gemm, attention, train, optimizer, encode, load or search, not \"%s\"%s",
        what, vlp_suggest_text(what, known, VLP_COUNT(rows), hint, sizeof hint));
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measures this machine, beside what it can reach",
    .usage =
        "gemm | attention | train RECIPE | optimizer RECIPE | encode MODEL|RECIPE | load DB |\n"
        "    search [options]",
    .details =
        "gemm: matrix products of a recipe's layers in fp32 and bf16, by each backend, beside the\n"
        "multiply-adds of the registers.\n"
        "attention: the op at the shapes of towers and fusion, beside the same.\n"
        "train: whole steps on synthetic pairs; utilisation is its share of the best fp32 "
        "product.\n"
        "--profile: for each op and pass its time, what it multiplies and moves at least, and the\n"
        "share of the roofline; more than 100 % says that caches served it.\n"
        "optimizer: updates of the recipe's parameters, beside the speed of reading memory.\n"
        "encode: images and texts a second. load: decoding and augmenting an index's images.\n"
        "search: the best of N vectors by dot product.",
    .examples = "  vlp bench gemm\n"
                "  vlp bench attention --precision bf16 --json\n"
                "  vlp bench train vlp --size nano --batch 64 --json\n"
                "  vlp bench train vlp --size nano --batch 64 --profile\n"
                "  vlp bench optimizer vlp --size base\n"
                "  vlp bench encode run/ --seconds 10\n"
                "  vlp bench load pairs.db --image-size 224\n"
                "  vlp bench search --rows 1000000 --dim 256 --queries 20\n",
    .flags = flags,
    .run = run,
};
