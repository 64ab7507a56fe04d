/* The momentum twin and its queues: how they follow, what the losses make of them, and how they are
 * kept in a run's state. */
#include "core/file.h"
#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "tests/fixture_objectives.h"

enum { B = OBJECTIVES_BATCH, E = 6, QUEUE = 7 };

static vlp_objective_options with_momentum(void) {
    vlp_objective_options options = objectives_defaults();
    options.mim_weight = 0;
    options.momentum_decay = 0.75;
    options.momentum_queue = QUEUE;
    options.itc_alpha = options.mlm_alpha = 0.4;
    return options;
}

/* A twin that is not the model any more. */
static void disturb(vlp_params *params) {
    vlp_rng rng = vlp_rng_at(9, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < params->count; i++) {
        vlp_tensor *tensor = &params->items[i]->tensor;
        for (int64_t n = 0; n < vlp_numel(tensor); n++)
            vlp_real_data(tensor)[n] += (vlp_real)(0.1 * vlp_rng_normal(&rng));
    }
}

static void test_objectives_momentum__the_twin_starts_as_the_model_and_follows(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = with_momentum();
    objectives_open(&w, &options, 0);
    const vlp_params *model = w.model->params, *twin = w.objectives.momentum->twin->params;
    assert_null(vlp_params_find(twin, "match_head.weight"));
    assert_non_null(vlp_params_find(twin, "objective.mlm.dense.weight"));
    for (int i = 0; i < twin->count; i++) {
        const vlp_tensor *own = &twin->items[i]->tensor;
        vlp_tensor *theirs = &vlp_params_find(model, twin->items[i]->name)->tensor;
        assert_memory_equal(own->data, theirs->data, (size_t)vlp_numel(own) * sizeof(vlp_real));
        vlp_real_data(theirs)[0] += 1;
    }
    vlp_objectives_before_step(&w.objectives, w.model, 0.5);
    assert_true(w.objectives.momentum->ramp == 0.5);
    for (int i = 0; i < twin->count; i++) {
        const vlp_tensor *theirs = &vlp_params_find(model, twin->items[i]->name)->tensor;
        double lag =
            (double)vlp_real_data(theirs)[0] - (double)vlp_real_data(&twin->items[i]->tensor)[0];
        assert_true(fabs(lag - 0.75) < 1e-5);
    }
    objectives_close(&w);
}

static void test_objectives_momentum__a_plain_temperature_is_clamped_before_a_step(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = with_momentum();
    objectives_open_model(&w, &options, 0, true);
    vlp_real *t = vlp_real_data(w.model->temperature);
    t[0] = 7;
    vlp_objectives_before_step(&w.objectives, w.model, 1);
    assert_true(t[0] == (vlp_real)w.model->config.temperature_most);
    t[0] = -1;
    vlp_objectives_before_step(&w.objectives, w.model, 1);
    assert_true(fabs((double)t[0] - exp(-w.model->config.logit_scale_max)) < 1e-6);
    objectives_close(&w);
}

/* A batch goes behind the batch before it and around the end; the oldest are written over. */
static void queue_of(int64_t length) {
    static objectives_world w;
    vlp_objective_options options = with_momentum();
    options.momentum_queue = length;
    objectives_open(&w, &options, 0);
    vlp_momentum *m = w.objectives.momentum;
    for (int64_t step = 0; step < 5; step++) {
        for (int64_t i = 0; i < B; i++) w.image_groups[i] = w.caption_groups[i] = step * B + i;
        objectives_loss(&w, false);
        assert_int_equal(w.encodings.i2t->shape[1], B + length);
        vlp_objectives_after_batch(&w.objectives, &w.pairs);
        int64_t written = (step + 1) * B;
        for (int64_t g = written > length ? written - length : 0; g < written; g++) {
            int64_t row = m->room + g % length;
            assert_int_equal(m->image_groups[row], g);
            assert_int_equal(m->caption_groups[row], g);
            assert_memory_equal(m->images + row * E,
                                vlp_real_data(w.encodings.twin.image_embedding) + g % B * E,
                                E * sizeof(vlp_real));
            assert_memory_equal(m->texts + row * E,
                                vlp_real_data(w.encodings.twin.text_embedding) + g % B * E,
                                E * sizeof(vlp_real));
        }
        assert_int_equal(m->next, written % length);
    }
    objectives_close(&w);
}

