/* What a query says, and what counts as relevant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/rng.h"
#include "train/search.h"

#include <math.h>

static void check(const char *text, double weight, const char *rest) {
    vlp_query_text q = vlp_query_parse(text);
    assert_string_equal(q.text, rest);
    assert_true(fabs(q.weight - weight) < 1e-12);
}

static void test_train_search__signs_and_weights(void **state) {
    (void)state;
    check("a red car", 1, "a red car");
    check("+snow", 1, "snow");
    check("-night", -1, "night");
    check("2:a dog", 2, "a dog");
    check("-0.5: fog", -0.5, "fog");
    check("1:12:30", 1, "12:30");
    check("3 dogs", 1, "3 dogs");
    check(":-)", 1, ":-)");
    check("+", 1, "");
}

/* Noise alone never reaches the limit often; answers far above it do not widen the spread. */
static void test_train_search__answers_do_not_hide_in_their_own_background(void **state) {
    (void)state;
    enum { N = 4000, ANSWERS = 400 };
    float *values = vlp_alloc(N * sizeof *values);
    double median, spread, clean_median, clean_spread;
    for (int pass = 0; pass < 2; pass++) {
        vlp_rng rng = vlp_rng_at(7, VLP_RNG_TEST, 0, 0);
        for (int i = 0; i < N; i++) values[i] = (float)(0.2 + 0.02 * vlp_rng_normal(&rng));
        for (int i = 0; pass && i < ANSWERS; i++) values[i * 10] = 0.4f;
        if (!pass)
            vlp_background(values, N, &clean_median, &clean_spread);
        else
            vlp_background(values, N, &median, &spread);
    }
    vlp_free(values);
    assert_true(fabs(clean_median - 0.2) < 0.002);
    assert_true(fabs(clean_spread - 0.02) < 0.002);
    assert_true((0.4 - median) / spread > sqrt(2 * log(N)));
    assert_true(spread < 1.25 * clean_spread);
}

static void test_train_search__one_picture_has_no_background(void **state) {
    (void)state;
    float one = 0.3f;
    double median, spread;
    vlp_background(&one, 1, &median, &spread);
    assert_true(fabs(median - 0.3) < 1e-6);
    assert_true(!(spread > 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_search__signs_and_weights),
        cmocka_unit_test(test_train_search__answers_do_not_hide_in_their_own_background),
        cmocka_unit_test(test_train_search__one_picture_has_no_background),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
