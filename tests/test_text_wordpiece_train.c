#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/rng.h"
#include "tests/text_fixture.h"
#include "text/wordpiece_train.h"

static vlp_status train(vlp_tokenizer **out, const char *const *texts, size_t count, bool backwards,
                        vlp_wordpiece_train_options options) {
    vlp_wordpiece_trainer *trainer = NULL;
    vlp_status status = VLP_OK;
    *out = NULL;
    VLP_TRY_DONE(vlp_wordpiece_trainer_new(&trainer, &options));
    for (size_t i = 0; i < count; i++) {
        const char *text = texts[backwards ? count - 1 - i : i];
        VLP_TRY_DONE(vlp_wordpiece_trainer_add(trainer, text, strlen(text)));
    }
    status = vlp_wordpiece_trainer_finish(trainer, out);
done:
    vlp_wordpiece_trainer_free(trainer);
    return status;
}

static void check_tokens(const vlp_tokenizer *tokenizer, const char *const *tokens, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_string_equal(vlp_tokenizer_token(tokenizer, (int32_t)i), tokens[i]);
    assert_int_equal(vlp_tokenizer_size(tokenizer), count);
}

/* hug x10, pug x5, pun x12, bun x4, hugs x5: pairs ug 20, un 16, hug 15, pun 12 ... */
static const char *const hugs[] = {"hug hug hug hug hug hug hug hug hug hug", "pug pug pug pug pug",
                                   "pun pun pun pun pun pun pun pun pun pun pun pun",
                                   "bun bun bun bun", "Hugs HUGS hugs húgs hugs"};

#define HUG_ALPHABET                                                                               \
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "b", "g", "h", "n", "p", "s", "u", "##g", "##n", \
        "##s", "##u"

static void test_text_wordpiece_train__merges_the_most_frequent_pair(void **state) {
    (void)state;
    static const char *const four[] = {HUG_ALPHABET, "##ug", "##un", "hug", "pun"};
    static const char *const all[] = {HUG_ALPHABET, "##ug", "##un", "hug",
                                      "pun",        "pug",  "hugs", "bun"};
    vlp_tokenizer *tokenizer;
    vlp_wordpiece_train_options options = {.vocab_size = 20, .lower_case = true};
    for (int backwards = 0; backwards < 2; backwards++) {
        assert_int_equal(train(&tokenizer, hugs, 5, backwards, options), VLP_OK);
        check_tokens(tokenizer, four, VLP_COUNT(four));
        vlp_tokenizer_free(tokenizer);
    }
    options.vocab_size = 100;
    assert_int_equal(train(&tokenizer, hugs, 5, false, options), VLP_OK);
    check_tokens(tokenizer, all, VLP_COUNT(all));
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece_train__rare_pairs_are_left_alone(void **state) {
    (void)state;
    static const char *const twelve[] = {HUG_ALPHABET, "##ug", "##un", "hug", "pun"};
    vlp_tokenizer *tokenizer;
    vlp_wordpiece_train_options options = {
        .vocab_size = 99, .min_frequency = 12, .lower_case = true};
    assert_int_equal(train(&tokenizer, hugs, 5, false, options), VLP_OK);
    check_tokens(tokenizer, twelve, VLP_COUNT(twelve));
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece_train__cased_text_keeps_its_case(void **state) {
    (void)state;
    static const char *const texts[] = {"Ab Ab"};
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                         "A",     "b",     "##b",   "Ab"};
    vlp_tokenizer *tokenizer;
    assert_int_equal(
        train(&tokenizer, texts, 1, false, (vlp_wordpiece_train_options){.vocab_size = 50}),
        VLP_OK);
    check_tokens(tokenizer, tokens, VLP_COUNT(tokens));
    int32_t id;
    assert_int_equal(vlp_tokenizer_encode(tokenizer, "Ab", 2, false, &id, 1), 1);
    assert_int_equal(id, 8);
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece_train__the_alphabet_is_limited(void **state) {
    (void)state;
    static const char *const texts[] = {"aa aa aa b b c"};
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                         "a",     "b",     "##a",   "aa"};
    vlp_tokenizer *tokenizer;
    vlp_wordpiece_train_options options = {.vocab_size = 50, .limit_alphabet = 2};
    assert_int_equal(train(&tokenizer, texts, 1, false, options), VLP_OK);
    check_tokens(tokenizer, tokens, VLP_COUNT(tokens));
    vlp_tokenizer_free(tokenizer);
}

static void test_text_wordpiece_train__impossible_requests_are_refused(void **state) {
    (void)state;
    static const char *const blank[] = {"", " \t", "\u200b"};
    static const struct {
        const char *const *texts;
        size_t count;
        vlp_wordpiece_train_options options;
        const char *says;
    } rows[] = {{blank, 3, {.vocab_size = 50}, "no words"},
                {hugs, 5, {.vocab_size = 15, .lower_case = true}, "the 16 that the alphabet"},
                {hugs, 5, {.vocab_size = 0}, "must be positive"}};
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        vlp_tokenizer *tokenizer;
        assert_int_equal(train(&tokenizer, rows[i].texts, rows[i].count, false, rows[i].options),
                         VLP_ERR_USAGE);
        assert_null(tokenizer);
        assert_non_null(strstr(vlp_error(), rows[i].says));
    }
}

