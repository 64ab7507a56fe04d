#include "text/sentencepiece.h"

#include "text/unicode.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SPACE "\xE2\x96\x81" /* U+2581 */

enum { STACK_BYTES = 4096 }; /* longer texts take memory from the heap */

static const vlp_sentencepiece *as_sentencepiece(const vlp_tokenizer *tokenizer) {
    return (const vlp_sentencepiece *)tokenizer;
}

static void sentencepiece_free(vlp_tokenizer *tokenizer) {
    vlp_sentencepiece *s = (vlp_sentencepiece *)tokenizer;
    vlp_free(s->scores);
    vlp_free(s->types);
    vlp_free(s->units);
    vlp_free(s->replacements);
    vlp_bpe_free(&s->bpe);
    vlp_buf_free(&s->model);
    vlp_json_free(s->config);
    vlp_tokenizer_free_base(tokenizer);
}

/* ---- making one ---- */

vlp_status vlp_sentencepiece_new(vlp_sentencepiece **out) {
    vlp_sentencepiece *s = *out = vlp_alloc_zero(1, sizeof *s);
    if (!s) return VLP_ERR_MEMORY;
    s->base.kind = &vlp_sentencepiece_kind;
    s->base.special = VLP_NO_SPECIALS;
    s->dummy_prefix = s->remove_extra = s->escape = true;
    s->min_score = FLT_MAX;
    s->max_score = FLT_MIN; /* as the reference has it: it counts where all scores are negative */
    for (int i = 0; i < 256; i++) s->byte_ids[i] = -1;
    vlp_status status = vlp_vocab_init(&s->base.vocab);
    if (status == VLP_OK) return VLP_OK;
    sentencepiece_free(&s->base);
    *out = NULL;
    return status;
}

static vlp_status reserve(vlp_sentencepiece *s) {
    if (s->piece_count < s->piece_cap) return VLP_OK;
    int32_t cap = s->piece_cap ? 2 * s->piece_cap : 1024;
    float *scores = vlp_realloc(s->scores, (size_t)cap * sizeof *scores);
    if (!scores) return VLP_ERR_MEMORY;
    s->scores = scores;
    uint8_t *types = vlp_realloc(s->types, (size_t)cap);
    if (!types) return VLP_ERR_MEMORY;
    s->types = types;
    s->piece_cap = cap;
    return VLP_OK;
}

vlp_status vlp_sentencepiece_add(vlp_sentencepiece *s, const char *piece, size_t len, float score,
                                 int type) {
    unsigned byte;
    int32_t id = s->piece_count;
    if (type < VLP_PIECE_NORMAL || type > VLP_PIECE_BYTE)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "a piece of type %d", type);
    if (!(score >= -FLT_MAX && score <= FLT_MAX))
        return VLP_FAIL(VLP_ERR_FORMAT, "a score that is not finite");
    VLP_TRY(reserve(s));
    VLP_TRY(vlp_vocab_add(&s->base.vocab, piece, len));
    s->scores[id] = score;
    s->types[id] = (uint8_t)type;
    s->piece_count++;
    if (type == VLP_PIECE_USER) s->has_user = true;
    if (type == VLP_PIECE_UNKNOWN) s->base.special.unk = id;
    if (type == VLP_PIECE_NORMAL && score < s->min_score) s->min_score = score;
    if (type == VLP_PIECE_NORMAL && score > s->max_score) s->max_score = score;
    if (type == VLP_PIECE_BYTE &&
        sscanf(vlp_vocab_token(&s->base.vocab, id), "<0x%2X>", &byte) == 1)
        s->byte_ids[byte & 0xFF] = id;
    return VLP_OK;
}

static bool is_found(const vlp_sentencepiece *s, int32_t id) {
    return id >= 0 && id < s->piece_count &&
           (s->types[id] == VLP_PIECE_NORMAL || s->types[id] == VLP_PIECE_USER);
}

/* How many pieces have a better score: equal scores have equal ranks. */
static vlp_status rank_pieces(const vlp_sentencepiece *s, int32_t *ranks) {
    int32_t *order = vlp_alloc((size_t)s->piece_count * sizeof *order);
    if (!order) return VLP_ERR_MEMORY;
    for (int32_t i = 0; i < s->piece_count; i++) order[i] = i;
    /* Shell sort: nearly sorted already, since models list merges in order. */
    for (int32_t gap = s->piece_count / 2; gap > 0; gap /= 2)
        for (int32_t i = gap; i < s->piece_count; i++) {
            int32_t moved = order[i], at = i;
            for (; at >= gap && s->scores[order[at - gap]] < s->scores[moved]; at -= gap)
                order[at] = order[at - gap];
            order[at] = moved;
        }
    for (int32_t i = 0; i < s->piece_count; i++)
        ranks[order[i]] =
            i > 0 && s->scores[order[i]] == s->scores[order[i - 1]] ? ranks[order[i - 1]] : i;
    vlp_free(order);
    return VLP_OK;
}

