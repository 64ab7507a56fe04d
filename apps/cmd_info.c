#include "apps/commands.h"
#include "apps/info.h"
#include "apps/report.h"

#include <stdio.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--tensors", 0, NULL, "lists every tensor with its type and shape"},
    {"--json", 0, NULL, "everything as one JSON object"},
    {NULL, 0, NULL, NULL},
};

static long long whole(const vlp_json *object, const char *path) {
    return (long long)vlp_json_int(object, path, 0);
}

static void print_tower(const char *name, const vlp_json *c) {
    if (!c || whole(c, "num_hidden_layers") == 0) return;
    printf("  %-8s %lld layers of width %lld, %lld heads, MLP %lld", name,
           whole(c, "num_hidden_layers"), whole(c, "hidden_size"), whole(c, "num_attention_heads"),
           whole(c, "intermediate_size"));
    if (vlp_json_key(c, "patch_size"))
        printf(", %lld pixels in patches of %lld", whole(c, "image_size"), whole(c, "patch_size"));
    if (vlp_json_key(c, "vocab_size"))
        printf(", %lld tokens, %lld positions", whole(c, "vocab_size"),
               whole(c, "max_position_embeddings"));
    putchar('\n');
}

static void print_fusion(const vlp_json *c) {
    if (whole(c, "num_hidden_layers") == 0) return;
    printf("  %-8s %lld cross-attention layers, %lld heads, with a matching head\n", "fusion",
           whole(c, "num_hidden_layers"), whole(c, "num_attention_heads"));
}

static void print_model(const vlp_json *model) {
    if (!model) return;
    const char *type = vlp_json_string(model, "model_type", "unknown");
    const vlp_json *vision = vlp_json_key(model, "vision_config");
    const vlp_json *text = vlp_json_key(model, "text_config");
    printf("model: %s\n", type);
    if (vision) print_tower("vision", vision);
    if (text) print_tower("text", text);
    if (!vision && !text) print_tower("encoder", model);
    print_fusion(vlp_json_key(model, "fusion_config"));
    if (vlp_json_key(model, "projection_dim"))
        printf("  shared space of %lld dimensions\n", whole(model, "projection_dim"));
}

static void print_weights(const vlp_json *w) {
    if (!w) return;
    char count[32], bytes[32];
    printf("weights: %s parameters in %lld tensors, %s (",
           cli_count(vlp_json_double(w, "parameters", 0), count), whole(w, "tensor_count"),
           cli_bytes(vlp_json_double(w, "bytes", 0), bytes));
    const vlp_json *dtypes = vlp_json_key(w, "dtypes"), *parts = vlp_json_key(w, "parts");
    for (void *it = vlp_json_first(dtypes); it; it = vlp_json_next(dtypes, it))
        printf("%s%s", it == vlp_json_first(dtypes) ? "" : ", ", vlp_json_iter_key(it));
    puts(")");
    const char *kind = vlp_json_string(w, "kind", NULL);
    if (kind) printf("  they are named as those of %s\n", kind);
    for (void *it = vlp_json_first(parts); it; it = vlp_json_next(parts, it))
        printf("  %-28s %12s\n", vlp_json_iter_key(it),
               cli_count(vlp_json_as_double(vlp_json_iter_value(it)), count));
}

/* The heads of training objectives, which the weights keep for going on. */
static void print_heads(const vlp_json *w) {
    static const char prefix[] = "objective.";
    const vlp_json *parts = vlp_json_key(w, "parts");
    int n = 0;
    for (void *it = vlp_json_first(parts); it; it = vlp_json_next(parts, it))
        if (strncmp(vlp_json_iter_key(it), prefix, sizeof prefix - 1) == 0)
            printf("%s%s", n++ ? ", " : "objectives with a head: ",
                   vlp_json_iter_key(it) + sizeof prefix - 1);
    if (n) putchar('\n');
}