static void test_objectives_momentum__queues_have_any_length(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, B - 1, B, B + 1, 3 * B};
    for (size_t i = 0; i < VLP_COUNT(lengths); i++) queue_of(lengths[i]);
}

static double log_sum_exp(const vlp_real *x, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += exp((double)x[j]);
    return log(sum);
}

/* ALBEF's equation 6, from the four matrices of similarities alone. */
static double itc_of(const objectives_world *w, double alpha, const int *positives) {
    const vlp_encodings *e = &w->encodings;
    const vlp_tensor *own[] = {e->i2t, e->t2i}, *soft[] = {e->twin.i2t, e->twin.t2i};
    int64_t c = B + QUEUE;
    double loss = 0;
    for (int direction = 0; direction < 2; direction++)
        for (int64_t i = 0; i < B; i++) {
            const vlp_real *x = vlp_real_data(own[direction]) + i * c;
            const vlp_real *s = vlp_real_data(soft[direction]) + i * c;
            double lse = log_sum_exp(x, c), soft_lse = log_sum_exp(s, c), count = 0;
            for (int64_t j = 0; j < c; j++) count += positives[i * c + j];
            for (int64_t j = 0; j < c; j++) {
                double q = alpha * exp((double)s[j] - soft_lse) +
                           (1 - alpha) * positives[i * c + j] / count;
                loss += q * (lse - (double)x[j]);
            }
        }
    return loss / (2 * B);
}

static void test_objectives_momentum__itc_asks_for_softened_targets(void **state) {
    (void)state;
    static objectives_world w;
    static int positives[B * (B + QUEUE)];
    vlp_objective_options options = with_momentum();
    objectives_open(&w, &options, 0);
    vlp_momentum *m = w.objectives.momentum;
    disturb(m->twin->params);
    for (int64_t i = 0; i < B; i++) positives[i * (B + QUEUE) + i] = 1;
    m->image_groups[m->room + 2] = w.image_groups[1]; /* the picture of an earlier batch */
    positives[1 * (B + QUEUE) + B + 2] = 1;
    m->caption_groups[m->room + 5] = w.caption_groups[3];
    positives[3 * (B + QUEUE) + B + 5] = 1;
    static const double ramps[] = {0, 0.5, 1};
    for (size_t k = 0; k < VLP_COUNT(ramps); k++) {
        m->ramp = ramps[k];
        objectives_loss(&w, true);
        double expected = itc_of(&w, ramps[k] * 0.4, positives);
        assert_true(fabs(objectives_term(&w, "itc") - expected) < 1e-5);
        assert_true(fabs(objectives_chance(&w, "itc") - log(B + QUEUE)) < 1e-12);
    }
    objectives_close(&w);
}

/* Two parts, mixed by alpha; against a twin without opinion the soft part is the mean over V. */
static void test_objectives_momentum__mlm_mixes_the_twins_probabilities(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = with_momentum();
    options.mlm_alpha = 1;
    objectives_open(&w, &options, 0);
    double loss[3];
    static const double ramps[] = {0, 0.3, 1};
    disturb(w.objectives.momentum->twin->params);
    for (int k = 0; k < 3; k++) {
        w.objectives.momentum->ramp = ramps[k];
        objectives_loss(&w, true);
        loss[k] = objectives_term(&w, "mlm");
    }
    assert_true(fabs(loss[0] - loss[2]) > 1e-3);
    assert_true(fabs(loss[1] - (0.7 * loss[0] + 0.3 * loss[2])) < 1e-5);
    /* where model and twin agree and both are uniform, every part is log V */
    vlp_params *both[] = {w.model->params, w.objectives.momentum->twin->params};
    for (int k = 0; k < 2; k++)
        memset(both[k]->values, 0, (size_t)both[k]->total * sizeof(vlp_real));
    objectives_loss(&w, true);
    assert_true(fabs(objectives_term(&w, "mlm") - objectives_chance(&w, "mlm")) < 1e-5);
    objectives_close(&w);
}

