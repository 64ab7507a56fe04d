/* Writing text: the cache against whole texts, beam search against all texts, what is drawn. */
#include "core/rng.h"
#include "fusion/generate_internal.h"
#include "fusion/rank.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 6, WIDTH = 8, LENGTH = 4, SOURCES = 2, SIDE = 8, BOS = 4, EOS = 2 };

static vlp_model *model;
static vlp_tape *tape;
static vlp_real pixels[SOURCES * 3 * SIDE * SIDE];

static int set_up(void **state) {
    (void)state;
    vlp_model_config config = {
        .vision = {.image_height = SIDE,
                   .image_width = SIDE,
                   .channels = 3,
                   .patch = 4,
                   .width = WIDTH,
                   .depth = 1,
                   .heads = 2,
                   .mlp_width = 12,
                   .eps = 1e-6,
                   .act = VLP_ACT_GELU,
                   .patch_bias = true,
                   .output_norm = true},
        .decoder = {.vocab = VOCAB,
                    .positions = 8,
                    .width = WIDTH,
                    .depth = 2,
                    .heads = 2,
                    .mlp_width = 12,
                    .context_width = WIDTH,
                    .eps = 1e-12,
                    .act = VLP_ACT_GELU},
        .bos_id = BOS,
        .eos_id = EOS,
    };
    assert_int_equal(vlp_model_new_parts(&model, &config, 0), VLP_OK);
    assert_int_equal(vlp_params_allocate(model->params, false), VLP_OK);
    vlp_rng rng = vlp_rng_at(3, VLP_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < model->params->total; i++) /* far from uniform probabilities */
        model->params->values[i] = (vlp_real)(0.5 * vlp_rng_normal(&rng));
    for (size_t i = 0; i < VLP_COUNT(pixels); i++) pixels[i] = (vlp_real)vlp_rng_normal(&rng);
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    return vlp_tape_open(tape, 1 << 22) == VLP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    vlp_tape_free(tape);
    vlp_model_free(model);
    return 0;
}

static void look(vlp_tensor **keys) {
    vlp_tape_begin(tape, 0, 0);
    vlp_tape_set_grad(tape, false);
    vlp_tensor *x =
        vlp_tape_input(tape, VLP_REAL, 4, (int64_t[]){SOURCES, 3, SIDE, SIDE}, pixels, false);
    vlp_model_decoder_keys(tape, model, vlp_model_image_tokens(tape, model, x), keys);
}

static vlp_generator *writer_of(const vlp_generate_options *o) {
    vlp_generator *w;
    assert_int_equal(vlp_generator_new(&w, model, SOURCES, o), VLP_OK);
    return w;
}

static void write_texts(vlp_generator *w, vlp_writing *out) {
    static const int32_t prompt[] = {BOS};
    vlp_tensor *keys[VLP_MAX_DEPTH];
    look(keys);
    vlp_generator_source s = {.n = SOURCES, .keys = keys, .prompt = prompt, .prompt_length = 1};
    assert_int_equal(vlp_generator_write(w, tape, &s, out), VLP_OK);
}

/* log p of the `length` ids (and of EOS after them if `ended`), the whole text read at once. */
static double whole(int source, const int32_t *ids, int64_t length, bool ended) {
    vlp_tensor *keys[VLP_MAX_DEPTH];
    int32_t index = source;
    double sum = 0, scores[VOCAB];
    look(keys);
    vlp_tokens tokens = {.batch = 1, .length = length, .ids = ids};
    vlp_tensor *logits = vlp_model_decode(
        tape, model, &tokens, &(vlp_stack_input){.context = keys, .context_index = &index});
    for (int64_t l = 0; l < length; l++) {
        if (l + 1 == length && !ended) break;
        vlp_scores_log_softmax(vlp_real_data(logits) + l * VOCAB, VOCAB, scores);
        sum += scores[l + 1 == length ? EOS : ids[l + 1]];
    }
    return sum;
}

static void test_fusion_generate__the_cache_gives_what_the_whole_text_gives(void **state) {
    (void)state;
    vlp_generate_options o = vlp_generate_defaults();
    vlp_writing texts[SOURCES];
    o.beams = 1;
    o.min_length = 0;
    o.max_length = 8;
    vlp_generator *w = writer_of(&o);
    write_texts(w, texts);
    for (int i = 0; i < SOURCES; i++) {
        bool ended = texts[i].length < 8 && texts[i].ids[texts[i].length] == EOS;
        assert_int_equal(texts[i].ids[0], BOS);
        assert_true(texts[i].length > 1);
        assert_true(ended || texts[i].length == 8);
        assert_true(fabs(whole(i, texts[i].ids, texts[i].length, ended) - texts[i].score) < 1e-4);
    }
    vlp_generator_free(w);
}

