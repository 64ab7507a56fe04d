/* A corpus of coloured shapes with captions, and a model small enough to train on it in
 * milliseconds a step: what the trainer's tests share.
 *
 *     corpus c;
 *     fixture_open(&c, 24);                                24 pictures for training, 6 to validate
 *     fixture_train(&c, "vlp", "run", "steps=3 seed=1");   recipe keys, separated by spaces
 *     corpus_close(&c); */
#ifndef VLP_TESTS_FIXTURE_CORPUS_H
#define VLP_TESTS_FIXTURE_CORPUS_H

#include "train/trainer.h"

#include "tests/datasets_corpus.h"

enum { FIXTURE_SIDE = 40, FIXTURE_VALIDATION = 6 };

static const struct {
    const char *name;
    uint8_t rgb[3];
} fixture_colours[] = {
    {"red", {220, 30, 30}},     {"green", {30, 180, 40}}, {"blue", {40, 60, 220}},
    {"yellow", {240, 220, 40}}, {"black", {20, 20, 20}},
};

static const char *const fixture_shapes[] = {"square", "circle", "stripe"};

static inline bool fixture_inside(int shape, double x, double y) {
    if (shape == 0) return x > -0.6 && x < 0.6 && y > -0.6 && y < 0.6;
    return shape == 1 ? x * x + y * y < 0.5 : y > -0.25 && y < 0.25;
}

static inline int fixture_colour_of(int i) {
    return i % (int)VLP_COUNT(fixture_colours);
}

static inline int fixture_shape_of(int i) {
    return i / (int)VLP_COUNT(fixture_colours) % (int)VLP_COUNT(fixture_shapes);
}

/* Picture i: its colour and shape follow from i, place and paper from a generator keyed by i. Every
 * third is a JPEG. */
static inline void fixture_picture(corpus *c, const char *name, int i) {
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, (uint64_t)i, 0);
    vlp_image image = {0};
    vlp_buf bytes = {0};
    assert_int_equal(vlp_image_resize_memory(&image, FIXTURE_SIDE, FIXTURE_SIDE), VLP_OK);
    double dx = 0.3 * vlp_rng_double(&rng) - 0.15, dy = 0.3 * vlp_rng_double(&rng) - 0.15;
    uint8_t paper = (uint8_t)(200 + vlp_rng_below(&rng, 50));
    for (int y = 0; y < FIXTURE_SIDE; y++)
        for (int x = 0; x < FIXTURE_SIDE; x++) {
            bool in = fixture_inside(fixture_shape_of(i), 2.0 * x / FIXTURE_SIDE - 1 + dx,
                                     2.0 * y / FIXTURE_SIDE - 1 + dy);
            for (int k = 0; k < 3; k++)
                image.pixels[(y * FIXTURE_SIDE + x) * 3 + k] =
                    in ? fixture_colours[fixture_colour_of(i)].rgb[k] : paper;
        }
    vlp_status status = strstr(name, ".jpg") ? vlp_image_encode_jpeg(&image, 90, &bytes)
                                             : vlp_image_encode_png(&image, &bytes);
    assert_int_equal(status, VLP_OK);
    corpus_bytes(c, name, bytes.data, bytes.len);
    vlp_buf_free(&bytes);
    vlp_image_free(&image);
}

static inline void fixture_name(char *out, size_t size, int i) {
    snprintf(out, size, "pictures/%03d.%s", i, i % 3 == 1 ? "jpg" : "png");
}

/* The row of picture i; caption NULL = two captions about what is to be seen. */
static inline void fixture_row(vlp_buf *rows, const char *name, int i, const char *split,
                               const char *caption) {
    const char *colour = fixture_colours[fixture_colour_of(i)].name;
    const char *shape = fixture_shapes[fixture_shape_of(i)];
    char first[96], second[96];
    snprintf(first, sizeof first, "a %s %s", colour, shape);
    snprintf(second, sizeof second, "picture %d shows a large %s that is %s, on paper", i, shape,
             colour);
    vlp_json *row = vlp_json_new_object(), *captions = vlp_json_new_array();
    vlp_json_append(captions, vlp_json_new_string(caption ? caption : first));
    if (!caption) vlp_json_append(captions, vlp_json_new_string(second));
    vlp_json_set_string(row, "image", name);
    vlp_json_set(row, "caption", captions);
    vlp_json_set_string(row, "split", split);
    assert_int_equal(vlp_json_dump(row, 0, rows), VLP_OK);
    assert_int_equal(vlp_buf_puts(rows, "\n"), VLP_OK);
    vlp_json_free(row);
}

/* Pictures 0 .. count-1 for training and FIXTURE_VALIDATION more; their rows are appended. */
static inline void fixture_pictures(corpus *c, int count, const char *caption, vlp_buf *rows) {
    for (int i = 0; i < count + FIXTURE_VALIDATION; i++) {
        char name[64];
        fixture_name(name, sizeof name, i);
        fixture_picture(c, name, i);
        fixture_row(rows, name, i, i < count ? "train" : "val", caption);
    }
}

