#include "apps/commands.h"

#include "core/file.h"
#include "core/json.h"
#include "datasets/catalogue.h"
#include "datasets/meta.h"
#include "train/gallery.h"
#include "train/search.h"

#include <stdio.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--model", 'm', "MODEL", "model folder (default: the one that embedded DB last)"},
    {"--image", 'i', "FILE", "searches with a picture, alone or together with texts"},
    {"--top", 'k', "K", "hits (10)"},
    {"--where", 'w', "FILTER",
     "only pictures that pass, for instance \"folder=2023 and width>800\""},
    {"--rerank", 0, "N", "orders the best N by the matching head"},
    {"--hybrid", 0, NULL, "together with words in captions and file names"},
    {"--least-z", 0, "Z", "only hits that stand out of the catalogue so far; try 6"},
    {"--html", 0, "FILE", "writes a gallery page"},
    {"--json", 0, NULL, "a JSON object a hit"},
    {"--csv", 0, NULL, "CSV with a header, with what --json holds"},
    {"--print0", '0', NULL, "paths only, each ended by NUL, for xargs -0"},
    {NULL, 0, NULL, NULL},
};

static const cli_pair clashes[] = {
    {"--json", "--print0"}, {"--json", "--csv"}, {"--csv", "--print0"}, {NULL, NULL}};

enum { MAX_TEXTS = 64 };

static void print_json(const vlp_found *found) {
    for (int64_t i = 0; i < found->n; i++) {
        const vlp_found_hit *hit = &found->hits[i];
        vlp_json *line = vlp_json_new_object();
        vlp_json_set_int(line, "rank", i + 1);
        vlp_json_set_double(line, "score", hit->score);
        vlp_json_set_string(line, "path", hit->path);
        vlp_json_set_string(line, "caption", hit->caption);
        vlp_json_set_int(line, "id", hit->id);
        vlp_json_set_double(line, "z", hit->z);
        cli_print_json(line);
    }
}

static void print_csv(const vlp_found *found) {
    puts("rank,score,path,caption,id,z");
    for (int64_t i = 0; i < found->n; i++) {
        const vlp_found_hit *hit = &found->hits[i];
        printf("%lld,%.6g,", (long long)i + 1, hit->score);
        cli_print_csv(hit->path);
        putchar(',');
        cli_print_csv(hit->caption);
        printf(",%lld,%.6g\n", (long long)hit->id, hit->z);
    }
}

static void print_paths(const vlp_found *found) {
    for (int64_t i = 0; i < found->n; i++)
        fwrite(found->hits[i].path, 1, strlen(found->hits[i].path) + 1, stdout);
}

static void print_text(const vlp_found *found) {
    for (int64_t i = 0; i < found->n; i++) {
        const vlp_found_hit *hit = &found->hits[i];
        printf("%lld\t%.4f\t%s\t%s\n", (long long)i + 1, hit->score, hit->path, hit->caption);
    }
}

static void print_hits(const cli_args *args, const vlp_found *found) {
    static const struct {
        const char *flag;
        void (*print)(const vlp_found *found);
    } ways[] = {{"--json", print_json}, {"--csv", print_csv}, {"--print0", print_paths}};
    for (size_t i = 0; i < VLP_COUNT(ways); i++)
        if (cli_has(args, ways[i].flag)) {
            ways[i].print(found);
            return;
        }
    print_text(found);
}

static vlp_status say_damaged(const cli_args *args, const vlp_index *index,
                              const vlp_search *search, const char *model) {
    int64_t first, n = vlp_search_damaged(search, &first);
    if (n == 0 || cli_quiet()) return VLP_OK;
    vlp_buf path = {0}, caption = {0};
    vlp_status status = vlp_catalogue_item(index, first, &path, NULL, &caption);
    if (status == VLP_OK)
        fprintf(stderr,
                "%lld pictures left out: their embeddings are damaged (the first: %s); run: vlp "
                "embed %s --model %s\n",
                (long long)n, path.data, args->positional[0], model);
    vlp_buf_free(&path);
    vlp_buf_free(&caption);
    return status;
}

static vlp_status gallery(const cli_args *args, const vlp_index *index, const vlp_found *found) {
    const char *file = cli_text(args, "--html", NULL), *image = cli_text(args, "--image", NULL);
    if (!file) return VLP_OK;
    vlp_buf title = {0}, page = {0};
    vlp_status status = vlp_buf_puts(&title, "vlp:");
    for (int i = 1; i < args->n_positional && status == VLP_OK; i++)
        status = vlp_buf_printf(&title, " %s", args->positional[i]);
    if (status == VLP_OK && image) status = vlp_buf_printf(&title, " %s", image);
    if (status == VLP_OK) status = vlp_gallery_html(&page, index, title.data, found);
    if (status == VLP_OK) status = vlp_file_write(file, page.data, page.len);
    vlp_buf_free(&title);
    vlp_buf_free(&page);
    return status;
}

static void say_what_is_missing(const cli_args *args, const vlp_search *search,
                                const vlp_found *found, const char *model) {
    if (cli_quiet()) return;
    if (vlp_search_missing(search) > 0)
        fprintf(stderr, "%lld pictures are not embedded yet; run: vlp embed %s --model %s\n",
                (long long)vlp_search_missing(search), args->positional[0], model);
    if (found->gone > 0)
        fprintf(stderr,
                "%lld hits left out: their files have moved or gone; index the folder again\n",
                (long long)found->gone);
    if (found->n > 0) return;
    if (found->searched == 0)
        fputs("nothing found: no embedded picture passes the filter\n", stderr);
    else
        fprintf(stderr, "nothing stands out so far: the best of %lld pictures has z %.1f\n",
                (long long)found->searched, found->best_z);
}

