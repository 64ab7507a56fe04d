#include "apps/commands.h"
#include "apps/files.h"

#include "core/file.h"
#include "core/json.h"
#include "core/suggest.h"
#include "datasets/captions.h"
#include "text/byte_bpe_train.h"
#include "text/wordpiece_train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_flag flags[] = {
    {"--kind", 'k', "KIND", "train: wordpiece, or bpe (byte-level) (wordpiece)"},
    {"--vocab", 0, "N", "train: tokens at most (8000)"},
    {"--out", 'o', "DIR", "train: the folder to write"},
    {"--cased", 0, NULL, "train: wordpiece keeps capitals and accents, as bpe does"},
    {"--split", 0, "NAME", "train: the split whose captions are read (train)"},
    {"--json", 0, NULL, "encode: {\"ids\":[...],\"tokens\":[...]} a line"},
    {"--no-special", 0, NULL, "encode: without [CLS] and [SEP]"},
    {"--keep-special", 0, NULL, "decode: with [CLS], [SEP] and the like"},
    {NULL, 0, NULL, NULL},
};

/* What `train` can train: a trainer takes texts and then makes a tokenizer. */
typedef struct {
    const char *name;
    vlp_status (*open)(void **trainer, int32_t vocab, bool cased);
    vlp_status (*add)(void *trainer, const char *text, size_t len);
    vlp_status (*finish)(void *trainer, vlp_tokenizer **out);
    void (*close)(void *trainer);
} trainer_kind;

static vlp_status open_wordpiece(void **trainer, int32_t vocab, bool cased) {
    return vlp_wordpiece_trainer_new(
        (vlp_wordpiece_trainer **)trainer,
        &(vlp_wordpiece_train_options){.vocab_size = vocab, .lower_case = !cased});
}

static vlp_status add_wordpiece(void *trainer, const char *text, size_t len) {
    return vlp_wordpiece_trainer_add(trainer, text, len);
}

static vlp_status finish_wordpiece(void *trainer, vlp_tokenizer **out) {
    return vlp_wordpiece_trainer_finish(trainer, out);
}

static void close_wordpiece(void *trainer) {
    vlp_wordpiece_trainer_free(trainer);
}

static vlp_status open_bpe(void **trainer, int32_t vocab, bool cased) {
    (void)cased; /* bytes keep everything */
    return vlp_byte_bpe_trainer_new((vlp_byte_bpe_trainer **)trainer,
                                    &(vlp_byte_bpe_train_options){.vocab_size = vocab});
}

static vlp_status add_bpe(void *trainer, const char *text, size_t len) {
    return vlp_byte_bpe_trainer_add(trainer, text, len);
}

static vlp_status finish_bpe(void *trainer, vlp_tokenizer **out) {
    return vlp_byte_bpe_trainer_finish(trainer, out);
}

static void close_bpe(void *trainer) {
    vlp_byte_bpe_trainer_free(trainer);
}

static const trainer_kind kinds[] = {
    {"wordpiece", open_wordpiece, add_wordpiece, finish_wordpiece, close_wordpiece},
    {"bpe", open_bpe, add_bpe, finish_bpe, close_bpe},
};

static const trainer_kind *find_kind(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(kinds); i++)
        if (strcmp(name, kinds[i].name) == 0) return &kinds[i];
    return NULL;
}

static int refuse_kind(const char *kind) {
    const char *names[VLP_COUNT(kinds)];
    char hint[128];
    for (size_t i = 0; i < VLP_COUNT(kinds); i++) names[i] = kinds[i].name;
    return cli_usage("tokenizer train --kind %s: the kinds that can be trained are wordpiece and "
                     "bpe%s",
                     kind, vlp_suggest_text(kind, names, VLP_COUNT(kinds), hint, sizeof hint));
}

/* A trainer at work. */
typedef struct {
    const trainer_kind *kind;
    void *trainer;
} training;

static vlp_status add_caption(const char *text, int64_t len, void *user) {
    training *t = user;
    return t->kind->add(t->trainer, text, (size_t)len);
}

static vlp_status add_line(const char *text, size_t len, int64_t number, void *user) {
    (void)number;
    training *t = user;
    return t->kind->add(t->trainer, text, len);
}

static vlp_status add_source(const cli_args *args, const char *path, training *t) {
    if (!cli_is_index(path)) return cli_each_line(path, add_line, t);
    vlp_index *index;
    VLP_TRY(vlp_index_open(&index, path, VLP_DB_READ));
    vlp_status status =
        vlp_captions_each(index, cli_text(args, "--split", "train"), add_caption, t);
    vlp_index_free(index);
    return status;
}

static vlp_status train_tokenizer(const cli_args *args, const trainer_kind *kind,
                                  vlp_tokenizer **out) {
    int64_t vocab;
    training t = {kind, NULL};
    VLP_TRY(cli_int(args, "--vocab", 8000, 32, 10000000, &vocab));
    VLP_TRY(kind->open(&t.trainer, (int32_t)vocab, cli_has(args, "--cased")));
    vlp_status status = VLP_OK;
    for (int i = 1; i < args->n_positional && status == VLP_OK; i++)
        status = add_source(args, args->positional[i], &t);
    if (status == VLP_OK) status = kind->finish(t.trainer, out);
    kind->close(t.trainer);
    return status;
}

