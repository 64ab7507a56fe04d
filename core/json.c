#include "core/json.h"

#include "core/file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The bytes of the whole number that text begins with; 0 when it has a fraction or an exponent, or
 * fits 64 bits. */
static size_t long_integer(const char *text, size_t len) {
    enum { FITS = 18 };
    size_t digits = 0;
    while (digits < len && text[digits] >= '0' && text[digits] <= '9') digits++;
    bool real = digits < len && text[digits] && strchr(".eE", text[digits]);
    return digits > FITS && !real ? digits : 0;
}

/* Appends text with an exponent behind every integer that may not fit 64 bits, which makes it a
 * real. */
static vlp_status widen_integers(vlp_buf *out, const char *text, size_t len) {
    bool inside = false; /* a string */
    for (size_t at = 0, size; at < len; at += size) {
        size_t digits = inside ? 0 : long_integer(text + at, len - at);
        bool number = !inside && text[at] >= '0' && text[at] <= '9';
        size = inside && text[at] == '\\' && at + 1 < len ? 2 : 1;
        if (text[at] == '"') inside = !inside;
        while (number && at + size < len && text[at + size] &&
               strchr(".eE+-0123456789", text[at + size]))
            size++;
        VLP_TRY(vlp_buf_append(out, text + at, size));
        if (digits) VLP_TRY(vlp_buf_puts(out, "e0"));
    }
    return VLP_OK;
}

static json_t *parse(const char *text, size_t len, json_error_t *error) {
    return json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
}

vlp_status vlp_json_parse(vlp_json **out, const char *text, size_t len, const char *where) {
    json_error_t error;
    *out = parse(text, len, &error);
    if (!*out && json_error_code(&error) == json_error_numeric_overflow) {
        vlp_buf wide = {0};
        vlp_status status = widen_integers(&wide, text, len);
        if (status == VLP_OK) *out = parse(wide.data, wide.len, &error);
        vlp_buf_free(&wide);
        if (status != VLP_OK) return status;
    }
    if (*out) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s:%d:%d: not valid JSON: %s", where, error.line, error.column,
                    error.text);
}

vlp_status vlp_json_load(vlp_json **out, const char *path) {
    *out = NULL;
    vlp_buf text = {0};
    vlp_status status = vlp_file_read(path, 0, &text);
    if (status == VLP_OK) status = vlp_json_parse(out, text.data, text.len, path);
    vlp_buf_free(&text);
    return status;
}

void vlp_json_free(vlp_json *value) {
    json_decref(value);
}

bool vlp_json_is_object(const vlp_json *value) {
    return json_is_object(value);
}

bool vlp_json_is_array(const vlp_json *value) {
    return json_is_array(value);
}

bool vlp_json_is_string(const vlp_json *value) {
    return json_is_string(value);
}

bool vlp_json_is_number(const vlp_json *value) {
    return json_is_number(value);
}

bool vlp_json_is_integer(const vlp_json *value) {
    return json_is_integer(value);
}

bool vlp_json_is_bool(const vlp_json *value) {
    return json_is_boolean(value);
}

bool vlp_json_is_null(const vlp_json *value) {
    return json_is_null(value);
}

vlp_json *vlp_json_key(const vlp_json *object, const char *key) {
    return json_object_get(object, key);
}

vlp_json *vlp_json_get(const vlp_json *object, const char *path) {
    const char *dot;
    while (object && (dot = strchr(path, '.'))) {
        char key[256];
        size_t n = (size_t)(dot - path);
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        object = json_object_get(object, key);
        path = dot + 1;
    }
    return json_object_get(object, path);
}

static const struct {
    bool (*is)(const vlp_json *value);
    const char *words;
} types[] = {
    [VLP_JSON_STRING] = {vlp_json_is_string, "a string"},
    [VLP_JSON_INTEGER] = {vlp_json_is_integer, "a whole number"},
    [VLP_JSON_NUMBER] = {vlp_json_is_number, "a number"},
    [VLP_JSON_BOOL] = {vlp_json_is_bool, "true or false"},
    [VLP_JSON_OBJECT] = {vlp_json_is_object, "an object"},
    [VLP_JSON_ARRAY] = {vlp_json_is_array, "a list"},
};

static vlp_status check_section(const vlp_json *object, const char *path, int n,
                                const char *where) {
    char section[256];
    if (n >= (int)sizeof section) return VLP_OK;
    snprintf(section, sizeof section, "%.*s", n, path);
    const vlp_json *value = vlp_json_get(object, section);
    if (!value || vlp_json_is_null(value) || vlp_json_is_object(value)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must be an object", where, section);
}

vlp_status vlp_json_expect(const vlp_json *object, const vlp_json_typed *keys, size_t n,
                           const char *where) {
    if (!vlp_json_is_object(object))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: a JSON object is wanted", where);
    for (size_t i = 0; i < n; i++) {
        const char *path = keys[i].path;
        for (const char *dot = path; (dot = strchr(dot, '.')); dot++)
            VLP_TRY(check_section(object, path, (int)(dot - path), where));
        const vlp_json *value = vlp_json_get(object, path);
        if (value && !vlp_json_is_null(value) && !types[keys[i].type].is(value))
            return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must be %s", where, path,
                            types[keys[i].type].words);
    }
    return VLP_OK;
}

size_t vlp_json_len(const vlp_json *array) {
    return json_array_size(array);
}

