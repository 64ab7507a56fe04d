#include "text/added.h"

#include "text/unicode.h"

#include <string.h>

void vlp_added_free(vlp_added *added) {
    vlp_free(added->tokens);
    *added = (vlp_added){0};
}

static vlp_added_token *find(const vlp_added *added, int32_t id) {
    for (int i = 0; i < added->count; i++)
        if (added->tokens[i].id == id) return &added->tokens[i];
    return NULL;
}

const vlp_added_token *vlp_added_find(const vlp_added *added, int32_t id) {
    return find(added, id);
}

vlp_status vlp_added_put(vlp_added *added, const vlp_vocab *vocab, vlp_added_token token) {
    vlp_added_token *there = find(added, token.id);
    if (there) {
        *there = token;
        return VLP_OK;
    }
    if (added->count == added->cap) {
        int cap = added->cap ? 2 * added->cap : 8;
        vlp_added_token *tokens = vlp_realloc(added->tokens, (size_t)cap * sizeof *tokens);
        if (!tokens) return VLP_ERR_MEMORY;
        added->tokens = tokens;
        added->cap = cap;
    }
    added->tokens[added->count++] = token;
    added->starts[(uint8_t)vlp_vocab_token(vocab, token.id)[0]] = true;
    return VLP_OK;
}

/* A token that is there as it is stays so; the rest of a text may become one in lower case. */
static bool begins_with(const char *text, const char *token, size_t size, bool lower_case) {
    if (memcmp(text, token, size) == 0) return true;
    for (size_t i = 0; lower_case && i < size; i++) {
        bool capital = text[i] >= 'A' && text[i] <= 'Z';
        if ((capital ? text[i] + ('a' - 'A') : text[i]) != token[i]) return false;
    }
    return lower_case;
}

const vlp_added_token *vlp_added_at(const vlp_added *added, const vlp_vocab *vocab,
                                    const char *text, size_t len, size_t *bytes) {
    const vlp_added_token *best = NULL;
    *bytes = 0;
    if (len == 0 || !(added->lower_case || added->starts[(uint8_t)text[0]])) return NULL;
    for (int i = 0; i < added->count; i++) {
        const char *token = vlp_vocab_token(vocab, added->tokens[i].id);
        size_t size = strlen(token);
        if (size <= *bytes || size > len) continue;
        if (!begins_with(text, token, size, added->lower_case)) continue;
        *bytes = size;
        best = &added->tokens[i];
    }
    return best;
}

/* Where the white space that ends text[from..end) begins. */
static size_t space_before(const char *text, size_t from, size_t end) {
    size_t start = from;
    for (size_t at = from; at < end;) {
        uint32_t code;
        int size = vlp_utf8_next(text + at, end - at, &code);
        bool space = size && vlp_unicode_is_space(code);
        at += size ? (size_t)size : 1;
        if (!space) start = at;
    }
    return start;
}

static size_t space_after(const char *text, size_t at, size_t len) {
    uint32_t code;
    for (int size; (size = vlp_utf8_next(text + at, len - at, &code)); at += (size_t)size)
        if (!vlp_unicode_is_space(code)) break;
    return at;
}

bool vlp_added_next(const vlp_added *added, const vlp_vocab *vocab, const char *text, size_t len,
                    size_t from, vlp_added_match *match) {
    for (size_t at = from; at < len; at++) {
        size_t bytes;
        const vlp_added_token *token = vlp_added_at(added, vocab, text + at, len - at, &bytes);
        if (!token) continue;
        match->token = token;
        match->start = token->lstrip ? space_before(text, from, at) : at;
        match->end = token->rstrip ? space_after(text, at + bytes, len) : at + bytes;
        return true;
    }
    return false;
}
