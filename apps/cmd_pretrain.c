#include "apps/commands.h"
#include "apps/step_profile.h"
#include "apps/training.h"

#include "core/gemm.h"
#include "core/json.h"
#include "train/step.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--data", 'd', "DB", "the index to train on"},
    {"--out", 'o', "RUN", "run folder; becomes the model folder"},
    {"--size", 's', "SIZE", "nano, tiny, small or base"},
    {"--set", 0, "KEY=VALUE", "changes one key of the recipe; repeatable"},
    {"--init", 0, "MODEL", "starts from this model folder's weights and sizes"},
    {"--init-image", 0, "FOLDER", "starts the image tower from a ViT's weights and sizes"},
    {"--init-text", 0, "FOLDER", "starts text tower and fusion from a BERT, with its tokenizer"},
    {"--tokenizer", 't', "DIR", "tokenizer folder; without it one is trained on the captions"},
    {"--vocab", 0, "N", "size of a tokenizer trained here (8000)"},
    TRAINING_FLAGS,
    {"--profile", 0, NULL, "where the steps' time went, op by op, printed at the end"},
    {"--plan", 0, NULL, "prints parameters, FLOPs and memory, and stops"},
    {"--json", 0, NULL, "the summary (or plan) as JSON on stdout"},
    {"--help-keys", 0, NULL, "lists the keys of recipes"},
    {NULL, 0, NULL, NULL},
};

/* Flags that stand for recipe keys. */
static const char *const shortcuts[][2] = {
    {"--steps", "steps"}, {"--epochs", "epochs"}, {"--max-minutes", "max_minutes"},
    {"--batch", "batch"}, {"--seed", "seed"},     {"--precision", "precision"},
};

static vlp_status read_recipe(const cli_args *args, const char *name, vlp_recipe *recipe) {
    VLP_TRY(vlp_recipe_open(recipe, name ? name : "vlp", cli_text(args, "--size", NULL)));
    for (int i = 0; cli_nth(args, "--set", i); i++)
        VLP_TRY(vlp_recipe_set(recipe, cli_nth(args, "--set", i)));
    for (size_t i = 0; i < VLP_COUNT(shortcuts); i++) {
        const char *value = cli_text(args, shortcuts[i][0], NULL);
        if (value)
            VLP_TRY(vlp_options_set(vlp_recipe_options, recipe, shortcuts[i][1], value,
                                    shortcuts[i][0]));
    }
    if (cli_has(args, "--recompute")) recipe->recompute = true;
    return VLP_OK;
}

static void on_step(const vlp_train_progress *p, void *user) {
    (void)user;
    char losses[256] = "", left[32];
    for (int i = 0; i < p->n_losses; i++)
        snprintf(losses + strlen(losses), sizeof losses - strlen(losses), "  %s %.3f/%.2f",
                 p->names[i], p->losses[i], p->chance[i]);
    cli_progress(
        "step %lld  %3.0f %%  epoch %.2f  loss %.3f%s  %.1f pairs/s  wait %.0f %%  %s left",
        (long long)p->step, 100 * p->progress, p->epoch, p->loss, losses, p->pairs_per_s,
        100 * p->data_wait, cli_duration(p->seconds_left, left));
}

static void print_retrieval(const char *what, const vlp_retrieval *r) {
    if (cli_quiet()) return;
    cli_progress_end();
    fprintf(stderr,
            "%s: %lld pictures, %lld captions; image to text R@1/5/10 %.1f/%.1f/%.1f %% (chance "
            "%.1f/%.1f/%.1f), text to image %.1f/%.1f/%.1f %% (chance %.1f/%.1f/%.1f)\n",
            what, (long long)r->images, (long long)r->captions, 100 * r->image_to_text[0],
            100 * r->image_to_text[1], 100 * r->image_to_text[2], 100 * r->image_to_text_chance[0],
            100 * r->image_to_text_chance[1], 100 * r->image_to_text_chance[2],
            100 * r->text_to_image[0], 100 * r->text_to_image[1], 100 * r->text_to_image[2],
            100 * r->text_to_image_chance[0], 100 * r->text_to_image_chance[1],
            100 * r->text_to_image_chance[2]);
}

