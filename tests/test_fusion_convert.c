/* Out into another implementation's format and back: the bytes of every tensor. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "fusion/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES VLP_TESTS_DIR "/data/parity/"

static char folder[200];

static const char *in_folder(const char *name) {
    static char paths[4][300];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int set_up(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-convert-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
    static const char *const files[] = {"one/config.json",
                                        "one/model.safetensors",
                                        "one/open_clip_config.json",
                                        "one/open_clip_model.safetensors",
                                        "two/config.json",
                                        "two/model.safetensors",
                                        "two/open_clip_config.json",
                                        "two/open_clip_model.safetensors",
                                        "half.safetensors",
                                        "one",
                                        "two"};
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(files); i++) remove(in_folder(files[i]));
    return remove(folder);
}

static vlp_safetensors *open_good(const char *path) {
    vlp_safetensors *file;
    if (vlp_checkpoint_open(&file, path) != VLP_OK) fail_msg("%s", vlp_error());
    return file;
}

/* Every tensor of a in b with the same shape, type and bytes; b has no others. */
static void assert_same_tensors(const char *a, const char *b) {
    vlp_safetensors *x = open_good(a), *y = open_good(b);
    size_t compared = 0;
    for (size_t i = 0; i < vlp_safetensors_count(x); i++) {
        const vlp_safetensor *s = vlp_safetensors_at(x, i);
        if (strstr(s->name, "position_ids")) continue; /* counts that no format has to keep */
        const vlp_safetensor *t = vlp_safetensors_find(y, s->name);
        if (!t) fail_msg("%s was lost", s->name);
        if (t->dtype != s->dtype || t->ndim != s->ndim || t->bytes != s->bytes ||
            memcmp(t->shape, s->shape, (size_t)s->ndim * sizeof *s->shape) != 0 ||
            memcmp(t->data, s->data, s->bytes) != 0)
            fail_msg("%s has changed", s->name);
        compared++;
    }
    assert_int_equal(compared, vlp_safetensors_count(y));
    vlp_safetensors_close(x);
    vlp_safetensors_close(y);
}

static void convert(const char *from, const char *config, const char *to, const char *format) {
    if (vlp_convert(from, config, to, format) != VLP_OK) fail_msg("%s", vlp_error());
}

static void test_fusion_convert__out_and_back_keeps_every_byte(void **state) {
    (void)state;
    static const struct {
        const char *name, *through, *back;
    } rows[] = {
        {"clip-hf", "openclip", "hf"},
        {"clip-openai-eps", "hf", "openai"},
        {"lit-openclip", "hf", "openclip"},
        {"clip-openclip-custom", "openclip", "openclip"},
    };
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        char from[300];
        snprintf(from, sizeof from, CASES "%s", rows[i].name);
        tear_down(NULL);
        assert_int_equal(vlp_make_folder(folder), VLP_OK);
        convert(from, NULL, in_folder("one"), rows[i].through);
        convert(in_folder("one"), NULL, in_folder("two"), rows[i].back);
        assert_same_tensors(from, in_folder("two"));
    }
}

/* A matrix is transposed and a fused projection is cut, as the other layout has them. */
static void test_fusion_convert__numbers_stand_where_the_format_wants_them(void **state) {
    (void)state;
    tear_down(NULL);
    assert_int_equal(vlp_make_folder(folder), VLP_OK);
    convert(CASES "clip-openai-eps", NULL, in_folder("one"), "hf");
    vlp_safetensors *x = open_good(CASES "clip-openai-eps"), *y = open_good(in_folder("one"));
    const vlp_safetensor *a = vlp_safetensors_find(x, "text_projection"),
                         *b = vlp_safetensors_find(y, "text_projection.weight");
    assert_non_null(b);
    assert_int_equal(b->shape[0], a->shape[1]);
    for (int64_t i = 0; i < a->shape[0]; i++)
        for (int64_t j = 0; j < a->shape[1]; j++)
            assert_true(vlp_safetensor_value(a, i * a->shape[1] + j) ==
                        vlp_safetensor_value(b, j * a->shape[0] + i));
    a = vlp_safetensors_find(x, "transformer.resblocks.0.attn.in_proj_bias");
    b = vlp_safetensors_find(y, "text_model.encoder.layers.0.self_attn.v_proj.bias");
    assert_int_equal(a->numel, 3 * b->numel);
    for (int64_t i = 0; i < b->numel; i++)
        assert_true(vlp_safetensor_value(a, 2 * b->numel + i) == vlp_safetensor_value(b, i));
    vlp_safetensors_close(x);
    vlp_safetensors_close(y);
}

/* Half precision stays half precision. */
static void test_fusion_convert__types_are_kept(void **state) {
    (void)state;
    vlp_safetensors *file = open_good(CASES "clip-openai-eps");
    size_t n = vlp_safetensors_count(file);
    vlp_safetensor_spec *specs = calloc(n, sizeof *specs);
    uint16_t *bits = calloc(1 << 16, sizeof *bits);
    vlp_safetensors_writer *writer;
    for (size_t i = 0; i < n; i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        specs[i] = (vlp_safetensor_spec){.name = t->name, .dtype = VLP_ST_F16, .ndim = t->ndim};
        memcpy(specs[i].shape, t->shape, sizeof specs[i].shape);
    }
    assert_int_equal(
        vlp_safetensors_writer_begin(&writer, in_folder("half.safetensors"), specs, n, NULL, 0),
        VLP_OK);
    for (size_t i = 0; i < n; i++) {
        int64_t count = vlp_safetensors_at(file, i)->numel;
        for (int64_t k = 0; k < count; k++) bits[k] = (uint16_t)(i * 1000 + (size_t)k);
        assert_int_equal(vlp_safetensors_writer_write(writer, bits, (size_t)count * 2), VLP_OK);
    }
    assert_int_equal(vlp_safetensors_writer_commit(writer), VLP_OK);
    vlp_safetensors_close(file);
    free(specs);
    free(bits);
    const char *config = CASES "clip-openai-eps/config.json";
    convert(in_folder("half.safetensors"), config, in_folder("one"), "hf");
    convert(in_folder("one"), NULL, in_folder("two"), "openai");
    assert_same_tensors(in_folder("half.safetensors"), in_folder("two"));
}

static void refused(const char *from, const char *format, const char *part) {
    assert_int_not_equal(vlp_convert(from, NULL, in_folder("one"), format), VLP_OK);
    if (!strstr(vlp_error(), part)) fail_msg("no \"%s\" in: %s", part, vlp_error());
    assert_false(vlp_path_exists(in_folder("one")));
}

static void test_fusion_convert__what_a_format_cannot_hold_is_said(void **state) {
    (void)state;
    tear_down(NULL);
    assert_int_equal(vlp_make_folder(folder), VLP_OK);
    refused(CASES "clip-openclip-custom", "hf", "--to openclip");
    refused(CASES "clip-hf", "openai", "OpenAI's CLIP has no such towers");
    refused(CASES "bert-mlm", "hf", "model_type");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fusion_convert__out_and_back_keeps_every_byte),
        cmocka_unit_test(test_fusion_convert__numbers_stand_where_the_format_wants_them),
        cmocka_unit_test(test_fusion_convert__types_are_kept),
        cmocka_unit_test(test_fusion_convert__what_a_format_cannot_hold_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
