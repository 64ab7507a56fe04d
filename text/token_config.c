#include "text/token_config.h"

#include "core/file.h"

#include <stdio.h>
#include <string.h>

vlp_status vlp_token_config_open(vlp_json **out, const char *folder, vlp_buf *path) {
    *out = NULL;
    VLP_TRY(vlp_path_join(path, folder, "tokenizer_config.json"));
    if (!vlp_path_exists(path->data)) return VLP_OK;
    VLP_TRY(vlp_json_load(out, path->data));
    if (vlp_json_is_object(*out)) return VLP_OK;
    vlp_json_free(*out);
    *out = NULL;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: a JSON object expected", path->data);
}

vlp_status vlp_token_config_bool(const vlp_json *config, const char *where, const char *key,
                                 bool *value) {
    const vlp_json *found = vlp_json_key(config, key);
    if (!found || vlp_json_is_null(found)) return VLP_OK;
    if (!vlp_json_is_bool(found))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: true or false expected", where, key);
    *value = vlp_json_as_bool(found);
    return VLP_OK;
}

vlp_status vlp_token_config_names(const vlp_json *config, const char *where,
                                  const char *names[VLP_SPECIAL_COUNT]) {
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        const vlp_json *found = vlp_json_key(config, vlp_special_keys[i]);
        if (vlp_json_is_object(found)) found = vlp_json_key(found, "content");
        if (!found || vlp_json_is_null(found)) continue;
        if (!vlp_json_is_string(found) || !vlp_json_as_string(found)[0])
            return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s: the text of a token expected", where,
                            vlp_special_keys[i]);
        names[i] = vlp_json_as_string(found);
    }
    return VLP_OK;
}

static vlp_status by_id(const vlp_json *tokens, const char **names, int64_t count) {
    for (void *it = vlp_json_first(tokens); it; it = vlp_json_next(tokens, it)) {
        const vlp_json *value = vlp_json_iter_value(it);
        int64_t id = vlp_json_is_integer(value) ? vlp_json_as_int(value) : -1;
        if (id < 0 || id >= count)
            return VLP_FAIL(VLP_ERR_FORMAT,
                            "token \"%.40s\": its id is not a number from 0 to %lld",
                            vlp_json_iter_key(it), (long long)count - 1);
        if (names[id])
            return VLP_FAIL(VLP_ERR_FORMAT, "tokens \"%.40s\" and \"%.40s\" both have id %lld",
                            names[id], vlp_json_iter_key(it), (long long)id);
        names[id] = vlp_json_iter_key(it);
    }
    return VLP_OK;
}

vlp_status vlp_token_names(const vlp_json *tokens, const char ***names, int64_t *count) {
    *names = NULL;
    *count = 0;
    if (!vlp_json_is_object(tokens))
        return VLP_FAIL(VLP_ERR_FORMAT, "an object of tokens and ids expected");
    for (void *it = vlp_json_first(tokens); it; it = vlp_json_next(tokens, it)) ++*count;
    if (*count == 0) return VLP_FAIL(VLP_ERR_FORMAT, "no tokens");
    *names = vlp_alloc_zero((size_t)*count, sizeof **names);
    if (!*names) return VLP_ERR_MEMORY;
    vlp_status status = by_id(tokens, *names, *count);
    if (status == VLP_OK) return VLP_OK;
    vlp_free(*names);
    *names = NULL;
    return status;
}

vlp_status vlp_token_vocabulary(vlp_vocab *vocab, const vlp_json *tokens) {
    const char **names;
    int64_t count;
    VLP_TRY(vlp_token_names(tokens, &names, &count));
    vlp_status status = VLP_OK;
    for (int64_t id = 0; status == VLP_OK && id < count; id++) {
        status = vlp_vocab_add(vocab, names[id], strlen(names[id]));
        if (status != VLP_OK) vlp_fail_in(status, "id %lld", (long long)id);
    }
    vlp_free(names);
    return status;
}