static void print_tensors(const vlp_json *list) {
    for (size_t i = 0; i < vlp_json_len(list); i++) {
        const vlp_json *t = vlp_json_at(list, i), *shape = vlp_json_key(t, "shape");
        printf("%-6s %s [", vlp_json_string(t, "dtype", ""), vlp_json_string(t, "name", ""));
        for (size_t d = 0; d < vlp_json_len(shape); d++)
            printf("%s%lld", d ? ", " : "", (long long)vlp_json_as_int(vlp_json_at(shape, d)));
        puts("]");
    }
}

static void print_tokenizer(const vlp_json *t) {
    if (!t) return;
    const vlp_json *special = vlp_json_key(t, "special");
    printf("tokenizer: %s, %lld tokens;", vlp_json_string(t, "kind", ""), whole(t, "tokens"));
    for (void *it = vlp_json_first(special); it; it = vlp_json_next(special, it))
        printf(" %s %lld", vlp_json_iter_key(it),
               (long long)vlp_json_as_int(vlp_json_iter_value(it)));
    putchar('\n');
}

static void print_preprocessing(const vlp_json *p) {
    if (!p) return;
    const vlp_json *mean = vlp_json_key(p, "image_mean"), *std = vlp_json_key(p, "image_std");
    const char *const edges[] = {"size.shortest_edge", "size.height", "size"};
    long long side = 0;
    for (size_t i = 0; i < VLP_COUNT(edges) && side == 0; i++) side = whole(p, edges[i]);
    printf("preprocessing: %s to %lld pixels%s",
           vlp_json_get(p, "size.shortest_edge") ? "the short side" : "resized", side,
           vlp_json_bool(p, "do_center_crop", false) ? ", centre crop" : "");
    if (vlp_json_len(mean) == 3 && vlp_json_len(std) == 3)
        printf(", mean %.3f %.3f %.3f, deviation %.3f %.3f %.3f",
               vlp_json_as_double(vlp_json_at(mean, 0)), vlp_json_as_double(vlp_json_at(mean, 1)),
               vlp_json_as_double(vlp_json_at(mean, 2)), vlp_json_as_double(vlp_json_at(std, 0)),
               vlp_json_as_double(vlp_json_at(std, 1)), vlp_json_as_double(vlp_json_at(std, 2)));
    putchar('\n');
}

static void print_recipe(const vlp_json *info) {
    const vlp_json *r = vlp_json_key(info, "recipe");
    if (!r) return;
    const char *about = vlp_json_string(info, "about", NULL);
    printf("recipe: %s %s\n", vlp_json_string(r, "name", ""), vlp_json_string(r, "size", ""));
    if (about) printf("  %s\n", about);
    fputs("  objectives:", stdout);
    for (void *it = vlp_json_first(r); it; it = vlp_json_next(r, it)) {
        double weight = vlp_json_double(vlp_json_iter_value(it), "weight", 0);
        if (weight > 0) printf(" %s x %g", vlp_json_iter_key(it), weight);
    }
    printf("\n  batch %lld x %lld, learning rate %g, weight decay %g, seed %lld\n",
           whole(r, "batch"), whole(r, "accumulate"), vlp_json_double(r, "lr", 0),
           vlp_json_double(r, "weight_decay", 0), whole(r, "seed"));
}

static void print_last(const vlp_json *last) {
    if (!last) return;
    printf("last step: %lld, epoch %.2f, loss %.4f", whole(last, "step"),
           vlp_json_double(last, "epoch", 0), vlp_json_double(last, "loss", 0));
    const vlp_json *losses = vlp_json_key(last, "losses"), *chance = vlp_json_key(last, "chance");
    for (void *it = vlp_json_first(losses); it; it = vlp_json_next(losses, it))
        printf(", %s %.3f (chance %.3f)", vlp_json_iter_key(it),
               vlp_json_as_double(vlp_json_iter_value(it)),
               vlp_json_double(chance, vlp_json_iter_key(it), 0));
    printf(", %.1f pairs/s\n", vlp_json_double(last, "pairs_per_s", 0));
}

