#include "core/suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 255 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment distance; gives up with limit + 1 once it must exceed limit. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb, size_t limit) {
    size_t rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++) last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t best = row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = least(d, least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = least(d, before[j - 2] + 1);
            row[j] = d;
            best = least(best, d);
        }
        if (best > limit) return limit + 1;
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

const char *vlp_suggest(const char *wanted, const char *const *known, size_t n) {
    size_t len = strlen(wanted);
    const char *nearest = NULL;
    if (len > LONGEST) return NULL;
    size_t limit = len < 3 ? 1 : len / 3; /* the most that is still a suggestion */
    for (size_t i = 0; i < n; i++) {
        size_t other = known[i] ? strlen(known[i]) : SIZE_MAX;
        if (other > LONGEST || other > len + limit || len > other + limit) continue;
        size_t d = distance(wanted, len, known[i], other, limit);
        if (d > limit) continue;
        nearest = known[i];
        if (d == 0) break;
        limit = d - 1;
    }
    return nearest;
}

const char *vlp_suggest_text(const char *wanted, const char *const *known, size_t n, char *out,
                             size_t size) {
    const char *near = vlp_suggest(wanted, known, n);
    int len = near ? snprintf(out, size, "; did you mean \"%s\"?", near) : 0;
    if (len <= 0 || (size_t)len >= size) out[0] = '\0';
    return out;
}
