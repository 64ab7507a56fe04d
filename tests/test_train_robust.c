/* What goes wrong in training is said in one line, and harms nothing that was there before; odd
 * but legal settings train. */
#include "tests/fixture_corpus.h"

#include "core/safetensors.h"
#include "train/trainer_internal.h"

#include <math.h>

enum { PICTURES = 22 };

typedef struct {
    vlp_trainer *t;
    int64_t at;
    const char *parameter;
    vlp_real value;
    int64_t steps;
} poison;

/* Sets a whole parameter to a value after a step. */
static void spoil(const vlp_train_progress *p, void *user) {
    poison *x = user;
    x->steps = p->step;
    if (p->step != x->at) return;
    vlp_param *param = vlp_params_find(x->t->model->params, x->parameter);
    assert_non_null(param);
    vlp_real *values = param->tensor.data;
    for (int64_t i = 0; i < vlp_numel(&param->tensor); i++) values[i] = x->value;
}

static const char six[] = "steps=6 checkpoint_steps=3 eval_every=100";

static vlp_status spoiled_run(const corpus *c, const char *out, poison *x) {
    vlp_recipe recipe;
    fixture_run run;
    vlp_train_summary summary;
    VLP_TRY(fixture_recipe(&recipe, "vlp", six));
    vlp_train_options *options = fixture_options(&run, c, out);
    options->on_step = spoil;
    options->user = x;
    VLP_TRY(vlp_trainer_open(&x->t, &recipe, options));
    vlp_status status = vlp_trainer_run(x->t, &summary);
    vlp_trainer_free(x->t);
    return status;
}

static vlp_status resumed(const corpus *c, const char *out) {
    vlp_recipe recipe;
    fixture_run run;
    vlp_trainer *t;
    vlp_train_summary summary;
    VLP_TRY(fixture_recipe(&recipe, "vlp", ""));
    vlp_train_options *options = fixture_options(&run, c, out);
    options->resume = true;
    VLP_TRY(vlp_trainer_open(&t, &recipe, options));
    vlp_status status = vlp_trainer_run(t, &summary);
    vlp_trainer_free(t);
    return status;
}

static void says(const char *what) {
    if (!strstr(vlp_error(), what)) fail_msg("\"%s\" does not say \"%s\"", vlp_error(), what);
}

/* The run stops, names the culprit, and its last checkpoint goes on as if nothing had happened. */
static void
test_train_robust__a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(void **state) {
    (void)state;
    static const struct {
        const char *parameter, *named;
        vlp_real value;
    } cases[] = {
        {"objective.mlm.bias", "the loss mlm is not finite", NAN},
        {"objective.mim.head.weight", "the loss mim is not finite", NAN},
        {"match_head.bias", "the loss itm is not finite", NAN},
        {"text_projection.weight", "the loss itc is not finite", NAN},
        {"vision.patch_embed.weight", "is not finite", INFINITY},
    };
    corpus c;
    fixture_open(&c, PICTURES);
    assert_int_equal(fixture_train(&c, "vlp", "whole", six), VLP_OK);
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        char out[16], model[64];
        snprintf(out, sizeof out, "run%zu", i);
        poison x = {.at = 4, .parameter = cases[i].parameter, .value = cases[i].value};
        assert_int_equal(spoiled_run(&c, out, &x), VLP_ERR_NUMERIC);
        assert_int_equal(x.steps, 4);
        says(cases[i].named);
        says("step 5");
        says("images ");
        says("pairs.db");
        if (resumed(&c, out) != VLP_OK) fail_msg("%s", vlp_error());
        snprintf(model, sizeof model, "%s/model.safetensors", out);
        fixture_same_file(&c, "whole/model.safetensors", model);
        fixture_same_metrics(&c, "whole", out);
    }
    corpus_close(&c);
}

/* No micro-batches: the mean gradient is 0 / 0. */
static void divide_by_nothing(const vlp_train_progress *p, void *user) {
    vlp_trainer **t = user;
    if (p->step == 2) (*t)->recipe.accumulate = 0;
}

static void test_train_robust__a_gradient_that_is_not_finite_names_step_and_images(void **state) {
    (void)state;
    corpus c;
    vlp_recipe recipe;
    fixture_run run;
    vlp_trainer *t;
    vlp_train_summary summary;
    fixture_open(&c, PICTURES);
    vlp_train_options *options = fixture_options(&run, &c, "run");
    options->on_step = divide_by_nothing;
    options->user = &t;
    assert_int_equal(fixture_recipe(&recipe, "vlp", six), VLP_OK);
    assert_int_equal(vlp_trainer_open(&t, &recipe, options), VLP_OK);
    assert_int_equal(vlp_trainer_run(t, &summary), VLP_ERR_NUMERIC);
    says("the gradient is not finite");
    says("step 3");
    says("images ");
    vlp_trainer_free(t);
    corpus_close(&c);
}

