/* Small corpora for the datasets tests, made in a temporary folder. */
#ifndef VLP_TESTS_DATASETS_CORPUS_H
#define VLP_TESTS_DATASETS_CORPUS_H

#include "core/file.h"
#include "core/rng.h"
#include "datasets/import.h"
#include "datasets/verify.h"
#include "vision/thumbnail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char folder[512], path[1024];
} corpus;

static inline void corpus_open(corpus *c) {
    const char *base = getenv("TMPDIR");
    snprintf(c->folder, sizeof c->folder, "%s/vlp-data-XXXXXX", base ? base : P_tmpdir);
    assert_non_null(mkdtemp(c->folder));
}

static inline void corpus_close(corpus *c) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", c->folder);
    assert_int_equal(system(command), 0);
}

/* Borrowed until the next call. */
static inline const char *corpus_path(corpus *c, const char *name) {
    snprintf(c->path, sizeof c->path, "%s/%s", c->folder, name);
    return c->path;
}

static inline void corpus_bytes(corpus *c, const char *name, const void *data, size_t len) {
    const char *path = corpus_path(c, name);
    char *slash = strrchr(c->path, '/');
    *slash = '\0';
    assert_int_equal(vlp_make_folder(c->path), VLP_OK);
    *slash = '/';
    FILE *file = fopen(path, "wb"); /* not vlp_file_write: thousands of fsyncs take minutes */
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline void corpus_text(corpus *c, const char *name, const char *text) {
    corpus_bytes(c, name, text, strlen(text));
}

/* A PNG of random colours decided by `seed`. */
static inline void corpus_png(corpus *c, const char *name, int width, int height, uint64_t seed) {
    vlp_buf pixels = {0}, png = {0};
    assert_int_equal(vlp_buf_reserve(&pixels, (size_t)width * (size_t)height * 3), VLP_OK);
    vlp_rng rng = vlp_rng_at(seed, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < width * height * 3; i++) pixels.data[i] = (char)vlp_rng_u32(&rng);
    vlp_image image = {
        .width = width, .height = height, .pixels = (uint8_t *)pixels.data, .capacity = pixels.cap};
    assert_int_equal(vlp_image_encode_png(&image, &png), VLP_OK);
    corpus_bytes(c, name, png.data, png.len);
    vlp_buf_free(&pixels);
    vlp_buf_free(&png);
}

static inline vlp_index *corpus_index(corpus *c, const char *name) {
    vlp_index *index;
    vlp_status status = vlp_index_open(&index, corpus_path(c, name), VLP_DB_WRITE);
    if (status != VLP_OK) fail_msg("%s", vlp_error());
    return index;
}

static inline vlp_import_report corpus_import(corpus *c, vlp_index *index, const char *source,
                                              vlp_import_options options) {
    vlp_import_report report = {0};
    if (vlp_index_import(index, corpus_path(c, source), &options, &report) != VLP_OK)
        fail_msg("%s", vlp_error());
    return report;
}

static inline int64_t corpus_count(const vlp_index *index, const char *sql) {
    int64_t n;
    if (vlp_db_int(vlp_index_db(index), sql, &n) != VLP_OK) fail_msg("%s", vlp_error());
    return n;
}

#endif
