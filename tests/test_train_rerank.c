/* Recall after the matching head has ordered the best anew, against every pair scored by itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/memory.h"
#include "datasets/eval_data.h"
#include "tests/fixture_corpus.h"
#include "train/evaluate.h"
#include "train/evaluate_images.h"
#include "train/shortlist.h"

enum { N = FIXTURE_VALIDATION, M = 2 * FIXTURE_VALIDATION, PICTURE = 3 * 32 * 32 };

typedef struct {
    corpus c;
    vlp_index *index;
    vlp_embedder *e;
    float cosine[N][M], match[N][M];
    int64_t image_of[M];
} bench;

static vlp_status keep(const float *pixels, int64_t first, int64_t n, void *user) {
    memcpy((float *)user + first * PICTURE, pixels, (size_t)(n * PICTURE) * sizeof *pixels);
    return VLP_OK;
}

static const vlp_eval_set validation = {.split = "val"};

/* Pair by pair: nothing that the evaluation does is used. */
static void score_pairs(bench *b) {
    static float pixels[N * PICTURE], images[N * 16], texts[M * 16];
    vlp_eval_data data;
    assert_int_equal(vlp_eval_data_open(&data, b->index, "val", NULL, 0), VLP_OK);
    assert_int_equal(data.n_images, N);
    assert_int_equal(data.n_captions, M);
    assert_int_equal(
        vlp_evaluate_images(b->index, &validation, vlp_embedder_transform(b->e), N, keep, pixels),
        VLP_OK);
    assert_int_equal(vlp_embedder_pixels(b->e, pixels, N, images), VLP_OK);
    assert_int_equal(vlp_embedder_texts(b->e, data.captions, M, texts), VLP_OK);
    for (int j = 0; j < M; j++) b->image_of[j] = data.caption_images[j];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double cosine = 0;
            for (int k = 0; k < 16; k++) cosine += (double)(images[i * 16 + k] * texts[j * 16 + k]);
            b->cosine[i][j] = (float)cosine;
            assert_int_equal(vlp_embedder_rank(b->e, pixels + i * PICTURE, &data.captions[j], 1,
                                               &b->match[i][j]),
                             VLP_OK);
        }
    vlp_eval_data_close(&data);
}

static void open_bench(bench *b, const char *recipe, const char *keys) {
    char path[700];
    fixture_open(&b->c, 24);
    assert_int_equal(fixture_train(&b->c, recipe, "run", keys), VLP_OK);
    snprintf(path, sizeof path, "%s/run", b->c.folder);
    b->index = corpus_index(&b->c, "pairs.db");
    /* three at a time: lists are longer than what is encoded together */
    assert_int_equal(vlp_embedder_open(&b->e, path, 3), VLP_OK);
}

static void close_bench(bench *b) {
    vlp_embedder_free(b->e);
    vlp_index_free(b->index);
    corpus_close(&b->c);
}

/* The rank of the best right one of `count` with its K best by cosine ordered by match. */
static int rank_of(const float *cosine, const float *match, const bool *right, int count, int k) {
    float best_cosine = -INFINITY, best_match = -INFINITY;
    bool listed[M];
    for (int j = 0; j < count; j++) {
        int better = 0;
        for (int l = 0; l < count; l++) better += cosine[l] > cosine[j];
        listed[j] = better < k;
        if (right[j] && cosine[j] > best_cosine) best_cosine = cosine[j];
        if (right[j] && listed[j] && match[j] > best_match) best_match = match[j];
    }
    int rank = 0;
    for (int j = 0; j < count; j++) {
        if (isinf(best_match))
            rank += !right[j] && cosine[j] > best_cosine;
        else
            rank += !right[j] && listed[j] && match[j] > best_match;
    }
    return rank;
}

static void want_recall(const bench *b, int k, double *to_text, double *to_image) {
    for (int i = 0; i < N; i++) {
        bool right[M];
        for (int j = 0; j < M; j++) right[j] = b->image_of[j] == i;
        int rank = rank_of(b->cosine[i], b->match[i], right, M, k);
        for (int l = 0; l < VLP_RECALL_LEVELS; l++)
            to_text[l] += (rank < vlp_recall_at[l]) / (double)N;
    }
    for (int j = 0; j < M; j++) {
        float cosine[N], match[N];
        bool right[N];
        for (int i = 0; i < N; i++) {
            cosine[i] = b->cosine[i][j];
            match[i] = b->match[i][j];
            right[i] = b->image_of[j] == i;
        }
        int rank = rank_of(cosine, match, right, N, k);
        for (int l = 0; l < VLP_RECALL_LEVELS; l++)
            to_image[l] += (rank < vlp_recall_at[l]) / (double)M;
    }
}

