/* What a step makes of its micro-batches and of parameters that no loss reaches. */
#include "tests/fixture_corpus.h"

#include "core/safetensors.h"

#include <math.h>

/* The first moments after one step are 0.1 of its gradient. */
static vlp_safetensors *open_state(const corpus *c, const char *run, const char *file) {
    char path[4096];
    vlp_safetensors *out;
    snprintf(path, sizeof path, "%s/%s/state-1/%s", c->folder, run, file);
    if (vlp_safetensors_open(&out, path) != VLP_OK) fail_msg("%s", vlp_error());
    return out;
}

static float *read_tensor(const vlp_safetensor *t) {
    float *values = vlp_alloc((size_t)(t->numel + 1) * sizeof *values);
    assert_non_null(values);
    assert_int_equal(vlp_safetensors_read_real(t, values, t->numel), VLP_OK);
    return values;
}

/* |a - b| over |a|, over all moments of the two runs' first step. */
static double difference(const corpus *c, const char *one, const char *other) {
    vlp_safetensors *a = open_state(c, one, "optimizer.safetensors");
    vlp_safetensors *b = open_state(c, other, "optimizer.safetensors");
    double square = 0, all = 0;
    for (size_t i = 0; i < vlp_safetensors_count(a); i++) {
        const vlp_safetensor *left = vlp_safetensors_at(a, i), *right;
        if (strncmp(left->name, "exp_avg.", 8) != 0) continue;
        assert_int_equal(vlp_safetensors_get(b, left->name, &right), VLP_OK);
        float *x = read_tensor(left), *y = read_tensor(right);
        for (int64_t k = 0; k < left->numel; k++) {
            square += pow((double)x[k] - (double)y[k], 2);
            all += pow((double)x[k], 2);
        }
        vlp_free(x);
        vlp_free(y);
    }
    vlp_safetensors_close(a);
    vlp_safetensors_close(b);
    assert_true(all > 0);
    return sqrt(square / all);
}

/* The step's gradient of `few` keys beside that of `many`, with `keys` in both. */
static void compare(const corpus *c, const char *keys, const char *few, const char *many) {
    static const char common[] = "steps=1 seed=3 dropout=0 drop_path=0 precision=fp32 clip_grad=0"
                                 " itm.weight=0 mlm.probability=0.4 eval_every=1000";
    static int count;
    const char *sizes[] = {few, many};
    char all[512], names[2][16];
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "run%d", count++);
        snprintf(all, sizeof all, "%s %s %s", common, keys, sizes[i]);
        if (fixture_train(c, "vlp", names[i], all) != VLP_OK) fail_msg("%s", vlp_error());
    }
    double d = difference(c, names[0], names[1]);
    if (!(d < 1e-5)) fail_msg("%s, %s: gradients differ by %g of their length", keys, many, d);
}

/* Captions differ in length: so do micro-batches in how many tokens are predicted. */
static void test_train_accumulate__micro_batches_give_the_large_batch_s_gradient(void **state) {
    (void)state;
    static const char large[] = "batch=12 accumulate=1", three[] = "batch=4 accumulate=3";
    corpus c;
    fixture_open(&c, 24);
    compare(&c, "itc.weight=0", large, three);
    compare(&c, "itc.weight=0", large, "batch=1 accumulate=12");
    compare(&c, "itc.weight=0 mlm.whole_words=true", large, three);
    compare(&c, "itc.whole_step=true recompute=true", large, three);
    corpus_close(&c);
}

/* How many parameters took part in the only step. Without losses on fused states nothing comes to
 * the fusion stack and its head. */
static void check_reached(const corpus *c, const char *run, bool fused) {
    vlp_safetensors *file = open_state(c, run, "optimizer.safetensors");
    int fusion = 0, others = 0;
    for (size_t i = 0; i < vlp_safetensors_count(file); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        if (strncmp(t->name, "step.", 5) != 0) continue;
        int32_t steps = -1;
        assert_int_equal(vlp_safetensors_read_i32(t, &steps, 1), VLP_OK);
        bool of_fusion = strncmp(t->name, "step.fusion.", 12) == 0 ||
                         strncmp(t->name, "step.match_head.", 16) == 0;
        if (steps != (fused || !of_fusion)) fail_msg("%s: %s took %d steps", run, t->name, steps);
        fusion += of_fusion;
        others += !of_fusion;
    }
    assert_true(others > 20 && fusion > 10);
    vlp_safetensors_close(file);
}

/* As in frameworks that have no gradient there. */
static void test_train_accumulate__only_what_a_loss_reaches_is_updated(void **state) {
    (void)state;
    static const char contrast[] = "itm.weight=0 mlm.weight=0 mim.weight=0";
    static const struct {
        const char *name, *keys;
        bool fused;
    } runs[] = {{"all", "", true},
                {"again", "recompute=true", true},
                {"parts", "batch=4 accumulate=2 itc.whole_step=true recompute=true", true},
                {"contrast", contrast, false}};
    corpus c;
    fixture_open(&c, 12);
    for (size_t i = 0; i < VLP_COUNT(runs); i++) {
        char all[256];
        snprintf(all, sizeof all, "steps=1 fusion_depth=1 %s", runs[i].keys);
        if (fixture_train(&c, "vlp", runs[i].name, all) != VLP_OK) fail_msg("%s", vlp_error());
        check_reached(&c, runs[i].name, runs[i].fused);
    }
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_accumulate__micro_batches_give_the_large_batch_s_gradient),
        cmocka_unit_test(test_train_accumulate__only_what_a_loss_reaches_is_updated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
