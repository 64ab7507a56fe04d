#include "core/rng.h"
#include "objectives/mlm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "tests/text_fixture.h"

enum { FIRST = 5, WORDS = 60, PIECES = 20, VOCAB = FIRST + WORDS + PIECES, LENGTH = 64 };

/* [PAD] [UNK] [CLS] [SEP] [MASK] w0 .. w59 ##p0 .. ##p19 */
static vlp_tokenizer *open_tokenizer(void) {
    vlp_buf vocab = {0};
    assert_int_equal(vlp_buf_puts(&vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"), VLP_OK);
    for (int i = 0; i < WORDS; i++) assert_int_equal(vlp_buf_printf(&vocab, "w%d\n", i), VLP_OK);
    for (int i = 0; i < PIECES; i++) assert_int_equal(vlp_buf_printf(&vocab, "##p%d\n", i), VLP_OK);
    vlp_tokenizer *tokenizer = text_open(vocab.data, NULL);
    vlp_buf_free(&vocab);
    return tokenizer;
}

static vlp_mlm_masking masking_of(const vlp_tokenizer *tokenizer) {
    return (vlp_mlm_masking){.probability = 0.15,
                             .mask = 0.8,
                             .random = 0.1,
                             .vocab = vlp_tokenizer_size(tokenizer),
                             .special = vlp_tokenizer_special(tokenizer),
                             .tokenizer = tokenizer};
}

typedef struct {
    int32_t ids[LENGTH], masked[LENGTH], positions[LENGTH];
    uint8_t mask[LENGTH];
    int64_t n, count;
} text;

/* [CLS], n ordinary tokens, [SEP], padding; one in five ordinary tokens continues a word. */
static void make(text *t, int64_t n, uint64_t key) {
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, key);
    *t = (text){.n = n};
    t->ids[0] = 2;
    for (int64_t i = 1; i <= n; i++) {
        bool piece = i > 1 && vlp_rng_below(&rng, 5) == 0;
        t->ids[i] = piece ? (int32_t)(FIRST + WORDS + vlp_rng_below(&rng, PIECES))
                          : (int32_t)(FIRST + vlp_rng_below(&rng, WORDS));
    }
    t->ids[n + 1] = 3;
    for (int64_t i = 0; i < n + 2; i++) t->mask[i] = 1;
}

static void mask_text(const vlp_mlm_masking *m, text *t, uint64_t key) {
    vlp_rng rng = vlp_rng_at(9, VLP_RNG_MLM, 0, key);
    t->count = vlp_mlm_mask(m, t->ids, t->mask, LENGTH, &rng, t->masked, t->positions);
}

/* What holds for every text: positions ascend and are ordinary, other tokens are untouched. */
static void check_text(const text *t) {
    int64_t next = 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        bool chosen = next < t->count && t->positions[next] == i;
        next += chosen;
        if (chosen)
            assert_true(i >= 1 && i <= t->n && t->ids[i] >= FIRST);
        else
            assert_int_equal(t->masked[i], t->ids[i]);
        if (chosen && t->masked[i] != 4) assert_true(t->masked[i] == 1 || t->masked[i] >= FIRST);
    }
    assert_int_equal(next, t->count);
}

static bool near(double count, double n, double p) {
    return fabs(count - n * p) < 4 * sqrt(n * p * (1 - p));
}