/* Whether an order changed. */
static bool check_recall(const char *recipe, const char *keys) {
    bench b;
    open_bench(&b, recipe, keys);
    score_pairs(&b);
    vlp_retrieval plain;
    assert_int_equal(vlp_evaluate_retrieval(b.e, b.index, &validation, &plain), VLP_OK);
    bool changed = false;
    static const int ks[] = {1, 2, 4, 6, 100};
    for (size_t t = 0; t < VLP_COUNT(ks); t++) {
        vlp_eval_set set = validation;
        vlp_retrieval got;
        double to_text[VLP_RECALL_LEVELS] = {0}, to_image[VLP_RECALL_LEVELS] = {0};
        set.rerank = ks[t];
        assert_int_equal(vlp_evaluate_retrieval(b.e, b.index, &set, &got), VLP_OK);
        want_recall(&b, ks[t], to_text, to_image);
        for (int l = 0; l < VLP_RECALL_LEVELS; l++) {
            assert_true(fabs(got.image_to_text[l] - to_text[l]) < 1e-9);
            assert_true(fabs(got.text_to_image[l] - to_image[l]) < 1e-9);
            bool same = fabs(got.text_to_image[l] - plain.text_to_image[l]) < 1e-9 &&
                        fabs(got.image_to_text[l] - plain.image_to_text[l]) < 1e-9;
            assert_true(ks[t] > 1 || same); /* one alone cannot change places */
            changed = changed || !same;
        }
    }
    close_bench(&b);
    return changed;
}

static void test_train_rerank__is_that_of_pairs_scored_alone(void **state) {
    (void)state;
    bool changed = false;
    for (int seed = 2; seed < 5; seed++) {
        char keys[80];
        snprintf(keys, sizeof keys, "steps=6 lr=5e-3 seed=%d momentum.decay=0 momentum.queue=0",
                 seed);
        changed = check_recall("vlp", keys) || changed;
        changed = check_recall("blip", keys) || changed;
    }
    assert_true(changed);
}

static void test_train_rerank__needs_a_matching_head(void **state) {
    (void)state;
    bench b;
    vlp_retrieval got;
    vlp_eval_set set = {.split = "val", .rerank = 4};
    open_bench(&b, "clip", "steps=1");
    assert_int_equal(vlp_evaluate_retrieval(b.e, b.index, &set, &got), VLP_ERR_UNSUPPORTED);
    assert_non_null(strstr(vlp_error(), "--rerank needs a model with a fusion stack"));
    close_bench(&b);
}

static void test_train_rerank__a_short_list_holds_the_best(void **state) {
    (void)state;
    enum { ROWS = 3, COLUMNS = 50, K = 7 };
    vlp_shortlist list;
    vlp_shortlist_columns columns = {0};
    float score[ROWS][COLUMNS];
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, 0, 0);
    assert_int_equal(vlp_shortlist_open(&list, ROWS, K), VLP_OK);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < (r == 2 ? 4 : COLUMNS); c++) {
            score[r][c] = (float)vlp_rng_below(&rng, 40);
            vlp_shortlist_offer(&list, r, c, score[r][c]);
        }
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < K; i++) {
            int before = 0, c = list.at[r * K + i];
            for (int o = 0; o < COLUMNS; o++)
                before += score[r][o] > score[r][c] || (score[r][o] == score[r][c] && o < c);
            assert_int_equal(before, i);
        }
    assert_int_equal(list.at[2 * K + 4], -1);
    assert_int_equal(vlp_shortlist_by_column(&columns, &list, COLUMNS), VLP_OK);
    assert_int_equal(columns.begin[COLUMNS], 2 * K + 4);
    for (int c = 0; c < COLUMNS; c++)
        for (int64_t s = columns.begin[c]; s < columns.begin[c + 1]; s++)
            assert_int_equal(list.at[columns.slots[s]], c);
    vlp_shortlist_columns_close(&columns);
    vlp_shortlist_close(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_rerank__is_that_of_pairs_scored_alone),
        cmocka_unit_test(test_train_rerank__needs_a_matching_head),
        cmocka_unit_test(test_train_rerank__a_short_list_holds_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
