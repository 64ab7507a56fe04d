#include "text/html.h"

#include "text/unicode.h"

#include <string.h>

enum { NAME_CHARS = 32 };

typedef struct {
    char *bytes;
    size_t len, max;
} sink;

static void put(sink *s, const char *bytes, size_t len) {
    if (len > s->max - s->len) {
        s->max = s->len; /* full: a shorter one must not follow */
        return;
    }
    memcpy(s->bytes + s->len, bytes, len);
    s->len += len;
}

static void put_code(sink *s, uint32_t code) {
    char utf8[4];
    put(s, utf8, (size_t)vlp_utf8_put(code, utf8));
}

/* What browsers make of numbers that are no characters: 0x80 to 0x9F are Windows-1252's. */
static void put_number(sink *s, uint32_t code) {
    static const uint16_t windows[32] = {
        0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
        0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};
    bool control = (code < 0x20 && code != 9 && code != 10 && code != 12 && code != 13) ||
                   code == 0x7F || (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
    if (code >= 0x80 && code <= 0x9F)
        put_code(s, windows[code - 0x80]);
    else if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        put_code(s, 0xFFFD);
    else if (!control)
        put_code(s, code);
}

static int digit_of(char c, int base) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : base;
    return value < base ? value : -1;
}

/* "#39;" after the ampersand; returns its bytes, 0 when it is none. */
static size_t number(sink *s, const char *text, size_t len) {
    bool hex = len > 1 && (text[1] == 'x' || text[1] == 'X');
    size_t first = hex ? 2 : 1, at = first;
    uint32_t code = 0;
    for (int digit; at < len && (digit = digit_of(text[at], hex ? 16 : 10)) >= 0; at++)
        if (code <= 0x10FFFF) code = code * (hex ? 16 : 10) + (uint32_t)digit;
    if (at == first) return 0;
    put_number(s, code);
    return at + (at < len && text[at] == ';');
}

/* How far a name reaches: up to 32 characters other than these, and a semicolon. */
static size_t name_bytes(const char *text, size_t len) {
    size_t at = 0;
    for (int chars = 0; at < len && chars < NAME_CHARS && !strchr("\t\n\f <&#;", text[at]); chars++)
        for (at++; at < len && (text[at] & 0xC0) == 0x80;) at++;
    return at > 0 && at < len && text[at] == ';' ? at + 1 : at;
}

/* The whole name, or the longest of its beginnings that has more than one letter. */
static size_t name(sink *s, const char *text, size_t len) {
    size_t bytes = name_bytes(text, len), value_len;
    for (size_t n = bytes; n > 1 || n == bytes; n--) {
        const char *value = vlp_html_entity(text, n, &value_len);
        if (value) {
            put(s, value, value_len);
            put(s, text + n, bytes - n);
            return bytes;
        }
        if (n == 0) break;
    }
    return 0;
}

size_t vlp_html_unescape(const char *text, size_t len, char *out, size_t max) {
    sink s = {out, 0, max};
    for (size_t at = 0; at < len;) {
        const char *next = memchr(text + at, '&', len - at);
        size_t plain = next ? (size_t)(next - text) - at : len - at;
        put(&s, text + at, plain);
        at += plain;
        if (!next) break;
        const char *rest = text + at + 1;
        size_t left = len - at - 1;
        size_t used = left && rest[0] == '#' ? number(&s, rest, left) : name(&s, rest, left);
        if (!used) put(&s, "&", 1);
        at += 1 + used;
    }
    return s.len;
}
