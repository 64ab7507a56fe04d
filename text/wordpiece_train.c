#include "text/wordpiece_train.h"

#include "text/merges.h"
#include "text/normalize.h"
#include "text/unicode.h"
#include "text/word_counts.h"
#include "text/wordpiece.h"

#include <stdlib.h>
#include <string.h>

enum { CODE_POINTS = 0x110000, MAX_CHARS = 100 };

struct vlp_wordpiece_trainer {
    vlp_wordpiece_train_options options;
    vlp_normalize_options normalize;
    vlp_word_counts counts;
    vlp_status status; /* of the sink */
};

vlp_status vlp_wordpiece_trainer_new(vlp_wordpiece_trainer **out,
                                     const vlp_wordpiece_train_options *options) {
    *out = NULL;
    if (options->vocab_size < 1 || options->min_frequency < 0 || options->limit_alphabet < 0)
        return VLP_FAIL(
            VLP_ERR_USAGE,
            "a vocabulary of %d tokens, minimum frequency %d, alphabet of %d: all must be "
            "positive",
            options->vocab_size, options->min_frequency, options->limit_alphabet);
    vlp_wordpiece_trainer *t = *out = vlp_alloc_zero(1, sizeof *t);
    if (!t) return VLP_ERR_MEMORY;
    t->options = *options;
    if (!t->options.min_frequency) t->options.min_frequency = 2;
    if (!t->options.limit_alphabet) t->options.limit_alphabet = 1000;
    t->normalize = (vlp_normalize_options){.lower_case = options->lower_case,
                                           .strip_accents = options->lower_case,
                                           .split_ideographs = true};
    return VLP_OK;
}

void vlp_wordpiece_trainer_free(vlp_wordpiece_trainer *t) {
    if (!t) return;
    vlp_word_counts_free(&t->counts);
    vlp_free(t);
}

static bool count_word(void *user, const char *word, size_t bytes, size_t chars) {
    vlp_wordpiece_trainer *t = user;
    if (chars <= MAX_CHARS) t->status = vlp_word_counts_add(&t->counts, word, bytes, 1);
    return t->status == VLP_OK;
}

vlp_status vlp_wordpiece_trainer_add(vlp_wordpiece_trainer *t, const char *text, size_t len) {
    t->status = VLP_OK;
    vlp_normalize_words(&t->normalize, text, len, count_word, t);
    return t->status;
}

/* ---- the alphabet ---- */

typedef struct {
    uint32_t code;
    int64_t count;
} character;

static int by_count(const void *a, const void *b) {
    const character *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->code < y->code ? -1 : x->code > y->code;
}

static int by_code(const void *a, const void *b) {
    const character *x = a, *y = b;
    return x->code < y->code ? -1 : x->code > y->code;
}

/* heads[c] and tails[c]: the ids of "c" and "##c"; 0 = not (yet) in the vocabulary, since id 0 is
 * [PAD]. */
typedef struct {
    vlp_vocab *vocab;
    int32_t *heads, *tails;
    int64_t *counts;
    character *characters;
    size_t size;
} alphabet;

static void alphabet_free(alphabet *a) {
    vlp_free(a->heads);
    vlp_free(a->tails);
    vlp_free(a->counts);
    vlp_free(a->characters);
}

static void count_characters(const vlp_word_counts *counts, alphabet *a) {
    for (size_t i = 0; i < counts->size; i++) {
        const vlp_word_count *w = &counts->words[i];
        for (size_t at = 0; at < w->len;) {
            uint32_t code = 0;
            at += (size_t)vlp_utf8_next(counts->bytes.data + w->offset + at, w->len - at, &code);
            a->counts[code] += w->count;
        }
    }
}

static vlp_status collect(alphabet *a, size_t limit) {
    for (uint32_t c = 0; c < CODE_POINTS; c++) a->size += a->counts[c] > 0;
    a->characters = vlp_alloc((a->size + 1) * sizeof *a->characters);
    if (!a->characters) return VLP_ERR_MEMORY;
    size_t n = 0;
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        if (a->counts[c] > 0) a->characters[n++] = (character){c, a->counts[c]};
    qsort(a->characters, n, sizeof *a->characters, by_count);
    if (a->size > limit) a->size = limit;
    qsort(a->characters, a->size, sizeof *a->characters, by_code);
    return VLP_OK;
}

static vlp_status add_character(vlp_vocab *vocab, const char *prefix, uint32_t code, int32_t *id) {
    char token[8];
    size_t len = strlen(prefix);
    memcpy(token, prefix, len);
    len += (size_t)vlp_utf8_put(code, token + len);
    *id = vocab->size;
    return vlp_vocab_add(vocab, token, len);
}