vlp_json *vlp_json_at(const vlp_json *array, size_t index) {
    return json_array_get(array, index);
}

const char *vlp_json_as_string(const vlp_json *value) {
    return json_is_string(value) ? json_string_value(value) : "";
}

int64_t vlp_json_as_int(const vlp_json *value) {
    if (json_is_integer(value)) return (int64_t)json_integer_value(value);
    double real = json_number_value(value);
    if (!(fabs(real) < 9.2e18)) return real > 0 ? INT64_MAX : real < 0 ? INT64_MIN : 0;
    return (int64_t)real;
}

double vlp_json_as_double(const vlp_json *value) {
    return json_number_value(value);
}

bool vlp_json_as_bool(const vlp_json *value) {
    return json_is_true(value);
}

const char *vlp_json_string(const vlp_json *object, const char *path, const char *fallback) {
    const vlp_json *value = vlp_json_get(object, path);
    return json_is_string(value) ? json_string_value(value) : fallback;
}

int64_t vlp_json_int(const vlp_json *object, const char *path, int64_t fallback) {
    const vlp_json *value = vlp_json_get(object, path);
    return json_is_number(value) ? vlp_json_as_int(value) : fallback;
}

double vlp_json_double(const vlp_json *object, const char *path, double fallback) {
    const vlp_json *value = vlp_json_get(object, path);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

bool vlp_json_bool(const vlp_json *object, const char *path, bool fallback) {
    const vlp_json *value = vlp_json_get(object, path);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

void *vlp_json_first(const vlp_json *object) {
    return json_object_iter((json_t *)(uintptr_t)object);
}

void *vlp_json_next(const vlp_json *object, void *iter) {
    return json_object_iter_next((json_t *)(uintptr_t)object, iter);
}

const char *vlp_json_iter_key(void *iter) {
    return json_object_iter_key(iter);
}

vlp_json *vlp_json_iter_value(void *iter) {
    return json_object_iter_value(iter);
}

vlp_json *vlp_json_new_object(void) {
    return json_object();
}

vlp_json *vlp_json_new_array(void) {
    return json_array();
}

/* The length of the well-formed UTF-8 sequence at s, or 0. */
static size_t utf8_sequence(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : 4;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return n;
}

vlp_json *vlp_json_new_string(const char *text) {
    json_t *value = json_string(text);
    if (value) return value;
    vlp_buf clean = {0};
    for (const char *p = text; *p;) {
        size_t n = utf8_sequence((const unsigned char *)p);
        vlp_status status = n ? vlp_buf_append(&clean, p, n) : vlp_buf_puts(&clean, "\xEF\xBF\xBD");
        if (status != VLP_OK) break;
        p += n ? n : 1;
    }
    value = json_string(clean.data ? clean.data : "");
    vlp_buf_free(&clean);
    return value;
}

vlp_json *vlp_json_new_int(int64_t value) {
    return json_integer(value);
}

vlp_json *vlp_json_new_double(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

vlp_json *vlp_json_new_bool(bool value) {
    return json_boolean(value);
}

vlp_json *vlp_json_copy(const vlp_json *value) {
    return json_deep_copy(value);
}

void vlp_json_set(vlp_json *object, const char *key, vlp_json *value) {
    json_object_set_new(object, key, value);
}

void vlp_json_set_string(vlp_json *object, const char *key, const char *text) {
    vlp_json_set(object, key, vlp_json_new_string(text));
}

void vlp_json_set_int(vlp_json *object, const char *key, int64_t value) {
    vlp_json_set(object, key, vlp_json_new_int(value));
}

void vlp_json_set_double(vlp_json *object, const char *key, double value) {
    vlp_json_set(object, key, vlp_json_new_double(value));
}

void vlp_json_set_bool(vlp_json *object, const char *key, bool value) {
    vlp_json_set(object, key, vlp_json_new_bool(value));
}

void vlp_json_append(vlp_json *array, vlp_json *value) {
    json_array_append_new(array, value);
}

void vlp_json_remove(vlp_json *object, const char *key) {
    json_object_del(object, key);
}

/* jansson ignores a callback's failure for keys, so the failure is kept here. */
typedef struct {
    vlp_buf *buf;
    vlp_status status;
} dump_state;

static int append_text(const char *text, size_t len, void *user) {
    dump_state *state = user;
    if (state->status == VLP_OK) state->status = vlp_buf_append(state->buf, text, len);
    return state->status == VLP_OK ? 0 : -1;
}

vlp_status vlp_json_dump(const vlp_json *value, int indent, vlp_buf *buf) {
    size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) |
                   (indent ? (size_t)JSON_INDENT((size_t)indent) : JSON_COMPACT);
    dump_state state = {buf, VLP_OK};
    if (!value || json_dump_callback(value, append_text, &state, flags) != 0 || state.status)
        return VLP_FAIL(VLP_ERR_MEMORY, "out of memory while writing JSON");
    return VLP_OK;
}

vlp_status vlp_json_save(const vlp_json *value, const char *path) {
    vlp_buf text = {0};
    vlp_status status = vlp_json_dump(value, 2, &text);
    if (status == VLP_OK) status = vlp_buf_puts(&text, "\n");
    if (status == VLP_OK) status = vlp_file_write(path, text.data, text.len);
    vlp_buf_free(&text);
    return status;
}

const char *vlp_json_version(void) {
    return jansson_version_str();
}
