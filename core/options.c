#include "core/options.h"

#include "core/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 256 };

static const vlp_option *find(vlp_options table, const char *key) {
    for (size_t i = 0; i < table.count; i++)
        if (strcmp(table.rows[i].key, key) == 0) return &table.rows[i];
    return NULL;
}

static vlp_status unknown(vlp_options table, const char *key, const char *where) {
    const char *known[MAX_KEYS];
    size_t n = table.count < MAX_KEYS ? table.count : MAX_KEYS;
    for (size_t i = 0; i < n; i++) known[i] = table.rows[i].key;
    const char *nearest = vlp_suggest(key, known, n);
    if (nearest)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: unknown key \"%s\"; did you mean \"%s\"?", where, key,
                        nearest);
    return VLP_FAIL(VLP_ERR_USAGE, "%s: unknown key \"%s\"", where, key);
}

static void *field(const vlp_option *row, const void *target) {
    return (char *)(uintptr_t)target + row->offset;
}

static vlp_status set_number(const vlp_option *row, void *target, double value, const char *where) {
    bool bounded = row->least != 0 || row->most != 0;
    if (!isfinite(value) || (bounded && (value < row->least || value > row->most)))
        return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is %g; it must lie between %g and %g", where,
                        row->key, value, row->least, row->most);
    if (row->type == VLP_OPTION_DOUBLE) {
        *(double *)field(row, target) = value;
        return VLP_OK;
    }
    if (value != floor(value) || fabs(value) > 9e15)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is %g; it must be a whole number", where, row->key,
                        value);
    *(int64_t *)field(row, target) = (int64_t)value;
    return VLP_OK;
}

static vlp_status parse_number(const vlp_option *row, void *target, const char *text,
                               const char *where) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is \"%s\"; it must be a number", where, row->key,
                        text);
    return set_number(row, target, value, where);
}

static vlp_status parse_bool(const vlp_option *row, void *target, const char *text,
                             const char *where) {
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < VLP_COUNT(yes); i++) {
        if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0) continue;
        *(bool *)field(row, target) = strcmp(text, yes[i]) == 0;
        return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is \"%s\"; it must be true or false", where, row->key,
                    text);
}

static vlp_status parse_choice(const vlp_option *row, void *target, const char *text,
                               const char *where) {
    char all[256] = "";
    for (int i = 0; row->choices[i]; i++) {
        if (strcmp(text, row->choices[i]) == 0) {
            *(int *)field(row, target) = i;
            return VLP_OK;
        }
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", row->choices[i]);
    }
    return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is \"%s\"; it must be one of %s", where, row->key, text,
                    all);
}

static vlp_status parse_text(const vlp_option *row, void *target, const char *text,
                             const char *where) {
    if (strlen(text) >= VLP_OPTION_TEXT_BYTES)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: %s is longer than %d bytes", where, row->key,
                        VLP_OPTION_TEXT_BYTES - 1);
    strcpy(field(row, target), text);
    return VLP_OK;
}

static vlp_status parse(const vlp_option *row, void *target, const char *text, const char *where) {
    static vlp_status (*const parsers[])(const vlp_option *, void *, const char *, const char *) = {
        [VLP_OPTION_INT] = parse_number, [VLP_OPTION_DOUBLE] = parse_number,
        [VLP_OPTION_BOOL] = parse_bool,  [VLP_OPTION_CHOICE] = parse_choice,
        [VLP_OPTION_TEXT] = parse_text,
    };
    return parsers[row->type](row, target, text, where);
}

void vlp_options_defaults(vlp_options table, void *target) {
    for (size_t i = 0; i < table.count; i++) {
        vlp_status status = parse(&table.rows[i], target, table.rows[i].fallback, "default");
        VLP_ASSERT(status == VLP_OK, "%s", vlp_error());
    }
}

vlp_status vlp_options_set(vlp_options table, void *target, const char *key, const char *value,
                           const char *where) {
    const vlp_option *row = find(table, key);
    return row ? parse(row, target, value, where) : unknown(table, key, where);
}