static void test_train_robust__an_existing_run_or_model_is_not_overwritten(void **state) {
    (void)state;
    corpus c;
    vlp_buf before = {0}, after = {0};
    char command[1200];
    fixture_open(&c, PICTURES);
    assert_int_equal(fixture_train(&c, "clip", "run", "steps=2"), VLP_OK);
    fixture_read(&c, "run/model.safetensors", &before);
    assert_int_equal(fixture_train(&c, "clip", "run", "steps=2 seed=1"), VLP_ERR_USAGE);
    says("--resume");
    snprintf(command, sizeof command, "rm '%s/run/recipe.json'", c.folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(fixture_train(&c, "clip", "run", "steps=2 seed=1"), VLP_ERR_USAGE);
    says("already holds a model");
    fixture_read(&c, "run/model.safetensors", &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_int_equal(resumed(&c, "run"), VLP_ERR_USAGE);
    says("no run to resume");
    vlp_buf_free(&before);
    vlp_buf_free(&after);
    corpus_close(&c);
}

static void test_train_robust__resuming_a_finished_run_changes_nothing(void **state) {
    (void)state;
    corpus c;
    vlp_buf text[2] = {{0}, {0}};
    fixture_open(&c, PICTURES);
    assert_int_equal(fixture_train(&c, "vlp", "whole", "steps=4"), VLP_OK);
    assert_int_equal(fixture_train(&c, "vlp", "again", "steps=4"), VLP_OK);
    fixture_read(&c, "again/summary.json", &text[0]);
    if (resumed(&c, "again") != VLP_OK) fail_msg("%s", vlp_error());
    fixture_same_file(&c, "whole/model.safetensors", "again/model.safetensors");
    fixture_same_metrics(&c, "whole", "again");
    fixture_read(&c, "again/summary.json", &text[1]);
    for (int i = 0; i < 2; i++) {
        vlp_json *json;
        assert_int_equal(vlp_json_parse(&json, text[i].data, text[i].len, "summary"), VLP_OK);
        assert_true(vlp_json_double(json, "loss", 0) > 0.1);
        assert_true(vlp_json_double(json, "pairs_per_s", 0) > 1);
        vlp_json_free(json);
        vlp_buf_free(&text[i]);
    }
    corpus_close(&c);
}

static void test_train_robust__damaged_states_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *file, *text, *named;
    } cases[] = {
        {"state.json", "", "state.json"},
        {"state.json", "{\"step\":", "state.json"},
        {"state.json", "{}", "state.json"},
        {"state.json", "{\"folder\":\"state-4\",\"step\":-5,\"cursor\":3}", "state.json"},
        {"state.json", "{\"folder\":\"state-4\",\"step\":5,\"cursor\":-3}", "state.json"},
        {"state.json", "{\"folder\":\"state-99\",\"step\":5,\"cursor\":3}", "state-99"},
        {"state.json", "{\"folder\":\"../../etc\",\"step\":5,\"cursor\":3}", "state.json"},
        {"state-4/params.safetensors", "x", "params.safetensors"},
        {"state-4/optimizer.safetensors", "x", "optimizer.safetensors"},
        {"recipe.json", "{\"set\":{\"lr\":\"high\"}}", "recipe.json"},
        {"vocab.txt", "", "vocab.txt"},
    };
    corpus c;
    char command[2000], name[64];
    fixture_open(&c, PICTURES);
    assert_int_equal(fixture_train(&c, "vlp", "run", "steps=4"), VLP_OK);
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        snprintf(command, sizeof command, "rm -rf '%s/copy' && cp -r '%s/run' '%s/copy'", c.folder,
                 c.folder, c.folder);
        assert_int_equal(system(command), 0);
        snprintf(name, sizeof name, "copy/%s", cases[i].file);
        corpus_text(&c, name, cases[i].text);
        if (resumed(&c, "copy") == VLP_OK) fail_msg("%s %s is taken", name, cases[i].text);
        says(cases[i].named);
    }
    corpus_close(&c);
}

static void test_train_robust__other_data_are_refused_on_resume(void **state) {
    (void)state;
    corpus c;
    vlp_buf rows = {0};
    corpus_open(&c);
    fixture_pictures(&c, PICTURES, NULL, &rows);
    fixture_index(&c, &rows);
    poison x = {.at = 4, .parameter = "logit_scale", .value = NAN};
    assert_int_equal(spoiled_run(&c, "run", &x), VLP_ERR_NUMERIC);
    fixture_picture(&c, "pictures/900.png", 900);
    fixture_row(&rows, "pictures/900.png", 900, "train", NULL);
    fixture_index(&c, &rows);
    assert_int_equal(resumed(&c, "run"), VLP_ERR_USAGE);
    says("22 pictures");
    says("23 now");
    vlp_buf_free(&rows);
    corpus_close(&c);
}