/* Every way in which a piece is two pieces is a merge of its rank. */
static vlp_status merges_from_scores(vlp_sentencepiece *s) {
    const vlp_vocab *vocab = &s->base.vocab;
    int32_t *ranks = vlp_alloc((size_t)s->piece_count * sizeof *ranks);
    vlp_status status = ranks ? rank_pieces(s, ranks) : VLP_ERR_MEMORY;
    for (int32_t id = 0; status == VLP_OK && id < s->piece_count; id++) {
        if (s->types[id] != VLP_PIECE_NORMAL) continue;
        const char *piece = vlp_vocab_token(vocab, id);
        size_t len = strlen(piece);
        for (size_t cut = 1; status == VLP_OK && cut < len; cut++) {
            int32_t left = vlp_vocab_find(vocab, piece, cut);
            int32_t right = vlp_vocab_find(vocab, piece + cut, len - cut);
            if (is_found(s, left) && is_found(s, right))
                status = vlp_bpe_add(&s->bpe, left, right, ranks[id], id);
        }
    }
    vlp_free(ranks);
    return status;
}

vlp_status vlp_sentencepiece_finish(vlp_sentencepiece *s) {
    if (s->base.special.unk < 0) return VLP_FAIL(VLP_ERR_FORMAT, "no piece for what is unknown");
    for (int i = 0; s->byte_fallback && i < 256; i++)
        if (s->byte_ids[i] < 0)
            return VLP_FAIL(VLP_ERR_FORMAT, "bytes are pieces, but <0x%02X> is missing",
                            (unsigned)i);
    s->base.own_size = s->base.vocab.size;
    return s->is_bpe && !s->bpe.size ? merges_from_scores(s) : VLP_OK;
}

/* ---- encoding ---- */

typedef struct {
    const vlp_sentencepiece *model;
    int32_t *ids; /* NULL to count */
    int max, count;
    bool cut_numbers, after_unknown;
} encoder;

static void put_id(encoder *e, int32_t id) {
    if (e->count == e->max) return;
    if (e->ids) e->ids[e->count] = id;
    e->count++;
}

/* Adjacent unknown characters are one unknown token, or each its bytes. */
static void put_unknown(encoder *e, const char *text, size_t len) {
    const vlp_sentencepiece *s = e->model;
    for (size_t i = 0; s->byte_fallback && i < len; i++) put_id(e, s->byte_ids[(uint8_t)text[i]]);
    if (!s->byte_fallback && !e->after_unknown) put_id(e, s->base.special.unk);
    e->after_unknown = true;
}

/* How a text is read: as the model does, or as the class does with it. */
typedef enum { AS_MODEL, AS_CLASS } manner;

static int encode_text(const vlp_sentencepiece *s, vlp_text text, manner how, int32_t *ids,
                       int max);

static bool is_digit_comma(const char *piece, size_t len) {
    return len > 1 && piece[len - 1] == ',' && piece[len - 2] >= '0' && piece[len - 2] <= '9';
}

static int32_t find_or_unknown(const vlp_sentencepiece *s, const char *token) {
    int32_t id = vlp_vocab_find(&s->base.vocab, token, strlen(token));
    return id >= 0 ? id : s->base.special.unk;
}

/* A piece "2007," is encoded again without its comma, which follows. The space that begins every
 * text is no part of a piece that had none. */
static void put_number(encoder *e, const char *piece, size_t len) {
    enum { ROOM = 256 };
    const vlp_sentencepiece *s = e->model;
    int32_t ids[ROOM];
    bool spaced = strncmp(piece, SPACE, 3) == 0;
    size_t skip = spaced ? 3 : 0;
    int n = encode_text(s, (vlp_text){piece + skip, len - 1 - skip}, AS_MODEL, ids, ROOM);
    const char *first = n ? vlp_vocab_token(&s->base.vocab, ids[0]) : "";
    bool strip = !spaced && strncmp(first, SPACE, 3) == 0;
    if (strip && first[3]) put_id(e, find_or_unknown(s, first + 3));
    for (int i = strip; i < n; i++) put_id(e, ids[i]);
    put_id(e, find_or_unknown(s, ","));
}

static void put_piece(encoder *e, int32_t id) {
    const char *piece = vlp_vocab_token(&e->model->base.vocab, id);
    size_t len = e->cut_numbers ? strlen(piece) : 0;
    if (is_digit_comma(piece, len))
        put_number(e, piece, len);
    else
        put_id(e, id);
    e->after_unknown = false;
}