static void on_eval(int64_t step, const vlp_retrieval *result, void *user) {
    (void)user;
    char what[64];
    snprintf(what, sizeof what, "step %lld, validation", (long long)step);
    print_retrieval(what, result);
}

static void print_plan(const vlp_recipe *r, const vlp_train_plan *p) {
    char a[32], b[32], c[32], d[32], e[32], f[32], g[32], h[32];
    vlp_gemm_about gemm = vlp_gemm_info();
    fprintf(
        stderr,
        "recipe %s %s: %s parameters, vocabulary %lld\n"
        "data: %lld pictures to train on; %lld pairs a step, %lld steps an epoch\n"
        "a step: %s FLOPs in %s; %d threads; %s, %s kernels\n"
        "memory: %s in all (parameters and optimizer %s, step %s, products %s, loader %s, program "
        "%s)\n",
        r->name, r->size, cli_count((double)p->parameters, a), (long long)p->vocab,
        (long long)p->pictures, (long long)p->batch, (long long)p->steps_an_epoch,
        cli_count(p->flops_a_step, b), vlp_step_precision_name(r), p->threads, gemm.library,
        gemm.core, cli_bytes((double)p->total_bytes, c), cli_bytes((double)p->parameter_bytes, d),
        cli_bytes((double)p->step_bytes, e), cli_bytes((double)p->product_bytes, f),
        cli_bytes((double)p->loader_bytes, g), cli_bytes((double)p->program_bytes, h));
}

static void print_plan_json(const vlp_train_plan *p) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "parameters", p->parameters);
    vlp_json_set_int(json, "pictures", p->pictures);
    vlp_json_set_int(json, "batch", p->batch);
    vlp_json_set_int(json, "steps", p->steps);
    vlp_json_set_int(json, "steps_an_epoch", p->steps_an_epoch);
    vlp_json_set_double(json, "flops_a_step", p->flops_a_step);
    vlp_json_set_int(json, "bytes", (int64_t)p->total_bytes);
    cli_print_json(json);
}

/* The machine is measured when training has ended. */
static vlp_status print_profile(const cli_args *args, const vlp_recipe *r, vlp_step_profile *p,
                                vlp_json *json) {
    ceilings peak;
    if (!cli_has(args, "--profile")) return VLP_OK;
    VLP_TRY(ceilings_measure(&peak, true));
    if (!json) {
        step_profile_print(stdout, p, vlp_step_precision(r), &peak);
        return VLP_OK;
    }
    ceilings_json(json, &peak);
    vlp_json_set(json, "profile", step_profile_json(p, vlp_step_precision(r), &peak));
    return VLP_OK;
}

static vlp_status print_summary(const cli_args *args, const vlp_recipe *r,
                                const vlp_train_summary *s, vlp_step_profile *profile) {
    const char *out = cli_text(args, "--out", "");
    char time[32];
    if (s->has_test) print_retrieval("test", &s->test);
    if (!cli_quiet())
        fprintf(stderr,
                "%lld steps in %s, %.1f pairs/s, %.0f %% of the time waiting for data\nmodel: %s\n",
                (long long)s->steps, cli_duration(s->seconds, time), s->pairs_per_s,
                100 * s->data_wait, out);
    if (!cli_has(args, "--json")) return print_profile(args, r, profile, NULL);
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "model", out);
    vlp_json_set_int(json, "steps", s->steps);
    vlp_json_set_double(json, "seconds", s->seconds);
    vlp_json_set_double(json, "loss", s->loss);
    vlp_json_set_double(json, "pairs_per_s", s->pairs_per_s);
    vlp_json_set_double(json, "data_wait", s->data_wait);
    vlp_json_set_double(json, "peak_rss_mb", cli_peak_rss_mb());
    vlp_status status = print_profile(args, r, profile, json);
    cli_print_json(json);
    return status;
}

