#include "text/pretoken.h"

#include "text/unicode.h"

#include <string.h>

typedef enum { NOTHING, SPACE, LETTER, NUMBER, OTHER } class;

static class class_at(const char *text, size_t len, size_t at, size_t *size) {
    uint32_t code;
    *size = 0;
    if (at >= len) return NOTHING;
    int bytes = vlp_utf8_next(text + at, len - at, &code);
    *size = bytes ? (size_t)bytes : 1;
    if (!bytes) return OTHER;
    if (vlp_unicode_is_white_space(code)) return SPACE;
    if (vlp_unicode_is_letter(code)) return LETTER;
    return vlp_unicode_is_number(code) ? NUMBER : OTHER;
}

static size_t run_of(class kind, const char *text, size_t len, size_t at) {
    size_t size;
    while (at < len && class_at(text, len, at, &size) == kind) at += size;
    return at;
}

/* Bytes of an English contraction at text[at..), 0 for none. CLIP compares without case, and the
 * long s folds to s. */
static size_t contraction(const char *text, size_t len, size_t at, bool long_s) {
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    if (text[at] != '\'') return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (n <= len - at && memcmp(text + at, endings[i], n) == 0) return n;
    }
    return long_s && len - at >= 3 && memcmp(text + at, "'\xC5\xBF", 3) == 0 ? 3 : 0;
}

/* A run of white space leaves its last character to what follows, unless it is the last run or one
 * character long. */
static size_t space_run(const char *text, size_t len, size_t at) {
    size_t last = at, size;
    for (size_t i = at; class_at(text, len, i, &size) == SPACE; i += size) last = i;
    size_t end = run_of(SPACE, text, len, at);
    return end == len || last == at ? end : last;
}

bool vlp_pretoken_gpt2(const char *text, size_t len, size_t *at, size_t *start, size_t *end) {
    if (*at >= len) return false;
    *start = *at;
    size_t n = contraction(text, len, *at, false), size;
    size_t word = *at + (text[*at] == ' ');
    class kind = class_at(text, len, word, &size);
    if (n)
        *end = *at + n;
    else if (kind == LETTER || kind == NUMBER || kind == OTHER)
        *end = run_of(kind, text, len, word);
    else
        *end = space_run(text, len, *at);
    *at = *end;
    return true;
}

size_t vlp_pretoken_gpt2_prefixed(const char *text, size_t len) {
    size_t size, last = 0;
    class kind = class_at(text, len, 0, &size);
    if (kind != SPACE) return run_of(kind, text, len, 0);
    size_t end = run_of(SPACE, text, len, 0);
    if (end == len) return end;
    for (size_t i = 0; i < end; i += size) {
        class_at(text, len, i, &size);
        last = i;
    }
    return last;
}

bool vlp_pretoken_clip(const char *text, size_t len, size_t *at, size_t *start, size_t *end) {
    *start = run_of(SPACE, text, len, *at);
    if (*start >= len) return false;
    size_t n = contraction(text, len, *start, true), size;
    class kind = class_at(text, len, *start, &size);
    if (n)
        *end = *start + n;
    else
        *end = kind == NUMBER ? *start + size : run_of(kind, text, len, *start);
    *at = *end;
    return true;
}