/* A model's embedding rows belong to its vocabulary: another one would give other words silently.
 */
static vlp_status refuse_model(const char *folder) {
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json", "recipe.json"};
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(files) && status == VLP_OK; i++) {
        status = vlp_path_join(&path, folder, files[i]);
        if (status == VLP_OK && vlp_path_exists(path.data))
            status = VLP_FAIL(VLP_ERR_USAGE,
                              "--out %s holds a model (%s), which needs the vocabulary that it "
                              "has; name another folder",
                              folder, files[i]);
    }
    vlp_buf_free(&path);
    return status;
}

/* Files of another kind would stay, and be read instead. */
static vlp_status refuse_other_kind(const char *folder, const vlp_tokenizer *made) {
    vlp_tokenizer *there = NULL;
    if (!vlp_tokenizer_in_folder(folder)) return VLP_OK;
    bool same = vlp_tokenizer_open(&there, folder) == VLP_OK &&
                strcmp(vlp_tokenizer_kind_name(there), vlp_tokenizer_kind_name(made)) == 0;
    vlp_tokenizer_free(there);
    if (same) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "--out %s holds a tokenizer of another kind, whose files would be read "
                    "instead; name another folder",
                    folder);
}

static int run_train(const cli_args *args) {
    const char *name = cli_text(args, "--kind", kinds[0].name),
               *out = cli_text(args, "--out", NULL);
    const trainer_kind *kind = find_kind(name);
    if (!kind) return refuse_kind(name);
    if (args->n_positional < 2)
        return cli_usage("tokenizer train needs an index or text files (- reads standard input)");
    if (!out) return cli_usage("tokenizer train needs --out DIR, the folder to write");
    vlp_tokenizer *tokenizer;
    vlp_status status = refuse_model(out);
    if (status == VLP_OK) status = train_tokenizer(args, kind, &tokenizer);
    if (status != VLP_OK) return cli_fail(status);
    status = refuse_other_kind(out, tokenizer);
    if (status == VLP_OK) status = vlp_tokenizer_save(tokenizer, out);
    int32_t size = vlp_tokenizer_size(tokenizer);
    vlp_tokenizer_free(tokenizer);
    if (status != VLP_OK) return cli_fail(status);
    if (!cli_quiet()) fprintf(stderr, "%d tokens in %s\n", size, out);
    return EXIT_DONE;
}

/* What encode and decode carry from line to line. */
typedef struct {
    vlp_tokenizer *tokenizer;
    const cli_args *args;
    const char *path;
    int32_t *ids;
    int room;
    vlp_buf text;
} work;

static vlp_status make_room(work *w, size_t ids) {
    if (ids > INT32_MAX) return VLP_FAIL(VLP_ERR_LIMIT, "%s: a line is too long", w->path);
    if ((int)ids <= w->room) return VLP_OK;
    int32_t *larger = vlp_realloc(w->ids, ids * sizeof *larger);
    if (!larger) return VLP_ERR_MEMORY;
    w->ids = larger;
    w->room = (int)ids;
    return VLP_OK;
}

static void print_encoding(const work *w, int n) {
    if (!cli_has(w->args, "--json")) {
        for (int i = 0; i < n; i++) printf("%s%d", i ? " " : "", w->ids[i]);
        putchar('\n');
        return;
    }
    vlp_json *json = vlp_json_new_object(), *ids = vlp_json_new_array();
    vlp_json *tokens = vlp_json_new_array();
    for (int i = 0; i < n; i++) {
        vlp_json_append(ids, vlp_json_new_int(w->ids[i]));
        vlp_json_append(tokens, vlp_json_new_string(vlp_tokenizer_token(w->tokenizer, w->ids[i])));
    }
    vlp_json_set(json, "ids", ids);
    vlp_json_set(json, "tokens", tokens);
    cli_print_json(json);
}

/* A character decomposes into four tokens at most; CLIP's cleaning makes none longer. */
static vlp_status encode_line(const char *line, size_t len, int64_t number, void *user) {
    (void)number;
    work *w = user;
    VLP_TRY(make_room(w, 4 * len + 16));
    bool special = !cli_has(w->args, "--no-special");
    print_encoding(w, vlp_tokenizer_encode(w->tokenizer, line, len, special, w->ids, w->room));
    return VLP_OK;
}

static vlp_status read_json_ids(work *w, const char *line, size_t len, int *n) {
    vlp_json *json;
    VLP_TRY(vlp_json_parse(&json, line, len, w->path));
    const vlp_json *list = vlp_json_is_array(json) ? json : vlp_json_key(json, "ids");
    size_t count = vlp_json_len(list);
    vlp_status status = make_room(w, count + 1);
    if (status == VLP_OK && !vlp_json_is_array(list))
        status = VLP_FAIL(VLP_ERR_FORMAT, "no ids; give [1,2] or {\"ids\":[1,2]}");
    for (size_t i = 0; i < count && status == VLP_OK; i++) {
        int64_t id = vlp_json_as_int(vlp_json_at(list, i));
        w->ids[i] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
        if (!vlp_json_is_integer(vlp_json_at(list, i)))
            status = VLP_FAIL(VLP_ERR_FORMAT, "element %zu of the ids is no whole number", i);
    }
    *n = (int)count;
    vlp_json_free(json);
    return status;
}

