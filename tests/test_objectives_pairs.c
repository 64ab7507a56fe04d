/* Objectives over the pairs of a batch: which are positive, what ITC asks for, which negatives ITM
 * draws, and what a model that knows nothing would lose. */
#include "core/memory.h"
#include "objectives/itm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "tests/fixture_objectives.h"

enum { N = 6, DRAWS = 20000 };

typedef struct {
    int64_t images[N], captions[N];
    vlp_pairs pairs;
} groups;

static void distinct(groups *g) {
    for (int i = 0; i < N; i++) {
        g->images[i] = i + 1;
        g->captions[i] = i + 1;
    }
    g->pairs = (vlp_pairs){.batch = N, .image_groups = g->images, .caption_groups = g->captions};
}

/* Chi-square of many draws against softmax(scores) over the non-positives of sample i. */
static double misfit(const groups *g, int64_t i, const vlp_real *scores, int64_t stride) {
    double expected[N] = {0}, sum = 0, square = 0;
    int64_t drawn[N] = {0};
    for (int64_t j = 0; j < N; j++) {
        if (vlp_pairs_positive(&g->pairs, i, j)) continue;
        expected[j] = exp(scores ? (double)scores[j * stride] : 0);
        sum += expected[j];
    }
    for (uint64_t key = 0; key < DRAWS; key++) {
        vlp_rng rng = vlp_rng_at(3, VLP_RNG_ITM, 0, key);
        int32_t j = vlp_itm_draw(&g->pairs, i, scores, stride, &rng);
        assert_in_range(j, 0, N - 1);
        assert_false(vlp_pairs_positive(&g->pairs, i, j));
        drawn[j]++;
    }
    for (int64_t j = 0; j < N; j++) {
        double e = DRAWS * expected[j] / sum;
        if (e > 0) square += ((double)drawn[j] - e) * ((double)drawn[j] - e) / e;
    }
    return square;
}

static void test_objectives_pairs__negatives_are_drawn_in_proportion(void **state) {
    (void)state;
    static const vlp_real row[N] = {5, (vlp_real)0.5, -1, 2, 1, (vlp_real)1.5};
    vlp_real grid[N * N];
    groups g;
    distinct(&g);
    for (int i = 0; i < N * N; i++) grid[i] = 100; /* a wrong stride shows */
    for (int j = 0; j < N; j++) grid[j * N + 2] = row[j];
    assert_true(misfit(&g, 0, row, 1) < 18.5); /* 4 degrees of freedom, one in a thousand */
    assert_true(misfit(&g, 0, NULL, 1) < 18.5);
    assert_true(misfit(&g, 2, grid + 2, N) < 18.5);
}

static void test_objectives_pairs__positives_are_never_drawn(void **state) {
    (void)state;
    static const vlp_real row[N] = {50, 40, 30, 0, 1, 2};
    groups g;
    distinct(&g);
    g.images[1] = g.images[0];                 /* another caption of the picture */
    g.captions[2] = g.captions[0];             /* the same caption elsewhere */
    assert_true(misfit(&g, 0, row, 1) < 13.9); /* 2 degrees of freedom */
    for (int i = 0; i < N; i++) g.captions[i] = 7;
    vlp_rng rng = vlp_rng_at(3, VLP_RNG_ITM, 0, 1);
    assert_int_equal(vlp_itm_draw(&g.pairs, 0, row, 1, &rng), -1);
}

static void
test_objectives_pairs__extreme_similarities_neither_overflow_nor_underflow(void **state) {
    (void)state;
    static const vlp_real row[N] = {0, -10000, -10050, -20000, -20000, -20000};
    groups g;
    distinct(&g);
    for (uint64_t key = 0; key < 1000; key++) {
        vlp_rng rng = vlp_rng_at(3, VLP_RNG_ITM, 0, key);
        assert_int_equal(vlp_itm_draw(&g.pairs, 0, row, 1, &rng), 1);
    }
}

