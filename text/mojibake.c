#include "text/mojibake.h"

#include "text/unicode.h"

#include <string.h>

/* Of bytes 0x80 to 0x9F; 0 = undefined. */
static const uint16_t windows[32] = {0x20AC, 0,      0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
                                     0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0,      0x17D,  0,
                                     0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                     0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0,      0x17E,  0x178};

int vlp_windows_1252_byte(unsigned code) {
    if (code < 0x80 || (code >= 0xA0 && code <= 0xFF)) return (int)code;
    for (int i = 0; i < 32; i++)
        if (code == windows[i] || (code == 0x80u + (unsigned)i && !windows[i])) return 0x80 + i;
    return -1;
}

unsigned vlp_windows_1252_char(unsigned char byte) {
    if (byte < 0x80 || byte > 0x9F || !windows[byte - 0x80]) return byte;
    return windows[byte - 0x80];
}

/* ---- does it look damaged? ---- */

typedef enum {
    PLAIN,
    C1,
    BAD,
    LAW,
    CURRENCY,
    START,
    END,
    NUMERIC,
    UPPER,
    LOWER,
    LETTER, /* an unaccented one */
    COMMON,
} class;

static class class_of(uint32_t code) {
    static const struct {
        class is;
        const uint32_t codes[24];
    } sets[] = {
        {COMMON, {0xA0, 0xAD, 0xB7, 0xB4, 0x2013, 0x2014, 0x2015, 0x2026, 0x2019}},
        {BAD, {0xA6,  0xA4,  0xA8,   0xAC,   0xAF,   0xB8,   0x192,  0x2C6,  0x2C7, 0x2D8,
               0x2DB, 0x2DC, 0x2020, 0x2021, 0x2030, 0x2310, 0x25CA, 0xFFFD, 0xAA,  0xBA}},
        {LAW, {0xB6, 0xA7}},
        {CURRENCY, {0xA2, 0xA3, 0xA5, 0x20A7, 0x20AC}},
        {START,
         {0xA1, 0xAB, 0xBF, 0xA9, 0x384, 0x385, 0x2018, 0x201A, 0x201C, 0x201E, 0x2022, 0x2039}},
        {END, {0xAE, 0xBB, 0x2DD, 0x201D, 0x203A, 0x2122}},
        {NUMERIC, {0xB2, 0xB3, 0xB9, 0xB1, 0xBC, 0xBD, 0xBE, 0xD7, 0xB5, 0xF7}},
    };
    if (code < 0x80) {
        bool letter = (code | 32) >= 'a' && (code | 32) <= 'z';
        return letter ? LETTER : PLAIN;
    }
    if (code <= 0x9F) return C1;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (int j = 0; j < 24 && sets[i].codes[j]; j++)
            if (sets[i].codes[j] == code) return sets[i].is;
    if ((code >= 0xC0 && code <= 0xDE) || code == 0x178) return UPPER;
    if (code >= 0xDF && code <= 0xFF) return LOWER;
    if (code >= 0x152 && code <= 0x17E) return code & 1 ? LOWER : UPPER;
    return PLAIN;
}

#define ONE(c) (1u << (c))
#define ACCENTED (ONE(UPPER) | ONE(LOWER))
#define SIGNS (ONE(START) | ONE(END) | ONE(CURRENCY) | ONE(NUMERIC) | ONE(LAW))

/* Two neighbours that hardly ever stand together in text that is what it was meant to be. */
static bool is_bad_pair(uint32_t left, uint32_t right) {
    static const struct {
        unsigned left, right;
    } rules[] = {
        {ONE(BAD) | ACCENTED | SIGNS, ONE(BAD)},
        {ONE(BAD), ACCENTED | SIGNS},
        {ONE(LOWER) | ONE(END) | ONE(CURRENCY) | ONE(NUMERIC), ONE(UPPER)},
        {ONE(END) | ONE(CURRENCY) | ONE(NUMERIC), ONE(LOWER)},
        {ONE(LOWER) | ONE(END), ONE(CURRENCY)},
        {ONE(UPPER), ONE(NUMERIC) | ONE(LAW)},
        {ONE(CURRENCY) | ONE(NUMERIC), ONE(START)},
    };
    unsigned l = ONE(class_of(left)), r = ONE(class_of(right));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (l & rules[i].left && r & rules[i].right) return true;
    /* A-circumflex and A-tilde are what UTF-8's Latin-1 letters become. */
    bool lead = left == 0xC2 || left == 0xC3 || left == 0xCE || left == 0xD0;
    unsigned tail = ONE(START) | ONE(END) | ONE(CURRENCY) | ONE(COMMON);
    if (lead && (r & tail || right == 0x153 || right == 0x160 || right == 0x161 || right == 0x178 ||
                 right == 0x17E || right == 0xB0))
        return true;
    if ((left == 0xD8 || left == 0xD9) && r & (tail | ONE(NUMERIC))) return true;
    return (left == 0x152 || left == 0x153) && class_of(right) != LETTER;
}