static void test_objectives_mlm__chooses_fifteen_percent_and_corrupts_8_1_1(void **state) {
    (void)state;
    enum { TEXTS = 4000, TOKENS = 40 };
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    int64_t chosen = 0, masks = 0, kept = 0, at[LENGTH] = {0};
    for (uint64_t key = 0; key < TEXTS; key++) {
        text t;
        make(&t, TOKENS, key);
        mask_text(&m, &t, key);
        check_text(&t);
        assert_int_equal(t.count, 6); /* round(0.15 x 40) */
        for (int64_t i = 0; i < t.count; i++) {
            int32_t p = t.positions[i];
            chosen++;
            at[p]++;
            masks += t.masked[p] == 4;
            kept += t.masked[p] == t.ids[p];
        }
    }
    double n = (double)chosen, square = 0, each = n / TOKENS;
    double by_chance = 0.1 / (VOCAB - 4); /* a random token that is the old one */
    assert_true(near((double)masks, n, 0.8));
    assert_true(near((double)kept, n, 0.1 + by_chance));
    for (int i = 1; i <= TOKENS; i++)
        square += ((double)at[i] - each) * ((double)at[i] - each) / each;
    assert_true(square < 72); /* 39 degrees of freedom: one in a thousand exceeds 72 */
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__random_tokens_are_uniform(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    m.probability = 1;
    m.mask = 0;
    m.random = 1;
    int64_t seen[VOCAB] = {0}, n = 0;
    for (uint64_t key = 0; key < 500; key++) {
        text t;
        make(&t, 40, key);
        mask_text(&m, &t, key);
        assert_int_equal(t.count, 40);
        for (int64_t i = 0; i < t.count; i++) seen[t.masked[t.positions[i]]]++;
        n += t.count;
    }
    double each = (double)n / (VOCAB - 4), square = 0;
    assert_int_equal(seen[0] + seen[2] + seen[3] + seen[4], 0);
    for (int i = 0; i < VOCAB; i++)
        if (i == 1 || i >= FIRST)
            square += ((double)seen[i] - each) * ((double)seen[i] - each) / each;
    assert_true(square < 125); /* 80 degrees of freedom, one in a thousand */
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__whole_words_stay_together_within_the_budget(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    m.whole_words = true;
    int64_t chosen = 0, wanted = 0;
    for (uint64_t key = 0; key < 2000; key++) {
        text t;
        bool hit[LENGTH] = {false};
        int64_t n = 1 + (int64_t)(key % 50);
        make(&t, n, key);
        mask_text(&m, &t, key);
        check_text(&t);
        assert_true(t.count > 0 && t.count <= vlp_mlm_most(&m, n));
        chosen += t.count;
        wanted += vlp_mlm_budget(&m, n);
        for (int64_t i = 0; i < t.count; i++) hit[t.positions[i]] = true;
        for (int64_t i = 2; i <= n; i++)
            if (t.ids[i] >= FIRST + WORDS) assert_int_equal(hit[i], hit[i - 1]);
        if (t.count > vlp_mlm_budget(&m, n)) /* no word fitted: one was taken all the same */
            assert_int_equal(t.positions[t.count - 1] - t.positions[0], t.count - 1);
    }
    assert_true((double)chosen > 0.97 * (double)wanted);
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__the_shortest_word_is_chosen_where_none_fits(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    m.whole_words = true;
    static const int32_t piece = FIRST + WORDS;
    for (uint64_t key = 0; key < 50; key++) {
        text t;
        make(&t, 5, key); /* a word of three pieces and one of two; the budget is one token */
        for (int i = 1; i <= 5; i++) t.ids[i] = i == 1 || i == 4 ? FIRST + i : piece + i;
        mask_text(&m, &t, key);
        assert_int_equal(t.count, 2);
        assert_true(t.positions[0] == 4 && t.positions[1] == 5);
        make(&t, 9, key); /* one word, longer than there is room for */
        for (int i = 1; i <= 9; i++) t.ids[i] = i == 1 ? FIRST : piece + i;
        vlp_rng rng = vlp_rng_at(9, VLP_RNG_MLM, 0, key);
        t.count = vlp_mlm_mask(&m, t.ids, t.mask, 11, &rng, t.masked, t.positions);
        assert_int_equal(t.count, vlp_mlm_most(&m, 11));
        assert_true(t.count == 4 && t.positions[0] == 1 && t.positions[3] == 4);
    }
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__a_key_decides_and_another_differs(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    int differ = 0;
    for (uint64_t key = 0; key < 100; key++) {
        text a, b, c;
        make(&a, 40, 7);
        b = c = a;
        mask_text(&m, &a, key);
        mask_text(&m, &b, key);
        mask_text(&m, &c, key + 1);
        assert_memory_equal(&a, &b, sizeof a);
        differ += memcmp(&a, &c, sizeof a) != 0;
    }
    assert_true(differ > 95);
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__texts_without_ordinary_tokens_choose_nothing(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    for (int64_t n = 0; n <= 3; n++) {
        text t;
        make(&t, n, 1);
        for (int64_t i = 1; i <= n; i++) t.ids[i] = i % 2 ? 3 : 4; /* [SEP] [MASK] */
        mask_text(&m, &t, 1);
        assert_int_equal(t.count, 0);
        assert_memory_equal(t.masked, t.ids, sizeof t.ids);
    }
    vlp_tokenizer_free(tokenizer);
}

static void test_objectives_mlm__the_budget_bounds_every_length(void **state) {
    (void)state;
    vlp_tokenizer *tokenizer = open_tokenizer();
    vlp_mlm_masking m = masking_of(tokenizer);
    static const double shares[] = {0.001, 0.15, 0.5, 1};
    for (size_t s = 0; s < VLP_COUNT(shares); s++)
        for (int64_t n = 0; n <= LENGTH - 2; n++) {
            text t;
            m.probability = shares[s];
            make(&t, n, (uint64_t)n);
            mask_text(&m, &t, 3);
            check_text(&t);
            int64_t want = llround(shares[s] * (double)n);
            assert_int_equal(t.count, n == 0 ? 0 : want < 1 ? 1 : want);
            assert_true(t.count <= vlp_mlm_budget(&m, LENGTH));
        }
    vlp_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objectives_mlm__chooses_fifteen_percent_and_corrupts_8_1_1),
        cmocka_unit_test(test_objectives_mlm__random_tokens_are_uniform),
        cmocka_unit_test(test_objectives_mlm__whole_words_stay_together_within_the_budget),
        cmocka_unit_test(test_objectives_mlm__the_shortest_word_is_chosen_where_none_fits),
        cmocka_unit_test(test_objectives_mlm__a_key_decides_and_another_differs),
        cmocka_unit_test(test_objectives_mlm__texts_without_ordinary_tokens_choose_nothing),
        cmocka_unit_test(test_objectives_mlm__the_budget_bounds_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