/* The formula of the header, from the similarities alone. */
static double itc_of(const objectives_world *w, double smoothing) {
    const vlp_real *s = vlp_real_data(w->encodings.i2t);
    double loss = 0;
    for (int direction = 0; direction < 2; direction++)
        for (int64_t i = 0; i < OBJECTIVES_BATCH; i++) {
            double sum = 0, dot = 0, positives = 0;
            for (int64_t j = 0; j < OBJECTIVES_BATCH; j++)
                positives += vlp_pairs_positive(&w->pairs, i, j);
            for (int64_t j = 0; j < OBJECTIVES_BATCH; j++) {
                double x =
                    (double)(direction ? s[j * OBJECTIVES_BATCH + i] : s[i * OBJECTIVES_BATCH + j]);
                double q = smoothing / OBJECTIVES_BATCH;
                if (vlp_pairs_positive(&w->pairs, i, j)) q += (1 - smoothing) / positives;
                sum += exp(x);
                dot += q * x;
            }
            loss += log(sum) - dot;
        }
    return loss / (2 * OBJECTIVES_BATCH);
}

static void test_objectives_pairs__itc_spreads_targets_over_duplicates(void **state) {
    (void)state;
    static const double smoothings[] = {0, 0.2};
    for (size_t k = 0; k < VLP_COUNT(smoothings); k++) {
        static objectives_world w;
        vlp_objective_options options = objectives_defaults();
        options.itc_label_smoothing = smoothings[k];
        objectives_open(&w, &options, 0);
        for (int duplicates = 0; duplicates < 3; duplicates++) {
            if (duplicates > 0) w.image_groups[1] = w.image_groups[0];
            if (duplicates > 1) w.caption_groups[3] = w.caption_groups[1];
            objectives_loss(&w, false);
            assert_true(fabs(objectives_term(&w, "itc") - itc_of(&w, smoothings[k])) < 1e-5);
        }
        objectives_close(&w);
    }
}

static void test_objectives_pairs__a_model_that_knows_nothing_loses_chance(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = objectives_defaults();
    objectives_open(&w, &options, 0);
    vlp_params *params = w.model->params;
    memset(params->values, 0, (size_t)params->total * sizeof *params->values);
    /* the matching head's best guess: two negatives to one pair */
    vlp_real_data(w.model->match_head.bias)[0] = (vlp_real)log(2.0);
    objectives_loss(&w, false);
    assert_true(fabs(objectives_chance(&w, "itc") - log(4.0)) < 1e-9);
    assert_true(fabs(objectives_chance(&w, "itm") - 0.6365141683) < 1e-9);
    assert_true(fabs(objectives_chance(&w, "mlm") - log((double)vlp_tokenizer_size(w.tokenizer))) <
                1e-9);
    assert_true(objectives_chance(&w, "mim") > 0.5);
    static const char *const names[] = {"itc", "itm", "mlm"};
    for (size_t i = 0; i < VLP_COUNT(names); i++)
        if (!(fabs(objectives_term(&w, names[i]) - objectives_chance(&w, names[i])) < 1e-5))
            fail_msg("%s: %g, chance %g", names[i], objectives_term(&w, names[i]),
                     objectives_chance(&w, names[i]));
    objectives_close(&w);
}

static void test_objectives_pairs__a_batch_without_negatives_has_only_true_pairs(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = objectives_defaults();
    objectives_open(&w, &options, 0);
    for (int i = 0; i < OBJECTIVES_BATCH; i++) w.caption_groups[i] = 1;
    vlp_params *params = w.model->params;
    memset(params->values, 0, (size_t)params->total * sizeof *params->values);
    vlp_real_data(w.model->match_head.bias)[1] = 20; /* "a pair" */
    objectives_loss(&w, false);
    assert_true(objectives_term(&w, "itm") < 1e-6);
    assert_true(objectives_chance(&w, "itm") == 0);
    objectives_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objectives_pairs__negatives_are_drawn_in_proportion),
        cmocka_unit_test(test_objectives_pairs__positives_are_never_drawn),
        cmocka_unit_test(
            test_objectives_pairs__extreme_similarities_neither_overflow_nor_underflow),
        cmocka_unit_test(test_objectives_pairs__itc_spreads_targets_over_duplicates),
        cmocka_unit_test(test_objectives_pairs__a_model_that_knows_nothing_loses_chance),
        cmocka_unit_test(test_objectives_pairs__a_batch_without_negatives_has_only_true_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