static bool is_bad(const char *text, size_t len) {
    uint32_t code, before = 0;
    class first = PLAIN, second = PLAIN; /* of the two before */
    for (size_t at = 0; at < len; before = code) {
        at += (size_t)vlp_utf8_next(text + at, len - at, &code);
        class now = class_of(code);
        if (now == C1 || (before && is_bad_pair(before, code))) return true;
        unsigned accented = ONE(first) & (ACCENTED | ONE(CURRENCY));
        if ((accented || first == END) && second == START && now == NUMERIC) return true;
        if ((accented || first == NUMERIC || first == LAW) && second == END && now == START)
            return true;
        if (ONE(first) & ACCENTED && ONE(second) & (ONE(START) | ONE(END)) &&
            (now == LETTER || now == UPPER || now == LOWER))
            return true;
        if (first == LETTER && second == UPPER && (now == START || now == CURRENCY)) return true;
        first = second;
        second = now;
    }
    return false;
}

/* ---- reading it again ---- */

typedef int byte_fn(unsigned code);

static int latin_1_byte(unsigned code) {
    return code < 0x100 ? (int)code : -1;
}

/* The bytes of text in a code page; false when one of its characters has none. A byte string is not
 * longer than the text. */
static bool to_bytes(byte_fn *byte_of, const char *text, size_t len, char *bytes, size_t *count) {
    *count = 0;
    for (size_t at = 0; at < len;) {
        uint32_t code;
        at += (size_t)vlp_utf8_next(text + at, len - at, &code);
        int byte = byte_of(code);
        if (byte < 0) return false;
        bytes[(*count)++] = (char)byte;
    }
    return true;
}

/* One reading in one code page; 0 when it is not UTF-8 or says the same. */
static size_t read_again(byte_fn *byte_of, const char *text, size_t len, char *out) {
    size_t n;
    if (!to_bytes(byte_of, text, len, out, &n)) return 0;
    return vlp_utf8_valid(out, n) && n < len ? n : 0;
}

static bool is_continuation(uint32_t code) {
    int byte = vlp_windows_1252_byte(code);
    return byte >= 0x80 && byte <= 0xBF;
}

/* Bytes of text[at..) whose characters are one UTF-8 sequence in Windows-1252; 0 for none. */
static size_t hidden_sequence(const char *text, size_t len) {
    uint32_t code;
    size_t at = (size_t)vlp_utf8_next(text, len, &code);
    int byte = vlp_windows_1252_byte(code);
    int more = byte >= 0xC2 && byte <= 0xDF   ? 1
               : byte >= 0xE0 && byte <= 0xEF ? 2
               : byte >= 0xF0 && byte <= 0xF4 ? 3
                                              : 0;
    if (more == 0) return 0;
    for (; more > 0; more--) {
        int size = vlp_utf8_next(text + at, len - at, &code);
        if (!size || !is_continuation(code)) return 0;
        at += (size_t)size;
    }
    return at;
}

/* Runs of such sequences inside text that has other characters too. */
static size_t undo_parts(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        size_t end = at, part, size;
        uint32_t code;
        while (end < len && (part = hidden_sequence(text + end, len - end))) end += part;
        size_t written = end > at && end - at < len && is_bad(text + at, end - at)
                             ? read_again(vlp_windows_1252_byte, text + at, end - at, out + n)
                             : 0;
        if (written) {
            n += written;
            at = end;
            continue;
        }
        size = (size_t)vlp_utf8_next(text + at, len - at, &code);
        memcpy(out + n, text + at, size);
        n += size;
        at += size;
    }
    return n;
}

size_t vlp_mojibake_undo(const char *text, size_t len, char *out, size_t max) {
    size_t n = 0;
    bool ascii = true;
    if (len > max) return 0;
    for (size_t i = 0; i < len && ascii; i++) ascii = (uint8_t)text[i] < 0x80;
    if (!ascii && is_bad(text, len)) {
        n = read_again(latin_1_byte, text, len, out);
        if (!n) n = read_again(vlp_windows_1252_byte, text, len, out);
        return n ? n : undo_parts(text, len, out);
    }
    memcpy(out, text, len);
    return len;
}
