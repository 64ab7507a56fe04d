#include "text/byte_bpe.h"

#include "text/pretoken.h"
#include "text/unicode.h"

#include <string.h>

enum {
    STACK_SYMBOLS = 4096,   /* words of more bytes take memory from the heap */
    WORD_SYMBOLS = 1 << 20, /* and beyond this are encoded in parts */
};

static const char word_end[] = "</w>";

static const vlp_byte_bpe *as_bpe(const vlp_tokenizer *tokenizer) {
    return (const vlp_byte_bpe *)tokenizer;
}

static void byte_bpe_free(vlp_tokenizer *tokenizer) {
    vlp_byte_bpe *b = (vlp_byte_bpe *)tokenizer;
    vlp_bpe_free(&b->bpe);
    vlp_buf_free(&b->merges);
    vlp_tokenizer_free_base(tokenizer);
}

/* ---- encoding ---- */

typedef struct {
    const vlp_byte_bpe *bpe;
    int32_t *ids; /* NULL to count */
    int max, count;
} encoder;

static void put_id(encoder *e, int32_t id) {
    if (id < 0) id = e->bpe->base.special.unk;
    if (id < 0 || e->count == e->max) return;
    if (e->ids) e->ids[e->count] = id;
    e->count++;
}

/* The symbols of bytes [at, at + n) of the word, where a space may be in front of it. */
static void fill(const vlp_byte_bpe *b, const char *word, size_t len, bool prefix, size_t at, int n,
                 int32_t *symbols) {
    const bool clip = b->base.kind == &vlp_clip_bpe_kind;
    for (int i = 0; i < n; i++) {
        size_t place = at + (size_t)i;
        bool space = prefix && place == 0, last = place + 1 == len + prefix;
        uint8_t byte = space ? ' ' : (uint8_t)word[place - prefix];
        symbols[i] = (clip && last ? b->ends : b->bytes)[byte];
    }
}

static void put_word(encoder *e, const char *word, size_t len, bool prefix) {
    int32_t stack[2 * STACK_SYMBOLS], *heap = NULL;
    size_t total = len + prefix, room = STACK_SYMBOLS;
    if (total > room) {
        size_t wanted = total < WORD_SYMBOLS ? total : WORD_SYMBOLS;
        heap = vlp_alloc(2 * wanted * sizeof *heap);
        if (heap) room = wanted;
    }
    int32_t *symbols = heap ? heap : stack;
    for (size_t at = 0; at < total && e->count < e->max; at += room) {
        int n = (int)(total - at < room ? total - at : room);
        fill(e->bpe, word, len, prefix, at, n, symbols);
        n = vlp_bpe_merge(&e->bpe->bpe, symbols, symbols + room, n);
        for (int i = 0; i < n; i++) put_id(e, symbols[i]);
    }
    vlp_free(heap);
}

static int gpt2_encode(const vlp_tokenizer *tokenizer, const vlp_segment *segment, int32_t *ids,
                       int max) {
    encoder e = {as_bpe(tokenizer), ids, max, 0};
    const char *text = segment->text;
    size_t at = 0, start, end;
    if (segment->prefix) {
        at = vlp_pretoken_gpt2_prefixed(text, segment->len);
        put_word(&e, text, at, true);
    }
    while (e.count < max && vlp_pretoken_gpt2(text, segment->len, &at, &start, &end))
        put_word(&e, text + start, end - start, false);
    return e.count;
}

static int clip_encode(const vlp_tokenizer *tokenizer, const vlp_segment *segment, int32_t *ids,
                       int max) {
    encoder e = {as_bpe(tokenizer), ids, max, 0};
    char text[VLP_CLIP_TEXT_MAX];
    size_t len = vlp_clip_cleaned(e.bpe->clean, segment->text, segment->len, text);
    bool look = tokenizer->added_inside && !segment->literal;
    for (size_t at = 0, start, end, bytes;
         e.count < max && vlp_pretoken_clip(text, len, &at, &start, &end);) {
        const vlp_added_token *added = look ? vlp_added_at(&tokenizer->added, &tokenizer->vocab,
                                                           text + start, len - start, &bytes)
                                            : NULL;
        if (added) {
            put_id(&e, added->id);
            at = start + bytes;
        } else {
            put_word(&e, text + start, end - start, false);
        }
    }
    return e.count;
}

/* ---- decoding ---- */