static void test_objectives_momentum__the_twin_gets_no_gradient(void **state) {
    (void)state;
    static objectives_world w;
    vlp_objective_options options = with_momentum();
    objectives_open(&w, &options, 0);
    vlp_params_zero_grads(w.model->params);
    assert_int_equal(vlp_tape_backward(w.tape, objectives_loss(&w, true)), VLP_OK);
    assert_null(w.objectives.momentum->twin->params->grads);
    assert_null(w.encodings.twin.image_tokens->grad);
    assert_null(w.encodings.twin.i2t->grad);
    objectives_close(&w);
}

typedef struct {
    char path[300];
} file;

static int temporary(void **state) {
    static file f;
    const char *base = getenv("TMPDIR");
    snprintf(f.path, sizeof f.path, "%s/vlp-momentum-XXXXXX", base ? base : "/tmp");
    int fd = mkstemp(f.path);
    if (fd >= 0) close(fd);
    *state = &f;
    return fd < 0;
}

static int gone(void **state) {
    unlink(((file *)*state)->path);
    return 0;
}

static double value(objectives_world *w) {
    return (double)vlp_real_data(objectives_loss(w, true))[0];
}

static void test_objectives_momentum__state_goes_through_a_file_bit_for_bit(void **state) {
    const file *f = *state;
    static objectives_world a, b;
    vlp_objective_options options = with_momentum();
    objectives_open(&a, &options, 0);
    disturb(a.objectives.momentum->twin->params);
    for (int i = 0; i < 3; i++) {
        value(&a);
        vlp_objectives_after_batch(&a.objectives, &a.pairs);
    }
    assert_int_equal(vlp_momentum_save(a.objectives.momentum, f->path), VLP_OK);
    objectives_open(&b, &options, 0);
    double fresh = value(&b); /* the room is larger by now */
    assert_int_equal(vlp_momentum_load(b.objectives.momentum, f->path), VLP_OK);
    assert_true(value(&a) != fresh);
    assert_true(value(&a) == value(&b));
    assert_int_equal(b.objectives.momentum->next, a.objectives.momentum->next);
    size_t groups = QUEUE * sizeof(int64_t);
    const vlp_momentum *p = a.objectives.momentum, *q = b.objectives.momentum;
    assert_memory_equal(p->image_groups + p->room, q->image_groups + q->room, groups);
    assert_memory_equal(p->caption_groups + p->room, q->caption_groups + q->room, groups);
    objectives_close(&a);
    objectives_close(&b);
}

static void test_objectives_momentum__another_queue_length_is_refused(void **state) {
    const file *f = *state;
    static objectives_world a, b;
    vlp_objective_options options = with_momentum();
    objectives_open(&a, &options, 0);
    assert_int_equal(vlp_momentum_save(a.objectives.momentum, f->path), VLP_OK);
    options.momentum_queue = QUEUE + 1;
    objectives_open(&b, &options, 0);
    assert_int_equal(vlp_momentum_load(b.objectives.momentum, f->path), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "does not fit a queue of 8"));
    objectives_close(&a);
    objectives_close(&b);
}

#define IN_FILE(test) cmocka_unit_test_setup_teardown(test, temporary, gone)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objectives_momentum__the_twin_starts_as_the_model_and_follows),
        cmocka_unit_test(test_objectives_momentum__a_plain_temperature_is_clamped_before_a_step),
        cmocka_unit_test(test_objectives_momentum__queues_have_any_length),
        cmocka_unit_test(test_objectives_momentum__itc_asks_for_softened_targets),
        cmocka_unit_test(test_objectives_momentum__mlm_mixes_the_twins_probabilities),
        cmocka_unit_test(test_objectives_momentum__the_twin_gets_no_gradient),
        IN_FILE(test_objectives_momentum__state_goes_through_a_file_bit_for_bit),
        IN_FILE(test_objectives_momentum__another_queue_length_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
