/* vocab.json with merges.txt, and OpenAI's bpe_simple_vocab_16e6.txt. */
#include "text/byte_bpe.h"

#include "core/file.h"
#include "core/gzip.h"
#include "text/token_config.h"
#include "text/unicode.h"

#include <string.h>

enum { MAX_FILE_BYTES = 1 << 28, CLIP_MERGES = 49152 - 256 - 2 };

/* One line of merges: two tokens with a space between. */
static vlp_status read_merge(vlp_byte_bpe *b, const char *line, size_t len) {
    const char *space = memchr(line, ' ', len);
    size_t left = space ? (size_t)(space - line) : 0;
    if (left == 0 || left + 1 == len || memchr(space + 1, ' ', len - left - 1))
        return VLP_FAIL(VLP_ERR_FORMAT, "\"%.*s\" is not two tokens with a space between",
                        (int)(len < 60 ? len : 60), line);
    return vlp_byte_bpe_merge(b, line, left, space + 1, len - left - 1);
}

/* The first line is a version, or "#version: 0.2", where there is one. */
static bool is_header(const char *line, size_t len, int64_t number) {
    static const char *const heads[] = {"#version", "\"bpe_simple_vocab"};
    for (size_t i = 0; number == 1 && i < VLP_COUNT(heads); i++)
        if (len >= strlen(heads[i]) && memcmp(line, heads[i], strlen(heads[i])) == 0) return true;
    return false;
}

typedef vlp_status line_fn(void *user, const char *line, size_t len);

/* Calls `each` with the first `most` lines that are neither empty nor a header. */
static vlp_status each_merge(const vlp_buf *text, const char *where, int64_t most, line_fn *each,
                             void *user) {
    const char *at = text->data, *end = at + text->len;
    int64_t count = 0;
    for (int64_t number = 1; at < end && count < most; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
        const char *line = at;
        at = stop ? stop + 1 : end;
        if (len && line[len - 1] == '\r') len--;
        if (len == 0 || is_header(line, len, number)) continue;
        vlp_status status = each(user, line, len);
        if (status != VLP_OK) return vlp_fail_in(status, "%s:%lld", where, (long long)number);
        count++;
    }
    return VLP_OK;
}

static vlp_status add_merge(void *user, const char *line, size_t len) {
    return read_merge(user, line, len);
}

static vlp_status read_vocabulary(vlp_byte_bpe *b, const char *file) {
    vlp_json *tokens = NULL;
    VLP_TRY(vlp_json_load(&tokens, file));
    vlp_status status = vlp_token_vocabulary(&b->base.vocab, tokens);
    if (status != VLP_OK) vlp_fail_in(status, "%s", file);
    vlp_json_free(tokens);
    return status;
}

static vlp_status read_merges(vlp_byte_bpe *b, const char *folder, const char *vocabulary) {
    bool openai = strstr(vocabulary, "encoder.json") != NULL;
    vlp_buf path = {0}, text = {0};
    vlp_status status = vlp_path_join(&path, folder, openai ? "vocab.bpe" : "merges.txt");
    if (status == VLP_OK) status = vlp_file_read(path.data, MAX_FILE_BYTES, &text);
    if (status == VLP_OK) status = each_merge(&text, path.data, INT32_MAX, add_merge, b);
    vlp_buf_free(&path);
    vlp_buf_free(&text);
    return status;
}

/* The properties that tokenizer_config.json gives its special tokens. */
static vlp_status configure(vlp_byte_bpe *b, const vlp_json *config, const char *where,
                            const char *names[VLP_SPECIAL_COUNT]) {
    vlp_tokenizer *t = &b->base;
    bool prefix = false;
    VLP_TRY(vlp_token_config_bool(config, where, "add_prefix_space", &prefix));
    if (prefix) t->prefix_space = VLP_PREFIX_TEXT;
    VLP_TRY(vlp_token_config_names(config, where, names));
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        const vlp_json *token = vlp_json_key(config, vlp_special_keys[i]);
        int32_t id = vlp_json_is_object(token) ? vlp_tokenizer_find(t, names[i]) : -1;
        if (id >= 0)
            VLP_TRY(vlp_added_put(&t->added, &t->vocab, vlp_token_config_added(token, id)));
    }
    return VLP_OK;
}

static vlp_status finish(vlp_tokenizer **out, vlp_byte_bpe *b, vlp_status status) {
    if (status == VLP_OK)
        *out = &b->base;
    else if (b)
        vlp_tokenizer_free(&b->base);
    return status;
}

vlp_status vlp_bpe_open(vlp_tokenizer **out, const char *folder, const char *file) {
    vlp_status status = VLP_OK;
    vlp_buf path = {0};
    vlp_json *config = NULL;
    vlp_byte_bpe *b = NULL;
    const char *names[VLP_SPECIAL_COUNT] = {0};
    VLP_TRY_DONE(vlp_byte_bpe_new(&b));
    VLP_TRY_DONE(read_vocabulary(b, file));
    VLP_TRY_DONE(read_merges(b, folder, file));
    VLP_TRY_DONE(vlp_added_tokens_open(&b->base, folder));
    VLP_TRY_DONE(vlp_token_config_open(&config, folder, &path));
    if (config) VLP_TRY_DONE(configure(b, config, path.data, names));
    VLP_TRY_DONE(vlp_byte_bpe_finish(b, names));
    b->base.added_inside = b->base.kind == &vlp_clip_bpe_kind;
done:
    vlp_json_free(config);
    vlp_buf_free(&path);
    return finish(out, b, status);
}

