/* Further training: which of its weights are kept. */
#include "tests/fixture_corpus.h"

#include "core/checkpoint.h"

#include <math.h>

enum { PICTURES = 24 };

static vlp_status further(const corpus *c, const char *out, const char *keys) {
    vlp_recipe recipe;
    fixture_run run;
    char start[700];
    vlp_trainer *trainer;
    vlp_train_summary summary;
    vlp_train_options *options = fixture_options(&run, c, out);
    snprintf(start, sizeof start, "%s/start", c->folder);
    options->init = start;
    VLP_TRY(fixture_recipe(&recipe, "clip", keys));
    VLP_TRY(vlp_trainer_open(&trainer, &recipe, options));
    vlp_status status = vlp_trainer_run(trainer, &summary);
    vlp_trainer_free(trainer);
    return status;
}

static void train(const corpus *c, const char *out, const char *keys) {
    if (further(c, out, keys) != VLP_OK) fail_msg("%s", vlp_error());
}

static void open_corpus(corpus *c) {
    fixture_open(c, PICTURES);
    if (fixture_train(c, "clip", "start", "steps=120 batch=8 lr=3e-3") != VLP_OK)
        fail_msg("%s", vlp_error());
}

static vlp_safetensors *open_model(const corpus *c, const char *name) {
    char path[700];
    vlp_safetensors *file;
    snprintf(path, sizeof path, "%s/%s/model.safetensors", c->folder, name);
    if (vlp_checkpoint_open(&file, path) != VLP_OK) fail_msg("%s", vlp_error());
    return file;
}

/* Steps that ruin the model leave the one that the run started from. */
static void test_train_guard__the_best_model_is_kept(void **state) {
    (void)state;
    corpus c;
    vlp_buf text = {0};
    open_corpus(&c);
    train(&c, "ruined", "steps=4 lr=3 warmup=0 eval_every=1 schedule=constant data.val=train");
    fixture_same_file(&c, "start/model.safetensors", "ruined/model.safetensors");
    fixture_read(&c, "ruined/summary.json", &text);
    assert_non_null(strstr(text.data, "\"best_step\": 0"));
    train(&c, "off",
          "steps=4 lr=3 warmup=0 eval_every=1 schedule=constant keep_best=off data.val=train");
    vlp_safetensors *a = open_model(&c, "start"), *b = open_model(&c, "off");
    const vlp_safetensor *x = vlp_safetensors_find(a, "text.words");
    const vlp_safetensor *y = vlp_safetensors_find(b, "text.words");
    assert_true(memcmp(x->data, y->data, x->bytes) != 0);
    vlp_safetensors_close(a);
    vlp_safetensors_close(b);
    vlp_buf_free(&text);
    corpus_close(&c);
}

/* saved = trained + share (start - trained), and training itself does not see the mixture. */
static void test_train_guard__weights_are_mixed_with_the_start(void **state) {
    (void)state;
    corpus c;
    open_corpus(&c);
    train(&c, "plain", "steps=3 warmup=0 lr=0.01 keep_best=off eval_every=1");
    train(&c, "mixed", "steps=3 warmup=0 lr=0.01 keep_best=off eval_every=1 start_share=0.25");
    vlp_safetensors *start = open_model(&c, "start"), *plain = open_model(&c, "plain"),
                    *mixed = open_model(&c, "mixed");
    int64_t moved = 0;
    for (size_t i = 0; i < vlp_safetensors_count(plain); i++) {
        const vlp_safetensor *p = vlp_safetensors_at(plain, i);
        const vlp_safetensor *s = vlp_safetensors_find(start, p->name);
        const vlp_safetensor *m = vlp_safetensors_find(mixed, p->name);
        for (int64_t k = 0; k < p->numel; k++) {
            double trained = vlp_safetensor_value(p, k), from = vlp_safetensor_value(s, k);
            double want = trained + 0.25 * (from - trained), got = vlp_safetensor_value(m, k);
            moved += fabs(trained - from) > 1e-4;
            if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
                fail_msg("%s[%lld]: %g instead of %g", p->name, (long long)k, got, want);
        }
    }
    assert_true(moved > 1000);
    vlp_safetensors_close(start);
    vlp_safetensors_close(plain);
    vlp_safetensors_close(mixed);
    corpus_close(&c);
}

/* A run that was stopped goes on with its start and its best. */
static void test_train_guard__a_resumed_run_ends_equal(void **state) {
    (void)state;
    static const char keys[] = "steps=4 lr=0.01 warmup=0 eval_every=1 start_share=0.5";
    corpus c;
    fixture_run run;
    vlp_recipe recipe;
    vlp_trainer *trainer;
    vlp_train_summary summary;
    open_corpus(&c);
    train(&c, "whole", keys);
    volatile int stop = 1; /* at once: the start is saved and nothing else */
    char start[700];
    vlp_train_options *options = fixture_options(&run, &c, "parts");
    snprintf(start, sizeof start, "%s/start", c.folder);
    for (int part = 0; part < 2; part++) {
        options->init = part == 0 ? start : NULL;
        options->resume = part > 0;
        options->stop = part == 0 ? &stop : NULL;
        assert_int_equal(fixture_recipe(&recipe, "clip", keys), VLP_OK);
        assert_int_equal(vlp_trainer_open(&trainer, &recipe, options), VLP_OK);
        assert_int_equal(vlp_trainer_run(trainer, &summary),
                         part == 0 ? VLP_ERR_INTERRUPTED : VLP_OK);
        vlp_trainer_free(trainer);
    }
    fixture_same_file(&c, "whole/model.safetensors", "parts/model.safetensors");
    corpus_close(&c);
}

static void test_train_guard__a_share_needs_a_start(void **state) {
    (void)state;
    corpus c;
    fixture_open(&c, PICTURES);
    assert_int_equal(fixture_train(&c, "clip", "none", "steps=1 start_share=0.5"), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "give --init"));
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_guard__the_best_model_is_kept),
        cmocka_unit_test(test_train_guard__weights_are_mixed_with_the_start),
        cmocka_unit_test(test_train_guard__a_resumed_run_ends_equal),
        cmocka_unit_test(test_train_guard__a_share_needs_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