/* The best way to the end of each position. */
typedef struct {
    float score;
    int32_t start, id; /* of the last piece; start -1: not reached */
    int32_t next;      /* on the way back: where the piece that starts here ends */
} node;

static size_t char_bytes(const char *text, size_t len) {
    uint32_t code;
    int size = vlp_utf8_next(text, len, &code);
    return size ? (size_t)size : 1;
}

static void reach(node *to, double score, size_t start, int32_t id) {
    if (to->start >= 0 && !(score > (double)to->score)) return;
    *to = (node){(float)score, (int32_t)start, id, -1};
}

static void extend(const vlp_sentencepiece *s, const char *text, size_t len, size_t at,
                   node *nodes) {
    size_t single = char_bytes(text + at, len - at);
    bool has_single = false;
    double so_far = (double)nodes[at].score;
    uint32_t trie = 0;
    for (size_t i = at; i < len; i++) {
        if (!(trie = vlp_vocab_step(&s->base.vocab, trie, (uint8_t)text[i]))) break;
        int32_t id = s->base.vocab.ids[trie];
        if (!is_found(s, id)) continue;
        size_t bytes = i + 1 - at;
        double score = s->types[id] == VLP_PIECE_USER ? (double)((float)bytes * s->max_score) - 0.1
                                                      : (double)s->scores[id];
        reach(&nodes[i + 1], score + so_far, at, id);
        has_single |= bytes == single;
    }
    if (!has_single)
        reach(&nodes[at + single], (double)(s->min_score - 10.0f) + so_far, at,
              s->base.special.unk);
}

static void encode_unigram(encoder *e, const char *text, size_t len, node *nodes) {
    for (size_t i = 0; i <= len; i++) nodes[i] = (node){0, -1, -1, -1};
    for (size_t at = 0; at < len; at += char_bytes(text + at, len - at))
        extend(e->model, text, len, at, nodes);
    for (int32_t end = (int32_t)len; end > 0; end = nodes[end].start)
        nodes[nodes[end].start].next = end;
    for (int32_t at = 0; at < (int32_t)len; at = nodes[at].next) {
        int32_t end = nodes[at].next, id = nodes[end].id;
        if (id == e->model->base.special.unk)
            put_unknown(e, text + at, (size_t)(end - at));
        else
            put_piece(e, id);
    }
}

/* Symbols that never merge: user-defined pieces, and characters that are no piece. */
enum { FROZEN = INT_MIN / 2 };

static void encode_bpe(encoder *e, const char *text, size_t len, node *nodes) {
    const vlp_sentencepiece *s = e->model;
    int32_t *symbols = (int32_t *)nodes, *ranks = symbols + len, id = -1;
    int n = 0;
    for (size_t at = 0, size; at < len; at += size, n++) {
        uint32_t code = 0;
        if ((size = vlp_sentencepiece_user(s, text + at, len - at, &id))) {
            symbols[n] = FROZEN + id;
            continue;
        }
        size = char_bytes(text + at, len - at);
        vlp_utf8_next(text + at, size, &code);
        id = vlp_vocab_find(&s->base.vocab, text + at, size);
        symbols[n] = is_found(s, id) ? id : -1 - (int32_t)code;
    }
    n = vlp_bpe_merge(&s->bpe, symbols, ranks, n);
    for (int i = 0; i < n; i++) {
        char utf8[4];
        if (symbols[i] >= 0)
            put_piece(e, symbols[i]);
        else if (symbols[i] < -0x200000)
            put_piece(e, symbols[i] - FROZEN);
        else
            put_unknown(e, utf8, (size_t)vlp_utf8_put((uint32_t)(-1 - symbols[i]), utf8));
    }
}

/* Where a text that does not fit into a fixed buffer is cut: between characters. */
static size_t cut_at(const char *text, size_t len) {
    while (len > 1 && ((uint8_t)text[len - 1] & 0x80)) len--;
    return len;
}

static int encode_text(const vlp_sentencepiece *s, vlp_text from, manner how, int32_t *ids,
                       int max) {
    encoder e = {s, ids, max, 0, how == AS_CLASS && s->cut_numbers, false};
    bool inside = how == AS_CLASS && s->inside;
    char stack[STACK_BYTES], *text = stack, *heap = NULL;
    node nodes_stack[STACK_BYTES + 1], *nodes = nodes_stack;
    size_t len = vlp_sentencepiece_normalise(s, from, inside, stack, STACK_BYTES);
    if (len > STACK_BYTES && len < INT_MAX / 32) {
        heap = vlp_alloc((len + 1) * sizeof *nodes + len);
        if (heap) {
            nodes = (node *)(void *)heap;
            text = heap + (len + 1) * sizeof *nodes;
            vlp_sentencepiece_normalise(s, from, inside, text, len);
        }
    }
    if (!heap && len > STACK_BYTES) len = cut_at(text, STACK_BYTES); /* no memory: the beginning */
    (s->is_bpe ? encode_bpe : encode_unigram)(&e, text, len, nodes);
    vlp_free(heap);
    return e.count;
}

