/* What ALBERT's, XLNet's and SigLIP's tokenizers do to a text before the model's rules: one pass,
 * character by character, through the steps of vlp_piece_cleaning. */
#include "text/sentencepiece.h"
#include "text/unicode.h"

#include <string.h>

#define SPACE_MARK 0x2581

typedef struct {
    const vlp_piece_cleaning *how;
    char *out;
    size_t max, len;
    bool started, space; /* white space is due before the next character */
    uint32_t quote;      /* ` or ', which becomes \" if another follows; or 0 */
} cleaner;

static void put_bytes(cleaner *c, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++, c->len++)
        if (c->len < c->max) c->out[c->len] = bytes[i];
}

static void put_lower(cleaner *c, uint32_t code) {
    uint32_t lower[2] = {code, 0};
    char utf8[4];
    int count = c->how->lower_case ? vlp_unicode_lower(code, lower) : 1;
    for (int i = 0; i < count; i++) put_bytes(c, utf8, (size_t)vlp_utf8_put(lower[i], utf8));
}

/* Decomposition brings capitals of its own: U+2122 is TM. */
static void put_folded(cleaner *c, uint32_t code) {
    enum { MOST = 18 }; /* U+FDFA */
    uint32_t parts[MOST] = {code};
    int count = c->how->strip_accents ? vlp_unicode_decompose_compatibly(code, parts, MOST) : 1;
    for (int i = 0; i < count; i++)
        if (!c->how->strip_accents || vlp_unicode_combining_class(parts[i]) == 0)
            put_lower(c, parts[i]);
}

static void release_quote(cleaner *c) {
    if (c->quote) put_folded(c, c->quote);
    c->quote = 0;
}

static void put_unquoted(cleaner *c, uint32_t code) {
    if (c->quote && code == c->quote) {
        c->quote = 0;
        put_folded(c, '"');
        return;
    }
    release_quote(c);
    if (c->how->unquote && (code == '`' || code == '\''))
        c->quote = code;
    else
        put_folded(c, code);
}

static void begin(cleaner *c) {
    if (c->space) put_unquoted(c, ' ');
    c->space = false;
    c->started = true;
}

static bool is_ascii_punct(uint32_t code) {
    return code > ' ' && code < 0x7F && !(code >= '0' && code <= '9') &&
           !((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
}

static void take(cleaner *c, uint32_t code) {
    if (c->how->space_mark && code == SPACE_MARK) code = ' ';
    if (c->how->drop_punctuation && is_ascii_punct(code)) return;
    if (c->how->tidy && vlp_unicode_is_space(code)) {
        c->space = c->started;
        return;
    }
    begin(c);
    put_unquoted(c, code);
}

size_t vlp_sentencepiece_clean(const vlp_sentencepiece *s, const vlp_segment *segment, char *out,
                               size_t max) {
    cleaner c = {.how = &s->cleaning, .out = out, .max = max};
    if (segment->prefix) {
        begin(&c);
        put_unquoted(&c, SPACE_MARK);
    }
    for (size_t at = 0; at < segment->len;) {
        const char *text = segment->text + at;
        uint32_t code, lower[2];
        int size = vlp_utf8_next(text, segment->len - at, &code);
        at += size ? (size_t)size : 1;
        if (!size) {
            begin(&c);
            release_quote(&c);
            put_bytes(&c, text, 1);
            continue;
        }
        lower[0] = code;
        int count = c.how->lower_case ? vlp_unicode_lower(code, lower) : 1;
        for (int i = 0; i < count; i++) take(&c, lower[i]);
    }
    release_quote(&c);
    return c.len;
}
