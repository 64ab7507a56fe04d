#include "text/normalize.h"

#include "text/unicode.h"

#include "core/status.h"

#define CAPITAL_SIGMA 0x3A3
#define FINAL_SIGMA 0x3C2
#define REPLACEMENT 0xFFFD

typedef struct {
    const vlp_normalize_options *options;
    vlp_word_sink sink;
    void *user;
    bool stopped;
    bool after_cased; /* the last code point that is not case-ignorable has case */

    char word[4 * VLP_WORD_MAX_CHARS];
    size_t bytes, chars;

    /* Combining code points that await canonical order, by class. Marks are dropped, so what is
     * left is rare (musical stems); a longer run overflows a word anyway. */
    uint32_t held[VLP_WORD_MAX_CHARS];
    int held_count;
} stream;

static void end_word(stream *s) {
    if (s->chars && !s->stopped) s->stopped = !s->sink(s->user, s->word, s->bytes, s->chars);
    s->bytes = s->chars = 0;
}

static void add(stream *s, uint32_t code) {
    if (s->chars++ < VLP_WORD_MAX_CHARS) s->bytes += (size_t)vlp_utf8_put(code, s->word + s->bytes);
}

static bool is_ascii_punct(uint32_t code) {
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
           (code >= 123 && code <= 126);
}

static void put(stream *s, uint32_t code) {
    if (code < 0x80 ? !is_ascii_punct(code) : vlp_unicode_kind_of(code) != VLP_UNICODE_PUNCT) {
        add(s, code);
        return;
    }
    end_word(s);
    add(s, code);
    end_word(s);
}

static void release_held(stream *s) {
    for (int i = 0; i < s->held_count; i++) put(s, s->held[i]);
    s->held_count = 0;
}

/* Stable insertion by combining class. */
static void hold(stream *s, uint32_t code, uint8_t class) {
    if (s->held_count == VLP_WORD_MAX_CHARS) release_held(s);
    int at = s->held_count++;
    for (; at > 0 && vlp_unicode_combining_class(s->held[at - 1]) > class; at--)
        s->held[at] = s->held[at - 1];
    s->held[at] = code;
}

static void put_stripped(stream *s, uint32_t code) {
    uint32_t parts[4];
    int count = vlp_unicode_decompose(code, parts);
    for (int i = 0; i < count; i++) {
        uint8_t class = vlp_unicode_combining_class(parts[i]);
        if (class == 0) release_held(s);
        if (vlp_unicode_kind_of(parts[i]) == VLP_UNICODE_MARK) continue;
        if (class)
            hold(s, parts[i], class);
        else
            put(s, parts[i]);
    }
}

static void put_folded(stream *s, uint32_t code) {
    if (s->options->strip_accents)
        put_stripped(s, code);
    else
        put(s, code);
}

static void end_token(stream *s) {
    release_held(s);
    end_word(s);
    s->after_cased = false;
}

/* What clean-up leaves of the code point: nothing, a separator, or itself. */
static vlp_unicode_kind clean(uint32_t code) {
    if (code == ' ' || code == '\t' || code == '\n' || code == '\r') return VLP_UNICODE_SPACE;
    if (code == REPLACEMENT) return VLP_UNICODE_CONTROL;
    return vlp_unicode_kind_of(code);
}

/* Whether a letter with case follows in the same token, looking through case-ignorables. */
static bool before_cased(const stream *s, const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t code;
        int size = vlp_utf8_next(text + at, len - at, &code);
        at += size ? (size_t)size : 1;
        if (!size) continue;
        vlp_unicode_kind kind = clean(code);
        if (kind == VLP_UNICODE_CONTROL || vlp_unicode_is_case_ignorable(code)) continue;
        if (kind == VLP_UNICODE_SPACE) return false;
        if (s->options->split_ideographs && vlp_unicode_is_ideograph(code)) return false;
        return vlp_unicode_is_cased(code);
    }
    return false;
}

static void put_lower(stream *s, uint32_t code, const char *rest, size_t rest_len) {
    uint32_t lower[2];
    int count = vlp_unicode_lower(code, lower);
    if (s->options->final_sigma) {
        if (code == CAPITAL_SIGMA && s->after_cased && !before_cased(s, rest, rest_len))
            lower[0] = FINAL_SIGMA;
        if (!vlp_unicode_is_case_ignorable(code)) s->after_cased = vlp_unicode_is_cased(code);
    }
    for (int i = 0; i < count; i++) put_folded(s, lower[i]);
}

static void take(stream *s, uint32_t code, const char *rest, size_t rest_len) {
    vlp_unicode_kind kind = clean(code);
    if (kind == VLP_UNICODE_CONTROL) return;
    if (kind == VLP_UNICODE_SPACE) {
        end_token(s);
        return;
    }
    bool alone = s->options->split_ideographs && vlp_unicode_is_ideograph(code);
    if (alone) end_token(s);
    if (s->options->lower_case)
        put_lower(s, code, rest, rest_len);
    else
        put_folded(s, code);
    if (alone) end_token(s);
}

/* The same for ASCII outside the final-sigma rule: most of most texts. */
static void take_ascii(stream *s, uint32_t code) {
    if (code <= ' ' || code == 0x7F) {
        if (clean(code) == VLP_UNICODE_SPACE) end_token(s);
        return;
    }
    if (s->held_count) release_held(s);
    bool punct = is_ascii_punct(code);
    if (punct) end_word(s);
    if (s->options->lower_case && code >= 'A' && code <= 'Z') code += 'a' - 'A';
    if (s->chars++ < VLP_WORD_MAX_CHARS) s->word[s->bytes++] = (char)code;
    if (punct) end_word(s);
}

void vlp_normalize_words(const vlp_normalize_options *options, const char *text, size_t len,
                         vlp_word_sink sink, void *user) {
    stream s;
    s.options = options;
    s.sink = sink;
    s.user = user;
    s.stopped = s.after_cased = false;
    s.bytes = s.chars = 0;
    s.held_count = 0;
    for (size_t at = 0; at < len && !s.stopped;) {
        uint32_t code = (uint8_t)text[at];
        if (code < 0x80 && !options->final_sigma) {
            take_ascii(&s, code);
            at++;
            continue;
        }
        int size = vlp_utf8_next(text + at, len - at, &code);
        at += size ? (size_t)size : 1;
        if (size) take(&s, code, text + at, len - at);
    }
    end_token(&s);
}