static int sentencepiece_encode(const vlp_tokenizer *tokenizer, const vlp_segment *segment,
                                int32_t *ids, int max) {
    const vlp_sentencepiece *s = as_sentencepiece(tokenizer);
    char stack[STACK_BYTES], *heap = NULL;
    if (segment->literal || !s->cleans)
        return encode_text(s, (vlp_text){segment->text, segment->len}, AS_MODEL, ids, max);
    size_t len = vlp_sentencepiece_clean(s, segment, stack, STACK_BYTES);
    if (len > STACK_BYTES) heap = vlp_alloc(len);
    if (heap)
        vlp_sentencepiece_clean(s, segment, heap, len);
    else if (len > STACK_BYTES)
        len = cut_at(stack, STACK_BYTES);
    int n = encode_text(s, (vlp_text){heap ? heap : stack, len}, AS_CLASS, ids, max);
    vlp_free(heap);
    return n;
}

/* ---- decoding ---- */

static vlp_status put_text(vlp_buf *out, const char *piece) {
    for (; *piece; piece++) {
        bool space = strncmp(piece, SPACE, 3) == 0;
        VLP_TRY(vlp_buf_append(out, space ? " " : piece, 1));
        piece += space ? 2 : 0;
    }
    return VLP_OK;
}

/* Every byte that is part of no character is a U+FFFD. */
static vlp_status put_bytes(vlp_buf *out, vlp_buf *bytes) {
    for (size_t at = 0; at < bytes->len;) {
        uint32_t code;
        size_t size = (size_t)vlp_utf8_next(bytes->data + at, bytes->len - at, &code);
        VLP_TRY(size ? vlp_buf_append(out, bytes->data + at, size)
                     : vlp_buf_append(out, "\xEF\xBF\xBD", 3));
        at += size ? size : 1;
    }
    vlp_buf_clear(bytes);
    return VLP_OK;
}

/* Control pieces say nothing; the space in front of the text is not the text's. */
static vlp_status put_decoded(const vlp_sentencepiece *s, int32_t id, vlp_buf *out, size_t start,
                              bool *stripped) {
    const char *piece = vlp_vocab_token(&s->base.vocab, id);
    if (id >= s->piece_count) return vlp_buf_puts(out, piece);
    if (s->types[id] == VLP_PIECE_CONTROL) return VLP_OK;
    if (s->types[id] == VLP_PIECE_UNKNOWN) return vlp_buf_puts(out, " \xE2\x81\x87 ");
    bool first = out->len == start && (!*stripped || (s->remove_extra && !s->keep_edges));
    if (first && (s->dummy_prefix || s->remove_extra) && strncmp(piece, SPACE, 3) == 0) {
        piece += 3;
        *stripped = true;
    }
    return put_text(out, piece);
}

static vlp_status sentencepiece_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                       bool skip_special, vlp_buf *out) {
    const vlp_sentencepiece *s = as_sentencepiece(tokenizer);
    vlp_buf bytes = {0};
    size_t start = out->len;
    bool stripped = false;
    vlp_status status = vlp_buf_puts(out, "");
    for (int i = 0; status == VLP_OK && i < n; i++) {
        unsigned byte;
        const char *piece = vlp_vocab_token(&s->base.vocab, ids[i]);
        if (skip_special && vlp_tokenizer_is_special(tokenizer, ids[i])) continue;
        if (ids[i] < s->piece_count && s->types[ids[i]] == VLP_PIECE_BYTE &&
            sscanf(piece, "<0x%2X>", &byte) == 1) {
            char c = (char)byte;
            status = vlp_buf_append(&bytes, &c, 1);
            continue;
        }
        status = put_bytes(out, &bytes);
        if (status == VLP_OK) status = put_decoded(s, ids[i], out, start, &stripped);
    }
    if (status == VLP_OK) status = put_bytes(out, &bytes);
    vlp_buf_free(&bytes);
    return status;
}

static bool sentencepiece_continues(const vlp_tokenizer *tokenizer, int32_t id) {
    const vlp_sentencepiece *s = as_sentencepiece(tokenizer);
    if (!is_found(s, id)) return false;
    return strncmp(vlp_vocab_token(&tokenizer->vocab, id), SPACE, 3) != 0;
}

const vlp_tokenizer_kind vlp_sentencepiece_kind = {
    .name = "sentencepiece",
    .free = sentencepiece_free,
    .save = vlp_sentencepiece_save,
    .encode = sentencepiece_encode,
    .decode = sentencepiece_decode,
    .continues_word = sentencepiece_continues,
};
