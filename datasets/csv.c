#include "datasets/csv.h"

#include <string.h>

void vlp_csv_open(vlp_csv *csv, const char *text, size_t len, char delimiter) {
    *csv =
        (vlp_csv){.text = text, .len = len, .delimiter = delimiter, .quotes = true, .next_line = 1};
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) csv->at = 3;
}

void vlp_csv_close(vlp_csv *csv) {
    vlp_buf_free(&csv->record);
    vlp_free(csv->starts);
    vlp_free(csv->lens);
    *csv = (vlp_csv){0};
}

static vlp_status begin_field(vlp_csv *csv) {
    if (csv->fields == csv->capacity) {
        size_t capacity = csv->capacity ? 2 * csv->capacity : 16;
        size_t *starts = vlp_realloc(csv->starts, capacity * sizeof *starts);
        if (!starts) return VLP_ERR_MEMORY;
        csv->starts = starts;
        size_t *lens = vlp_realloc(csv->lens, capacity * sizeof *lens);
        if (!lens) return VLP_ERR_MEMORY;
        csv->lens = lens;
        csv->capacity = capacity;
    }
    csv->starts[csv->fields++] = csv->record.len;
    return VLP_OK;
}

static vlp_status end_field(vlp_csv *csv) {
    csv->lens[csv->fields - 1] = csv->record.len - csv->starts[csv->fields - 1];
    return vlp_buf_append(&csv->record, "", 1);
}

static bool at_end_of_line(const vlp_csv *csv, size_t at) {
    return at >= csv->len || csv->text[at] == '\n' ||
           (csv->text[at] == '\r' && (at + 1 == csv->len || csv->text[at + 1] == '\n'));
}

static size_t skip_blanks(const vlp_csv *csv, size_t at) {
    while (at < csv->len && csv->text[at] == ' ' && csv->delimiter != ' ') at++;
    return at;
}

/* at is behind the opening quote; moves it behind the closing one. False when there is none. */
static vlp_status quoted(vlp_csv *csv, size_t *at, size_t limit, bool *closed) {
    *closed = false;
    while (*at < limit) {
        const char *quote = memchr(csv->text + *at, '"', limit - *at);
        size_t stop = quote ? (size_t)(quote - csv->text) : limit;
        VLP_TRY(vlp_buf_append(&csv->record, csv->text + *at, stop - *at));
        *at = stop;
        if (!quote) return VLP_OK;
        *at = stop + 1;
        if (*at >= csv->len || csv->text[*at] != '"') {
            *closed = true;
            return VLP_OK;
        }
        VLP_TRY(vlp_buf_append(&csv->record, "\"", 1));
        ++*at;
    }
    return VLP_OK;
}

/* Up to the delimiter or the end of the line, without blanks at the end. */
static vlp_status unquoted(vlp_csv *csv, size_t *at) {
    size_t start = *at;
    while (!at_end_of_line(csv, *at) && csv->text[*at] != csv->delimiter) ++*at;
    size_t end = *at;
    while (end > start && csv->text[end - 1] == ' ') end--;
    return vlp_buf_append(&csv->record, csv->text + start, end - start);
}

static vlp_status read_record(vlp_csv *csv, size_t start, size_t *end, const char **bad) {
    size_t limit = csv->len - start > VLP_CSV_RECORD_MAX ? start + VLP_CSV_RECORD_MAX : csv->len;
    size_t at = start;
    while (true) {
        VLP_TRY(begin_field(csv));
        at = skip_blanks(csv, at);
        bool closed = true;
        if (csv->quotes && at < csv->len && csv->text[at] == '"') {
            at++;
            VLP_TRY(quoted(csv, &at, limit, &closed));
        }
        if (!closed) *bad = "a quote is not closed";
        if (csv->fields > VLP_CSV_FIELDS_MAX) *bad = "too many fields";
        if (*bad) return VLP_OK;
        VLP_TRY(unquoted(csv, &at));
        VLP_TRY(end_field(csv));
        if (at_end_of_line(csv, at)) break;
        at++; /* the delimiter */
    }
    *end = at;
    return VLP_OK;
}

static size_t past_line(const vlp_csv *csv, size_t at) {
    const char *stop = at < csv->len ? memchr(csv->text + at, '\n', csv->len - at) : NULL;
    return stop ? (size_t)(stop - csv->text) + 1 : csv->len;
}

vlp_status vlp_csv_next(vlp_csv *csv, bool *more, const char **bad) {
    *bad = NULL;
    while (csv->at < csv->len && at_end_of_line(csv, csv->at)) {
        csv->at = past_line(csv, csv->at);
        csv->next_line++;
    }
    *more = csv->at < csv->len;
    if (!*more) return VLP_OK;
    csv->fields = 0;
    vlp_buf_clear(&csv->record);
    csv->line = csv->next_line;
    size_t start = csv->at, end = start;
    VLP_TRY(read_record(csv, start, &end, bad));
    if (*bad) {
        csv->fields = 0;
        end = start;
    }
    csv->at = past_line(csv, end);
    csv->next_line++;
    for (const char *p = csv->text + start, *stop = csv->text + end; p < stop; p++) {
        p = memchr(p, '\n', (size_t)(stop - p));
        if (!p) break;
        csv->next_line++;
    }
    return VLP_OK;
}

const char *vlp_csv_field(const vlp_csv *csv, size_t index) {
    return index < csv->fields ? csv->record.data + csv->starts[index] : "";
}

size_t vlp_csv_field_len(const vlp_csv *csv, size_t index) {
    return index < csv->fields ? csv->lens[index] : 0;
}

char vlp_csv_delimiter(const char *text, size_t len) {
    static const char kinds[] = "\t,;|";
    int counts[sizeof kinds] = {0};
    bool inside = false;
    for (size_t i = 0; i < len && (inside || text[i] != '\n'); i++) {
        if (text[i] == '"') inside = !inside;
        const char *kind = inside || !text[i] ? NULL : strchr(kinds, text[i]);
        if (kind) counts[kind - kinds]++;
    }
    int best = 0;
    for (int k = 1; k < 4; k++)
        if (counts[k] > counts[best]) best = k;
    return counts[best] ? kinds[best] : '\0';
}
