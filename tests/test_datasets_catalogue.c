#include "datasets_corpus.h"

#include "core/threads.h"
#include "datasets/catalogue.h"
#include "datasets/filter.h"

enum { N = 40, D = 8 };

static vlp_index *open_catalogue(corpus *c) {
    for (int i = 0; i < N; i++) {
        char name[64], text[64];
        snprintf(name, sizeof name, "p/%s/pic%02d.png", i % 2 ? "odd" : "even", i);
        corpus_png(c, name, 10 + i, 10, (uint64_t)i);
        snprintf(name, sizeof name, "p/%s/pic%02d.txt", i % 2 ? "odd" : "even", i);
        snprintf(text, sizeof text, "a %s number %d", i % 3 ? "red" : "blue", i);
        corpus_text(c, name, text);
    }
    vlp_index *index = corpus_index(c, "i.db");
    corpus_import(c, index, "p", (vlp_import_options){0});
    return index;
}

static void fill(const vlp_rows *rows, float *vectors) {
    for (int64_t i = 0; i < rows->count; i++) {
        vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, (uint64_t)rows->ids[i]);
        for (int d = 0; d < D; d++) vectors[i * D + d] = (float)vlp_rng_normal(&rng);
    }
}

static void test_datasets_catalogue__missing_put_load_and_top(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index = open_catalogue(&c);
    vlp_rows missing;
    float vectors[N * D];
    assert_int_equal(vlp_catalogue_missing(&missing, index, "m"), VLP_OK);
    assert_int_equal(missing.count, N);
    fill(&missing, vectors);
    assert_int_equal(vlp_catalogue_put(index, "m", missing.ids, vectors, 25, D), VLP_OK);
    vlp_rows_close(&missing);
    assert_int_equal(vlp_catalogue_missing(&missing, index, "m"), VLP_OK);
    assert_int_equal(missing.count, 15);
    fill(&missing, vectors);
    assert_int_equal(vlp_catalogue_put(index, "m", missing.ids, vectors, 15, D), VLP_OK);
    vlp_rows_close(&missing);
    vlp_catalogue all;
    assert_int_equal(vlp_catalogue_load(&all, index, "m", D, NULL), VLP_OK);
    assert_int_equal(all.n, N);
    assert_int_equal(all.dim, D);
    vlp_hit hits[N];
    int64_t n;
    assert_int_equal(vlp_catalogue_top(&all, all.vectors + 7 * D, 5, hits, &n), VLP_OK);
    assert_int_equal(n, 5);
    for (int h = 0; h < 5; h++) {
        int better = 0;
        for (int64_t i = 0; i < N; i++) {
            double score = 0;
            for (int d = 0; d < D; d++)
                score += (double)all.vectors[i * D + d] * (double)all.vectors[7 * D + d];
            better += score > hits[h].score + 1e-5;
        }
        assert_int_equal(better, h);
    }
    assert_int_equal(vlp_catalogue_top(&all, all.vectors, 100, hits, &n), VLP_OK);
    assert_int_equal(n, N);
    vlp_catalogue_close(&all);
    assert_int_equal(vlp_catalogue_load(&all, index, "other", D, NULL), VLP_OK);
    assert_int_equal(all.n, 0);
    vlp_catalogue_close(&all);
    vlp_index_free(index);
    corpus_close(&c);
}

static void embed_all(vlp_index *index) {
    vlp_rows missing;
    float vectors[N * D];
    assert_int_equal(vlp_catalogue_missing(&missing, index, "m"), VLP_OK);
    fill(&missing, vectors);
    assert_int_equal(vlp_catalogue_put(index, "m", missing.ids, vectors, N, D), VLP_OK);
    vlp_rows_close(&missing);
}

static int64_t filtered(const vlp_index *index, const char *where) {
    vlp_catalogue some;
    if (vlp_catalogue_load(&some, index, "m", D, where) != VLP_OK) fail_msg("%s", vlp_error());
    assert_int_equal(some.n, N);
    int64_t n = some.selected;
    vlp_catalogue_close(&some);
    return n;
}

