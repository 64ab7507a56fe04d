#include "text/byte_bpe_train.h"

#include "text/byte_bpe.h"
#include "text/merges.h"
#include "text/pretoken.h"
#include "text/unicode.h"
#include "text/word_counts.h"

#include <string.h>

enum { MAX_BYTES = 1000 };
static const char *const specials[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};

struct vlp_byte_bpe_trainer {
    vlp_byte_bpe_train_options options;
    vlp_word_counts counts;
};

vlp_status vlp_byte_bpe_trainer_new(vlp_byte_bpe_trainer **out,
                                    const vlp_byte_bpe_train_options *options) {
    enum { LEAST = (int)VLP_COUNT(specials) + 256 };
    *out = NULL;
    if (options->vocab_size < LEAST || options->min_frequency < 0)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "a vocabulary of %d tokens, minimum frequency %d: the 256 bytes and the "
                        "special tokens alone are %d",
                        options->vocab_size, options->min_frequency, LEAST);
    vlp_byte_bpe_trainer *t = *out = vlp_alloc_zero(1, sizeof *t);
    if (!t) return VLP_ERR_MEMORY;
    t->options = *options;
    if (!t->options.min_frequency) t->options.min_frequency = 2;
    return VLP_OK;
}

void vlp_byte_bpe_trainer_free(vlp_byte_bpe_trainer *t) {
    if (!t) return;
    vlp_word_counts_free(&t->counts);
    vlp_free(t);
}

vlp_status vlp_byte_bpe_trainer_add(vlp_byte_bpe_trainer *t, const char *text, size_t len) {
    for (size_t at = 0, start, end; vlp_pretoken_gpt2(text, len, &at, &start, &end);)
        if (end - start <= MAX_BYTES)
            VLP_TRY(vlp_word_counts_add(&t->counts, text + start, end - start, 1));
    return VLP_OK;
}

/* The special tokens, then the bytes in the order of the characters that stand for them. */
static vlp_status add_alphabet(vlp_vocab *vocab, int32_t ids[256]) {
    for (size_t i = 0; i < VLP_COUNT(specials); i++)
        VLP_TRY(vlp_vocab_add(vocab, specials[i], strlen(specials[i])));
    for (uint32_t code = 0; code < 512; code++) {
        char token[4];
        int byte = vlp_char_byte(code);
        if (byte < 0) continue;
        ids[byte] = vocab->size;
        VLP_TRY(vlp_vocab_add(vocab, token, (size_t)vlp_utf8_put(code, token)));
    }
    return VLP_OK;
}

static vlp_status add_words(vlp_merges *merges, const vlp_word_counts *counts,
                            const int32_t ids[256]) {
    for (size_t i = 0; i < counts->size; i++) {
        const vlp_word_count *w = &counts->words[i];
        int32_t symbols[MAX_BYTES];
        for (size_t k = 0; k < w->len; k++)
            symbols[k] = ids[(uint8_t)counts->bytes.data[w->offset + k]];
        VLP_TRY(vlp_merges_add_word(merges, symbols, (int32_t)w->len, w->count));
    }
    return VLP_OK;
}

/* The token of left + right, which may be there already by another way. */
static vlp_status join(vlp_byte_bpe *b, int32_t left, int32_t right, int32_t *id) {
    vlp_vocab *vocab = &b->base.vocab;
    vlp_buf first = {0}, joined = {0}; /* copies: adding moves what tokens point to */
    vlp_status status = vlp_buf_puts(&first, vlp_vocab_token(vocab, left));
    if (status == VLP_OK)
        status = vlp_buf_printf(&joined, "%s%s", first.data, vlp_vocab_token(vocab, right));
    if (status == VLP_OK) {
        *id = vlp_vocab_find(vocab, joined.data, joined.len);
        if (*id < 0) {
            *id = vocab->size;
            status = vlp_vocab_add(vocab, joined.data, joined.len);
        }
    }
    if (status == VLP_OK)
        status = vlp_byte_bpe_merge(b, first.data, first.len, joined.data + first.len,
                                    joined.len - first.len);
    vlp_buf_free(&first);
    vlp_buf_free(&joined);
    return status;
}

static vlp_status merge_all(const vlp_byte_bpe_trainer *t, vlp_merges *merges, vlp_byte_bpe *b) {
    while (b->base.vocab.size < t->options.vocab_size) {
        int32_t left, right, id;
        bool found;
        VLP_TRY(vlp_merges_best(merges, t->options.min_frequency, &left, &right, &found));
        if (!found) break;
        VLP_TRY(join(b, left, right, &id));
        VLP_TRY(vlp_merges_apply(merges, left, right, id));
    }
    return VLP_OK;
}

static vlp_status learn(const vlp_byte_bpe_trainer *t, vlp_byte_bpe *b) {
    static const char *const usual_names[VLP_SPECIAL_COUNT] = {0};
    int32_t ids[256];
    vlp_merges *merges = NULL;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(add_alphabet(&b->base.vocab, ids));
    VLP_TRY_DONE(vlp_merges_new(&merges));
    VLP_TRY_DONE(add_words(merges, &t->counts, ids));
    VLP_TRY_DONE(merge_all(t, merges, b));
    status = vlp_byte_bpe_finish(b, usual_names);
done:
    vlp_merges_free(merges);
    return status;
}

vlp_status vlp_byte_bpe_trainer_finish(vlp_byte_bpe_trainer *t, vlp_tokenizer **out) {
    *out = NULL;
    if (t->counts.size == 0)
        return VLP_FAIL(VLP_ERR_USAGE, "no words to train a tokenizer on: every text was empty");
    vlp_byte_bpe *b;
    VLP_TRY(vlp_byte_bpe_new(&b));
    vlp_status status = learn(t, b);
    if (status == VLP_OK)
        *out = &b->base;
    else
        vlp_tokenizer_free(&b->base);
    return status;
}
