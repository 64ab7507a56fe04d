#include "text/sentencepiece.h"
#include "text/token_config.h"
#include "text/tokenizer_json.h"

#include <stdio.h>
#include <string.h>

static const char *type_of(const vlp_json *part) {
    return vlp_json_string(part, "type", "");
}

/* Whether the token is listed as a special one, which texts do not contain as a piece. */
static bool is_control(const vlp_json *json, const char *token) {
    const vlp_json *added = vlp_json_key(json, "added_tokens");
    for (size_t i = 0; i < vlp_json_len(added); i++) {
        const vlp_json *entry = vlp_json_at(added, i);
        if (vlp_json_bool(entry, "special", false) &&
            strcmp(vlp_json_string(entry, "content", ""), token) == 0)
            return true;
    }
    return false;
}

static bool is_byte(const char *token) {
    unsigned byte;
    char last = 0;
    return strlen(token) == 6 && sscanf(token, "<0x%2X%c", &byte, &last) == 2 && last == '>';
}

/* The special tokens by the names that tokenizer_config.json gives, or the usual ones. */
static void find_specials(vlp_tokenizer *t, const char *const names[VLP_SPECIAL_COUNT]) {
    vlp_special_ids *s = &t->special;
    static const char *const usual[VLP_SPECIAL_COUNT] = {"<pad>", NULL,  NULL,  NULL,
                                                         NULL,    "<s>", "</s>"};
    int32_t *const fields[VLP_SPECIAL_COUNT] = {&s->pad,  NULL,    &s->cls, &s->sep,
                                                &s->mask, &s->bos, &s->eos};
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        const char *name = names[i] ? names[i] : usual[i];
        if (fields[i] && name) *fields[i] = vlp_tokenizer_find(t, name);
    }
}

/* ---- LLaMA ---- */

/* Prepend U+2581, then a space is U+2581. */
static vlp_status read_escapes(vlp_sentencepiece *s, const vlp_json *normalizer) {
    const vlp_json *list = vlp_json_key(normalizer, "normalizers");
    s->dummy_prefix = s->remove_extra = false;
    for (size_t i = 0; i < vlp_json_len(list); i++) {
        const vlp_json *part = vlp_json_at(list, i);
        if (strcmp(type_of(part), "Prepend") == 0)
            s->dummy_prefix = true;
        else if (strcmp(type_of(part), "Replace") != 0 ||
                 strcmp(vlp_json_string(part, "pattern.String", ""), " ") != 0)
            return vlp_json_refuse("normalizer", type_of(part));
    }
    return vlp_json_len(list) ? VLP_OK : vlp_json_refuse("normalizer", type_of(normalizer));
}

static vlp_status read_tokens(vlp_sentencepiece *s, const vlp_json *json) {
    const vlp_json *model = vlp_json_key(json, "model");
    const char **names, *unknown = vlp_json_string(model, "unk_token", "<unk>");
    int64_t count;
    VLP_TRY(vlp_token_names(vlp_json_key(model, "vocab"), &names, &count));
    vlp_status status = VLP_OK;
    for (int64_t id = 0; status == VLP_OK && id < count; id++) {
        int type = strcmp(names[id], unknown) == 0 ? VLP_PIECE_UNKNOWN
                   : is_byte(names[id])            ? VLP_PIECE_BYTE
                   : is_control(json, names[id])   ? VLP_PIECE_CONTROL
                                                   : VLP_PIECE_NORMAL;
        status = vlp_sentencepiece_add(s, names[id], strlen(names[id]), 0, type);
        if (status != VLP_OK) vlp_fail_in(status, "model.vocab: id %lld", (long long)id);
    }
    vlp_free(names);
    return status;
}

/* "a b", or ["a", "b"]. */
static vlp_status read_merge(vlp_sentencepiece *s, const vlp_json *merge, int32_t rank) {
    const char *text = vlp_json_as_string(merge), *space = strchr(text, ' ');
    const char *left = space ? text : vlp_json_as_string(vlp_json_at(merge, 0));
    const char *right = space ? space + 1 : vlp_json_as_string(vlp_json_at(merge, 1));
    size_t left_len = space ? (size_t)(space - text) : strlen(left);
    const vlp_vocab *vocab = &s->base.vocab;
    vlp_buf joined = {0};
    vlp_status status = vlp_buf_append(&joined, left, left_len);
    if (status == VLP_OK) status = vlp_buf_puts(&joined, right);
    if (status == VLP_OK) {
        int32_t l = vlp_vocab_find(vocab, left, left_len);
        int32_t r = vlp_vocab_find(vocab, right, strlen(right));
        int32_t whole = vlp_vocab_find(vocab, joined.data, joined.len);
        status = l >= 0 && r >= 0 && whole >= 0
                     ? vlp_bpe_add(&s->bpe, l, r, rank, whole)
                     : VLP_FAIL(VLP_ERR_FORMAT, "\"%s\" or a part of it is not in the vocabulary",
                                joined.data);
    }
    vlp_buf_free(&joined);
    return status;
}