/* The best of all texts of at most LENGTH tokens, found by trying each. */
static double best_of_all(int source, double penalty, int32_t best[LENGTH], int64_t *best_length) {
    double most = -INFINITY;
    for (int text = 0; text < VOCAB * VOCAB * VOCAB; text++) {
        int32_t ids[LENGTH] = {BOS, text % VOCAB, text / VOCAB % VOCAB, text / VOCAB / VOCAB};
        int64_t length = 1;
        while (length < LENGTH && ids[length] != EOS) length++;
        bool ended = length < LENGTH;
        double score = whole(source, ids, length, ended) / pow((double)length, penalty);
        if (!(score > most)) continue;
        most = score;
        *best_length = length;
        memcpy(best, ids, sizeof ids);
    }
    return most;
}

static void test_fusion_generate__beams_enough_find_the_best_of_all_texts(void **state) {
    (void)state;
    static const double penalties[] = {0, 1, 2};
    for (size_t p = 0; p < VLP_COUNT(penalties); p++) {
        vlp_generate_options o = vlp_generate_defaults();
        vlp_writing texts[SOURCES];
        o.beams = 64;
        o.min_length = 0;
        o.max_length = LENGTH;
        o.length_penalty = penalties[p];
        vlp_generator *w = writer_of(&o);
        write_texts(w, texts);
        for (int i = 0; i < SOURCES; i++) {
            int32_t best[LENGTH];
            int64_t length;
            int32_t ids[LENGTH];
            double score = texts[i].score;
            int64_t found = texts[i].length;
            memcpy(ids, texts[i].ids, sizeof ids);
            assert_true(fabs(best_of_all(i, o.length_penalty, best, &length) - score) < 1e-4);
            assert_int_equal(found, length);
            assert_memory_equal(ids, best, (size_t)length * sizeof *ids);
        }
        vlp_generator_free(w);
    }
}

static void test_fusion_generate__one_source_does_not_change_another(void **state) {
    (void)state;
    vlp_generate_options o = vlp_generate_defaults();
    vlp_writing both[SOURCES], one[SOURCES];
    int32_t ids[8];
    o.max_length = 8;
    vlp_generator *w = writer_of(&o);
    write_texts(w, both);
    double score = both[0].score;
    memcpy(ids, both[0].ids, sizeof ids);
    for (size_t i = VLP_COUNT(pixels) / 2; i < VLP_COUNT(pixels); i++) pixels[i] = -pixels[i];
    write_texts(w, one);
    assert_memory_equal(one[0].ids, ids, sizeof ids);
    assert_true(one[0].score == score);
    vlp_generator_free(w);
}

static void test_fusion_generate__no_end_before_min_length(void **state) {
    (void)state;
    for (int64_t least = 0; least <= 8; least++)
        for (int64_t beams = 1; beams <= 3; beams += 2) {
            vlp_generate_options o = vlp_generate_defaults();
            vlp_writing texts[SOURCES];
            o.beams = beams;
            o.min_length = least;
            o.max_length = 8;
            vlp_generator *w = writer_of(&o);
            write_texts(w, texts);
            for (int i = 0; i < SOURCES; i++) {
                assert_true(texts[i].length >= least);
                for (int64_t l = 1; l < texts[i].length; l++)
                    assert_int_not_equal(texts[i].ids[l], EOS);
            }
            vlp_generator_free(w);
        }
}

static void test_fusion_generate__repetition_is_punished_once_a_token(void **state) {
    (void)state;
    vlp_generate_options o = {.repetition_penalty = 2, .min_length = 3};
    const int32_t ids[] = {1, 3, 1};
    double scores[VOCAB] = {4, 4, 4, -4, -4, -4};
    vlp_scores_process(&o, EOS, ids, 3, scores);
    const double expected[VOCAB] = {4, 2, 4, -8, -4, -4};
    assert_memory_equal(scores, expected, sizeof scores);
    vlp_scores_process(&o, EOS, ids, 2, scores);
    assert_true(isinf(scores[EOS]));
}

