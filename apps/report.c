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
           count(stats, "unverified"), count(stats, "bad"), count(stats, "skipped"));
    if (!all) return;
    print_sources(vlp_json_key(stats, "sources"));
    print_spread("caption length", vlp_json_key(stats, "caption_length"), "characters");
    print_spread("image size (short side)", vlp_json_key(stats, "image_size"), "pixels");
    print_counts("captions by script", vlp_json_key(stats, "scripts"));
    print_counts("skipped by reason", vlp_json_key(stats, "skipped_by_reason"));
}