static vlp_status read_plain_ids(work *w, const char *line, size_t len, int *n) {
    *n = 0;
    VLP_TRY(make_room(w, len + 1));
    for (const char *at = line + strspn(line, " ,\t"); *at; at += strspn(at, " ,\t")) {
        char *end;
        errno = 0;
        long id = strtol(at, &end, 10);
        if (end == at || (*end && !strchr(" ,\t", *end)))
            return VLP_FAIL(VLP_ERR_FORMAT, "\"%.20s\" is not an id; give numbers with spaces", at);
        w->ids[(*n)++] = errno || id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
        at = end;
    }
    return VLP_OK;
}

static vlp_status decode_line(const char *line, size_t len, int64_t number, void *user) {
    work *w = user;
    int n;
    bool json = line[0] == '{' || line[0] == '[';
    vlp_status status = json ? read_json_ids(w, line, len, &n) : read_plain_ids(w, line, len, &n);
    vlp_buf_clear(&w->text);
    if (status == VLP_OK)
        status = vlp_tokenizer_decode(w->tokenizer, w->ids, n, !cli_has(w->args, "--keep-special"),
                                      &w->text);
    if (status != VLP_OK)
        return vlp_fail_in(status, "%s:%lld", strcmp(w->path, "-") ? w->path : "standard input",
                           (long long)number);
    puts(w->text.data ? w->text.data : "");
    return VLP_OK;
}

static int run_lines(const cli_args *args, cli_line_fn each) {
    if (args->n_positional < 2)
        return cli_usage("tokenizer %s needs a model folder or a tokenizer file",
                         args->positional[0]);
    if (args->n_positional > 3)
        return cli_usage("tokenizer %s reads one file; what is \"%s\"?", args->positional[0],
                         args->positional[3]);
    work w = {.args = args, .path = args->n_positional > 2 ? args->positional[2] : "-"};
    vlp_status status = vlp_tokenizer_open(&w.tokenizer, args->positional[1]);
    if (status == VLP_OK) status = cli_each_line(w.path, each, &w);
    vlp_tokenizer_free(w.tokenizer);
    vlp_free(w.ids);
    vlp_buf_free(&w.text);
    return status == VLP_OK ? EXIT_DONE : cli_fail(status);
}

static int run_encode(const cli_args *args) {
    return run_lines(args, encode_line);
}

static int run_decode(const cli_args *args) {
    return run_lines(args, decode_line);
}

static const struct {
    const char *verb;
    int (*run)(const cli_args *args);
} jobs[] = {{"train", run_train}, {"encode", run_encode}, {"decode", run_decode}};

static int run(const cli_args *args) {
    const char *known[VLP_COUNT(jobs)], *verb = args->n_positional ? args->positional[0] : "";
    for (size_t i = 0; i < VLP_COUNT(jobs); i++) {
        known[i] = jobs[i].verb;
        if (strcmp(verb, known[i]) != 0) continue;
        vlp_status status = cli_check_job(args, verb);
        return status == VLP_OK ? jobs[i].run(args) : cli_fail(status);
    }
    char hint[128];
    return cli_usage("tokenizer does train, encode or decode, not \"%s\"%s", verb,
                     vlp_suggest_text(verb, known, VLP_COUNT(jobs), hint, sizeof hint));
}

const cli_command cmd_tokenizer = {
    .name = "tokenizer",
    .summary = "trains a tokenizer, or applies one",
    .usage = "train DB|FILE... --out DIR | encode MODEL [FILE] | decode MODEL [FILE]",
    .details =
        "train reads the captions of an index's training split, or text files a line each.\n"
        "encode reads texts a line each; decode reads ids, or what encode --json printed.\n"
        "MODEL is a model folder or a tokenizer file: vocab.txt (WordPiece), vocab.json beside\n"
        "merges.txt (byte-level BPE, CLIP), spiece.model (SentencePiece), tokenizer.json of\n"
        "these kinds, or OpenAI's bpe_simple_vocab_16e6.txt.gz. Without FILE both read standard\n"
        "input.",
    .examples =
        "  vlp tokenizer train pairs.db --vocab 8000 --out tokenizer/\n"
        "  vlp tokenizer train corpus.txt --cased --vocab 30000 --out tokenizer/\n"
        "  vlp tokenizer train pairs.db --kind bpe --vocab 8000 --out tokenizer/\n"
        "  echo \"a red car\" | vlp tokenizer encode tokenizer/ --json\n"
        "  vlp tokenizer encode tokenizer/ captions.txt | vlp tokenizer decode tokenizer/\n",
    .flags = flags,
    .run = run,
};