static void test_train_robust__bad_keys_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *keys, *named;
    } cases[] = {
        {"steps=3 batch=0", "batch"},
        {"steps=3 batch=x", "batch"},
        {"steps=3 lr=-1", "lr"},
        {"steps=3 lr=nan", "lr"},
        {"steps=3 lrr=1", "lr"},
        {"steps=3 itm.share=0", "itm.share"},
        {"steps=3 patch=7", "patch"},
        {"steps=3 heads=3", "heads"},
        {"steps=3 text_heads=5", "heads"},
        {"steps=3 text_width=30 text_heads=4", "heads"},
        {"steps=0", "--steps"},
        {"steps=3 mlm.mask=0.9 mlm.random=0.2", "mlm.mask"},
        {"steps=3 itc.weight=0 itm.weight=0 mlm.weight=0 mim.weight=0", "weight"},
        {"steps=3 fusion_depth=0", "fusion_depth"},
        {"steps=3 temperature=0.005", "temperature"},
        {"steps=3 text_length=2", "text_length"},
        {"steps=3 data.train=nosuch", "nosuch"},
        {"steps=3 data.mixture=pairs", "data.mixture"},
        {"steps=3 data.mixture=pairs=0", "data.mixture"},
        {"steps=3 data.mixture=pairs=-1", "data.mixture"},
        {"steps=3 data.mixture=pairs=1x", "data.mixture"},
        {"steps=3 data.mixture==1", "data.mixture"},
        {"steps=3 data.mixture=pairs=inf", "data.mixture"},
        {"steps=3 data.mixture=nosuch=1", "nosuch"},
        {"steps=3 data.mixture=pairs=1,pairs=2", "pairs"},
        {"steps=3 precision=fp99", "precision"},
        {"steps=3 batch", "key=value"},
    };
    corpus c;
    fixture_open(&c, PICTURES);
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        vlp_status status = fixture_train(&c, "vlp", "run", cases[i].keys);
        if (status == VLP_OK) fail_msg("%s is taken", cases[i].keys);
        says(cases[i].named);
        if (vlp_is_folder(corpus_path(&c, "run"))) fail_msg("%s: wrote a folder", cases[i].keys);
    }
    corpus_close(&c);
}

static void test_train_robust__a_missing_index_is_not_created(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    assert_int_equal(fixture_train(&c, "vlp", "run", "steps=1"), VLP_ERR_NOT_FOUND);
    says("pairs.db");
    assert_false(vlp_path_exists(corpus_path(&c, "pairs.db")));
    corpus_close(&c);
}

static void trains(const corpus *c, const char *recipe, const char *out, const char *keys) {
    if (fixture_train(c, recipe, out, keys) != VLP_OK) fail_msg("%s: %s", keys, vlp_error());
}

static void test_train_robust__odd_settings_train(void **state) {
    (void)state;
    static const char *const keys[] = {
        "batch=1",
        "batch=40",
        "batch=1 accumulate=3",
        "mim.ratio=1",
        "mim.ratio=0",
        "mim.loss=mse",
        "mim.kind=mae",
        "mim.kind=mae mim.ratio=1 mim.decoder_depth=0",
        "mim.kind=mae mim.ratio=0 mim.standardised=true",
        "batch=1 itm.share=0.1 mlm.share=0.1 mim.share=0.1",
        "mlm.probability=1",
        "mlm.whole_words=true",
        "mlm.mask=0 mlm.random=0",
        "itc.label_smoothing=0.1",
        "dropout=0.5 drop_path=0.5",
        "schedule=constant warmup=0",
        "warmup=1000",
        "clip_grad=0",
        "text_width=24 text_heads=3",
        "fusion_depth=2 vision_depth=2",
        "loader.threads=1 loader.cache_mb=0",
        "temperature=0.01 temperature_least=0.01",
        "data.mixture=pairs=1",
        "data.val=none data.test=none",
        "data.train=",
    };
    corpus c;
    fixture_open(&c, PICTURES);
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        char out[16], all[256];
        snprintf(out, sizeof out, "run%zu", i);
        snprintf(all, sizeof all, "steps=3 eval_every=3 %s", keys[i]);
        trains(&c, "vlp", out, all);
    }
    corpus_close(&c);
}

static void test_train_robust__equal_captions_leave_no_negatives_and_train(void **state) {
    (void)state;
    corpus c;
    fixture_open_captioned(&c, PICTURES, "a picture");
    trains(&c, "vlp", "run", "steps=3");
    corpus_close(&c);
}

static const char *const objectives[] = {"itc", "itm", "mlm", "mim"};