vlp_status vlp_json_scored_bpe(vlp_tokenizer **out, const vlp_json *json,
                               const char *names[VLP_SPECIAL_COUNT]) {
    const vlp_json *merges = vlp_json_get(json, "model.merges");
    const vlp_json *cut = vlp_json_key(json, "pre_tokenizer");
    vlp_sentencepiece *s;
    VLP_TRY(vlp_sentencepiece_new(&s));
    *out = &s->base;
    s->is_bpe = s->byte_fallback = true;
    VLP_TRY(read_escapes(s, vlp_json_key(json, "normalizer")));
    if (cut && !vlp_json_is_null(cut)) return vlp_json_refuse("pre_tokenizer", type_of(cut));
    VLP_TRY(read_tokens(s, json));
    for (size_t i = 0; i < vlp_json_len(merges); i++) {
        vlp_status status = read_merge(s, vlp_json_at(merges, i), (int32_t)i);
        if (status != VLP_OK) return vlp_fail_in(status, "model.merges[%zu]", i);
    }
    VLP_TRY(vlp_json_add_tokens(&s->base, vlp_json_key(json, "added_tokens")));
    VLP_TRY(vlp_sentencepiece_finish(s));
    find_specials(&s->base, names);
    return VLP_OK;
}

/* ---- T5 ---- */

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

static vlp_status base64(vlp_buf *out, const char *text) {
    uint32_t bits = 0;
    int count = 0;
    for (; base64_digit(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)base64_digit(*text);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        char byte = (char)(bits >> count & 0xFF);
        VLP_TRY(vlp_buf_append(out, &byte, 1));
    }
    while (*text == '=') text++;
    return *text ? VLP_FAIL(VLP_ERR_FORMAT, "normalizer.precompiled_charsmap is not base64")
                 : VLP_OK;
}

/* Precompiled, alone or the first of a sequence whose others only tidy white space, which happens
 * anyway. */
static vlp_status read_charsmap(vlp_sentencepiece *s, const vlp_json *normalizer) {
    const vlp_json *list = vlp_json_key(normalizer, "normalizers");
    const vlp_json *first = list ? vlp_json_at(list, 0) : normalizer;
    if (strcmp(type_of(first), "Precompiled") != 0)
        return vlp_json_refuse("normalizer", type_of(first));
    for (size_t i = 1; i < vlp_json_len(list); i++) {
        const char *type = type_of(vlp_json_at(list, i));
        if (strcmp(type, "Replace") != 0 && strcmp(type, "Strip") != 0)
            return vlp_json_refuse("normalizer", type);
    }
    vlp_buf blob = {0};
    vlp_status status = base64(&blob, vlp_json_string(first, "precompiled_charsmap", ""));
    if (status == VLP_OK) status = vlp_sentencepiece_rules(s, blob.data, blob.len);
    vlp_buf_free(&blob);
    return status;
}

static vlp_status read_pieces(vlp_sentencepiece *s, const vlp_json *json) {
    const vlp_json *model = vlp_json_key(json, "model"), *vocab = vlp_json_key(model, "vocab");
    int64_t unknown = vlp_json_int(model, "unk_id", -1);
    if (!vlp_json_is_array(vocab))
        return VLP_FAIL(VLP_ERR_FORMAT, "model.vocab: a list of [piece, score] expected");
    for (size_t i = 0; i < vlp_json_len(vocab); i++) {
        const vlp_json *entry = vlp_json_at(vocab, i);
        const char *piece = vlp_json_as_string(vlp_json_at(entry, 0));
        int type = (int64_t)i == unknown                ? VLP_PIECE_UNKNOWN
                   : s->byte_fallback && is_byte(piece) ? VLP_PIECE_BYTE
                   : is_control(json, piece)            ? VLP_PIECE_CONTROL
                                                        : VLP_PIECE_NORMAL;
        vlp_status status = vlp_sentencepiece_add(
            s, piece, strlen(piece), (float)vlp_json_as_double(vlp_json_at(entry, 1)), type);
        if (status != VLP_OK) return vlp_fail_in(status, "model.vocab[%zu]", i);
    }
    return VLP_OK;
}

vlp_status vlp_json_unigram(vlp_tokenizer **out, const vlp_json *json,
                            const char *names[VLP_SPECIAL_COUNT]) {
    const vlp_json *cut = vlp_json_key(json, "pre_tokenizer");
    const vlp_json *list = vlp_json_key(cut, "pretokenizers");
    const char *last = type_of(list ? vlp_json_at(list, vlp_json_len(list) - 1) : cut);
    vlp_sentencepiece *s;
    VLP_TRY(vlp_sentencepiece_new(&s));
    *out = &s->base;
    s->byte_fallback = vlp_json_bool(json, "model.byte_fallback", false);
    s->keep_edges = true;
    VLP_TRY(read_charsmap(s, vlp_json_key(json, "normalizer")));
    if (strcmp(last, "Metaspace") != 0) return vlp_json_refuse("pre_tokenizer", last);
    VLP_TRY(read_pieces(s, json));
    VLP_TRY(vlp_json_add_tokens(&s->base, vlp_json_key(json, "added_tokens")));
    VLP_TRY(vlp_sentencepiece_finish(s));
    find_specials(&s->base, names);
    return VLP_OK;
}
