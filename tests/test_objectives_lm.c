/* What a decoder is trained to write, and what it shares with the text tower. */
#include "core/ops.h"
#include "objectives/lm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/fixture_objectives.h"

enum { ROWS = 2, TOKENS = 4, WORDS = 5 };
static const int32_t ids[] = {9, 1, 2, 3, 9, 4, 0, 0};
static const uint8_t mask[] = {1, 1, 1, 1, 1, 1, 0, 0};
static const vlp_tokens texts = {ROWS, TOKENS, ids, NULL, mask};

static void test_objectives_lm__each_token_predicts_the_next(void **state) {
    (void)state;
    int32_t targets[ROWS * TOKENS];
    vlp_lm_targets(&texts, 0, targets);
    const int32_t all[] = {1, 2, 3, -1, 4, -1, -1, -1};
    assert_memory_equal(targets, all, sizeof all);
    vlp_lm_targets(&texts, 3, targets);
    const int32_t after_prompt[] = {-1, -1, 3, -1, -1, -1, -1, -1};
    assert_memory_equal(targets, after_prompt, sizeof after_prompt);
}

static vlp_real logits[ROWS * TOKENS * WORDS];

static vlp_tape *tape_with_logits(vlp_tensor **x) {
    vlp_tape *tape;
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, 0);
    for (size_t i = 0; i < VLP_COUNT(logits); i++) logits[i] = (vlp_real)vlp_rng_normal(&rng);
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    assert_int_equal(vlp_tape_open(tape, 1 << 16), VLP_OK);
    *x = vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){ROWS, TOKENS, WORDS}, logits, false);
    return tape;
}

/* Of a text's tokens, from first on: sum of -(1 - s) log p(target) - s mean log p. */
static double nll(int64_t row, double s, const int32_t *targets) {
    double sum = 0;
    for (int64_t r = row * TOKENS; r < (row + 1) * TOKENS; r++) {
        double z = 0, mean = 0;
        if (targets[r] < 0) continue;
        for (int v = 0; v < WORDS; v++) z += exp((double)logits[r * WORDS + v]);
        for (int v = 0; v < WORDS; v++) mean += (double)logits[r * WORDS + v] / WORDS;
        sum += log(z) - (1 - s) * (double)logits[r * WORDS + targets[r]] - s * mean;
    }
    return sum;
}

static void test_objectives_lm__answers_count_by_their_weights(void **state) {
    (void)state;
    vlp_tensor *x;
    vlp_tape *tape = tape_with_logits(&x);
    int32_t targets[ROWS * TOKENS];
    const vlp_real weights[] = {0.25, 2};
    vlp_lm_targets(&texts, 0, targets);
    vlp_answers a = {.targets = targets, .weights = weights, .divisor = 3, .label_smoothing = 0.1};
    double expected = (0.25 * nll(0, 0.1, targets) + 2 * nll(1, 0.1, targets)) / 3;
    assert_true(fabs((double)vlp_real_data(vlp_answer_loss(tape, x, &a))[0] - expected) < 1e-5);
    vlp_tape_free(tape);
}

/* Taught by a twin that gives every word the same probability: the mean of -log p over words. */
static void test_objectives_lm__a_twin_has_its_share_of_the_targets(void **state) {
    (void)state;
    static const vlp_real level[ROWS * TOKENS * WORDS];
    vlp_tensor *x;
    vlp_tape *tape = tape_with_logits(&x);
    int32_t targets[ROWS * TOKENS];
    const vlp_real weights[] = {1, 1};
    vlp_lm_targets(&texts, 0, targets);
    vlp_answers a = {
        .targets = targets, .weights = weights, .divisor = 1, .soft = level, .alpha = 0.4};
    double expected = 0;
    for (int64_t b = 0; b < ROWS; b++)
        expected += 0.6 * nll(b, 0, targets) + 0.4 * nll(b, 1, targets);
    assert_true(fabs((double)vlp_real_data(vlp_answer_loss(tape, x, &a))[0] - expected) < 1e-5);
    vlp_tape_free(tape);
}

static vlp_objective_options blip(void) {
    vlp_objective_options options = objectives_defaults();
    options.mlm_weight = options.mim_weight = 0;
    options.lm_weight = 1;
    return options;
}

static void test_objectives_lm__the_decoder_owns_its_self_attention_only(void **state) {
    (void)state;
    vlp_objective_options options = blip();
    objectives_world w;
    objectives_open(&w, &options, 0);
    const vlp_params *params = w.model->params;
    assert_non_null(vlp_params_find(params, "decoder.blocks.0.attn.qkv.weight"));
    assert_non_null(vlp_params_find(params, "decoder.blocks.0.attn.proj.bias"));
    assert_non_null(vlp_params_find(params, "decoder.blocks.0.norm1.weight"));
    assert_null(vlp_params_find(params, "decoder.blocks.0.mlp.fc1.weight"));
    assert_null(vlp_params_find(params, "decoder.words"));
    const vlp_block *own = w.model->decoder.stack.blocks, *other = w.model->text.stack.blocks;
    assert_ptr_equal(own->fc1.weight, other->fc1.weight);
    assert_ptr_equal(own->cross_kv.weight, other->cross_kv.weight);
    assert_ptr_not_equal(own->qkv.weight, other->qkv.weight);
    objectives_close(&w);
}

static double loss_of(objectives_world *w) {
    objectives_loss(w, false);
    return objectives_term(w, "lm");
}

/* The first token is [DEC] whatever the caption begins with; padding teaches nothing; each picture
 * is looked at. */
static void test_objectives_lm__reads_the_caption_and_its_picture(void **state) {
    (void)state;
    vlp_objective_options options = blip();
    objectives_world w;
    objectives_open(&w, &options, 0);
    double before = loss_of(&w);
    assert_true(fabs(before - objectives_chance(&w, "lm")) < 5);
    for (int b = 0; b < OBJECTIVES_BATCH; b++) w.ids[b * OBJECTIVES_LENGTH] = 7;
    for (int i = 0; i < OBJECTIVES_TOKENS; i++)
        if (!w.mask[i]) w.ids[i] = 6;
    assert_true(loss_of(&w) == before);
    for (int i = 0; i < OBJECTIVES_PIXELS / OBJECTIVES_BATCH; i++) w.pixels[i] = -w.pixels[i];
    double other = loss_of(&w);
    assert_true(fabs(other - before) > 1e-6);
    w.ids[1] = 8;
    assert_true(fabs(loss_of(&w) - other) > 1e-6);
    objectives_close(&w);
}

static void test_objectives_lm__needs_a_decoder(void **state) {
    (void)state;
    vlp_model *model;
    vlp_model_config config = objectives_model(20, 0);
    vlp_objective_options options = blip();
    vlp_objectives objectives;
    assert_int_equal(vlp_model_new(&model, &config), VLP_OK);
    assert_int_equal(vlp_objectives_create(
                         &objectives, &(vlp_objective_setup){.model = model, .options = &options}),
                     VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "fusion_in_text"));
    vlp_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objectives_lm__each_token_predicts_the_next),
        cmocka_unit_test(test_objectives_lm__answers_count_by_their_weights),
        cmocka_unit_test(test_objectives_lm__a_twin_has_its_share_of_the_targets),
        cmocka_unit_test(test_objectives_lm__the_decoder_owns_its_self_attention_only),
        cmocka_unit_test(test_objectives_lm__reads_the_caption_and_its_picture),
        cmocka_unit_test(test_objectives_lm__needs_a_decoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