static void only_wanted_heads(const vlp_params *params, unsigned on) {
    for (int i = 0; i < params->count; i++) {
        const char *name = params->items[i]->name;
        for (unsigned k = 0; k < 4; k++) {
            char prefix[32];
            snprintf(prefix, sizeof prefix, "objective.%s.", objectives[k]);
            if (!(on >> k & 1) && strncmp(name, prefix, strlen(prefix)) == 0)
                fail_msg("%s is declared, but %s is off", name, objectives[k]);
        }
        if (!(on >> 3 & 1) && strstr(name, "mask_token"))
            fail_msg("%s is declared without mim", name);
    }
}

static void test_train_robust__all_fifteen_sets_of_objectives_train(void **state) {
    (void)state;
    corpus c;
    fixture_open(&c, PICTURES);
    for (unsigned on = 1; on < 16; on++) {
        char keys[256] = "steps=3 eval_every=100", out[16];
        vlp_recipe recipe;
        fixture_run run;
        vlp_trainer *t;
        vlp_train_summary summary;
        for (unsigned k = 0; k < 4; k++)
            snprintf(keys + strlen(keys), sizeof keys - strlen(keys), " %s.weight=%d",
                     objectives[k], on >> k & 1);
        snprintf(out, sizeof out, "run%u", on);
        assert_int_equal(fixture_recipe(&recipe, "vlp", keys), VLP_OK);
        if (vlp_trainer_open(&t, &recipe, fixture_options(&run, &c, out)) != VLP_OK)
            fail_msg("%s: %s", keys, vlp_error());
        only_wanted_heads(t->model->params, on);
        if (vlp_trainer_run(t, &summary) != VLP_OK) fail_msg("%s: %s", keys, vlp_error());
        assert_int_equal(t->now.n_losses, __builtin_popcount(on));
        for (int i = 0; i < t->now.n_losses; i++) assert_true(isfinite(t->now.losses[i]));
        assert_true(isfinite(summary.loss));
        vlp_trainer_free(t);
    }
    corpus_close(&c);
}

/* Gradients of the first step, scaled to a mean. The caller frees. */
static vlp_real *gradients(const corpus *c, const char *out, const char *keys, int64_t *n) {
    vlp_recipe recipe;
    fixture_run run;
    vlp_trainer *t;
    vlp_train_summary summary;
    char all[400];
    snprintf(all, sizeof all,
             "steps=1 lr=0 itc.weight=0 itm.weight=0 clip_grad=0 data.val=none data.test=none %s",
             keys);
    assert_int_equal(fixture_recipe(&recipe, "vlp", all), VLP_OK);
    if (vlp_trainer_open(&t, &recipe, fixture_options(&run, c, out)) != VLP_OK ||
        vlp_trainer_run(t, &summary) != VLP_OK)
        fail_msg("%s", vlp_error());
    *n = t->model->params->total;
    vlp_real *copy = vlp_alloc((size_t)*n * sizeof *copy);
    for (int64_t i = 0; i < *n; i++)
        copy[i] = t->model->params->grads[i] / (vlp_real)t->recipe.accumulate;
    vlp_trainer_free(t);
    return copy;
}

/* Captions of one length, so that every micro-batch has as many masked tokens. */
static void test_train_robust__accumulated_gradients_equal_those_of_a_large_batch(void **state) {
    (void)state;
    corpus c;
    int64_t n, m;
    fixture_open_captioned(&c, PICTURES, "x y z");
    vlp_real *large = gradients(&c, "large", "batch=8 accumulate=1", &n);
    vlp_real *small = gradients(&c, "small", "batch=2 accumulate=4", &m);
    assert_int_equal(n, m);
    double most = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)large[i]));
        worst = fmax(worst, fabs((double)large[i] - (double)small[i]));
    }
    assert_true(most > 1e-3);
    if (worst > 1e-5 * most) fail_msg("worst %g of %g", worst, most);
    vlp_free(large);
    vlp_free(small);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_train_robust__a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint),
        cmocka_unit_test(test_train_robust__a_gradient_that_is_not_finite_names_step_and_images),
        cmocka_unit_test(test_train_robust__an_existing_run_or_model_is_not_overwritten),
        cmocka_unit_test(test_train_robust__resuming_a_finished_run_changes_nothing),
        cmocka_unit_test(test_train_robust__damaged_states_are_refused),
        cmocka_unit_test(test_train_robust__other_data_are_refused_on_resume),
        cmocka_unit_test(test_train_robust__bad_keys_are_refused_by_name),
        cmocka_unit_test(test_train_robust__a_missing_index_is_not_created),
        cmocka_unit_test(test_train_robust__odd_settings_train),
        cmocka_unit_test(test_train_robust__equal_captions_leave_no_negatives_and_train),
        cmocka_unit_test(test_train_robust__all_fifteen_sets_of_objectives_train),
        cmocka_unit_test(test_train_robust__accumulated_gradients_equal_those_of_a_large_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
