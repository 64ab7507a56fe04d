#include "text/wordpiece.h"

#include <string.h>

enum { DEFAULT_WORD_CHARS = 100 };

static const vlp_wordpiece *as_wordpiece(const vlp_tokenizer *tokenizer) {
    return (const vlp_wordpiece *)tokenizer;
}

vlp_status vlp_wordpiece_new(vlp_wordpiece **out, bool lower_case) {
    vlp_wordpiece *w = *out = vlp_alloc_zero(1, sizeof *w);
    if (!w) return VLP_ERR_MEMORY;
    w->base.kind = &vlp_wordpiece_kind;
    w->base.special = VLP_NO_SPECIALS;
    w->normalize = (vlp_normalize_options){
        .lower_case = lower_case, .strip_accents = lower_case, .split_ideographs = true};
    w->strip_accents = -1;
    w->max_word_chars = DEFAULT_WORD_CHARS;
    vlp_status status = vlp_vocab_init(&w->base.vocab);
    if (status == VLP_OK) return VLP_OK;
    vlp_tokenizer_free_base(&w->base);
    *out = NULL;
    return status;
}

vlp_status vlp_wordpiece_finish(vlp_wordpiece *w, const char *const names[VLP_SPECIAL_COUNT]) {
    static const char *const defaults[VLP_SPECIAL_COUNT] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                            "[MASK]"};
    vlp_special_ids *s = &w->base.special;
    int32_t *const fields[VLP_SPECIAL_COUNT] = {&s->pad,  &s->unk, &s->cls, &s->sep,
                                                &s->mask, &s->bos, &s->eos};
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        const char *name = names[i] ? names[i] : defaults[i];
        *fields[i] = name ? vlp_vocab_find(&w->base.vocab, name, strlen(name)) : -1;
        if (fields[i] == &s->unk && s->unk < 0)
            return VLP_FAIL(VLP_ERR_FORMAT, "the unknown token %s is not in the vocabulary", name);
        if (*fields[i] >= 0)
            VLP_TRY(vlp_added_put(&w->base.added, &w->base.vocab,
                                  (vlp_added_token){.id = *fields[i], .special = true}));
    }
    uint32_t node = vlp_vocab_step(&w->base.vocab, 0, '#');
    w->continuation = node ? vlp_vocab_step(&w->base.vocab, node, '#') : 0;
    if (w->base.own_size == 0) w->base.own_size = w->base.vocab.size;
    vlp_template_cls_sep(&w->base, false);
    return VLP_OK;
}

/* ---- encoding ---- */

typedef struct {
    const vlp_wordpiece *wordpiece;
    int32_t *ids; /* NULL to count */
    int max, count;
} encoder;

static bool put_id(encoder *e, int32_t id) {
    if (e->count == e->max) return false;
    if (e->ids) e->ids[e->count] = id;
    e->count++;
    return e->count < e->max;
}

/* Greedy longest match first. Returns the number of pieces; 0 when the word cannot be written. */
static int split_word(const vlp_wordpiece *w, const char *word, size_t bytes, int32_t *pieces) {
    const vlp_vocab *vocab = &w->base.vocab;
    int count = 0;
    uint32_t root = 0;
    for (size_t at = 0; at < bytes; root = w->continuation) {
        if (at && !root) return 0;
        int32_t best = -1;
        size_t best_end = at;
        uint32_t node = root;
        for (size_t i = at; i < bytes; i++) {
            if (!(node = vlp_vocab_step(vocab, node, (uint8_t)word[i]))) break;
            if (vocab->ids[node] < 0) continue;
            best = vocab->ids[node];
            best_end = i + 1;
        }
        if (best < 0) return 0;
        pieces[count++] = best;
        at = best_end;
    }
    return count;
}

static bool put_word(void *user, const char *word, size_t bytes, size_t chars) {
    encoder *e = user;
    int32_t pieces[VLP_WORD_MAX_CHARS];
    int count = 0;
    if (chars <= e->wordpiece->max_word_chars)
        count = split_word(e->wordpiece, word, bytes, pieces);
    if (count == 0) return put_id(e, e->wordpiece->base.special.unk);
    for (int i = 0; i < count; i++)
        if (!put_id(e, pieces[i])) return false;
    return true;
}

static int wordpiece_encode(const vlp_tokenizer *tokenizer, const vlp_segment *segment,
                            int32_t *ids, int max) {
    const vlp_wordpiece *w = as_wordpiece(tokenizer);
    encoder e = {w, ids, max, 0};
    vlp_normalize_options options = w->normalize;
    options.final_sigma = segment->literal; /* Hugging Face lower-cases each code point by itself */
    if (max > 0) vlp_normalize_words(&options, segment->text, segment->len, put_word, &e);
    return e.count;
}

/* ---- decoding ---- */

static bool is_continuation(const char *token) {
    return token[0] == '#' && token[1] == '#';
}

static bool wordpiece_continues(const vlp_tokenizer *tokenizer, int32_t id) {
    const char *token = vlp_vocab_token(&tokenizer->vocab, id);
    return is_continuation(token) && token[2];
}

/* Replaces every `from` by `to`, which is not longer, in data[0..len); returns the new length. */
static size_t replace(char *data, size_t len, const char *from, const char *to) {
    size_t from_len = strlen(from), to_len = strlen(to), kept = 0;
    for (size_t at = 0; at < len;) {
        if (len - at >= from_len && memcmp(data + at, from, from_len) == 0) {
            memcpy(data + kept, to, to_len);
            kept += to_len;
            at += from_len;
        } else {
            data[kept++] = data[at++];
        }
    }
    return kept;
}

static size_t clean_up(char *data, size_t len) {
    static const char *const pairs[][2] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < VLP_COUNT(pairs); i++)
        len = replace(data, len, pairs[i][0], pairs[i][1]);
    return len;
}

static vlp_status wordpiece_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                   bool skip_special, vlp_buf *out) {
    size_t start = out->len;
    VLP_TRY(vlp_buf_reserve(out, 0));
    for (int i = 0; i < n; i++) {
        if (skip_special && vlp_tokenizer_is_special(tokenizer, ids[i])) continue;
        const char *token = vlp_vocab_token(&tokenizer->vocab, ids[i]);
        if (out->len > start && is_continuation(token))
            token += 2;
        else if (out->len > start)
            VLP_TRY(vlp_buf_puts(out, " "));
        VLP_TRY(vlp_buf_puts(out, token));
    }
    out->len = start + clean_up(out->data + start, out->len - start);
    out->data[out->len] = '\0';
    return VLP_OK;
}

const vlp_tokenizer_kind vlp_wordpiece_kind = {
    .name = "wordpiece",
    .free = vlp_tokenizer_free_base,
    .save = vlp_wordpiece_save,
    .encode = wordpiece_encode,
    .decode = wordpiece_decode,
    .continues_word = wordpiece_continues,
};