static void test_datasets_catalogue__filters_come_before_the_search(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index = open_catalogue(&c);
    embed_all(index);
    assert_int_equal(filtered(index, "folder=odd"), N / 2);
    assert_int_equal(filtered(index, "folder=\"p/odd\" and width>=20"), 15);
    assert_int_equal(filtered(index, "folder=od"), 0);
    char absolute[1200];
    snprintf(absolute, sizeof absolute, "folder='%s'", corpus_path(&c, "p"));
    assert_int_equal(filtered(index, absolute), N);
    assert_int_equal(filtered(index, "caption~BLUE"), 14);
    assert_int_equal(filtered(index, "split!=train"), 0);
    assert_int_equal(filtered(index, "source=p and width<15"), 5);
    assert_int_equal(filtered(index, "  "), N);
    static const char *const wrong[] = {
        "width", "width>", "=3", "a=1 or b=2", "x='open", "1;DROP TABLE images", "width>3 and"};
    for (size_t i = 0; i < VLP_COUNT(wrong); i++) {
        vlp_filter filter;
        assert_int_equal(vlp_filter_parse(&filter, wrong[i], 1), VLP_ERR_USAGE);
    }
    assert_int_equal(filtered(index, "path=\"x' OR 1=1 --\""), 0);
    vlp_index_free(index);
    corpus_close(&c);
}

/* Whole numbers make every sum exact and many scores level. */
static void test_datasets_catalogue__threads_change_nothing(void **state) {
    (void)state;
    enum { MANY = 5000, K = 60 };
    vlp_catalogue all = {.n = MANY, .dim = D};
    all.ids = vlp_alloc(MANY * sizeof *all.ids);
    all.vectors = vlp_alloc(MANY * D * sizeof *all.vectors);
    all.passes = vlp_alloc(MANY);
    float query[D];
    vlp_rng rng = vlp_rng_at(3, VLP_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < MANY; i++) {
        all.ids[i] = 10 + i;
        all.passes[i] = i % 7 != 0;
        for (int d = 0; d < D; d++) all.vectors[i * D + d] = (float)vlp_rng_below(&rng, 4);
    }
    for (int d = 0; d < D; d++) query[d] = (float)vlp_rng_below(&rng, 4);
    vlp_hit hits[3][K];
    for (int threads = 1; threads <= 3; threads++) {
        vlp_hit *got = hits[threads - 1];
        int64_t n;
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        assert_int_equal(vlp_catalogue_top(&all, query, K, got, &n), VLP_OK);
        assert_int_equal(n, K);
        for (int h = 0; h < K; h++) {
            assert_true(all.passes[got[h].id - 10]);
            assert_true(got[h].id == hits[0][h].id && got[h].score == hits[0][h].score);
        }
    }
    int64_t better = 0; /* than the last hit */
    for (int64_t i = 0; i < MANY; i++) {
        double score = 0;
        for (int d = 0; d < D; d++) score += (double)(all.vectors[i * D + d] * query[d]);
        better +=
            all.passes[i] && (score > hits[0][K - 1].score ||
                              (score == hits[0][K - 1].score && all.ids[i] < hits[0][K - 1].id));
    }
    assert_int_equal(better, K - 1);
    vlp_catalogue_close(&all);
}

static void test_datasets_catalogue__words_find_captions_and_names(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index = open_catalogue(&c);
    vlp_hit hits[50];
    int64_t n;
    assert_int_equal(vlp_catalogue_words(index, "Blue!", NULL, 50, hits, &n), VLP_OK);
    assert_int_equal(n, 14);
    assert_int_equal(vlp_catalogue_words(index, "pic07", NULL, 50, hits, &n), VLP_OK);
    assert_int_equal(n, 1);
    vlp_buf path = {0}, caption = {0};
    assert_int_equal(vlp_catalogue_item(index, hits[0].id, &path, NULL, &caption), VLP_OK);
    assert_non_null(strstr(path.data, "pic07.png"));
    assert_string_equal(caption.data, "a red number 7");
    assert_int_equal(vlp_catalogue_words(index, "blue", "folder=odd", 50, hits, &n), VLP_OK);
    assert_int_equal(n, 7);
    static const char *const odd[] = {"", "\"", "NEAR(", "a AND", "*", "col:x", "--"};
    for (size_t i = 0; i < VLP_COUNT(odd); i++)
        if (vlp_catalogue_words(index, odd[i], NULL, 50, hits, &n) != VLP_OK)
            fail_msg("%s: %s", odd[i], vlp_error());
    vlp_buf_free(&path);
    vlp_buf_free(&caption);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_catalogue__changed_image_is_missing_again(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index = open_catalogue(&c);
    vlp_rows missing;
    embed_all(index);
    corpus_png(&c, "p/odd/pic01.png", 99, 9, 1000);
    corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(vlp_catalogue_missing(&missing, index, "m"), VLP_OK);
    assert_int_equal(missing.count, 1);
    vlp_rows_close(&missing);
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_catalogue__missing_put_load_and_top),
        cmocka_unit_test(test_datasets_catalogue__filters_come_before_the_search),
        cmocka_unit_test(test_datasets_catalogue__threads_change_nothing),
        cmocka_unit_test(test_datasets_catalogue__words_find_captions_and_names),
        cmocka_unit_test(test_datasets_catalogue__changed_image_is_missing_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