static vlp_status read_value(const vlp_option *row, void *target, const vlp_json *value,
                             const char *where) {
    bool number = row->type == VLP_OPTION_INT || row->type == VLP_OPTION_DOUBLE;
    if (number && vlp_json_is_number(value))
        return set_number(row, target, vlp_json_as_double(value), where);
    if (row->type == VLP_OPTION_BOOL && vlp_json_is_bool(value)) {
        *(bool *)field(row, target) = vlp_json_as_bool(value);
        return VLP_OK;
    }
    if (!number && row->type != VLP_OPTION_BOOL && vlp_json_is_string(value))
        return parse(row, target, vlp_json_as_string(value), where);
    static const char *const wanted[] = {"a whole number", "a number", "true or false", "a string",
                                         "a string"};
    return VLP_FAIL(VLP_ERR_USAGE, "%s: \"%s\" must be %s", where, row->key, wanted[row->type]);
}

static vlp_status read_members(vlp_options table, void *target, const vlp_json *object,
                               const char *prefix, const char *where) {
    for (void *it = vlp_json_first(object); it; it = vlp_json_next(object, it)) {
        char key[VLP_OPTION_TEXT_BYTES];
        int n = snprintf(key, sizeof key, "%s%s", prefix, vlp_json_iter_key(it));
        if (n < 0 || (size_t)n + 2 > sizeof key)
            return VLP_FAIL(VLP_ERR_USAGE, "%s: the key \"%.60s...\" is too long", where, key);
        const vlp_json *value = vlp_json_iter_value(it);
        if (vlp_json_is_object(value)) {
            strcat(key, ".");
            VLP_TRY(read_members(table, target, value, key, where));
            continue;
        }
        const vlp_option *row = find(table, key);
        if (!row) return unknown(table, key, where);
        VLP_TRY(read_value(row, target, value, where));
    }
    return VLP_OK;
}

vlp_status vlp_options_read(vlp_options table, void *target, const vlp_json *object,
                            const char *where) {
    if (!vlp_json_is_object(object))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: a JSON object is wanted", where);
    return read_members(table, target, object, "", where);
}

/* "vision_config.width": "vision_config" must be an object where it is given. */
static vlp_status check_sections(const vlp_json *object, const char *key, const char *where) {
    char section[VLP_OPTION_TEXT_BYTES];
    for (const char *dot = key; (dot = strchr(dot, '.')); dot++) {
        snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
        VLP_TRY(vlp_json_expect(object, &(vlp_json_typed){section, VLP_JSON_OBJECT}, 1, where));
    }
    return VLP_OK;
}

vlp_status vlp_options_pick(vlp_options table, void *target, const vlp_json *object,
                            const char *where) {
    if (!vlp_json_is_object(object))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: a JSON object is wanted", where);
    for (size_t i = 0; i < table.count; i++) {
        VLP_TRY(check_sections(object, table.rows[i].key, where));
        const vlp_json *value = vlp_json_get(object, table.rows[i].key);
        if (value && !vlp_json_is_null(value))
            VLP_TRY(read_value(&table.rows[i], target, value, where));
    }
    return VLP_OK;
}

static vlp_json *value_of(const vlp_option *row, const void *target) {
    const void *at = field(row, target);
    switch (row->type) {
    case VLP_OPTION_INT:
        return vlp_json_new_int(*(const int64_t *)at);
    case VLP_OPTION_DOUBLE:
        return vlp_json_new_double(*(const double *)at);
    case VLP_OPTION_BOOL:
        return vlp_json_new_bool(*(const bool *)at);
    case VLP_OPTION_CHOICE:
        return vlp_json_new_string(row->choices[*(const int *)at]);
    case VLP_OPTION_TEXT:
        return vlp_json_new_string(at);
    }
    return NULL;
}

vlp_json *vlp_options_write(vlp_options table, const void *target) {
    vlp_json *root = vlp_json_new_object();
    for (size_t i = 0; i < table.count; i++) {
        const vlp_option *row = &table.rows[i];
        vlp_json *object = root;
        const char *key = row->key, *dot;
        while ((dot = strchr(key, '.'))) {
            char section[VLP_OPTION_TEXT_BYTES];
            snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
            if (!vlp_json_key(object, section))
                vlp_json_set(object, section, vlp_json_new_object());
            object = vlp_json_key(object, section);
            key = dot + 1;
        }
        vlp_json_set(object, key, value_of(row, target));
    }
    return root;
}

vlp_status vlp_options_help(vlp_options table, vlp_buf *out) {
    for (size_t i = 0; i < table.count; i++)
        VLP_TRY(vlp_buf_printf(out, "  %-28s %-10s %s\n", table.rows[i].key,
                               *table.rows[i].fallback ? table.rows[i].fallback : "-",
                               table.rows[i].help));
    return VLP_OK;
}
