/* tokenizer.json, what Hugging Face's tokenizers library writes, where it describes a kind that is
 * read here: BERT's WordPiece, byte-level BPE, CLIP's BPE, SentencePiece. Everything else is
 * refused by name. */
#include "text/tokenizer_json.h"
#include "text/byte_bpe.h"
#include "text/token_config.h"
#include "text/wordpiece.h"

#include "core/file.h"

#include <string.h>

enum { MAX_FILE_BYTES = 1 << 28 };

static const char *type_of(const vlp_json *part) {
    return vlp_json_string(part, "type", "");
}

vlp_status vlp_json_refuse(const char *part, const char *what) {
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: %s is not supported; vlp reads BERT's WordPiece, byte-level BPE (GPT-2, "
                    "RoBERTa), CLIP's BPE and SentencePiece (T5, LLaMA)",
                    part, what[0] ? what : "none");
}

static bool is_null(const vlp_json *value) {
    return !value || vlp_json_is_null(value);
}

/* A model's option that must have the value that the kind implies; NULL and "" are the same. */
static vlp_status want_text(const vlp_json *model, const char *key, const char *value) {
    const char *is = vlp_json_string(model, key, "");
    if (strcmp(is, value) == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "model.%s: \"%s\" where \"%s\" is expected", key, is,
                    value);
}

static vlp_status want_false(const vlp_json *model, const char *key) {
    if (!vlp_json_bool(model, key, false)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "model.%s: true is not supported", key);
}

/* ---- added tokens ---- */

static vlp_status add_token(vlp_tokenizer *t, const vlp_json *token) {
    const char *content = vlp_json_string(token, "content", "");
    int64_t id = vlp_json_int(token, "id", -1);
    if (id == t->vocab.size)
        VLP_TRY(vlp_vocab_add(&t->vocab, content, strlen(content)));
    else if (id < 0 || id != vlp_tokenizer_find(t, content))
        return VLP_FAIL(VLP_ERR_FORMAT, "\"%.40s\" has id %lld, the vocabulary %d", content,
                        (long long)id, vlp_tokenizer_find(t, content));
    if (vlp_json_bool(token, "single_word", false))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "\"%.40s\": single_word is not supported", content);
    vlp_added_token added = vlp_token_config_added(token, (int32_t)id);
    added.special = vlp_json_bool(token, "special", false);
    return vlp_added_put(&t->added, &t->vocab, added);
}

vlp_status vlp_json_add_tokens(vlp_tokenizer *t, const vlp_json *tokens) {
    for (size_t i = 0; i < vlp_json_len(tokens); i++) {
        vlp_status status = add_token(t, vlp_json_at(tokens, i));
        if (status != VLP_OK) return vlp_fail_in(status, "added_tokens[%zu]", i);
    }
    return VLP_OK;
}

/* ---- what stands around the texts ---- */

static vlp_status token_id(const vlp_tokenizer *t, const vlp_json *value, int32_t *id) {
    int64_t is = vlp_json_is_integer(value) ? vlp_json_as_int(value) : -1;
    if (is < 0 || is >= t->vocab.size)
        return VLP_FAIL(VLP_ERR_FORMAT, "post_processor: a token's id from 0 to %d expected",
                        t->vocab.size - 1);
    *id = (int32_t)is;
    return VLP_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", ...}} */
static vlp_status template_item(const vlp_tokenizer *t, const vlp_json *processor,
                                const vlp_json *item, vlp_template *out) {
    const vlp_json *part = vlp_json_key(item, "Sequence"),
                   *token = vlp_json_key(item, "SpecialToken");
    const char *name = vlp_json_string(part ? part : token, "id", "");
    int type = vlp_json_int(part ? part : token, "type_id", 0) != 0;
    int32_t id = strcmp(name, "B") == 0 ? VLP_PART_SECOND : VLP_PART_FIRST;
    if (token) {
        const vlp_json *known = vlp_json_key(vlp_json_key(processor, "special_tokens"), name);
        const vlp_json *ids = vlp_json_key(known, "ids");
        if (vlp_json_len(ids) != 1)
            return VLP_FAIL(VLP_ERR_FORMAT, "post_processor: special token \"%.40s\" has %zu ids",
                            name, vlp_json_len(ids));
        VLP_TRY(token_id(t, vlp_json_at(ids, 0), &id));
    }
    if (out->count == VLP_TEMPLATE_MAX)
        return VLP_FAIL(VLP_ERR_LIMIT, "post_processor: more than %d items", VLP_TEMPLATE_MAX);
    vlp_template_add(out, id, type);
    return VLP_OK;
}

static vlp_status read_template(const vlp_tokenizer *t, const vlp_json *processor, const char *key,
                                vlp_template *out, int parts) {
    const vlp_json *items = vlp_json_key(processor, key);
    out->count = 0;
    for (size_t i = 0; i < vlp_json_len(items); i++)
        VLP_TRY(template_item(t, processor, vlp_json_at(items, i), out));
    int found = 0;
    for (int i = 0; i < out->count; i++) found += out->items[i].id < 0;
    if (found == parts) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "post_processor: %s holds %d texts, not %d", key, found, parts);
}

