/* The whole model with all four objectives: gradients against central differences, in double
 * precision. Masks, negatives and dropout follow from the seed and stay the same. */
#include "core/memory.h"
#include "core/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "tests/fixture_objectives.h"

enum { ANYWHERE = 200, OF_EACH = 2 };
static const double h = 1e-5, limit = 1e-6;

/* With gradients on: a forward-only pass counts its ops, and so its dropout masks, differently. */
static double value(objectives_world *w) {
    return (double)vlp_real_data(objectives_loss(w, true))[0];
}

/* Relative to the larger of both, or to a thousandth where both are smaller. */
static double error_at(objectives_world *w, const vlp_param *p, int64_t n) {
    vlp_real *x = (vlp_real *)p->tensor.data + n, saved = *x;
    double analytic = (double)w->model->params->grads[p->offset + n];
    *x = (vlp_real)((double)saved + h);
    double up = value(w);
    *x = (vlp_real)((double)saved - h);
    double down = value(w);
    *x = saved;
    double numeric = (up - down) / (2 * h);
    double error = fabs(analytic - numeric) / fmax(1e-3, fmax(fabs(numeric), fabs(analytic)));
    if (!(error < limit))
        print_error("%s[%lld]: analytic %.12g, numeric %.12g\n", p->name, (long long)n, analytic,
                    numeric);
    return isnan(error) ? INFINITY : error;
}

/* A twin that is not the model any more. */
static void disturb(vlp_params *params) {
    vlp_rng rng = vlp_rng_at(9, VLP_RNG_TEST, 0, 0);
    for (int64_t n = 0; n < params->total; n++)
        params->values[n] += (vlp_real)(0.1 * vlp_rng_normal(&rng));
}

static bool skipped(const vlp_param *p, bool soft_targets) {
    return soft_targets && strcmp(p->name, "temperature") == 0;
}

/* Soft targets are constants to the gradient, but move with the temperature: it is left out then.
 */
static void check(const vlp_objective_options *options, double dropout, bool plain_temperature) {
    bool soft_targets = options->momentum_decay > 0 && options->itc_alpha > 0;
    static objectives_world w;
    objectives_open_model(&w, options, dropout, plain_temperature);
    w.caption_groups[3] = w.caption_groups[0];
    vlp_params *params = w.model->params;
    if (w.objectives.momentum) disturb(w.objectives.momentum->twin->params);
    for (int i = 0; i < 2; i++) { /* the second finds used memory */
        vlp_params_zero_grads(params);
        assert_int_equal(vlp_tape_backward(w.tape, objectives_loss(&w, true)), VLP_OK);
    }
    vlp_rng rng = vlp_rng_at(8, VLP_RNG_TEST, 0, 0);
    double worst = 0;
    for (int i = 0; i < params->count * OF_EACH + ANYWHERE; i++) {
        int which = i < params->count * OF_EACH ? i / OF_EACH
                                                : (int)vlp_rng_below(&rng, (uint64_t)params->count);
        const vlp_param *p = params->items[which];
        if (skipped(p, soft_targets)) continue;
        uint64_t n = vlp_rng_below(&rng, (uint64_t)vlp_numel(&p->tensor));
        worst = fmax(worst, error_at(&w, p, (int64_t)n));
    }
    if (!(worst < limit)) fail_msg("worst relative error %g", worst);
    objectives_close(&w);
}

static void test_grad_objectives__all_four_agree_with_differences(void **state) {
    (void)state;
    vlp_objective_options options = objectives_defaults();
    check(&options, 0, false);
}

static void test_grad_objectives__with_the_visible_patches_alone(void **state) {
    (void)state;
    vlp_objective_options options = objectives_defaults();
    options.mim_kind = VLP_MIM_VISIBLE;
    options.mim_decoder_depth = 2;
    check(&options, 0, false);
    options.mim_loss = VLP_LOSS_MSE;
    options.mim_standardised = true;
    options.mim_ratio = 0.75;
    options.mim_share = 0.75;
    options.mim_decoder_width = 12;
    options.mim_decoder_depth = 0;
    check(&options, 0.2, false);
}

static vlp_objective_options albef(double alpha) {
    vlp_objective_options options = objectives_defaults();
    options.mim_weight = 0;
    options.momentum_decay = 0.9;
    options.momentum_queue = 5;
    options.itc_alpha = options.mlm_alpha = alpha;
    return options;
}

static void test_grad_objectives__with_momentum_and_soft_targets(void **state) {
    (void)state;
    vlp_objective_options options = albef(0.4);
    check(&options, 0, true);
    options.mlm_share = 0.5;
    check(&options, 0.2, true);
}

static void test_grad_objectives__with_momentum_and_a_plain_temperature(void **state) {
    (void)state;
    vlp_objective_options options = albef(0);
    check(&options, 0, true);
}

static void test_grad_objectives__with_dropout_smoothing_mse_and_shares(void **state) {
    (void)state;
    vlp_objective_options options = objectives_defaults();
    options.itc_label_smoothing = 0.1;
    options.mim_loss = VLP_LOSS_MSE;
    options.itc_weight = 0.5;
    options.mlm_weight = 2;
    options.mlm_whole_words = true;
    options.itm_share = 0.5;
    options.mlm_share = 0.75;
    options.mim_share = 0.25;
    check(&options, 0.2, false);
}

static void test_grad_objectives__with_a_decoder_that_shares_the_text_tower(void **state) {
    (void)state;
    vlp_objective_options options = objectives_defaults();
    options.mlm_weight = options.mim_weight = 0;
    options.lm_weight = 1;
    options.lm_label_smoothing = 0.1;
    check(&options, 0, false);
    options = albef(0.4);
    options.lm_weight = 2;
    options.lm_share = 0.5;
    check(&options, 0.2, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grad_objectives__all_four_agree_with_differences),
        cmocka_unit_test(test_grad_objectives__with_dropout_smoothing_mse_and_shares),
        cmocka_unit_test(test_grad_objectives__with_the_visible_patches_alone),
        cmocka_unit_test(test_grad_objectives__with_momentum_and_soft_targets),
        cmocka_unit_test(test_grad_objectives__with_momentum_and_a_plain_temperature),
        cmocka_unit_test(test_grad_objectives__with_a_decoder_that_shares_the_text_tower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
