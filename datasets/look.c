#include "datasets/look.h"

#include <stdlib.h>

enum { ACROSS = 9, DOWN = 8, FLAT = 6, WINDOW = 64, QUARTERS = 4 };

void vlp_look_scratch_free(vlp_look_scratch *scratch) {
    vlp_image_free(&scratch->small);
    vlp_resize_scratch_free(&scratch->resize);
}

vlp_status vlp_look(uint64_t *out, const vlp_image *image, vlp_look_scratch *scratch) {
    vlp_resize_options options = {.width = ACROSS, .height = DOWN, .filter = VLP_RESIZE_BOX};
    vlp_image_view view = vlp_image_view_of(image);
    *out = 0;
    VLP_TRY(vlp_resize(&scratch->small, &view, &options, &scratch->resize));
    for (int y = 0; y < DOWN; y++) {
        int before = 0;
        for (int x = 0; x < ACROSS; x++) {
            const uint8_t *p = scratch->small.pixels + 3 * (y * ACROSS + x);
            int grey = 299 * p[0] + 587 * p[1] + 114 * p[2];
            if (x > 0) *out = *out << 1 | (grey > before + 500); /* half a grey: noise is no edge */
            before = grey;
        }
    }
    return VLP_OK;
}

typedef struct {
    uint64_t look;
    int64_t id;
} seen;

typedef struct {
    seen *all;
    int64_t n, capacity;
    vlp_stmt *pair;
    vlp_look_report *report;
    vlp_json *examples;
    int most;
} finder;

/* Each quarter in turn comes first, so that sorting brings together those that share it. */
static uint64_t rotated(uint64_t look, int quarter) {
    int bits = 16 * quarter;
    return bits ? look << bits | look >> (64 - bits) : look;
}

static int by_look(const void *a, const void *b) {
    const seen *x = a, *y = b;
    if (x->look != y->look) return x->look < y->look ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static vlp_status collect(finder *f, vlp_db *db) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db,
                         "SELECT look, min(id) FROM images WHERE state=1 AND look IS NOT NULL"
                         " GROUP BY hash"));
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        uint64_t look = (uint64_t)vlp_column_int(stmt, 0);
        int ones = __builtin_popcountll(look);
        if (ones < FLAT || ones > 64 - FLAT) continue;
        if (f->n == f->capacity) {
            f->capacity = f->capacity ? 2 * f->capacity : 1024;
            seen *all = vlp_realloc(f->all, (size_t)f->capacity * sizeof *all);
            if (!all) {
                status = VLP_ERR_MEMORY;
                break;
            }
            f->all = all;
        }
        f->all[f->n++] = (seen){look, vlp_column_int(stmt, 1)};
    }
    vlp_stmt_free(stmt);
    f->report->images = f->n;
    return status;
}

static vlp_status count_pair(finder *f, int64_t a, int64_t b) {
    f->report->pairs++;
    vlp_bind_int(f->pair, 1, a);
    vlp_bind_int(f->pair, 2, b);
    bool row;
    VLP_TRY(vlp_stmt_step(f->pair, &row));
    if (!row) return VLP_OK;
    f->report->crossed += vlp_column_int(f->pair, 2) != 0;
    if ((int)vlp_json_len(f->examples) < f->most) {
        vlp_json *pair = vlp_json_new_array();
        vlp_json_append(pair, vlp_json_new_string(vlp_column_text(f->pair, 0, NULL)));
        vlp_json_append(pair, vlp_json_new_string(vlp_column_text(f->pair, 1, NULL)));
        vlp_json_append(f->examples, pair);
    }
    vlp_stmt_reset(f->pair);
    return VLP_OK;
}

/* A pair that shares several quarters is counted at the first. */
static bool counted_before(uint64_t a, uint64_t b, int quarter) {
    for (int q = 0; q < quarter; q++)
        if (rotated(a, q) >> 48 == rotated(b, q) >> 48) return true;
    return false;
}

static vlp_status compare_quarter(finder *f, int quarter) {
    for (int64_t i = 0; i < f->n; i++) f->all[i].look = rotated(f->all[i].look, quarter);
    if (f->n < 2) return VLP_OK;
    qsort(f->all, (size_t)f->n, sizeof *f->all, by_look);
    vlp_status status = VLP_OK;
    for (int64_t i = 0; i < f->n; i++) {
        for (int64_t j = i + 1; j < f->n && j - i <= WINDOW && status == VLP_OK; j++) {
            uint64_t a = f->all[i].look, b = f->all[j].look;
            if (a >> 48 != b >> 48) break;
            if (__builtin_popcountll(a ^ b) > VLP_LOOK_NEAR) continue;
            int back = (QUARTERS - quarter) % QUARTERS;
            if (!counted_before(rotated(a, back), rotated(b, back), quarter))
                status = count_pair(f, f->all[i].id, f->all[j].id);
        }
    }
    for (int64_t i = 0; i < f->n; i++)
        f->all[i].look = rotated(f->all[i].look, (QUARTERS - quarter) % QUARTERS);
    return status;
}

vlp_status vlp_look_near(const vlp_index *index, int most, vlp_look_report *report,
                         vlp_json *examples) {
    *report = (vlp_look_report){0};
    finder f = {.report = report, .examples = examples, .most = most};
    vlp_db *db = vlp_index_db(index);
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(collect(&f, db));
    VLP_TRY_DONE(vlp_stmt_new(&f.pair, db,
                              "SELECT a.path, b.path, a.split<>b.split FROM images a, images b"
                              " WHERE a.id=?1 AND b.id=?2"));
    for (int q = 0; q < QUARTERS; q++) VLP_TRY_DONE(compare_quarter(&f, q));
done:
    vlp_stmt_free(f.pair);
    vlp_free(f.all);
    return status;
}
