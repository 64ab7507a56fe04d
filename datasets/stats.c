#include "core/memory.h"
#include "datasets/caption.h"
#include "datasets/import.h"

#include "datasets/look.h"

#include <stdio.h>
#include <string.h>

/* Values 0 .. LIMIT are counted one by one, larger ones at LIMIT: medians without sorting. */
enum { LIMIT = VLP_CAPTION_MAX };

typedef struct {
    int64_t *counts; /* [LIMIT + 1] */
    int64_t n, sum, min, max;
} histogram;

static void histogram_add(histogram *h, int64_t value) {
    h->counts[value < 0 ? 0 : value > LIMIT ? LIMIT : value]++;
    h->min = h->n == 0 || value < h->min ? value : h->min;
    h->max = h->n == 0 || value > h->max ? value : h->max;
    h->sum += value;
    h->n++;
}

static int64_t quantile(const histogram *h, double share) {
    int64_t want = (int64_t)(share * (double)(h->n - 1)), seen = 0;
    for (int64_t value = 0; value <= LIMIT; value++) {
        seen += h->counts[value];
        if (seen > want) return value;
    }
    return 0;
}

/* How many fall below 8, 16, 32, ...: names of the first bucket to the last that holds any. */
static vlp_json *buckets_json(const histogram *h) {
    vlp_json *json = vlp_json_new_object();
    int64_t from = 0;
    for (int64_t below = 8; from <= h->max && from <= LIMIT; from = below, below *= 2) {
        int64_t n = 0;
        for (int64_t value = from; value < below && value <= LIMIT; value++) n += h->counts[value];
        char name[48];
        snprintf(name, sizeof name, "%lld-%lld", (long long)from, (long long)below - 1);
        if (n || below > h->min) vlp_json_set_int(json, name, n);
    }
    return json;
}

static vlp_json *histogram_json(const histogram *h) {
    vlp_json *json = vlp_json_new_object();
    if (h->n == 0) return json;
    vlp_json_set_int(json, "min", h->min);
    vlp_json_set_double(json, "mean", (double)h->sum / (double)h->n);
    vlp_json_set_int(json, "median", quantile(h, 0.5));
    vlp_json_set_int(json, "p99", quantile(h, 0.99));
    vlp_json_set_int(json, "max", h->max);
    vlp_json_set(json, "histogram", buckets_json(h));
    return json;
}

static const struct {
    uint32_t first, last;
    const char *name;
} scripts[] = {
    {'A', 'Z', "Latin"},          {'a', 'z', "Latin"},        {0xC0, 0x24F, "Latin"},
    {0x370, 0x3FF, "Greek"},      {0x400, 0x52F, "Cyrillic"}, {0x590, 0x5FF, "Hebrew"},
    {0x600, 0x77F, "Arabic"},     {0xFB50, 0xFDFF, "Arabic"}, {0xFE70, 0xFEFC, "Arabic"},
    {0x900, 0x97F, "Devanagari"}, {0x980, 0x9FF, "Bengali"},  {0xB80, 0xBFF, "Tamil"},
    {0xE00, 0xE7F, "Thai"},       {0x1100, 0x11FF, "Hangul"}, {0xAC00, 0xD7AF, "Hangul"},
    {0x3040, 0x30FF, "Kana"},     {0x3400, 0x4DBF, "Han"},    {0x4E00, 0x9FFF, "Han"},
    {0x20000, 0x2FA1F, "Han"},    {0x2600, 0x27BF, "Emoji"},  {0x1F300, 0x1FAFF, "Emoji"},
};

static uint32_t code_point(const char *s, size_t n) {
    const unsigned char *u = (const unsigned char *)s;
    if (n == 1) return u[0];
    uint32_t c = u[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) c = c << 6 | (u[i] & 0x3F);
    return c;
}

/* Length in characters; *script is the row of `scripts` that most letters fall in, -1 = none. */
static int64_t look_at_caption(const char *text, int64_t len, int *script) {
    int counts[VLP_COUNT(scripts)] = {0};
    int64_t characters = 0;
    for (int64_t i = 0; i < len; characters++) {
        size_t n = vlp_utf8_sequence(text + i, (size_t)(len - i));
        uint32_t c = n ? code_point(text + i, n) : 0;
        i += n ? (int64_t)n : 1;
        for (size_t s = 0; s < VLP_COUNT(scripts); s++)
            if (c >= scripts[s].first && c <= scripts[s].last) counts[s]++;
    }
    *script = -1;
    for (int s = 0; s < (int)VLP_COUNT(scripts); s++)
        if (counts[s] > (*script < 0 ? 0 : counts[*script])) *script = s;
    return characters;
}