/* Bytes of the longest beginning of a character at s: what one U+FFFD stands for. */
static size_t malformed(const char *s, size_t left) {
    const uint8_t *u = (const uint8_t *)s;
    size_t size = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2, n = 1;
    if (u[0] < 0xC2 || u[0] > 0xF4) return 1;
    uint8_t low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;
    for (; n < size && n < left && u[n] >= low && u[n] <= high; n++) {
        low = 0x80;
        high = 0xBF;
    }
    return n;
}

static vlp_status put_repaired(vlp_buf *out, const vlp_buf *bytes) {
    for (size_t at = 0; at < bytes->len;) {
        uint32_t code;
        const char *s = bytes->data + at;
        size_t left = bytes->len - at, size = (size_t)vlp_utf8_next(s, left, &code);
        VLP_TRY(size ? vlp_buf_append(out, s, size) : vlp_buf_append(out, "\xEF\xBF\xBD", 3));
        at += size ? size : malformed(s, left);
    }
    return VLP_OK;
}

/* The bytes that the token's characters stand for; other characters stand for themselves. */
static vlp_status put_bytes(vlp_buf *out, const char *token, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t code;
        int size = vlp_utf8_next(token + at, len - at, &code), byte = vlp_char_byte(code);
        char c = (char)byte;
        VLP_TRY(byte < 0 ? vlp_buf_append(out, token + at, (size_t)size)
                         : vlp_buf_append(out, &c, 1));
        at += (size_t)size;
    }
    return VLP_OK;
}

static vlp_status put_token(const vlp_tokenizer *tokenizer, int32_t id, vlp_buf *bytes) {
    const char *token = vlp_vocab_token(&tokenizer->vocab, id);
    if (vlp_added_find(&tokenizer->added, id)) return vlp_buf_puts(bytes, token);
    size_t len = strlen(token), end = sizeof word_end - 1;
    bool ends = tokenizer->kind == &vlp_clip_bpe_kind && len >= end &&
                memcmp(token + len - end, word_end, end) == 0;
    VLP_TRY(put_bytes(bytes, token, ends ? len - end : len));
    return ends ? vlp_buf_puts(bytes, " ") : VLP_OK;
}

static vlp_status byte_bpe_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                  bool skip_special, vlp_buf *out) {
    vlp_buf bytes = {0};
    vlp_status status = vlp_buf_reserve(out, 0);
    for (int i = 0; status == VLP_OK && i < n; i++)
        if (!skip_special || !vlp_tokenizer_is_special(tokenizer, ids[i]))
            status = put_token(tokenizer, ids[i], &bytes);
    if (tokenizer->kind == &vlp_clip_bpe_kind)
        while (bytes.len && bytes.data[bytes.len - 1] == ' ') bytes.len--;
    if (status == VLP_OK) status = put_repaired(out, &bytes);
    if (status == VLP_OK) out->data[out->len] = '\0';
    vlp_buf_free(&bytes);
    return status;
}

/* U+0120 stands for a space: what begins without one goes on with the word. */
static bool gpt2_continues(const vlp_tokenizer *tokenizer, int32_t id) {
    if (vlp_added_find(&tokenizer->added, id)) return false;
    return strncmp(vlp_vocab_token(&tokenizer->vocab, id), "\xC4\xA0", 2) != 0;
}

/* CLIP marks where words end, so a token does not say whether one goes on before it. */
static bool clip_continues(const vlp_tokenizer *tokenizer, int32_t id) {
    (void)tokenizer;
    (void)id;
    return false;
}

const vlp_tokenizer_kind vlp_byte_bpe_kind = {
    .name = "byte_bpe",
    .free = byte_bpe_free,
    .save = vlp_byte_bpe_save,
    .encode = gpt2_encode,
    .decode = byte_bpe_decode,
    .continues_word = gpt2_continues,
};

const vlp_tokenizer_kind vlp_clip_bpe_kind = {
    .name = "clip_bpe",
    .free = byte_bpe_free,
    .save = vlp_byte_bpe_save,
    .encode = clip_encode,
    .decode = byte_bpe_decode,
    .continues_word = clip_continues,
};

/* ---- making one ---- */

vlp_status vlp_byte_bpe_new(vlp_byte_bpe **out) {
    vlp_byte_bpe *b = *out = vlp_alloc_zero(1, sizeof *b);
    if (!b) return VLP_ERR_MEMORY;
    b->base.kind = &vlp_byte_bpe_kind;
    b->base.special = VLP_NO_SPECIALS;
    vlp_status status = vlp_vocab_init(&b->base.vocab);
    if (status == VLP_OK) return VLP_OK;
    byte_bpe_free(&b->base);
    *out = NULL;
    return status;
}