/* Every character gets a token, and a "##" token when it occurs inside a word, by code point. */
static vlp_status add_characters(alphabet *a, const vlp_word_counts *counts) {
    for (size_t i = 0; i < a->size; i++) {
        uint32_t code = a->characters[i].code;
        VLP_TRY(add_character(a->vocab, "", code, &a->heads[code]));
    }
    bool *inside = vlp_alloc_zero(CODE_POINTS, sizeof *inside);
    if (!inside) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < counts->size; i++) {
        const vlp_word_count *w = &counts->words[i];
        for (size_t at = 0; at < w->len;) {
            uint32_t code = 0;
            bool first = at == 0;
            at += (size_t)vlp_utf8_next(counts->bytes.data + w->offset + at, w->len - at, &code);
            if (!first) inside[code] = true;
        }
    }
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < a->size && status == VLP_OK; i++) {
        uint32_t code = a->characters[i].code;
        if (inside[code]) status = add_character(a->vocab, "##", code, &a->tails[code]);
    }
    vlp_free(inside);
    return status;
}

static vlp_status make_alphabet(alphabet *a, const vlp_word_counts *counts, size_t limit) {
    a->heads = vlp_alloc_zero(CODE_POINTS, sizeof *a->heads);
    a->tails = vlp_alloc_zero(CODE_POINTS, sizeof *a->tails);
    a->counts = vlp_alloc_zero(CODE_POINTS, sizeof *a->counts);
    if (!a->heads || !a->tails || !a->counts) return VLP_ERR_MEMORY;
    count_characters(counts, a);
    VLP_TRY(collect(a, limit));
    return add_characters(a, counts);
}

/* ---- the merges ---- */

/* Characters outside the alphabet are passed over, as in the reference. */
static vlp_status add_words(vlp_merges *merges, const alphabet *a, const vlp_word_counts *counts) {
    for (size_t i = 0; i < counts->size; i++) {
        const vlp_word_count *w = &counts->words[i];
        int32_t symbols[MAX_CHARS], n = 0;
        for (size_t at = 0; at < w->len;) {
            uint32_t code = 0;
            const int32_t *ids = at ? a->tails : a->heads;
            at += (size_t)vlp_utf8_next(counts->bytes.data + w->offset + at, w->len - at, &code);
            if (ids[code]) symbols[n++] = ids[code];
        }
        VLP_TRY(vlp_merges_add_word(merges, symbols, n, w->count));
    }
    return VLP_OK;
}

/* The token of left + right, "##" of the right one dropped; the existing id when it is one. */
static vlp_status join(vlp_vocab *vocab, int32_t left, int32_t right, vlp_buf *buf, int32_t *id) {
    vlp_buf_clear(buf);
    VLP_TRY(vlp_buf_puts(buf, vlp_vocab_token(vocab, left)));
    VLP_TRY(vlp_buf_puts(buf, vlp_vocab_token(vocab, right) + 2));
    *id = vlp_vocab_find(vocab, buf->data, buf->len);
    if (*id >= 0) return VLP_OK;
    *id = vocab->size;
    return vlp_vocab_add(vocab, buf->data, buf->len);
}

static vlp_status merge_all(vlp_merges *merges, vlp_vocab *vocab,
                            const vlp_wordpiece_train_options *options) {
    vlp_buf buf = {0};
    vlp_status status = VLP_OK;
    while (vocab->size < options->vocab_size) {
        int32_t left, right, id;
        bool found;
        VLP_TRY_DONE(vlp_merges_best(merges, options->min_frequency, &left, &right, &found));
        if (!found) break;
        VLP_TRY_DONE(join(vocab, left, right, &buf, &id));
        VLP_TRY_DONE(vlp_merges_apply(merges, left, right, id));
    }
done:
    vlp_buf_free(&buf);
    return status;
}

static vlp_status learn(vlp_wordpiece_trainer *t, vlp_vocab *vocab) {
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (size_t i = 0; i < VLP_COUNT(specials); i++)
        VLP_TRY(vlp_vocab_add(vocab, specials[i], strlen(specials[i])));
    alphabet a = {.vocab = vocab};
    vlp_merges *merges = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(make_alphabet(&a, &t->counts, (size_t)t->options.limit_alphabet));
    if (vocab->size > t->options.vocab_size) {
        status =
            VLP_FAIL(VLP_ERR_USAGE,
                     "a vocabulary of %d tokens cannot hold the %d that the alphabet alone needs; "
                     "ask for more tokens or a smaller alphabet",
                     t->options.vocab_size, vocab->size);
        goto done;
    }
    VLP_TRY_DONE(vlp_merges_new(&merges));
    VLP_TRY_DONE(add_words(merges, &a, &t->counts));
    status = merge_all(merges, vocab, &t->options);
done:
    vlp_merges_free(merges);
    alphabet_free(&a);
    return status;
}

vlp_status vlp_wordpiece_trainer_finish(vlp_wordpiece_trainer *t, vlp_tokenizer **out) {
    static const char *const default_names[VLP_SPECIAL_COUNT] = {0};
    *out = NULL;
    if (t->counts.size == 0)
        return VLP_FAIL(VLP_ERR_USAGE, "no words to train a tokenizer on: every text was empty");
    vlp_wordpiece *w;
    VLP_TRY(vlp_wordpiece_new(&w, t->options.lower_case));
    vlp_status status = learn(t, &w->base.vocab);
    if (status == VLP_OK) status = vlp_wordpiece_finish(w, default_names);
    if (status == VLP_OK)
        *out = &w->base;
    else
        vlp_tokenizer_free(&w->base);
    return status;
}