/* rows as pairs.jsonl, imported into pairs.db. */
static inline vlp_import_report fixture_index(corpus *c, const vlp_buf *rows) {
    corpus_bytes(c, "pairs.jsonl", rows->data, rows->len);
    vlp_index *index = corpus_index(c, "pairs.db");
    vlp_import_report report = corpus_import(c, index, "pairs.jsonl", (vlp_import_options){0});
    vlp_index_free(index);
    return report;
}

static inline void fixture_open_captioned(corpus *c, int count, const char *caption) {
    vlp_buf rows = {0};
    corpus_open(c);
    fixture_pictures(c, count, caption, &rows);
    fixture_index(c, &rows);
    vlp_buf_free(&rows);
}

static inline void fixture_open(corpus *c, int count) {
    fixture_open_captioned(c, count, NULL);
}

/* The tiny model; keys ("steps=3 batch=8") come on top. */
static inline vlp_status fixture_recipe(vlp_recipe *out, const char *name, const char *keys) {
    static const char tiny[] =
        "image_size=32 patch=16 width=32 heads=2 vision_depth=1 text_depth=1 embedding=16 "
        "text_length=16 batch=4 lr=1e-3 warmup=2 loader.threads=2 loader.cache_mb=4";
    char all[1024];
    VLP_TRY(vlp_recipe_open(out, name, NULL));
    if (out->fusion_depth > 0) out->fusion_depth = 1;
    snprintf(all, sizeof all, "%s %s", tiny, keys);
    for (char *save, *part = strtok_r(all, " ", &save); part; part = strtok_r(NULL, " ", &save))
        VLP_TRY(vlp_recipe_set(out, part));
    return VLP_OK;
}

/* The corpus's index and a run folder of that name, as options. Borrows paths. */
typedef struct {
    char data[600], out[600];
    vlp_train_options options;
} fixture_run;

static inline vlp_train_options *fixture_options(fixture_run *run, const corpus *c,
                                                 const char *name) {
    *run = (fixture_run){.options = {.vocab = 80}};
    snprintf(run->data, sizeof run->data, "%s/pairs.db", c->folder);
    snprintf(run->out, sizeof run->out, "%s/%s", c->folder, name);
    run->options.data = run->data;
    run->options.out = run->out;
    return &run->options;
}

/* A whole run into the corpus's folder. */
static inline vlp_status fixture_train(const corpus *c, const char *recipe_name, const char *out,
                                       const char *keys) {
    vlp_recipe recipe;
    fixture_run run;
    vlp_trainer *trainer;
    vlp_train_summary summary;
    VLP_TRY(fixture_recipe(&recipe, recipe_name, keys));
    VLP_TRY(vlp_trainer_open(&trainer, &recipe, fixture_options(&run, c, out)));
    vlp_status status = vlp_trainer_run(trainer, &summary);
    vlp_trainer_free(trainer);
    return status;
}

/* Appends a file of the corpus's folder. */
static inline void fixture_read(const corpus *c, const char *name, vlp_buf *out) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    if (vlp_file_read(path, 0, out) != VLP_OK) fail_msg("%s", vlp_error());
}

static inline void fixture_same_file(const corpus *c, const char *a, const char *b) {
    vlp_buf left = {0}, right = {0};
    fixture_read(c, a, &left);
    fixture_read(c, b, &right);
    if (left.len != right.len || memcmp(left.data, right.data, left.len) != 0)
        fail_msg("%s and %s differ", a, b);
    vlp_buf_free(&left);
    vlp_buf_free(&right);
}

/* Lines of metrics.jsonl are equal up to the figures about time. */
static inline void fixture_same_metrics(const corpus *c, const char *a, const char *b) {
    static const char timing[] = ",\"pairs_per_s\"";
    char name[2][600];
    vlp_buf text[2] = {{0}, {0}};
    snprintf(name[0], sizeof name[0], "%s/metrics.jsonl", a);
    snprintf(name[1], sizeof name[1], "%s/metrics.jsonl", b);
    for (int i = 0; i < 2; i++) fixture_read(c, name[i], &text[i]);
    char *save[2], *line[2];
    for (int i = 0; i < 2; i++) line[i] = strtok_r(text[i].data, "\n", &save[i]);
    int lines = 0;
    for (; line[0] && line[1]; lines++) {
        for (int i = 0; i < 2; i++) {
            char *time = strstr(line[i], timing);
            if (time) *time = '\0';
        }
        assert_string_equal(line[0], line[1]);
        for (int i = 0; i < 2; i++) line[i] = strtok_r(NULL, "\n", &save[i]);
    }
    assert_true(lines > 0);
    assert_null(line[0]);
    assert_null(line[1]);
    for (int i = 0; i < 2; i++) vlp_buf_free(&text[i]);
}

#endif