static void bump(vlp_json *object, const char *key, int64_t by) {
    vlp_json_set_int(object, key, vlp_json_as_int(vlp_json_key(object, key)) + by);
}

static vlp_status caption_stats(vlp_db *db, histogram *h, vlp_json *out) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT text FROM captions"));
    int64_t by_script[VLP_COUNT(scripts)] = {0};
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        int64_t len;
        const char *text = vlp_column_text(stmt, 0, &len);
        int script;
        histogram_add(h, look_at_caption(text, len, &script));
        if (script >= 0) by_script[script]++;
    }
    vlp_stmt_free(stmt);
    vlp_json *json = vlp_json_new_object();
    for (size_t s = 0; s < VLP_COUNT(scripts); s++)
        if (by_script[s]) bump(json, scripts[s].name, by_script[s]);
    vlp_json_set(out, "scripts", json);
    vlp_json_set(out, "caption_length", histogram_json(h));
    return status;
}

static vlp_status image_stats(vlp_db *db, histogram *h, vlp_json *out) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT min(width, height) FROM images WHERE state<>2"));
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row)
        histogram_add(h, vlp_column_int(stmt, 0));
    vlp_stmt_free(stmt);
    vlp_json_set(out, "image_size", histogram_json(h));
    return status;
}

/* "key" of each row -> an object of its other columns, under their names. */
static vlp_status table_object(vlp_db *db, const char *sql, const char *const *names, int n,
                               vlp_json *into) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, sql));
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        const char *key = vlp_column_text(stmt, 0, NULL);
        vlp_json *object = vlp_json_key(into, key);
        if (!object) {
            object = vlp_json_new_object();
            vlp_json_set(into, key, object);
        }
        for (int i = 0; i < n; i++) bump(object, names[i], vlp_column_int(stmt, i + 1));
    }
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status split_stats(vlp_db *db, vlp_json *out) {
    static const char *const image_names[] = {"images", "unverified", "bad"};
    static const char *const caption_names[] = {"captions"}, *const text_names[] = {"texts"};
    vlp_json *splits = vlp_json_new_object();
    vlp_json_set(out, "splits", splits);
    VLP_TRY(table_object(db,
                         "SELECT split, count(*), sum(state=0), sum(state=2) FROM images"
                         " GROUP BY split",
                         image_names, 3, splits));
    VLP_TRY(table_object(db,
                         "SELECT i.split, count(*) FROM captions c JOIN images i"
                         " ON i.id=c.image_id GROUP BY i.split",
                         caption_names, 1, splits));
    return table_object(db,
                        "SELECT split, count(*) FROM captions WHERE image_id IS NULL"
                        " GROUP BY split",
                        text_names, 1, splits);
}