/* Words of a few syllables, so that pairs repeat inside words and tie often. */
static void make_text(vlp_buf *text, uint64_t seed) {
    static const char *const syllables[] = {"a", "aa", "ab", "ba", "aba", "c", "ca", "aaa"};
    vlp_rng rng = vlp_rng_at(seed, VLP_RNG_TEST, 0, 0);
    for (int w = 0; w < 400; w++) {
        for (uint64_t n = 1 + vlp_rng_below(&rng, 4); n; n--)
            assert_int_equal(vlp_buf_puts(text, syllables[vlp_rng_below(&rng, 8)]), VLP_OK);
        assert_int_equal(vlp_buf_puts(text, " "), VLP_OK);
    }
}

enum { SLOW_WORDS = 400, SLOW_CHARS = 16 };

typedef struct {
    int32_t symbols[SLOW_WORDS][SLOW_CHARS];
    int lens[SLOW_WORDS];
} slow;

/* Counts all pairs of all words from the beginning; the best, ties to the smaller ids. */
static int64_t slow_best(const slow *s, int32_t size, int64_t *counts, int32_t *left,
                         int32_t *right) {
    memset(counts, 0, (size_t)size * (size_t)size * sizeof *counts);
    for (int w = 0; w < SLOW_WORDS; w++)
        for (int i = 0; i + 1 < s->lens[w]; i++)
            counts[s->symbols[w][i] * size + s->symbols[w][i + 1]]++;
    int64_t best = 0;
    for (int32_t p = 0; p < size * size; p++)
        if (counts[p] > best) {
            best = counts[p];
            *left = p / size;
            *right = p % size;
        }
    return best;
}

static void slow_merge(slow *s, int32_t left, int32_t right, int32_t id) {
    for (int w = 0; w < SLOW_WORDS; w++) {
        int kept = 0;
        int32_t *symbols = s->symbols[w];
        for (int i = 0; i < s->lens[w]; i++) {
            bool here = i + 1 < s->lens[w] && symbols[i] == left && symbols[i + 1] == right;
            symbols[kept++] = here ? id : symbols[i];
            i += here;
        }
        s->lens[w] = kept;
    }
}

static void slow_start(slow *s, const vlp_tokenizer *tokenizer, const char *text) {
    for (int w = 0; w < SLOW_WORDS; w++, text++)
        for (s->lens[w] = 0; *text != ' '; text++) {
            char token[4] = "##?";
            token[2] = *text;
            s->symbols[w][s->lens[w]] = vlp_tokenizer_find(tokenizer, token + (s->lens[w] ? 0 : 2));
            s->lens[w]++;
        }
}

static void test_text_wordpiece_train__incremental_counts_equal_recounting(void **state) {
    (void)state;
    enum { SIZE = 120 };
    static int64_t counts[SIZE * SIZE];
    static slow s;
    for (uint64_t seed = 0; seed < 5; seed++) {
        vlp_buf text = {0};
        make_text(&text, seed);
        const char *texts[] = {text.data};
        vlp_tokenizer *tokenizer;
        assert_int_equal(
            train(&tokenizer, texts, 1, false, (vlp_wordpiece_train_options){.vocab_size = SIZE}),
            VLP_OK);
        slow_start(&s, tokenizer, text.data);
        int32_t next = 11, left = 0, right = 0; /* specials, a b c, ##a ##b ##c */
        while (next < SIZE && slow_best(&s, SIZE, counts, &left, &right) >= 2) {
            char token[64];
            snprintf(token, sizeof token, "%s%s", vlp_tokenizer_token(tokenizer, left),
                     vlp_tokenizer_token(tokenizer, right) + 2);
            int32_t id = vlp_tokenizer_find(tokenizer, token);
            assert_in_range(id, 11, next);
            slow_merge(&s, left, right, id);
            next += id == next;
        }
        assert_int_equal(next, vlp_tokenizer_size(tokenizer));
        vlp_tokenizer_free(tokenizer);
        vlp_buf_free(&text);
    }
}

static void test_text_wordpiece_train__every_failed_allocation_is_reported(void **state) {
    (void)state;
    int64_t failures = 0;
    for (vlp_status status = VLP_ERR_MEMORY; status != VLP_OK; failures++) {
        vlp_tokenizer *tokenizer;
        vlp_alloc_fail_at(failures + 1);
        status = train(&tokenizer, hugs, 5, false,
                       (vlp_wordpiece_train_options){.vocab_size = 30, .lower_case = true});
        vlp_alloc_fail_at(0);
        if (status != VLP_OK) assert_int_equal(status, VLP_ERR_MEMORY);
        vlp_tokenizer_free(tokenizer);
    }
    assert_true(failures > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_wordpiece_train__merges_the_most_frequent_pair),
        cmocka_unit_test(test_text_wordpiece_train__rare_pairs_are_left_alone),
        cmocka_unit_test(test_text_wordpiece_train__cased_text_keeps_its_case),
        cmocka_unit_test(test_text_wordpiece_train__the_alphabet_is_limited),
        cmocka_unit_test(test_text_wordpiece_train__impossible_requests_are_refused),
        cmocka_unit_test(test_text_wordpiece_train__incremental_counts_equal_recounting),
        cmocka_unit_test(test_text_wordpiece_train__every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
