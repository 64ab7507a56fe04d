/* What happens to a text before it is cut into pieces: the model's rewriting rules, then white
 * space. */
#include "text/sentencepiece.h"

#include "text/unicode.h"

#include <string.h>

#define SPACE "\xE2\x96\x81" /* U+2581 */

vlp_status vlp_sentencepiece_rules(vlp_sentencepiece *s, const char *blob, size_t len) {
    uint32_t trie;
    if (len == 0) return VLP_OK;
    if (len < 4) return VLP_FAIL(VLP_ERR_FORMAT, "the normaliser's rules are cut short");
    memcpy(&trie, blob, 4);
    if (trie % 4 || trie < 4 || trie > len - 4)
        return VLP_FAIL(VLP_ERR_FORMAT, "the normaliser's rules are damaged");
    s->unit_count = trie / 4;
    s->replacement_bytes = len - 4 - trie;
    s->units = vlp_alloc(trie);
    s->replacements = vlp_alloc(s->replacement_bytes + 1);
    if (!s->units || !s->replacements) return VLP_ERR_MEMORY;
    memcpy(s->units, blob + 4, trie);
    memcpy(s->replacements, blob + 4 + trie, s->replacement_bytes);
    s->replacements[s->replacement_bytes] = '\0';
    return VLP_OK;
}

/* The double array of Darts: a unit holds a label, an offset to its children and whether the
 * sequence ends here; the value is then in the child of label 0. Returns the bytes of the longest
 * sequence that text begins with. */
static size_t longest_rule(const vlp_sentencepiece *s, const char *text, size_t len,
                           uint32_t *value) {
    size_t best = 0, at = 0;
    if (!s->unit_count) return 0;
    uint32_t unit = s->units[0];
    at ^= (unit >> 10) << ((unit & (1u << 9)) >> 6);
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)text[i];
        at ^= byte;
        if (byte == 0 || at >= s->unit_count) break;
        unit = s->units[at];
        if ((unit & ((1u << 31) | 0xFF)) != byte) break;
        at ^= (unit >> 10) << ((unit & (1u << 9)) >> 6);
        if (at >= s->unit_count) break;
        if (unit >> 8 & 1) {
            best = i + 1;
            *value = s->units[at] & 0x7FFFFFFF;
        }
    }
    return best;
}

size_t vlp_sentencepiece_user(const vlp_sentencepiece *s, const char *text, size_t len,
                              int32_t *id) {
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; s->has_user && i < len; i++) {
        if (!(node = vlp_vocab_step(&s->base.vocab, node, (uint8_t)text[i]))) break;
        int32_t found = s->base.vocab.ids[node];
        if (found < 0 || found >= s->piece_count || s->types[found] != VLP_PIECE_USER) continue;
        best = i + 1;
        *id = found;
    }
    return best;
}

/* What the beginning of text becomes; returns the bytes of text that it stands for. */
static size_t rewrite(const vlp_sentencepiece *s, const char *text, size_t len, const char **to,
                      size_t *to_len) {
    int32_t id;
    uint32_t value, code;
    size_t size = vlp_sentencepiece_user(s, text, len, &id);
    *to = text;
    *to_len = size;
    if (size) return size;
    size = longest_rule(s, text, len, &value);
    if (size && value < s->replacement_bytes) {
        *to = s->replacements + value;
        *to_len = strlen(*to);
        return size;
    }
    size = (size_t)vlp_utf8_next(text, len, &code);
    *to_len = size;
    if (size && code) return size;
    *to = "\xEF\xBF\xBD";
    *to_len = 3;
    return size ? size : 1;
}

typedef struct {
    char *out;
    size_t max, len;
    size_t kept; /* length up to the last character that is no space */
} sink;

static void put(sink *k, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++, k->len++)
        if (k->len < k->max) k->out[k->len] = bytes[i];
}

/* A space's mark in the text itself counts as a space at the end, where spaces are marked. */
static void put_escaped(const vlp_sentencepiece *s, sink *k, const char *bytes, size_t len) {
    for (size_t i = 0, size; i < len; i += size) {
        bool mark = s->escape && len - i >= 3 && memcmp(bytes + i, SPACE, 3) == 0;
        size = mark ? 3 : 1;
        if (s->escape && bytes[i] == ' ')
            put(k, SPACE, 3);
        else
            put(k, bytes + i, size);
        if (bytes[i] != ' ' && !mark) k->kept = k->len;
    }
}

size_t vlp_sentencepiece_normalise(const vlp_sentencepiece *s, vlp_text text, bool inside,
                                   char *out, size_t max) {
    sink k = {out, max, 0, 0};
    bool trim = s->remove_extra && !s->keep_edges, started = inside, after_space = trim && !inside;
    for (size_t at = 0; at < text.len;) {
        const char *to;
        size_t to_len;
        at += rewrite(s, text.text + at, text.len - at, &to, &to_len);
        bool space = to_len && to[0] == ' ';
        if (!started && s->keep_edges && !to_len) continue;
        if (!started && trim && to_len == 1 && space) continue;
        if (!started && s->dummy_prefix && !(s->keep_edges && space)) put_escaped(s, &k, " ", 1);
        started = true;
        for (; after_space && to_len && to[0] == ' '; to_len--) to++;
        if (!to_len) continue;
        put_escaped(s, &k, to, to_len);
        after_space = s->remove_extra && to[to_len - 1] == ' ';
    }
    return trim ? k.kept : k.len;
}
