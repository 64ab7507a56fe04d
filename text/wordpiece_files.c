#include "text/wordpiece.h"

#include "core/file.h"
#include "core/json.h"

#include <string.h>

enum { MAX_VOCABULARY_BYTES = 1 << 28 };

static const char *const special_keys[] = {"pad_token", "unk_token", "cls_token", "sep_token",
                                           "mask_token"};

vlp_status vlp_wordpiece_read(vlp_wordpiece *w, const char *text, size_t len, const char *where) {
    if (len == 0) return VLP_FAIL(VLP_ERR_FORMAT, "%s: empty; one token a line is expected", where);
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s:1: a byte order mark; save the file without one",
                        where);
    const char *end = text + len;
    for (int64_t line = 1; text < end; line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop) stop = end;
        size_t size = (size_t)(stop - text);
        if (size && text[size - 1] == '\r') size--;
        vlp_status status = size && memchr(text, '\r', size)
                                ? VLP_FAIL(VLP_ERR_FORMAT, "a carriage return inside the line")
                                : vlp_vocab_add(&w->base.vocab, text, size);
        if (status != VLP_OK) return vlp_fail_in(status, "%s:%lld", where, (long long)line);
        text = stop < end ? stop + 1 : end;
    }
    return VLP_OK;
}

static vlp_status read_bool(const vlp_json *config, const char *where, const char *key,
                            bool *value) {
    const vlp_json *found = vlp_json_key(config, key);
    if (!found || vlp_json_is_null(found)) return VLP_OK;
    if (!vlp_json_is_bool(found))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: true or false expected", where, key);
    *value = vlp_json_as_bool(found);
    return VLP_OK;
}

static vlp_status read_word_chars(const vlp_json *config, const char *where, size_t *value) {
    static const char key[] = "max_input_chars_per_word";
    int64_t chars = vlp_json_int(config, key, (int64_t)*value);
    if (chars < 1 || chars > VLP_WORD_MAX_CHARS)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: %lld is not between 1 and %d", where, key,
                        (long long)chars, VLP_WORD_MAX_CHARS);
    *value = (size_t)chars;
    return VLP_OK;
}

/* A token is written as a string or as {"content": string, ...}. Absent or null keeps *name. */
static vlp_status read_token(const vlp_json *config, const char *where, const char *key,
                             const char **name) {
    const vlp_json *found = vlp_json_key(config, key);
    if (vlp_json_is_object(found)) found = vlp_json_key(found, "content");
    if (!found || vlp_json_is_null(found)) return VLP_OK;
    if (!vlp_json_is_string(found) || !vlp_json_as_string(found)[0])
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: the text of a token expected", where, key);
    *name = vlp_json_as_string(found);
    return VLP_OK;
}

static vlp_status configure(vlp_wordpiece *w, const vlp_json *config, const char *where,
                            const char *names[5]) {
    if (!vlp_json_is_object(config))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: a JSON object expected", where);
    vlp_normalize_options *normalize = &w->normalize;
    VLP_TRY(read_bool(config, where, "do_lower_case", &normalize->lower_case));
    VLP_TRY(read_bool(config, where, "tokenize_chinese_chars", &normalize->split_ideographs));
    normalize->strip_accents = normalize->lower_case;
    VLP_TRY(read_bool(config, where, "strip_accents", &normalize->strip_accents));
    if (vlp_json_is_bool(vlp_json_key(config, "strip_accents")))
        w->strip_accents = normalize->strip_accents;
    VLP_TRY(read_word_chars(config, where, &w->max_word_chars));
    for (size_t i = 0; i < VLP_COUNT(special_keys); i++)
        VLP_TRY(read_token(config, where, special_keys[i], &names[i]));
    return VLP_OK;
}

vlp_status vlp_wordpiece_open(vlp_tokenizer **out, const char *folder, const char *file) {
    vlp_status status = VLP_OK;
    vlp_buf text = {0}, path = {0};
    vlp_json *config = NULL;
    vlp_wordpiece *w = NULL;
    const char *names[5] = {0};
    VLP_TRY_DONE(vlp_wordpiece_new(&w, true));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "tokenizer_config.json"));
    if (vlp_path_exists(path.data)) {
        VLP_TRY_DONE(vlp_json_load(&config, path.data));
        VLP_TRY_DONE(configure(w, config, path.data, names));
    }
    VLP_TRY_DONE(vlp_file_read(file, MAX_VOCABULARY_BYTES, &text));
    VLP_TRY_DONE(vlp_wordpiece_read(w, text.data, text.len, file));
    status = vlp_wordpiece_finish(w, names);
    if (status != VLP_OK) vlp_fail_in(status, "%s", file);
done:
    vlp_json_free(config);
    vlp_buf_free(&path);
    vlp_buf_free(&text);
    if (status == VLP_OK)
        *out = &w->base;
    else if (w)
        vlp_tokenizer_free(&w->base);
    return status;
}

static vlp_status save_vocabulary(const vlp_vocab *vocab, const char *path) {
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    for (int32_t id = 0; id < vocab->size; id++) {
        VLP_TRY_DONE(vlp_buf_puts(&text, vlp_vocab_token(vocab, id)));
        VLP_TRY_DONE(vlp_buf_puts(&text, "\n"));
    }
    status = vlp_file_write(path, text.data, text.len);
done:
    vlp_buf_free(&text);
    return status;
}

static void set_specials(vlp_json *object, const vlp_tokenizer *tokenizer) {
    const vlp_special_ids *s = &tokenizer->special;
    const int32_t ids[] = {s->pad, s->unk, s->cls, s->sep, s->mask};
    for (size_t i = 0; i < VLP_COUNT(ids); i++)
        if (ids[i] >= 0)
            vlp_json_set_string(object, special_keys[i],
                                vlp_vocab_token(&tokenizer->vocab, ids[i]));
}

static vlp_json *config_of(const vlp_wordpiece *w) {
    vlp_json *config = vlp_json_new_object();
    vlp_json_set_string(config, "tokenizer_class", "BertTokenizer");
    vlp_json_set_bool(config, "do_lower_case", w->normalize.lower_case);
    if (w->strip_accents >= 0) vlp_json_set_bool(config, "strip_accents", w->strip_accents);
    vlp_json_set_bool(config, "tokenize_chinese_chars", w->normalize.split_ideographs);
    vlp_json_set_int(config, "max_input_chars_per_word", (int64_t)w->max_word_chars);
    set_specials(config, &w->base);
    return config;
}

vlp_status vlp_wordpiece_save(const vlp_tokenizer *tokenizer, const char *folder) {
    const vlp_wordpiece *w = (const vlp_wordpiece *)tokenizer;
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    vlp_json *config = config_of(w), *specials = vlp_json_new_object();
    set_specials(specials, tokenizer);
    VLP_TRY_DONE(vlp_path_join(&path, folder, "vocab.txt"));
    VLP_TRY_DONE(save_vocabulary(&tokenizer->vocab, path.data));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "tokenizer_config.json"));
    VLP_TRY_DONE(vlp_json_save(config, path.data));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "special_tokens_map.json"));
    VLP_TRY_DONE(vlp_json_save(specials, path.data));
done:
    vlp_json_free(config);
    vlp_json_free(specials);
    vlp_buf_free(&path);
    return status;
}
