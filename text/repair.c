#include "text/repair.h"

#include "text/html.h"
#include "text/mojibake.h"
#include "text/unicode.h"

#include <string.h>

enum { MAX = VLP_REPAIR_MAX, ROUNDS = 8 };

typedef struct {
    char *bytes;
    size_t len;
} sink;

static void put(sink *s, uint32_t code) {
    if (s->len + 4 <= MAX) s->len += (size_t)vlp_utf8_put(code, s->bytes + s->len);
}

static void put_text(sink *s, const char *text) {
    size_t len = strlen(text);
    if (s->len + len > MAX) return;
    memcpy(s->bytes + s->len, text, len);
    s->len += len;
}

/* Letters that are two, in fonts and in a few code pages. */
static const char *ligature(uint32_t code) {
    static const struct {
        uint32_t code;
        const char *letters;
    } rows[] = {{0x132, "IJ"},       {0x133, "ij"},      {0x149, "'n"},   {0x1C4, "D\u017D"},
                {0x1C5, "D\u017E"},  {0x1C6, "d\u017E"}, {0x1C7, "LJ"},   {0x1C8, "Lj"},
                {0x1C9, "lj"},       {0x1CA, "NJ"},      {0x1CB, "Nj"},   {0x1CC, "nj"},
                {0x1F1, "DZ"},       {0x1F2, "Dz"},      {0x1F3, "dz"},   {0xFB00, "ff"},
                {0xFB01, "fi"},      {0xFB02, "fl"},     {0xFB03, "ffi"}, {0xFB04, "ffl"},
                {0xFB05, "\u017Ft"}, {0xFB06, "st"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code) return rows[i].letters;
    return NULL;
}

static bool is_dropped(uint32_t code) {
    return code < 9 || code == 0xB || (code >= 0xE && code < 0x20) || code == 0x7F ||
           (code >= 0x206A && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xFFF9 && code <= 0xFFFC);
}

/* "\033[", numbers and semicolons, a letter: its bytes, or 0. */
static size_t terminal_escape(const char *text, size_t len) {
    size_t at = 2;
    if (len < 3 || text[0] != '\033' || text[1] != '[') return 0;
    while (at < len && ((text[at] >= '0' && text[at] <= '9') || text[at] == ';')) at++;
    bool letter =
        at < len && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z'));
    return letter ? at + 1 : 0;
}

static void put_character(sink *s, uint32_t code) {
    const char *letters = ligature(code);
    uint32_t parts[32];
    if (code >= 0x80 && code <= 0x9F) code = vlp_windows_1252_char((unsigned char)code);
    if (letters)
        put_text(s, letters);
    else if (code == 0x3000)
        put(s, ' ');
    else if (code >= 0xFF01 && code <= 0xFFEF)
        for (int i = 0, n = vlp_unicode_decompose_compatibly(code, parts, 32); i < n; i++)
            put(s, parts[i]);
    else if (code == 0x2BC || (code >= 0x2018 && code <= 0x201B))
        put(s, '\'');
    else if (code >= 0x201C && code <= 0x201F)
        put(s, '"');
    else if (code == '\r' || code == 0x2028 || code == 0x2029)
        put(s, '\n');
    else if (!is_dropped(code))
        put(s, code);
}

/* Everything that looks at one character at a time. */
static size_t repair_characters(const char *text, size_t len, char *out) {
    sink s = {out, 0};
    for (size_t at = 0; at < len;) {
        size_t escape = terminal_escape(text + at, len - at);
        uint32_t code;
        if (escape) {
            at += escape;
            continue;
        }
        at += (size_t)vlp_utf8_next(text + at, len - at, &code);
        if (code == '\r' && at < len && text[at] == '\n') continue;
        put_character(&s, code);
    }
    return s.len;
}

/* Entities with a semicolon, which is what is recognised before the encoding is known. */
static size_t unescape(const char *text, size_t len, char *out) {
    enum { NAME = 25 };
    sink s = {out, 0};
    for (size_t at = 0; at < len;) {
        size_t end = at + 1, used = 0;
        if (text[at] == '&') {
            end += end < len && text[end] == '#';
            while (end < len && end < at + 2 + NAME &&
                   ((text[end] >= '0' && text[end] <= '9') ||
                    ((text[end] | 32) >= 'a' && (text[end] | 32) <= 'z')))
                end++;
            if (end < len && text[end] == ';' && end > at + 1) {
                char whole[4 * (NAME + 4)];
                size_t n = vlp_html_unescape(text + at, end + 1 - at, whole, sizeof whole - 1);
                bool same = n == end + 1 - at && memcmp(whole, text + at, n) == 0;
                whole[n] = '\0';
                /* half of a name and the rest ("&notit;") is no entity here */
                if (!same && (n == 0 || whole[n - 1] != ';')) {
                    put_text(&s, whole);
                    used = end + 1 - at;
                }
            }
        }
        if (!used && s.len < MAX) s.bytes[s.len++] = text[at];
        at += used ? used : 1;
    }
    return s.len;
}

/* One line, until nothing changes any more. */
static size_t repair_line(const char *text, size_t len, bool html, char *out) {
    char a[MAX], b[MAX];
    size_t before;
    memcpy(out, text, len);
    for (int round = 0; round < ROUNDS; round++) {
        before = len;
        memcpy(b, out, len);
        size_t n = html ? unescape(out, len, a) : (memcpy(a, out, len), len);
        n = vlp_mojibake_undo(a, n, out, MAX);
        n = repair_characters(out, n, a);
        len = vlp_unicode_compose(a, n, out, MAX);
        if (len == before && memcmp(out, b, len) == 0) break;
    }
    return len;
}

static bool is_plain(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((text[i] < ' ' && text[i] != '\n' && text[i] != '\t' && text[i] != '\f') ||
            text[i] == 0x7F || text[i] == '&')
            return false;
    return true;
}

size_t vlp_text_repair(const char *text, size_t len, char *out) {
    bool html = true;
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        const char *stop = memchr(text + at, '\n', len - at);
        size_t size = stop ? (size_t)(stop - text) + 1 - at : len - at;
        html = html && !memchr(text + at, '<', size);
        char line[MAX];
        size_t written = size;
        const char *from = text + at;
        if (!is_plain(text + at, size)) {
            written = repair_line(text + at, size, html, line);
            from = line;
        }
        if (written > MAX - n) break;
        memcpy(out + n, from, written);
        n += written;
        at += size;
    }
    return n;
}