static vlp_status no_processing(vlp_tokenizer *t, const vlp_json *processor) {
    (void)processor;
    t->single.count = t->pair.count = 0;
    vlp_template_add(&t->single, VLP_PART_FIRST, 0);
    vlp_template_add(&t->pair, VLP_PART_FIRST, 0);
    vlp_template_add(&t->pair, VLP_PART_SECOND, 0);
    return VLP_OK;
}

static vlp_status cls_sep_processing(vlp_tokenizer *t, const vlp_json *processor) {
    VLP_TRY(token_id(t, vlp_json_at(vlp_json_key(processor, "cls"), 1), &t->special.cls));
    VLP_TRY(token_id(t, vlp_json_at(vlp_json_key(processor, "sep"), 1), &t->special.sep));
    vlp_template_cls_sep(t, strcmp(type_of(processor), "RobertaProcessing") == 0);
    return VLP_OK;
}

/* The first token before a text and the first after it are cls and sep. */
static vlp_status template_processing(vlp_tokenizer *t, const vlp_json *processor) {
    VLP_TRY(read_template(t, processor, "single", &t->single, 1));
    VLP_TRY(read_template(t, processor, "pair", &t->pair, 2));
    int text = 0;
    while (t->single.items[text].id >= 0) text++;
    t->special.cls = text > 0 ? t->single.items[0].id : -1;
    t->special.sep = text + 1 < t->single.count ? t->single.items[text + 1].id : -1;
    return VLP_OK;
}

static const struct {
    const char *type;
    vlp_status (*read)(vlp_tokenizer *t, const vlp_json *processor);
} processors[] = {{"", no_processing},
                  {"ByteLevel", no_processing},
                  {"BertProcessing", cls_sep_processing},
                  {"RobertaProcessing", cls_sep_processing},
                  {"TemplateProcessing", template_processing}};

static vlp_status read_processor(vlp_tokenizer *t, const vlp_json *processor) {
    const char *type = type_of(processor);
    const vlp_json *list = vlp_json_key(processor, "processors");
    if (strcmp(type, "Sequence") == 0) { /* ByteLevel only trims offsets: the other one counts */
        processor = NULL;
        for (size_t i = 0; i < vlp_json_len(list); i++)
            if (strcmp(type_of(vlp_json_at(list, i)), "ByteLevel") != 0)
                processor = vlp_json_at(list, i);
        type = type_of(processor);
    }
    for (size_t i = 0; i < VLP_COUNT(processors); i++)
        if (strcmp(type, processors[i].type) == 0) return processors[i].read(t, processor);
    return vlp_json_refuse("post_processor", type);
}

/* ---- WordPiece ---- */

static vlp_status bert_normalizer(vlp_wordpiece *w, const vlp_json *normalizer) {
    if (strcmp(type_of(normalizer), "BertNormalizer") != 0)
        return vlp_json_refuse("normalizer", type_of(normalizer));
    if (!vlp_json_bool(normalizer, "clean_text", true))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "normalizer.clean_text: false is not supported");
    vlp_normalize_options *n = &w->normalize;
    n->lower_case = vlp_json_bool(normalizer, "lowercase", true);
    n->split_ideographs = vlp_json_bool(normalizer, "handle_chinese_chars", true);
    n->strip_accents = vlp_json_bool(normalizer, "strip_accents", n->lower_case);
    return VLP_OK;
}

