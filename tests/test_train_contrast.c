/* A contrast in two passes over micro-batches against the same contrast over the whole batch. */
#include "core/memory.h"
#include "train/contrast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "tests/fixture_objectives.h"

enum { PARTS = 2, PART = OBJECTIVES_BATCH / PARTS };

static vlp_objective_options contrast_only(void) {
    vlp_objective_options options = objectives_defaults();
    options.itm_weight = options.mlm_weight = options.mim_weight = 0;
    options.itc_weight = 0.7;
    options.itc_label_smoothing = 0.1;
    return options;
}

static vlp_pairs part_of(const objectives_world *w, int64_t part) {
    int64_t at = part * PART;
    vlp_pairs pairs = w->pairs;
    pairs.batch = pairs.tokens.batch = PART;
    pairs.pixels += at * OBJECTIVES_PIXELS / OBJECTIVES_BATCH;
    pairs.tokens.ids += at * OBJECTIVES_LENGTH;
    pairs.tokens.attention_mask += at * OBJECTIVES_LENGTH;
    pairs.keys += at;
    pairs.image_groups += at;
    pairs.caption_groups += at;
    return pairs;
}

/* Both passes; *loss = of the whole batch. The gradients are left in the parameters. */
static void two_passes(objectives_world *w, vlp_contrast *c, double *loss) {
    vlp_step step = {w->tape, w->model, &w->objectives};
    vlp_tape_set_training(w->tape, true);
    vlp_params_zero_grads(w->model->params);
    for (int64_t p = 0; p < PARTS; p++) {
        vlp_pairs pairs = part_of(w, p);
        vlp_tape_begin(w->tape, 1, (uint64_t)p);
        assert_int_equal(vlp_contrast_embed(c, &step, p, &pairs), VLP_OK);
    }
    assert_int_equal(vlp_contrast_solve(c, &step, 1, loss), VLP_OK);
    for (int64_t p = 0; p < PARTS; p++) {
        vlp_pairs pairs = part_of(w, p);
        vlp_tensor *terms[VLP_MAX_OBJECTIVES];
        vlp_tape_begin(w->tape, 1, (uint64_t)p);
        vlp_tensor *sum = vlp_step_loss(&step, &pairs, vlp_contrast_cotangents(c, p), terms);
        assert_null(terms[0]);
        assert_int_equal(vlp_tape_backward(w->tape, sum), VLP_OK);
    }
}

static vlp_contrast *open_contrast(const objectives_world *w) {
    vlp_contrast *c;
    assert_int_equal(vlp_contrast_new(&c, PARTS, PART, w->model->config.embedding), VLP_OK);
    return c;
}

static void compare_with_whole_batch(const vlp_objective_options *options, const char *name) {
    objectives_world w;
    objectives_open(&w, options, 0);
    w.image_groups[3] = w.image_groups[0]; /* a positive across the parts */
    vlp_contrast *c = open_contrast(&w);
    double loss[VLP_MAX_OBJECTIVES];
    two_passes(&w, c, loss);
    vlp_params *params = w.model->params;
    size_t bytes = (size_t)params->total * sizeof *params->grads;
    vlp_real *grads = vlp_alloc(bytes);
    memcpy(grads, params->grads, bytes);

    vlp_params_zero_grads(params);
    vlp_tensor *sum = objectives_loss(&w, true);
    assert_true(fabs(loss[0] - objectives_term(&w, name)) < 1e-6);
    assert_int_equal(vlp_tape_backward(w.tape, sum), VLP_OK);
    double most = 0, apart = 0;
    for (int64_t i = 0; i < params->total; i++) {
        most = fmax(most, fabs((double)params->grads[i]));
        apart = fmax(apart, fabs((double)params->grads[i] - (double)grads[i]));
    }
    assert_true(most > 0.01);
    assert_true(apart < 1e-5 * most);
    vlp_free(grads);
    vlp_contrast_free(c);
    objectives_close(&w);
}

static void test_train_contrast__two_passes_equal_the_whole_batch(void **state) {
    (void)state;
    vlp_objective_options options = contrast_only();
    compare_with_whole_batch(&options, "itc");
    options.itc_weight = 0;
    options.sigmoid_weight = 0.7;
    compare_with_whole_batch(&options, "sigmoid");
}

/* The losses that do not contrast leave the order of random ops as the first pass had it. */
static void test_train_contrast__second_pass_drops_the_same_elements(void **state) {
    (void)state;
    objectives_world w;
    vlp_objective_options options = objectives_defaults();
    objectives_open(&w, &options, 0.3);
    vlp_contrast *c = open_contrast(&w);
    vlp_step step = {w.tape, w.model, &w.objectives};
    double loss[VLP_MAX_OBJECTIVES];
    two_passes(&w, c, loss);
    vlp_pairs pairs = part_of(&w, 0);
    vlp_tape_begin(w.tape, 1, 0);
    vlp_encodings first, second;
    vlp_tape_set_grad(w.tape, false);
    vlp_encodings_begin(&first, w.tape, w.model, &pairs);
    vlp_real kept[2][PART * 6];
    memcpy(kept[0], vlp_real_data(vlp_encodings_image_embedding(&first)), sizeof kept[0]);
    memcpy(kept[1], vlp_real_data(vlp_encodings_text_embedding(&first)), sizeof kept[1]);
    vlp_tape_set_grad(w.tape, true);
    vlp_tape_begin(w.tape, 1, 0);
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_encodings_begin(&second, w.tape, w.model, &pairs);
    second.cotangents = vlp_contrast_cotangents(c, 0);
    assert_non_null(vlp_objectives_loss(step.objectives, &second, terms));
    assert_memory_equal(kept[0], vlp_real_data(second.image_embedding), sizeof kept[0]);
    assert_memory_equal(kept[1], vlp_real_data(second.text_embedding), sizeof kept[1]);
    vlp_contrast_free(c);
    objectives_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_contrast__two_passes_equal_the_whole_batch),
        cmocka_unit_test(test_train_contrast__second_pass_drops_the_same_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
