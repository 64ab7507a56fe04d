#include "text/wordpiece.h"

#include "core/file.h"
#include "text/token_config.h"

#include <string.h>

enum { MAX_VOCABULARY_BYTES = 1 << 28 };

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

static vlp_status read_word_chars(const vlp_json *config, const char *where, size_t *value) {
    static const char key[] = "max_input_chars_per_word";
    VLP_TRY(vlp_json_expect(config, &(vlp_json_typed){key, VLP_JSON_INTEGER}, 1, where));
    int64_t chars = vlp_json_int(config, key, (int64_t)*value);
    if (chars < 1 || chars > VLP_WORD_MAX_CHARS)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: %lld is not between 1 and %d", where, key,
                        (long long)chars, VLP_WORD_MAX_CHARS);
    *value = (size_t)chars;
    return VLP_OK;
}

static vlp_status configure(vlp_wordpiece *w, const vlp_json *config, const char *where,
                            const char *names[VLP_SPECIAL_COUNT]) {
    vlp_normalize_options *normalize = &w->normalize;
    VLP_TRY(vlp_token_config_bool(config, where, "do_lower_case", &normalize->lower_case));
    VLP_TRY(vlp_token_config_bool(config, where, "tokenize_chinese_chars",
                                  &normalize->split_ideographs));
    normalize->strip_accents = normalize->lower_case;
    VLP_TRY(vlp_token_config_bool(config, where, "strip_accents", &normalize->strip_accents));
    if (vlp_json_is_bool(vlp_json_key(config, "strip_accents")))
        w->strip_accents = normalize->strip_accents;
    VLP_TRY(read_word_chars(config, where, &w->max_word_chars));
    return vlp_token_config_names(config, where, names);
}

vlp_status vlp_wordpiece_open(vlp_tokenizer **out, const char *folder, const char *file) {
    vlp_status status = VLP_OK;
    vlp_buf text = {0}, path = {0};
    vlp_json *config = NULL;
    vlp_wordpiece *w = NULL;
    const char *names[VLP_SPECIAL_COUNT] = {0};
    VLP_TRY_DONE(vlp_wordpiece_new(&w, true));
    VLP_TRY_DONE(vlp_token_config_open(&config, folder, &path));
    if (config) VLP_TRY_DONE(configure(w, config, path.data, names));
    VLP_TRY_DONE(vlp_file_read(file, MAX_VOCABULARY_BYTES, &text));
    VLP_TRY_DONE(vlp_wordpiece_read(w, text.data, text.len, file));
    VLP_TRY_DONE(vlp_added_tokens_open(&w->base, folder));
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

static vlp_status save_vocabulary(const vlp_tokenizer *tokenizer, const char *path) {
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    for (int32_t id = 0; id < tokenizer->own_size; id++) {
        VLP_TRY_DONE(vlp_buf_puts(&text, vlp_vocab_token(&tokenizer->vocab, id)));
        VLP_TRY_DONE(vlp_buf_puts(&text, "\n"));
    }
    status = vlp_file_write(path, text.data, text.len);
done:
    vlp_buf_free(&text);
    return status;
}

static vlp_json *config_of(const vlp_wordpiece *w) {
    vlp_json *config = vlp_json_new_object();
    vlp_json_set_string(config, "tokenizer_class", "BertTokenizer");
    vlp_json_set_bool(config, "do_lower_case", w->normalize.lower_case);
    if (w->strip_accents >= 0) vlp_json_set_bool(config, "strip_accents", w->strip_accents);
    vlp_json_set_bool(config, "tokenize_chinese_chars", w->normalize.split_ideographs);
    vlp_json_set_int(config, "max_input_chars_per_word", (int64_t)w->max_word_chars);
    vlp_token_config_set_specials(config, &w->base);
    return config;
}

vlp_status vlp_wordpiece_save(const vlp_tokenizer *tokenizer, const char *folder) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, folder, "vocab.txt");
    if (status == VLP_OK) status = save_vocabulary(tokenizer, path.data);
    vlp_buf_free(&path);
    if (status != VLP_OK) return status;
    return vlp_token_config_save(tokenizer, config_of((const vlp_wordpiece *)tokenizer), folder);
}
