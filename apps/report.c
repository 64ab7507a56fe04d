#include "apps/report.h"

#include "datasets/index.h"

#include <stdio.h>

vlp_status cli_index_stats(const char *path, vlp_json **out) {
    vlp_index *index;
    VLP_TRY(vlp_index_open(&index, path, VLP_DB_READ));
    vlp_status status = vlp_index_stats(index, out);
    vlp_index_free(index);
    return status;
}

static long long count(const vlp_json *object, const char *key) {
    return (long long)vlp_json_int(object, key, 0);
}

static void print_splits(const vlp_json *splits) {
    if (!vlp_json_first(splits)) return;
    printf("\n  %-20s %10s %10s %10s %10s %6s\n", "split", "images", "captions", "texts",
           "unverified", "bad");
    for (void *it = vlp_json_first(splits); it; it = vlp_json_next(splits, it)) {
        const vlp_json *s = vlp_json_iter_value(it);
        const char *name = vlp_json_iter_key(it);
        printf("  %-20s %10lld %10lld %10lld %10lld %6lld\n", *name ? name : "(none)",
               count(s, "images"), count(s, "captions"), count(s, "texts"), count(s, "unverified"),
               count(s, "bad"));
    }
}

static void print_sources(const vlp_json *sources) {
    if (vlp_json_len(sources) == 0) return;
    printf("\n  %-20s %10s %10s  %-12s %s\n", "source", "images", "captions", "format", "path");
    for (size_t i = 0; i < vlp_json_len(sources); i++) {
        const vlp_json *s = vlp_json_at(sources, i);
        printf("  %-20s %10lld %10lld  %-12s %s%s\n", vlp_json_string(s, "name", ""),
               count(s, "images"), count(s, "captions"), vlp_json_string(s, "format", ""),
               vlp_json_string(s, "path", ""),
               vlp_json_bool(s, "complete", true) ? "" : "  (import not finished: run it again)");
    }
}

static void print_spread(const char *what, const vlp_json *spread, const char *unit) {
    static const char *const keys[] = {"min", "median", "mean", "p99", "max"};
    if (!vlp_json_first(spread)) return;
    printf("\n  %s in %s:", what, unit);
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        const vlp_json *value = vlp_json_key(spread, keys[i]);
        if (value) printf("  %s %.4g", keys[i], vlp_json_as_double(value));
    }
    putchar('\n');
}

/* A bar a bucket, the longest twenty signs. */
static void print_histogram(const vlp_json *spread) {
    const vlp_json *buckets = vlp_json_key(spread, "histogram");
    int64_t most = 1;
    for (void *it = vlp_json_first(buckets); it; it = vlp_json_next(buckets, it)) {
        int64_t n = vlp_json_as_int(vlp_json_iter_value(it));
        most = n > most ? n : most;
    }
    for (void *it = vlp_json_first(buckets); it; it = vlp_json_next(buckets, it)) {
        int64_t n = vlp_json_as_int(vlp_json_iter_value(it));
        printf("    %-14s %10lld  %.*s\n", vlp_json_iter_key(it), (long long)n,
               (int)((20 * n + most - 1) / most), "####################");
    }
}

static void print_repeated(const vlp_json *list) {
    if (vlp_json_len(list) == 0) return;
    printf("\n  captions of many images:\n");
    for (size_t i = 0; i < vlp_json_len(list); i++)
        printf("    %10lld  %.60s\n", count(vlp_json_at(list, i), "images"),
               vlp_json_string(vlp_json_at(list, i), "caption", ""));
}

static void print_near(const vlp_json *near) {
    printf("  near duplicates by look: %lld pairs among %lld decoded images, %lld across splits\n",
           count(near, "pairs"), count(near, "images"), count(near, "across_splits"));
    const vlp_json *examples = vlp_json_key(near, "examples");
    for (size_t i = 0; i < vlp_json_len(examples); i++) {
        const vlp_json *pair = vlp_json_at(examples, i);
        printf("    %s\n    %s\n%s", vlp_json_as_string(vlp_json_at(pair, 0)),
               vlp_json_as_string(vlp_json_at(pair, 1)),
               i + 1 < vlp_json_len(examples) ? "\n" : "");
    }
}

static void print_counts(const char *title, const vlp_json *counts) {
    if (!vlp_json_first(counts)) return;
    printf("\n  %s:\n", title);
    for (void *it = vlp_json_first(counts); it; it = vlp_json_next(counts, it))
        printf("    %-24s %10lld\n", vlp_json_iter_key(it),
               (long long)vlp_json_as_int(vlp_json_iter_value(it)));
}

void cli_print_stats(const char *path, const vlp_json *stats, bool all) {
    printf("%s: an index of %lld images, %lld captions, %lld texts without an image\n", path,
           count(stats, "images"), count(stats, "captions"), count(stats, "texts"));
    print_splits(vlp_json_key(stats, "splits"));
    printf("\n  duplicates of an image: %lld, of those asked into different splits: %lld\n",
           count(stats, "duplicates"), count(stats, "duplicates_across_splits"));
    printf("  not yet decoded: %lld, cannot be decoded: %lld, skipped when importing: %lld\n",
           count(stats, "unverified"), count(stats, "bad") - count(stats, "gone"),
           count(stats, "skipped"));
    printf("  files gone: %lld, images without a caption: %lld, questions: %lld\n",
           count(stats, "gone"), count(stats, "without_caption"), count(stats, "questions"));
    if (!all) return;
    print_near(vlp_json_key(stats, "near_duplicates"));
    print_sources(vlp_json_key(stats, "sources"));
    print_repeated(vlp_json_key(stats, "repeated_captions"));
    print_spread("caption length", vlp_json_key(stats, "caption_length"), "characters");
    print_histogram(vlp_json_key(stats, "caption_length"));
    print_spread("image size (short side)", vlp_json_key(stats, "image_size"), "pixels");
    print_histogram(vlp_json_key(stats, "image_size"));
    print_counts("captions by script", vlp_json_key(stats, "scripts"));
    print_counts("skipped by reason", vlp_json_key(stats, "skipped_by_reason"));
}
