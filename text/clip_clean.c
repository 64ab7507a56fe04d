#include "text/clip_clean.h"

#include "text/html.h"
#include "text/repair.h"
#include "text/unicode.h"

#include <string.h>

enum { CAPITAL_SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, MAX = VLP_CLIP_TEXT_MAX };

/* Well-formed characters other than NUL. */
static size_t copy_valid(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        uint32_t code;
        size_t size = (size_t)vlp_utf8_next(text + at, len - at, &code);
        if (size && code) {
            if (n + size > MAX) break;
            memcpy(out + n, text + at, size);
            n += size;
        }
        at += size ? size : 1;
    }
    return n;
}

/* text [len] without the white space around it, in python's sense. */
static void trim(const char **text, size_t *len) {
    const char *s = *text;
    size_t first = 0, last = 0;
    bool inside = false;
    for (size_t at = 0; at < *len;) {
        uint32_t code;
        size_t size = (size_t)vlp_utf8_next(s + at, *len - at, &code);
        if (!vlp_unicode_is_space(code)) {
            if (!inside) first = at;
            inside = true;
            last = at + size;
        }
        at += size;
    }
    *text = s + first;
    *len = last - first;
}

/* Whether a letter with case follows, looking through case-ignorables. */
static bool before_cased(const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t code;
        at += (size_t)vlp_utf8_next(text + at, len - at, &code);
        if (!vlp_unicode_is_case_ignorable(code)) return vlp_unicode_is_cased(code);
    }
    return false;
}

/* Lower case and one space for each run of white space, which does not touch the sigmas: a space
 * ends a word however often it stands. */
static size_t lower(const char *text, size_t len, char *out) {
    size_t n = 0;
    bool after_cased = false, after_space = false;
    for (size_t at = 0; at < len && n + 8 <= MAX;) {
        uint32_t code, lower[2];
        at += (size_t)vlp_utf8_next(text + at, len - at, &code);
        bool space = vlp_unicode_is_white_space(code);
        if (space && !after_space) out[n++] = ' ';
        after_space = space;
        int count = space ? 0 : vlp_unicode_lower(code, lower);
        if (code == CAPITAL_SIGMA && after_cased && !before_cased(text + at, len - at))
            lower[0] = FINAL_SIGMA;
        if (!vlp_unicode_is_case_ignorable(code)) after_cased = vlp_unicode_is_cased(code);
        for (int i = 0; i < count; i++) n += (size_t)vlp_utf8_put(lower[i], out + n);
    }
    return n;
}

static size_t clean_openai(const char *text, size_t len, char *out) {
    char once[MAX];
    size_t n = copy_valid(text, len, once);
    n = vlp_text_repair(once, n, out);
    if (memchr(out, '&', n)) {
        n = vlp_html_unescape(out, n, once, MAX);
        n = vlp_html_unescape(once, n, out, MAX);
    }
    memcpy(once, out, n);
    const char *inner = once;
    trim(&inner, &n);
    return lower(inner, n, out);
}

size_t vlp_clip_cleaned(vlp_clip_clean how, const char *text, size_t len, char *out) {
    if (how == VLP_CLIP_CLEAN_OPENAI) return clean_openai(text, len, out);
    char composed[MAX];
    size_t n = copy_valid(text, len, out);
    n = vlp_unicode_compose(out, n, composed, MAX);
    return lower(composed, n, out);
}