static vlp_status read_wordpiece(vlp_tokenizer **out, const vlp_json *json,
                                 const char *names[VLP_SPECIAL_COUNT]) {
    const vlp_json *model = vlp_json_key(json, "model");
    const char *cut = type_of(vlp_json_key(json, "pre_tokenizer"));
    vlp_wordpiece *w;
    VLP_TRY(vlp_wordpiece_new(&w, true));
    *out = &w->base;
    if (strcmp(cut, "BertPreTokenizer") != 0) return vlp_json_refuse("pre_tokenizer", cut);
    VLP_TRY(bert_normalizer(w, vlp_json_key(json, "normalizer")));
    VLP_TRY(want_text(model, "continuing_subword_prefix", "##"));
    int64_t chars = vlp_json_int(model, "max_input_chars_per_word", 100);
    if (chars < 1 || chars > VLP_WORD_MAX_CHARS)
        return VLP_FAIL(VLP_ERR_LIMIT, "model.max_input_chars_per_word: not from 1 to %d",
                        VLP_WORD_MAX_CHARS);
    w->max_word_chars = (size_t)chars;
    VLP_TRY(vlp_token_vocabulary(&w->base.vocab, vlp_json_key(model, "vocab")));
    VLP_TRY(vlp_json_add_tokens(&w->base, vlp_json_key(json, "added_tokens")));
    names[1] = vlp_json_string(model, "unk_token", names[1]);
    return vlp_wordpiece_finish(w, names);
}

/* ---- byte-pair encoding ---- */

/* "a b" in older files, ["a", "b"] in newer ones. */
static vlp_status read_merge(vlp_byte_bpe *b, const vlp_json *merge) {
    const char *left = vlp_json_as_string(merge), *space = strchr(left, ' ');
    if (space)
        return vlp_byte_bpe_merge(b, left, (size_t)(space - left), space + 1, strlen(space + 1));
    left = vlp_json_as_string(vlp_json_at(merge, 0));
    const char *right = vlp_json_as_string(vlp_json_at(merge, 1));
    return vlp_byte_bpe_merge(b, left, strlen(left), right, strlen(right));
}

static vlp_status read_merges(vlp_byte_bpe *b, const vlp_json *merges) {
    for (size_t i = 0; i < vlp_json_len(merges); i++) {
        vlp_status status = read_merge(b, vlp_json_at(merges, i));
        if (status != VLP_OK) return vlp_fail_in(status, "model.merges[%zu]", i);
    }
    return VLP_OK;
}

/* CLIP's normalizer is NFC, \s+ to a space, lower case, in this order; byte-level BPE has none. */
static vlp_status check_normalizer(const vlp_json *normalizer, bool clip) {
    static const char *const types[] = {"NFC", "Replace", "Lowercase"};
    const vlp_json *list = vlp_json_key(normalizer, "normalizers");
    if (!clip)
        return is_null(normalizer) ? VLP_OK : vlp_json_refuse("normalizer", type_of(normalizer));
    if (vlp_json_len(list) != VLP_COUNT(types))
        return vlp_json_refuse("normalizer", type_of(normalizer));
    for (size_t i = 0; i < VLP_COUNT(types); i++)
        if (strcmp(type_of(vlp_json_at(list, i)), types[i]) != 0)
            return vlp_json_refuse("normalizer", type_of(vlp_json_at(list, i)));
    const vlp_json *replace = vlp_json_at(list, 1);
    if (strcmp(vlp_json_string(replace, "pattern.Regex", ""), "\\s+") != 0 ||
        strcmp(vlp_json_string(replace, "content", ""), " ") != 0)
        return vlp_json_refuse("normalizer", "Replace of anything but \\s+ by a space");
    return VLP_OK;
}

static vlp_status read_cut(vlp_byte_bpe *b, const vlp_json *cut, bool clip) {
    static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";
    const vlp_json *list = vlp_json_key(cut, "pretokenizers");
    if (clip) {
        const char *regex = vlp_json_string(vlp_json_at(list, 0), "pattern.Regex", "");
        size_t len = strlen(regex), tail = sizeof pattern - 1;
        if (vlp_json_len(list) != 2 || len < tail || strcmp(regex + len - tail, pattern) != 0)
            return vlp_json_refuse("pre_tokenizer", "a pattern that is not CLIP's");
        cut = vlp_json_at(list, 1);
    }
    if (strcmp(type_of(cut), "ByteLevel") != 0)
        return vlp_json_refuse("pre_tokenizer", type_of(cut));
    if (!clip && !vlp_json_bool(cut, "use_regex", true))
        return vlp_json_refuse("pre_tokenizer", "ByteLevel without its pattern");
    if (vlp_json_bool(cut, "add_prefix_space", true)) b->base.prefix_space = VLP_PREFIX_SEGMENTS;
    return VLP_OK;
}

