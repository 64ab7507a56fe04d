/* The yardstick without learning: nearest training picture in raw pixels. */
#include "core/gemm.h"
#include "core/kernels.h"
#include "core/memory.h"
#include "datasets/eval_data.h"
#include "train/evaluate.h"
#include "train/evaluate_images.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t pixels; /* of a picture */
    vlp_eval_data train, test;
    float *queries;   /* [T, pixels] test pictures */
    float *products;  /* [block, T] */
    float *distances; /* [T] to the nearest so far, less the query's own squared length */
    int64_t *nearest; /* [T] */
} yardstick;

enum { BLOCK = 64 };

static vlp_status keep_queries(const float *pixels, int64_t first, int64_t n, void *user) {
    yardstick *y = user;
    memcpy(y->queries + first * y->pixels, pixels, (size_t)(n * y->pixels) * sizeof(float));
    return VLP_OK;
}

/* |q - p|^2 = |q|^2 + |p|^2 - 2 q p: the first term does not change the order. */
static vlp_status compare_some(const float *pixels, int64_t first, int64_t n, void *user) {
    yardstick *y = user;
    int64_t queries = y->test.n_images;
    vlp_gemm(false, true, n, queries, y->pixels, -2, pixels, y->pixels, y->queries, y->pixels, 0,
             y->products, queries);
    for (int64_t i = 0; i < n; i++) {
        float square = (float)vlp_kernels_get()->sum_squares(y->pixels, pixels + i * y->pixels);
        const float *row = y->products + i * queries;
        for (int64_t q = 0; q < queries; q++) {
            if (!(row[q] + square < y->distances[q])) continue;
            y->distances[q] = row[q] + square;
            y->nearest[q] = first + i;
        }
    }
    return VLP_OK;
}

static void judge_labels(const yardstick *y, vlp_pixel_yardstick *out) {
    int64_t labelled = 0, right = 0;
    for (int64_t q = 0; q < y->test.n_images; q++) {
        const char *truth = y->test.labels[q], *answer = y->train.labels[y->nearest[q]];
        labelled += truth != NULL;
        right += truth && answer && strcmp(truth, answer) == 0;
    }
    out->label_top1 = labelled ? (double)right / (double)labelled : -1;
}

/* Captions [from, to) of picture i, found by bisection: captions are ordered by picture. */
static void captions_of(const vlp_eval_data *d, int64_t i, int64_t *from, int64_t *to) {
    int64_t low = 0, high = d->n_captions;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (d->caption_images[middle] < i)
            low = middle + 1;
        else
            high = middle;
    }
    *from = *to = low;
    while (*to < d->n_captions && d->caption_images[*to] == i) ++*to;
}

static bool share_caption(const yardstick *y, int64_t test, int64_t train) {
    int64_t a, a_end, b, b_end;
    captions_of(&y->test, test, &a, &a_end);
    captions_of(&y->train, train, &b, &b_end);
    for (int64_t i = a; i < a_end; i++)
        for (int64_t j = b; j < b_end; j++)
            if (y->test.caption_groups[i] == y->train.caption_groups[j]) return true;
    return false;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Whether any test caption occurs in training at all: otherwise the question makes no sense. */
static vlp_status captions_recur(const yardstick *y, bool *recur) {
    size_t n = (size_t)y->train.n_captions;
    int64_t *groups = vlp_alloc(n * sizeof *groups);
    if (!groups) return VLP_ERR_MEMORY;
    memcpy(groups, y->train.caption_groups, n * sizeof *groups);
    qsort(groups, n, sizeof *groups, by_value);
    *recur = false;
    for (int64_t j = 0; j < y->test.n_captions && !*recur; j++)
        *recur = bsearch(&y->test.caption_groups[j], groups, n, sizeof *groups, by_value) != NULL;
    vlp_free(groups);
    return VLP_OK;
}

static vlp_status judge_captions(const yardstick *y, vlp_pixel_yardstick *out) {
    bool recur;
    int64_t right = 0;
    VLP_TRY(captions_recur(y, &recur));
    for (int64_t q = 0; q < y->test.n_images; q++) right += share_caption(y, q, y->nearest[q]);
    out->caption_at1 = recur ? (double)right / (double)y->test.n_images : -1;
    return VLP_OK;
}

static vlp_status run(yardstick *y, const vlp_index *index, const vlp_eval_set *train,
                      const vlp_eval_set *test, const vlp_transform *transform,
                      vlp_pixel_yardstick *out) {
    VLP_TRY(vlp_eval_data_open(&y->test, index, test->split, test->source, test->max_images));
    VLP_TRY(vlp_eval_data_open(&y->train, index, train->split, train->source, train->max_images));
    size_t n = (size_t)y->test.n_images;
    y->queries = vlp_alloc(n * (size_t)y->pixels * sizeof(float));
    y->products = vlp_alloc(BLOCK * n * sizeof(float));
    y->distances = vlp_alloc(n * sizeof(float));
    y->nearest = vlp_alloc_zero(n, sizeof(int64_t));
    if (!y->queries || !y->products || !y->distances || !y->nearest) return VLP_ERR_MEMORY;
    for (size_t q = 0; q < n; q++) y->distances[q] = 1e30f;
    VLP_TRY(vlp_evaluate_images(index, test, transform, y->test.n_images, keep_queries, y));
    VLP_TRY(vlp_evaluate_images(index, train, transform, y->train.n_images, compare_some, y));
    out->images = y->test.n_images;
    out->train_images = y->train.n_images;
    judge_labels(y, out);
    return judge_captions(y, out);
}

vlp_status vlp_evaluate_pixels(const vlp_index *index, const vlp_eval_set *train,
                               const vlp_eval_set *test, int side, vlp_pixel_yardstick *out) {
    *out = (vlp_pixel_yardstick){0};
    vlp_transform transform = vlp_transform_defaults(side);
    transform.fit = VLP_FIT_SQUASH;
    yardstick y = {.pixels = 3 * (int64_t)side * side};
    vlp_status status = run(&y, index, train, test, &transform, out);
    vlp_eval_data_close(&y.train);
    vlp_eval_data_close(&y.test);
    vlp_free(y.queries);
    vlp_free(y.products);
    vlp_free(y.distances);
    vlp_free(y.nearest);
    return status;
}