vlp_status vlp_byte_bpe_merge(vlp_byte_bpe *b, const char *left, size_t left_len, const char *right,
                              size_t right_len) {
    vlp_buf joined = {0};
    vlp_status status = vlp_buf_append(&joined, left, left_len);
    if (status == VLP_OK) status = vlp_buf_append(&joined, right, right_len);
    const vlp_vocab *vocab = &b->base.vocab;
    int32_t ids[3] = {vlp_vocab_find(vocab, left, left_len),
                      vlp_vocab_find(vocab, right, right_len),
                      status == VLP_OK ? vlp_vocab_find(vocab, joined.data, joined.len) : 0};
    if (status == VLP_OK && (ids[0] < 0 || ids[1] < 0 || ids[2] < 0))
        status = VLP_FAIL(VLP_ERR_FORMAT, "\"%.*s %.*s\": %s not in the vocabulary", (int)left_len,
                          left, (int)right_len, right,
                          ids[0] < 0   ? "the first part is"
                          : ids[1] < 0 ? "the second part is"
                                       : "the joined token is");
    vlp_buf_free(&joined);
    if (status == VLP_OK) status = vlp_bpe_add(&b->bpe, ids[0], ids[1], b->merge_count++, ids[2]);
    if (status == VLP_OK) status = vlp_buf_append(&b->merges, left, left_len);
    if (status == VLP_OK) status = vlp_buf_puts(&b->merges, " ");
    if (status == VLP_OK) status = vlp_buf_append(&b->merges, right, right_len);
    return status == VLP_OK ? vlp_buf_puts(&b->merges, "\n") : status;
}

/* Which names the published vocabularies have; what is there decides. */
typedef struct {
    const char *mark; /* the token that tells the kinds apart */
    const char *names[VLP_SPECIAL_COUNT];
} flavour;

#define TEXT_END "<|endoftext|>"
static const flavour flavours[] = {
    {"<|startoftext|>",
     {TEXT_END, TEXT_END, NULL, NULL, NULL, "<|startoftext|>", TEXT_END}}, /* CLIP */
    {"</s>", {"<pad>", "<unk>", "<s>", "</s>", "<mask>", "<s>", "</s>"}},  /* RoBERTa */
    {NULL, {NULL, TEXT_END, NULL, NULL, NULL, TEXT_END, TEXT_END}},        /* GPT-2 */
};
enum { CLIP, ROBERTA, GPT2 };

static void find_symbols(vlp_byte_bpe *b) {
    for (int byte = 0; byte < 256; byte++) {
        char symbol[4 + sizeof word_end];
        int n = vlp_utf8_put(vlp_byte_char((uint8_t)byte), symbol);
        b->bytes[byte] = vlp_vocab_find(&b->base.vocab, symbol, (size_t)n);
        memcpy(symbol + n, word_end, sizeof word_end);
        b->ends[byte] = vlp_vocab_find(&b->base.vocab, symbol, strlen(symbol));
    }
}

vlp_status vlp_byte_bpe_finish(vlp_byte_bpe *b, const char *const names[VLP_SPECIAL_COUNT]) {
    vlp_tokenizer *t = &b->base;
    int which = 0;
    while (flavours[which].mark && vlp_tokenizer_find(t, flavours[which].mark) < 0) which++;
    if (which == CLIP) t->kind = &vlp_clip_bpe_kind;
    find_symbols(b);
    vlp_special_ids *s = &t->special;
    int32_t *const fields[VLP_SPECIAL_COUNT] = {&s->pad,  &s->unk, &s->cls, &s->sep,
                                                &s->mask, &s->bos, &s->eos};
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        const char *name = names[i] ? names[i] : flavours[which].names[i];
        *fields[i] = name ? vlp_tokenizer_find(t, name) : -1;
        if (*fields[i] < 0 || vlp_added_find(&t->added, *fields[i])) continue;
        bool lstrip = which == ROBERTA && fields[i] == &s->mask;
        VLP_TRY(vlp_added_put(&t->added, &t->vocab,
                              (vlp_added_token){*fields[i], true, lstrip, false}));
    }
    if (which == CLIP) {
        s->cls = s->bos;
        s->sep = s->eos;
    }
    if (which == GPT2) {
        vlp_template_add(&t->single, VLP_PART_FIRST, 0);
        vlp_template_add(&t->pair, VLP_PART_FIRST, 0);
        vlp_template_add(&t->pair, VLP_PART_SECOND, 0);
    } else {
        vlp_template_cls_sep(t, true);
    }
    if (t->own_size == 0) t->own_size = t->vocab.size;
    return VLP_OK;
}