static void print_recall(const char *what, const vlp_json *r) {
    static const char *const keys[] = {"R@1", "R@5", "R@10"};
    printf(" %s R@1/5/10", what);
    for (size_t i = 0; i < VLP_COUNT(keys); i++)
        printf("%c%.1f", i ? '/' : ' ', 100 * vlp_json_as_double(vlp_json_key(r, keys[i])));
    fputs(" %", stdout);
}

static void print_run(const vlp_json *info) {
    const vlp_json *checkpoint = vlp_json_key(info, "checkpoint");
    const vlp_json *summary = vlp_json_key(info, "summary"), *test = vlp_json_key(summary, "test");
    char time[32];
    print_last(vlp_json_key(info, "last"));
    if (checkpoint)
        printf("checkpoint: step %lld after %s, with %lld threads\n", whole(checkpoint, "step"),
               cli_duration(vlp_json_double(checkpoint, "seconds", 0), time),
               whole(checkpoint, "threads"));
    if (summary)
        printf("finished: %lld steps in %s, %.1f pairs/s\n", whole(summary, "steps"),
               cli_duration(vlp_json_double(summary, "seconds", 0), time),
               vlp_json_double(summary, "pairs_per_s", 0));
    else if (checkpoint)
        puts("not finished: vlp pretrain --resume goes on");
    if (!test) return;
    printf("test, %lld images and %lld captions:", whole(test, "images"), whole(test, "captions"));
    print_recall("image to text", vlp_json_key(test, "image_to_text"));
    fputs(",", stdout);
    print_recall("text to image", vlp_json_key(test, "text_to_image"));
    putchar('\n');
}

static void print_words(const vlp_json *info) {
    const vlp_json *weights = vlp_json_key(info, "weights");
    const char *path = vlp_json_string(info, "path", ""), *kind = vlp_json_string(info, "kind", "");
    if (vlp_json_key(info, "stats")) {
        cli_print_stats(path, vlp_json_key(info, "stats"), false);
        return;
    }
    printf("%s: a %s\n", path, strcmp(kind, "weights") == 0 ? "file of weights" : kind);
    print_model(vlp_json_key(info, "model"));
    print_weights(weights);
    print_heads(weights);
    print_tokenizer(vlp_json_key(info, "tokenizer"));
    print_preprocessing(vlp_json_key(info, "preprocessing"));
    print_recipe(info);
    print_run(info);
    print_tensors(vlp_json_key(weights, "tensors"));
}

static int run(const cli_args *args) {
    if (args->n_positional != 1)
        return cli_usage("info needs one model, run, index, recipe or .safetensors file");
    vlp_json *info;
    vlp_status status = cli_info_collect(args->positional[0], cli_has(args, "--tensors"), &info);
    if (status != VLP_OK) return cli_fail(status);
    const vlp_json *problems = vlp_json_key(info, "problems");
    size_t n = vlp_json_len(problems);
    if (!cli_has(args, "--json")) print_words(info);
    fflush(stdout);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "vlp: %s\n", vlp_json_as_string(vlp_json_at(problems, i)));
    if (cli_has(args, "--json"))
        cli_print_json(info);
    else
        vlp_json_free(info);
    return n ? EXIT_SKIPPED : EXIT_DONE;
}

const cli_command cmd_info = {
    .name = "info",
    .summary = "says what is inside a model, run, index, recipe or weights file",
    .usage = "MODEL|RUN|DB|RECIPE|FILE.safetensors [--tensors] [--json]",
    .details =
        "Sizes, parameters by part, heads of objectives, tokenizer, preprocessing, and of a run\n"
        "its recipe, last step and scores. Exit code 3: a part could not be read.",
    .examples = "  vlp info run/\n  vlp info model.safetensors --tensors\n  vlp info pairs.db\n"
                "  vlp info clip\n",
    .flags = flags,
    .run = run,
};
