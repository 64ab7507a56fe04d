#include "datasets/json_scan.h"

#include "datasets/caption.h"

#include <string.h>

typedef struct {
    const char *text, *where;
    size_t len, at;
} scanner;

static vlp_status broken(const scanner *s, const char *what) {
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: not valid JSON: %s at byte %zu", s->where, what, s->at);
}

static int peek(scanner *s) {
    while (s->at < s->len && memchr(" \t\r\n", s->text[s->at], 4)) s->at++;
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

/* Past a string whose opening quote is at s->at. */
static bool skip_string(scanner *s) {
    for (s->at++; s->at < s->len; s->at++) {
        if (s->text[s->at] == '\\')
            s->at++;
        else if (s->text[s->at] == '"') {
            s->at++;
            return true;
        }
    }
    s->at = s->len;
    return false;
}

/* Past one value of any kind; brackets are counted, not matched by kind. */
static bool skip_value(scanner *s) {
    int64_t depth = 0;
    if (peek(s) < 0) return false;
    do {
        int c = peek(s);
        if (c < 0) return false;
        if (c == '"') {
            if (!skip_string(s)) return false;
        } else if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if (c == '}' || c == ']') {
            if (depth-- == 0) return false;
            s->at++;
        } else if (depth > 0) {
            s->at++;
        } else {
            while (s->at < s->len && !memchr(",]} \t\r\n", s->text[s->at], 7)) s->at++;
        }
    } while (depth > 0);
    return true;
}

static vlp_status scan_array(scanner *s, vlp_json_element_fn element, void *user) {
    if (peek(s) != '[') return broken(s, "no array");
    s->at++;
    if (peek(s) == ']') {
        s->at++;
        return VLP_OK;
    }
    for (int64_t number = 1;; number++) {
        peek(s);
        size_t start = s->at;
        if (!skip_value(s) || s->at == start) return broken(s, "an element is cut off");
        VLP_TRY(element(s->text + start, s->at - start, number, user));
        int c = peek(s);
        s->at += c == ',' || c == ']';
        if (c == ']') return VLP_OK;
        if (c != ',') return broken(s, "no , or ] after an element");
    }
}

static bool key_is(const scanner *s, size_t start, size_t end, const char *key) {
    size_t n = strlen(key);
    return end - start == n + 2 && memcmp(s->text + start + 1, key, n) == 0;
}

/* Moves to the value of a top-level key. */
static vlp_status find_key(scanner *s, const char *key) {
    if (peek(s) != '{') return broken(s, "no object");
    s->at++;
    while (peek(s) == '"') {
        size_t start = s->at;
        if (!skip_string(s)) return broken(s, "a key is cut off");
        bool found = key_is(s, start, s->at, key);
        if (peek(s) != ':') return broken(s, "no : after a key");
        s->at++;
        if (found) return VLP_OK;
        size_t value = s->at;
        if (!skip_value(s) || s->at == value) return broken(s, "a value is cut off");
        if (peek(s) != ',') break;
        s->at++;
    }
    if (s->at >= s->len) return broken(s, "the object is cut off");
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no \"%s\" in it", s->where, key);
}

vlp_status vlp_json_scan(const char *text, size_t len, const char *key, const char *where,
                         vlp_json_element_fn element, void *user) {
    scanner s = {text, where, len, 0};
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) s.at = 3;
    if (key) VLP_TRY(find_key(&s, key));
    return scan_array(&s, element, user);
}

static bool blank(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!memchr(" \t\r\n", text[i], 4)) return false;
    return true;
}

vlp_status vlp_json_each(const char *text, size_t len, const char *where,
                         vlp_json_element_fn element, void *user) {
    scanner s = {text, where, len, 0};
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) s.at = 3;
    if (peek(&s) == '[') return scan_array(&s, element, user);
    for (int64_t row = 1; s.at < len; row++) {
        const char *line = text + s.at, *stop = memchr(line, '\n', len - s.at);
        size_t n = stop ? (size_t)(stop - line) : len - s.at;
        if (!blank(line, n)) VLP_TRY(element(line, n, row, user));
        s.at += n + 1;
    }
    return VLP_OK;
}

vlp_status vlp_json_parse_repaired(vlp_json **out, const char *text, size_t len, const char *where,
                                   vlp_buf *scratch) {
    *out = NULL;
    vlp_buf_clear(scratch);
    VLP_TRY(vlp_buf_reserve(scratch, len + 1));
    for (size_t i = 0; i < len;) {
        size_t n = vlp_utf8_sequence(text + i, len - i);
        if (n == 0 || text[i] == '\0') {
            VLP_TRY(vlp_buf_puts(scratch, "\xEF\xBF\xBD"));
            i++;
        } else if (text[i] == '\\' && i + 1 < len) {
            bool nul = len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0;
            n = nul ? 6 : 1 + ((unsigned char)text[i + 1] < 0x80);
            VLP_TRY(vlp_buf_append(scratch, nul ? "\\ufffd" : text + i, n));
            i += n;
        } else {
            VLP_TRY(vlp_buf_append(scratch, text + i, n));
            i += n;
        }
    }
    return vlp_json_parse(out, scratch->data ? scratch->data : "", scratch->len, where);
}