static vlp_status read_query(const cli_args *args, vlp_query *q,
                             vlp_query_text texts[static MAX_TEXTS]) {
    q->texts = texts;
    for (int i = 1; i < args->n_positional; i++) {
        if (q->n_texts == MAX_TEXTS)
            return VLP_FAIL(VLP_ERR_USAGE, "more than %d texts in a query", MAX_TEXTS);
        texts[q->n_texts] = vlp_query_parse(args->positional[i]);
        if (!texts[q->n_texts++].text[0])
            return VLP_FAIL(VLP_ERR_USAGE, "\"%s\" holds no text", args->positional[i]);
    }
    q->image = cli_text(args, "--image", NULL);
    q->hybrid = cli_has(args, "--hybrid");
    q->has_least_z = cli_has(args, "--least-z");
    VLP_TRY(cli_int(args, "--top", 10, 1, 10000000, &q->top));
    VLP_TRY(cli_int(args, "--rerank", 0, 1, 1000000, &q->rerank));
    return cli_double(args, "--least-z", 0, 0, 1000, &q->least_z);
}

/* A query of several parts is said as it was understood. */
static void say_query(const vlp_query *q) {
    if (cli_quiet() || (q->n_texts < 2 && !(q->n_texts == 1 && q->texts[0].weight < 0))) return;
    fputs("query:", stderr);
    for (int64_t t = 0; t < q->n_texts; t++)
        fprintf(stderr, " %+g x \"%s\"", q->texts[t].weight, q->texts[t].text);
    fprintf(stderr, "%s%s\n", q->image ? " +1 x " : "", q->image ? q->image : "");
}

static vlp_status choose_model(const cli_args *args, const vlp_index *index, vlp_buf *model) {
    const char *given = cli_text(args, "--model", NULL), *db = args->positional[0];
    if (given) return vlp_buf_puts(model, given);
    VLP_TRY(vlp_meta_get(index, VLP_META_MODEL, model));
    if (model->len > 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "%s is not embedded; run: vlp embed %s --model MODEL", db, db);
}

static vlp_status search_index(const cli_args *args, const vlp_query *q, const vlp_index *index,
                               const char *model, vlp_found *found) {
    vlp_embedder *e = NULL;
    vlp_search *search = NULL;
    VLP_TRY(vlp_embedder_open(&e, model, q->rerank > 0 ? 32 : 1));
    vlp_status status = vlp_search_open(&search, index, e, model, cli_text(args, "--where", NULL));
    if (status == VLP_OK) status = vlp_search_run(search, q, found);
    if (status == VLP_OK) status = say_damaged(args, index, search, model);
    if (status == VLP_OK) say_what_is_missing(args, search, found, model);
    vlp_search_free(search);
    vlp_embedder_free(e);
    return status;
}

static int run(const cli_args *args) {
    if (args->n_positional < 2 && !(args->n_positional == 1 && cli_has(args, "--image")))
        return cli_usage("search needs an index and a query: vlp search pairs.db \"a red car\"");
    vlp_query_text texts[MAX_TEXTS];
    vlp_query query = {0};
    vlp_index *index = NULL;
    vlp_buf model = {0};
    vlp_found found = {0};
    vlp_status status = read_query(args, &query, texts);
    if (status == VLP_OK) say_query(&query);
    if (status == VLP_OK) status = vlp_index_open(&index, args->positional[0], VLP_DB_READ);
    if (status == VLP_OK) status = choose_model(args, index, &model);
    if (status == VLP_OK) status = search_index(args, &query, index, model.data, &found);
    if (status == VLP_OK) print_hits(args, &found);
    if (status == VLP_OK) status = gallery(args, index, &found);
    int code = status != VLP_OK ? cli_fail(status) : found.n > 0 ? EXIT_DONE : EXIT_NOTHING;
    vlp_found_close(&found);
    vlp_buf_free(&model);
    vlp_index_free(index);
    return code;
}

const cli_command cmd_search = {
    .name = "search",
    .summary = "finds pictures of a catalogue by text, by picture, or both",
    .usage = "DB QUERY... [options]",
    .details =
        "Several texts are combined: +TEXT adds, -TEXT takes away, 2:TEXT counts twice. The\n"
        "catalogue must be embedded (vlp embed). Output: rank, score, path, first caption.\n"
        "Scores are cosines; with --rerank probabilities, with --hybrid reciprocal ranks.\n"
        "With --json each hit has its z: by how many spreads of all the pictures' cosines it lies\n"
        "above their median. It compares hits of different queries; it does not say that a hit is\n"
        "right: what the catalogue lacks has nearest pictures too, and some stand out.\n"
        "Exit code 1: nothing found, or nothing that stands out by --least-z.",
    .examples =
        "  vlp search photos.db \"a dog on a beach\" --top 20\n"
        "  vlp search photos.db \"a dog\" +snow -night --where \"folder=2023\"\n"
        "  vlp search photos.db --image cat.jpg \"2:sleeping\" --html hits.html\n"
        "  vlp search photos.db \"a zebra\" --least-z 6 --print0 | xargs -0 -r cp -t zebras/\n",
    .flags = flags,
    .clashes = clashes,
    .dashed_texts = true,
    .run = run,
};