/* How often each token of known probabilities is drawn. */
static void draw(const vlp_generate_options *o, int times, double shares[VOCAB]) {
    static const double p[VOCAB] = {0.4, 0.05, 0.25, 0.1, 0.15, 0.05};
    memset(shares, 0, VOCAB * sizeof *shares);
    for (int i = 0; i < times; i++) {
        double scores[VOCAB];
        vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, (uint64_t)i);
        for (int v = 0; v < VOCAB; v++) scores[v] = log(p[v]) + 3;
        shares[vlp_scores_draw(o, VOCAB, scores, &rng)] += 1.0 / times;
    }
}

static void test_fusion_generate__draws_what_the_cuts_leave(void **state) {
    (void)state;
    static const struct {
        vlp_generate_options o;
        double shares[VOCAB];
    } rows[] = {
        {{.top_p = 1, .temperature = 1}, {0.4, 0.05, 0.25, 0.1, 0.15, 0.05}},
        {{.top_k = 2, .top_p = 1, .temperature = 1}, {0.4 / 0.65, 0, 0.25 / 0.65}},
        {{.top_p = 0.7, .temperature = 1}, {0.5, 0, 0.3125, 0, 0.1875}}, /* 0.65 is not enough */
        {{.top_p = 0.64, .temperature = 1}, {0.4 / 0.65, 0, 0.25 / 0.65}},
        {{.top_p = 1e-9, .temperature = 1}, {1}},
        {{.top_k = 2, .top_p = 1, .temperature = 0.5}, {0.16 / 0.2225, 0, 0.0625 / 0.2225}},
    };
    for (size_t r = 0; r < VLP_COUNT(rows); r++) {
        double shares[VOCAB];
        draw(&rows[r].o, 20000, shares);
        for (int v = 0; v < VOCAB; v++) {
            assert_true(fabs(shares[v] - rows[r].shares[v]) < 0.015);
            assert_true(rows[r].shares[v] > 0 || shares[v] == 0);
        }
    }
}

static void test_fusion_generate__choices_are_ranked_as_the_decoder_would_write_them(void **state) {
    (void)state;
    static const int32_t ids[] = {BOS, 5, EOS, BOS, 1, 3, BOS, 3, 0, BOS, 5, 1, BOS, 0, EOS};
    static const uint8_t mask[] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};
    vlp_tokens choices = {5, 3, ids, NULL, mask};
    vlp_tensor *keys[VLP_MAX_DEPTH];
    int32_t order[SOURCES * 5];
    double p[SOURCES * 5];
    look(keys);
    vlp_rank_source s = {SOURCES, keys, NULL, &choices};
    vlp_rank_options o = {.k = 5};
    assert_int_equal(vlp_rank_answers(tape, model, &s, &o, order, p), VLP_OK);
    for (int i = 0; i < SOURCES; i++) {
        double sum = 0, before = INFINITY;
        for (int j = 0; j < 5; j++) {
            int c = order[i * 5 + j];
            double score = whole(i, ids + 3 * c, mask[3 * c + 2] ? 3 : 2, false);
            assert_true(score <= before);
            if (j > 0)
                assert_true(fabs(log(p[i * 5 + j] / p[i * 5 + j - 1]) - score + before) < 1e-4);
            before = score;
            sum += p[i * 5 + j];
        }
        assert_true(fabs(sum - 1) < 1e-9);
    }
}

static void test_fusion_generate__impossible_options_are_named(void **state) {
    (void)state;
    vlp_generate_options o = vlp_generate_defaults();
    assert_int_equal(vlp_generate_check(&o, model), VLP_ERR_USAGE); /* 20 tokens, 8 positions */
    assert_non_null(strstr(vlp_error(), "2 to 8"));
    o.max_length = 8;
    assert_int_equal(vlp_generate_check(&o, model), VLP_OK);
    o.sample = true;
    assert_int_equal(vlp_generate_check(&o, model), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "one beam"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_fusion_generate__##name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_cache_gives_what_the_whole_text_gives),
        TEST(beams_enough_find_the_best_of_all_texts),
        TEST(one_source_does_not_change_another),
        TEST(no_end_before_min_length),
        TEST(repetition_is_punished_once_a_token),
        TEST(draws_what_the_cuts_leave),
        TEST(choices_are_ranked_as_the_decoder_would_write_them),
        TEST(impossible_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