vlp_added_token vlp_token_config_added(const vlp_json *token, int32_t id) {
    return (vlp_added_token){.id = id,
                             .special = true,
                             .lstrip = vlp_json_bool(token, "lstrip", false),
                             .rstrip = vlp_json_bool(token, "rstrip", false)};
}

static vlp_status add_tokens(vlp_tokenizer *t, const vlp_json *tokens) {
    if (!vlp_json_is_object(tokens)) return VLP_FAIL(VLP_ERR_FORMAT, "a JSON object expected");
    size_t count = 0;
    for (void *it = vlp_json_first(tokens); it; it = vlp_json_next(tokens, it)) count++;
    int32_t first = t->vocab.size;
    for (size_t round = 0; round < count; round++) {
        const char *token = NULL;
        for (void *it = vlp_json_first(tokens); it; it = vlp_json_next(tokens, it))
            if (vlp_json_as_int(vlp_json_iter_value(it)) == first + (int64_t)round)
                token = vlp_json_iter_key(it);
        if (!token)
            return VLP_FAIL(VLP_ERR_FORMAT,
                            "no token has id %lld; ids follow the %d of the vocabulary",
                            (long long)first + (long long)round, first);
        VLP_TRY(vlp_vocab_add(&t->vocab, token, strlen(token)));
        VLP_TRY(vlp_added_put(&t->added, &t->vocab,
                              (vlp_added_token){.id = t->vocab.size - 1, .special = true}));
    }
    return VLP_OK;
}

vlp_status vlp_added_tokens_open(vlp_tokenizer *tokenizer, const char *folder) {
    vlp_buf path = {0};
    vlp_json *tokens = NULL;
    tokenizer->own_size = tokenizer->vocab.size;
    vlp_status status = vlp_path_join(&path, folder, "added_tokens.json");
    if (status == VLP_OK && vlp_path_exists(path.data)) {
        status = vlp_json_load(&tokens, path.data);
        if (status == VLP_OK) {
            status = add_tokens(tokenizer, tokens);
            if (status != VLP_OK) vlp_fail_in(status, "%s", path.data);
        }
    }
    vlp_json_free(tokens);
    vlp_buf_free(&path);
    return status;
}

void vlp_token_config_set_specials(vlp_json *object, const vlp_tokenizer *tokenizer) {
    int32_t ids[VLP_SPECIAL_COUNT];
    vlp_special_list(&tokenizer->special, ids);
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++)
        if (ids[i] >= 0)
            vlp_json_set_string(object, vlp_special_keys[i],
                                vlp_vocab_token(&tokenizer->vocab, ids[i]));
}

/* Removes a file of this name when there is nothing to write. */
static vlp_status save_added(const vlp_tokenizer *t, const char *path) {
    if (t->own_size == t->vocab.size) {
        remove(path);
        return VLP_OK;
    }
    vlp_json *tokens = vlp_json_new_object();
    for (int32_t id = t->own_size; id < t->vocab.size; id++)
        vlp_json_set_int(tokens, vlp_vocab_token(&t->vocab, id), id);
    vlp_status status = vlp_json_save(tokens, path);
    vlp_json_free(tokens);
    return status;
}

vlp_status vlp_token_config_save(const vlp_tokenizer *tokenizer, vlp_json *config,
                                 const char *folder) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    vlp_json *specials = vlp_json_new_object();
    vlp_token_config_set_specials(specials, tokenizer);
    VLP_TRY_DONE(vlp_path_join(&path, folder, "tokenizer_config.json"));
    VLP_TRY_DONE(vlp_json_save(config, path.data));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "special_tokens_map.json"));
    VLP_TRY_DONE(vlp_json_save(specials, path.data));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "added_tokens.json"));
    status = save_added(tokenizer, path.data);
done:
    vlp_json_free(config);
    vlp_json_free(specials);
    vlp_buf_free(&path);
    return status;
}
