#include "datasets/filter.h"

#include "core/suggest.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LEN = 64 };

typedef enum { AS_TEXT, AS_NUMBER, AS_FOLDER, AS_CAPTION } column_kind;

static const struct {
    const char *name, *sql;
    column_kind kind;
} columns[] = {
    {"path", "i.path", AS_TEXT},
    {"split", "i.split", AS_TEXT},
    {"label", "i.label", AS_TEXT},
    {"source", "(SELECT name FROM sources WHERE id=i.source_id)", AS_TEXT},
    {"width", "i.width", AS_NUMBER},
    {"height", "i.height", AS_NUMBER},
    {"bytes", "i.size", AS_NUMBER},
    {"folder", "i.path", AS_FOLDER},
    {"caption", "text", AS_CAPTION},
};

static const struct {
    const char *text, *sql;
    bool ordered, contains;
} operators[] = {
    {"<=", "<=", true, false}, {">=", ">=", true, false}, {"!=", "IS NOT", false, false},
    {"==", "=", false, false}, {"=", "=", false, false},  {"<", "<", true, false},
    {">", ">", true, false},   {"~", "", false, true},
};

typedef struct {
    const char *at, *text;
    vlp_filter *out;
} parser;

static vlp_status wrong(const parser *p, const char *what) {
    return VLP_FAIL(VLP_ERR_USAGE,
                    "--where \"%s\": %s at \"%.20s\"; write for instance split=test"
                    " and width>=640",
                    p->text, what, p->at);
}

static void skip_blanks(parser *p) {
    while (isspace((unsigned char)*p->at)) p->at++;
}

static vlp_status read_name(parser *p, char name[NAME_MAX_LEN]) {
    skip_blanks(p);
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_') n++;
    if (n == 0 || n >= NAME_MAX_LEN) return wrong(p, "no name");
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    return VLP_OK;
}

static vlp_status read_operator(parser *p, size_t *op) {
    skip_blanks(p);
    for (*op = 0; *op < VLP_COUNT(operators); ++*op) {
        size_t n = strlen(operators[*op].text);
        if (strncmp(p->at, operators[*op].text, n) != 0) continue;
        p->at += n;
        return VLP_OK;
    }
    return wrong(p, "none of = != < <= > >= ~");
}

/* The next value, as parameter number *index. */
static vlp_status read_value(parser *p, int *index, const char *before, const char *after) {
    vlp_filter *out = p->out;
    skip_blanks(p);
    char quote = *p->at == '"' || *p->at == '\'' ? *p->at++ : '\0';
    size_t n = 0;
    while (p->at[n] && (quote ? p->at[n] != quote : !isspace((unsigned char)p->at[n]))) n++;
    if (quote && !p->at[n]) return wrong(p, "a quote is not closed");
    if (!quote && n == 0) return wrong(p, "no value");
    if (out->count == VLP_FILTER_MAX) return wrong(p, "too many terms");
    out->starts[out->count] = out->values.len;
    VLP_TRY(vlp_buf_puts(&out->values, before));
    VLP_TRY(vlp_buf_append(&out->values, p->at, n));
    VLP_TRY(vlp_buf_append(&out->values, after, strlen(after) + 1));
    p->at += n + (quote != 0);
    *index = out->first + out->count++;
    return VLP_OK;
}

static vlp_status folder_term(parser *p, size_t op) {
    skip_blanks(p);
    bool quoted = *p->at == '"' || *p->at == '\'', absolute = p->at[quoted] == '/';
    int index;
    VLP_TRY(read_value(p, &index, absolute ? "" : "/", "/"));
    if (strcmp(operators[op].sql, "=") != 0 && !operators[op].contains)
        return wrong(p, "folder knows = only, before");
    return vlp_buf_printf(&p->out->sql, absolute ? "instr(i.path, ?%d)=1" : "instr(i.path, ?%d)>0",
                          index);
}

static bool is_number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    return end != text && !*end && isfinite(value);
}

static vlp_status plain_term(parser *p, size_t op, const char *sql, bool number) {
    int index;
    VLP_TRY(read_value(p, &index, "", ""));
    if (operators[op].contains)
        return vlp_buf_printf(&p->out->sql, "instr(lower(%s), lower(?%d))>0", sql, index);
    bool as_number = number || operators[op].ordered;
    if (as_number && !is_number(p->out->values.data + p->out->starts[p->out->count - 1]))
        return wrong(p, "a number is wanted before");
    return vlp_buf_printf(&p->out->sql,
                          as_number ? "CAST(%s AS REAL) %s CAST(?%d AS REAL)"
                                    : "CAST(%s AS TEXT) %s ?%d",
                          sql, operators[op].sql, index);
}