static vlp_status train(const cli_args *args, const vlp_recipe *recipe, const char *init) {
    static vlp_step_profile profile;
    vlp_train_options options = {.data = cli_text(args, "--data", NULL),
                                 .out = cli_text(args, "--out", ""),
                                 .tokenizer = cli_text(args, "--tokenizer", NULL),
                                 .init = init,
                                 .init_image = cli_text(args, "--init-image", NULL),
                                 .init_text = cli_text(args, "--init-text", NULL),
                                 .resume = cli_has(args, "--resume"),
                                 .stop = &cli_stop,
                                 .profile = cli_has(args, "--profile") ? &profile : NULL,
                                 .on_step = on_step,
                                 .on_eval = on_eval};
    VLP_TRY(cli_int(args, "--vocab", 0, 32, 10000000, &options.vocab));
    cli_watch_signals();
    vlp_trainer *trainer;
    vlp_train_plan plan;
    vlp_train_summary summary;
    VLP_TRY(vlp_trainer_open(&trainer, recipe, &options));
    vlp_status status = vlp_trainer_plan(trainer, &plan);
    if (status == VLP_OK && !cli_quiet()) print_plan(vlp_trainer_recipe(trainer), &plan);
    if (status == VLP_OK && cli_has(args, "--plan")) {
        if (cli_has(args, "--json")) print_plan_json(&plan);
    } else if (status == VLP_OK) {
        status = vlp_trainer_run(trainer, &summary);
        if (status == VLP_OK)
            status = print_summary(args, vlp_trainer_recipe(trainer), &summary, &profile);
    }
    vlp_trainer_free(trainer);
    return status;
}

int training_run(const cli_args *args, const char *name, const char *init) {
    vlp_recipe recipe;
    vlp_status status = read_recipe(args, name, &recipe);
    if (status == VLP_OK && cli_has(args, "--plan") && recipe.steps == 0 && recipe.epochs == 0)
        recipe.epochs = 1;
    if (status == VLP_OK) status = train(args, &recipe, init);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}

static int print_keys(void) {
    vlp_buf text = {0};
    vlp_status status = vlp_options_help(vlp_recipe_options, &text);
    if (status == VLP_OK) fputs(text.data, stdout);
    vlp_buf_free(&text);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}

/* What a resumed run takes from its own recipe. */
static const char *refused_with_resume(const cli_args *args) {
    static const char *const others[] = {"--size",      "--set",       "--init", "--init-image",
                                         "--init-text", "--tokenizer", "--vocab"};
    if (args->n_positional) return args->positional[0];
    for (size_t i = 0; i < VLP_COUNT(others); i++)
        if (cli_has(args, others[i])) return others[i];
    for (size_t i = 0; i < VLP_COUNT(shortcuts); i++)
        if (cli_has(args, shortcuts[i][0])) return shortcuts[i][0];
    return NULL;
}

static int run(const cli_args *args) {
    if (cli_has(args, "--help-keys")) return print_keys();
    if (args->n_positional > 1)
        return cli_usage("pretrain takes one recipe; what is \"%s\"?", args->positional[1]);
    if (!cli_has(args, "--data"))
        return cli_usage("pretrain needs --data DB; make one with vlp index");
    if (!cli_has(args, "--out") && !cli_has(args, "--plan"))
        return cli_usage("pretrain needs --out RUN, the folder to write");
    const char *other = cli_has(args, "--resume") ? refused_with_resume(args) : NULL;
    if (other) return cli_usage("--resume goes on with the run's own recipe; leave %s away", other);
    return training_run(args, args->n_positional ? args->positional[0] : NULL,
                        cli_text(args, "--init", NULL));
}

const cli_command cmd_pretrain = {
    .name = "pretrain",
    .summary = "pre-trains a model on image-caption pairs",
    .usage = "RECIPE --data DB --out RUN [options]",
    .details =
        "RECIPE is a built-in name (vlp, clip, albef, blip) or a JSON file. RUN becomes a model\n"
        "folder that classify, embed, search, eval and caption open. Ctrl-C saves and stops;\n"
        "--resume goes on.",
    .examples =
        "  vlp pretrain vlp --size nano --data pairs.db --out run --max-minutes 30\n"
        "  vlp pretrain clip --size small --data pairs.db --out run --epochs 10 --set lr=3e-4\n"
        "  vlp pretrain vlp --size base --data pairs.db --plan\n"
        "  vlp pretrain vlp --size nano --data pairs.db --out run --steps 50 --profile\n"
        "  vlp pretrain --data pairs.db --out run --resume\n",
    .flags = flags,
    .run = run,
};