static vlp_status source_stats(vlp_db *db, vlp_json *out) {
    vlp_json *list = vlp_json_new_array();
    vlp_json_set(out, "sources", list);
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db,
                         "SELECT name, format, path, complete,"
                         " (SELECT count(*) FROM images i WHERE i.source_id=s.id),"
                         " (SELECT count(*) FROM captions c WHERE c.source_id=s.id)"
                         " FROM sources s ORDER BY s.id"));
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        vlp_json *source = vlp_json_new_object();
        vlp_json_set_string(source, "name", vlp_column_text(stmt, 0, NULL));
        vlp_json_set_string(source, "format", vlp_column_text(stmt, 1, NULL));
        vlp_json_set_string(source, "path", vlp_column_text(stmt, 2, NULL));
        vlp_json_set_bool(source, "complete", vlp_column_int(stmt, 3) != 0);
        vlp_json_set_int(source, "images", vlp_column_int(stmt, 4));
        vlp_json_set_int(source, "captions", vlp_column_int(stmt, 5));
        vlp_json_append(list, source);
    }
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status skip_stats(vlp_db *db, vlp_json *out) {
    vlp_json *reasons = vlp_json_new_object();
    vlp_json_set(out, "skipped_by_reason", reasons);
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db, "SELECT reason, count(*) FROM skipped GROUP BY reason"));
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row)
        bump(reasons, vlp_column_text(stmt, 0, NULL), vlp_column_int(stmt, 1));
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status count_stats(vlp_db *db, vlp_json *out) {
    static const struct {
        const char *key, *sql;
    } counts[] = {
        {"images", "SELECT count(*) FROM images WHERE state<>2"},
        {"captions", "SELECT count(*) FROM captions WHERE image_id IS NOT NULL"},
        {"texts", "SELECT count(*) FROM captions WHERE image_id IS NULL"},
        {"bad", "SELECT count(*) FROM images WHERE state=2"},
        {"unverified", "SELECT count(*) FROM images WHERE state=0"},
        {"gone", "SELECT count(*) FROM images WHERE state=2 AND reason LIKE 'gone%'"},
        {"without_caption", "SELECT count(*) FROM images i WHERE state<>2 AND NOT EXISTS"
                            " (SELECT 1 FROM captions c WHERE c.image_id=i.id)"},
        {"questions", "SELECT count(*) FROM questions"},
        {"skipped", "SELECT count(*) FROM skipped"},
        {"duplicates", "SELECT count(*) FROM images WHERE group_id<>id"},
        {"duplicates_across_splits",
         "SELECT count(*) FROM images i WHERE asked<>split AND EXISTS"
         " (SELECT 1 FROM images o WHERE o.hash=i.hash AND o.id<>i.id)"},
    };
    for (size_t i = 0; i < VLP_COUNT(counts); i++) {
        int64_t n;
        VLP_TRY(vlp_db_int(db, counts[i].sql, &n));
        vlp_json_set_int(out, counts[i].key, n);
    }
    return VLP_OK;
}

enum { REPEATED_MOST = 5, NEAR_MOST = 5 };

/* Captions that say nothing about their picture: the same words for many pictures. */
static vlp_status repeated_captions(vlp_db *db, vlp_json *out) {
    vlp_json *list = vlp_json_new_array();
    vlp_json_set(out, "repeated_captions", list);
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, db,
                         "SELECT min(text), count(DISTINCT image_id) n FROM captions WHERE image_id"
                         " IS NOT NULL AND kind<>'label' GROUP BY hash HAVING n>2"
                         " ORDER BY n DESC, 1 LIMIT ?1"));
    vlp_bind_int(stmt, 1, REPEATED_MOST);
    bool row;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        vlp_json *one = vlp_json_new_object();
        vlp_json_set_string(one, "caption", vlp_column_text(stmt, 0, NULL));
        vlp_json_set_int(one, "images", vlp_column_int(stmt, 1));
        vlp_json_append(list, one);
    }
    vlp_stmt_free(stmt);
    return status;
}

static vlp_status near_duplicates(const vlp_index *index, vlp_json *out) {
    vlp_look_report report;
    vlp_json *near = vlp_json_new_object(), *examples = vlp_json_new_array();
    vlp_json_set(out, "near_duplicates", near);
    vlp_status status = vlp_look_near(index, NEAR_MOST, &report, examples);
    vlp_json_set_int(near, "images", report.images);
    vlp_json_set_int(near, "pairs", report.pairs);
    vlp_json_set_int(near, "across_splits", report.crossed);
    vlp_json_set(near, "examples", examples);
    return status;
}

vlp_status vlp_index_stats(const vlp_index *index, vlp_json **out) {
    vlp_db *db = vlp_index_db(index);
    vlp_json *json = vlp_json_new_object();
    histogram captions = {.counts = vlp_alloc_zero(LIMIT + 1, sizeof(int64_t))};
    histogram images = {.counts = vlp_alloc_zero(LIMIT + 1, sizeof(int64_t))};
    vlp_status status = captions.counts && images.counts ? VLP_OK : VLP_ERR_MEMORY;
    if (status == VLP_OK) status = count_stats(db, json);
    if (status == VLP_OK) status = split_stats(db, json);
    if (status == VLP_OK) status = source_stats(db, json);
    if (status == VLP_OK) status = skip_stats(db, json);
    if (status == VLP_OK) status = caption_stats(db, &captions, json);
    if (status == VLP_OK) status = image_stats(db, &images, json);
    if (status == VLP_OK) status = repeated_captions(db, json);
    if (status == VLP_OK) status = near_duplicates(index, json);
    vlp_free(captions.counts);
    vlp_free(images.counts);
    if (status != VLP_OK) vlp_json_free(json);
    *out = status == VLP_OK ? json : NULL;
    return status;
}