static vlp_status caption_term(parser *p, size_t op) {
    VLP_TRY(vlp_buf_puts(&p->out->sql, "EXISTS(SELECT 1 FROM captions WHERE image_id=i.id AND "));
    VLP_TRY(plain_term(p, op, "text", false));
    return vlp_buf_puts(&p->out->sql, ")");
}

static vlp_status term(parser *p) {
    char name[NAME_MAX_LEN], field[NAME_MAX_LEN + 40];
    size_t op;
    VLP_TRY(read_name(p, name));
    VLP_TRY(read_operator(p, &op));
    for (size_t c = 0; c < VLP_COUNT(columns); c++) {
        if (strcasecmp(name, columns[c].name) != 0) continue;
        if (columns[c].kind == AS_FOLDER) return folder_term(p, op);
        if (columns[c].kind == AS_CAPTION) return caption_term(p, op);
        return plain_term(p, op, columns[c].sql, columns[c].kind == AS_NUMBER);
    }
    VLP_TRY(vlp_buf_append(&p->out->fields, name, strlen(name) + 1));
    snprintf(field, sizeof field, "json_extract(i.fields, '$.%s')", name);
    return plain_term(p, op, field, false);
}

static vlp_status terms(parser *p) {
    skip_blanks(p);
    if (!*p->at) return vlp_buf_puts(&p->out->sql, "1");
    while (true) {
        VLP_TRY(term(p));
        skip_blanks(p);
        if (!*p->at) return VLP_OK;
        if (strncasecmp(p->at, "and", 3) != 0 || !isspace((unsigned char)p->at[3]))
            return wrong(p, "no \"and\"");
        p->at += 3;
        VLP_TRY(vlp_buf_puts(&p->out->sql, " AND "));
    }
}

vlp_status vlp_filter_parse(vlp_filter *out, const char *text, int first) {
    *out = (vlp_filter){.first = first};
    parser p = {text ? text : "", text ? text : "", out};
    vlp_status status = terms(&p);
    if (status != VLP_OK) vlp_filter_free(out);
    return status;
}

enum { NAMES_MAX = 64 };

/* The columns, and the fields that the first ten thousand images with any have. */
static vlp_status unknown(vlp_db *db, const char *name) {
    const char *known[VLP_COUNT(columns) + NAMES_MAX];
    size_t n = 0;
    vlp_buf names = {0};
    vlp_stmt *stmt = NULL;
    char hint[128];
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_stmt_new(&stmt, db,
                              "SELECT group_concat(key, x'00') FROM (SELECT DISTINCT j.key FROM"
                              " (SELECT fields FROM images WHERE fields IS NOT NULL LIMIT 10000) f,"
                              " json_each(f.fields) j LIMIT 64)"));
    bool row;
    VLP_TRY_DONE(vlp_stmt_step(stmt, &row));
    int64_t len;
    const char *text = vlp_column_text(stmt, 0, &len);
    VLP_TRY_DONE(vlp_buf_append(&names, text, (size_t)len));
    VLP_TRY_DONE(vlp_buf_append(&names, "", 1));
    for (size_t c = 0; c < VLP_COUNT(columns); c++) known[n++] = columns[c].name;
    for (size_t at = 0; at < (size_t)len && n < VLP_COUNT(known); at += strlen(names.data + at) + 1)
        known[n++] = names.data + at;
    status =
        VLP_FAIL(VLP_ERR_USAGE,
                 "--where: no image has a field \"%s\"%s; known are path, folder, split, label,"
                 " source, width, height, bytes, caption and the source's other columns",
                 name, vlp_suggest_text(name, known, n, hint, sizeof hint));
done:
    vlp_stmt_free(stmt);
    vlp_buf_free(&names);
    return status;
}

vlp_status vlp_filter_check(const vlp_filter *filter, vlp_db *db) {
    for (size_t at = 0; at < filter->fields.len;) {
        const char *name = filter->fields.data + at;
        char sql[256];
        int64_t there;
        snprintf(sql, sizeof sql,
                 "SELECT EXISTS(SELECT 1 FROM images WHERE json_type(fields, '$.%s') IS NOT NULL)",
                 name);
        VLP_TRY(vlp_db_int(db, sql, &there));
        if (!there) return unknown(db, name);
        at += strlen(name) + 1;
    }
    return VLP_OK;
}

void vlp_filter_bind(const vlp_filter *filter, vlp_stmt *stmt) {
    for (int i = 0; i < filter->count; i++)
        vlp_bind_text(stmt, filter->first + i, filter->values.data + filter->starts[i], -1);
}

void vlp_filter_free(vlp_filter *filter) {
    vlp_buf_free(&filter->sql);
    vlp_buf_free(&filter->values);
    vlp_buf_free(&filter->fields);
    *filter = (vlp_filter){0};
}