/* ---- OpenAI's file: the merges alone, from which the vocabulary follows ---- */

static vlp_status add_byte_tokens(vlp_vocab *vocab, const char *end) {
    for (uint32_t code = 0; code < 512; code++) {
        char token[16];
        if (vlp_char_byte(code) < 0) continue;
        int n = vlp_utf8_put(code, token);
        memcpy(token + n, end, strlen(end));
        VLP_TRY(vlp_vocab_add(vocab, token, (size_t)n + strlen(end)));
    }
    return VLP_OK;
}

static vlp_status add_joined(void *user, const char *line, size_t len) {
    vlp_buf joined = {0};
    const char *space = memchr(line, ' ', len);
    size_t left = space ? (size_t)(space - line) : len;
    vlp_status status = vlp_buf_append(&joined, line, left);
    if (status == VLP_OK && space) status = vlp_buf_append(&joined, space + 1, len - left - 1);
    if (status == VLP_OK) status = vlp_vocab_add(user, joined.data, joined.len);
    vlp_buf_free(&joined);
    return status;
}

static vlp_status read_packed(const char *file, vlp_buf *text) {
    size_t len = strlen(file);
    if (len < 3 || strcmp(file + len - 3, ".gz") != 0)
        return vlp_file_read(file, MAX_FILE_BYTES, text);
    vlp_buf packed = {0};
    vlp_status status = vlp_file_read(file, MAX_FILE_BYTES, &packed);
    if (status == VLP_OK) {
        status = vlp_gunzip(packed.data, packed.len, MAX_FILE_BYTES, text);
        if (status != VLP_OK) vlp_fail_in(status, "%s", file);
    }
    vlp_buf_free(&packed);
    return status;
}

vlp_status vlp_openai_bpe_open(vlp_tokenizer **out, const char *folder, const char *file) {
    (void)folder;
    static const char *const specials[] = {"<|startoftext|>", "<|endoftext|>"};
    const char *const none[VLP_SPECIAL_COUNT] = {0};
    vlp_status status = VLP_OK;
    vlp_buf text = {0};
    vlp_byte_bpe *b = NULL;
    VLP_TRY_DONE(vlp_byte_bpe_new(&b));
    VLP_TRY_DONE(read_packed(file, &text));
    VLP_TRY_DONE(add_byte_tokens(&b->base.vocab, ""));
    VLP_TRY_DONE(add_byte_tokens(&b->base.vocab, "</w>"));
    VLP_TRY_DONE(each_merge(&text, file, CLIP_MERGES, add_joined, &b->base.vocab));
    for (size_t i = 0; i < VLP_COUNT(specials); i++)
        VLP_TRY_DONE(vlp_vocab_add(&b->base.vocab, specials[i], strlen(specials[i])));
    VLP_TRY_DONE(each_merge(&text, file, CLIP_MERGES, add_merge, b));
    VLP_TRY_DONE(vlp_byte_bpe_finish(b, none));
    b->base.added_inside = true;
    b->base.special.pad = 0; /* as OpenAI's tokenize() pads */
done:
    vlp_buf_free(&text);
    return finish(out, b, status);
}

/* ---- saving ---- */

static const char *class_of(const vlp_byte_bpe *b) {
    if (b->base.kind == &vlp_clip_bpe_kind) return "CLIPTokenizer";
    return b->base.special.cls >= 0 ? "RobertaTokenizer" : "GPT2Tokenizer";
}

static vlp_json *config_of(const vlp_byte_bpe *b) {
    vlp_json *config = vlp_json_new_object();
    vlp_json_set_string(config, "tokenizer_class", class_of(b));
    vlp_json_set_bool(config, "add_prefix_space", b->base.prefix_space != VLP_PREFIX_NONE);
    vlp_token_config_set_specials(config, &b->base);
    if (b->base.kind == &vlp_clip_bpe_kind) /* OpenAI's 0 is an ordinary token's */
        vlp_json_set_string(config, "pad_token", "<|endoftext|>");
    return config;
}

static vlp_status save_files(const vlp_byte_bpe *b, const char *folder, vlp_json *tokens,
                             vlp_buf *path) {
    for (int32_t id = 0; id < b->base.own_size; id++)
        vlp_json_set_int(tokens, vlp_vocab_token(&b->base.vocab, id), id);
    VLP_TRY(vlp_path_join(path, folder, "vocab.json"));
    VLP_TRY(vlp_json_save(tokens, path->data));
    vlp_writer writer;
    VLP_TRY(vlp_path_join(path, folder, "merges.txt"));
    VLP_TRY(vlp_writer_open(&writer, path->data));
    static const char head[] = "#version: 0.2\n";
    vlp_status status = vlp_writer_write(&writer, head, sizeof head - 1);
    if (status == VLP_OK && b->merges.len)
        status = vlp_writer_write(&writer, b->merges.data, b->merges.len);
    if (status == VLP_OK) return vlp_writer_commit(&writer);
    vlp_writer_abandon(&writer);
    return status;
}

vlp_status vlp_byte_bpe_save(const vlp_tokenizer *tokenizer, const char *folder) {
    const vlp_byte_bpe *b = (const vlp_byte_bpe *)tokenizer;
    vlp_buf path = {0};
    vlp_json *tokens = vlp_json_new_object();
    vlp_status status = save_files(b, folder, tokens, &path);
    vlp_json_free(tokens);
    vlp_buf_free(&path);
    if (status != VLP_OK) return status;
    return vlp_token_config_save(tokenizer, config_of(b), folder);
}