static vlp_status read_bpe(vlp_tokenizer **out, const vlp_json *json,
                           const char *names[VLP_SPECIAL_COUNT]) {
    const vlp_json *model = vlp_json_key(json, "model");
    bool clip = strcmp(vlp_json_string(model, "end_of_word_suffix", ""), "</w>") == 0;
    vlp_byte_bpe *b;
    if (vlp_json_bool(model, "byte_fallback", false)) return vlp_json_scored_bpe(out, json, names);
    VLP_TRY(vlp_byte_bpe_new(&b));
    *out = &b->base;
    VLP_TRY(want_false(model, "ignore_merges"));
    VLP_TRY(want_text(model, "continuing_subword_prefix", ""));
    VLP_TRY(want_text(model, "end_of_word_suffix", clip ? "</w>" : ""));
    if (!is_null(vlp_json_key(model, "dropout")))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "model.dropout is not supported");
    VLP_TRY(check_normalizer(vlp_json_key(json, "normalizer"), clip));
    VLP_TRY(read_cut(b, vlp_json_key(json, "pre_tokenizer"), clip));
    VLP_TRY(vlp_token_vocabulary(&b->base.vocab, vlp_json_key(model, "vocab")));
    VLP_TRY(read_merges(b, vlp_json_key(model, "merges")));
    VLP_TRY(vlp_json_add_tokens(&b->base, vlp_json_key(json, "added_tokens")));
    VLP_TRY(vlp_byte_bpe_finish(b, names));
    if (clip != (b->base.kind == &vlp_clip_bpe_kind))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "words that end with </w>, but no <|startoftext|>");
    b->clean = VLP_CLIP_CLEAN_FAST;
    return VLP_OK;
}

static const struct {
    const char *type;
    vlp_status (*read)(vlp_tokenizer **out, const vlp_json *json,
                       const char *names[VLP_SPECIAL_COUNT]);
} models[] = {{"WordPiece", read_wordpiece}, {"BPE", read_bpe}, {"Unigram", vlp_json_unigram}};

static vlp_status read_model(vlp_tokenizer **out, const vlp_json *json,
                             const char *names[VLP_SPECIAL_COUNT]) {
    const vlp_json *model = vlp_json_key(json, "model");
    if (!vlp_json_is_object(model))
        return VLP_FAIL(VLP_ERR_FORMAT, "no \"model\"; a tokenizer.json is expected");
    /* Early files leave the type out: only BPE has merges. */
    const char *type =
        vlp_json_string(model, "type", vlp_json_key(model, "merges") ? "BPE" : "WordPiece");
    for (size_t i = 0; i < VLP_COUNT(models); i++) {
        if (strcmp(type, models[i].type) != 0) continue;
        VLP_TRY(models[i].read(out, json, names));
        return read_processor(*out, vlp_json_key(json, "post_processor"));
    }
    return vlp_json_refuse("model", type);
}

vlp_status vlp_tokenizer_json_open(vlp_tokenizer **out, const char *folder, const char *file) {
    vlp_status status = VLP_OK;
    vlp_buf text = {0}, path = {0};
    vlp_json *json = NULL, *config = NULL;
    vlp_tokenizer *tokenizer = NULL;
    const char *names[VLP_SPECIAL_COUNT] = {0};
    VLP_TRY_DONE(vlp_token_config_open(&config, folder, &path));
    if (config) VLP_TRY_DONE(vlp_token_config_names(config, path.data, names));
    VLP_TRY_DONE(vlp_file_read(file, MAX_FILE_BYTES, &text));
    VLP_TRY_DONE(vlp_json_parse(&json, text.data, text.len, file));
    VLP_TRY_DONE(vlp_tokenizer_json_types(json, file));
    status = read_model(&tokenizer, json, names);
    if (status != VLP_OK) vlp_fail_in(status, "%s", file);
done:
    vlp_json_free(json);
    vlp_json_free(config);
    vlp_buf_free(&path);
    if (status == VLP_OK) {
        tokenizer->source = text;
        *out = tokenizer;
        return VLP_OK;
    }
    vlp_buf_free(&text);
    vlp_tokenizer_free(tokenizer);
    return status;
}
