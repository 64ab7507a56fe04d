#include "image_case.h"
#include "vision/jitter.h"
#include "vision/thumbnail.h"
#include "vision/transform.h"

#include <math.h>

static vlp_image source, actual, expected;
static vlp_transform_scratch scratch;
static int compared;

static int free_images(void **state) {
    (void)state;
    vlp_image_free(&source);
    vlp_image_free(&actual);
    vlp_image_free(&expected);
    vlp_transform_scratch_free(&scratch);
    return 0;
}

/* The pipelines of the expected files, as their published configuration would be. */
static const struct {
    const char *name, *json;
} pipelines[] = {
    {"clip", "{\"size\": 28, \"crop_size\": 28, \"do_center_crop\": true, \"resample\": 3,"
             " \"feature_extractor_type\": \"CLIPFeatureExtractor\", \"crop_offset\": \"round\"}"},
    {"hf_clip",
     "{\"size\": {\"shortest_edge\": 28}, \"crop_size\": {\"height\": 28, \"width\": 28},"
     " \"do_center_crop\": true, \"resample\": 3}"},
    {"vit", "{\"size\": 28, \"resample\": 2, \"feature_extractor_type\": \"ViTFeatureExtractor\","
            " \"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.5, 0.5, 0.5]}"},
    {"albef", "{\"size\": {\"height\": 28, \"width\": 28}, \"resample\": 3}"},
};

static vlp_status parse(vlp_transform *out, const char *text) {
    vlp_json *json = NULL;
    if (vlp_json_parse(&json, text, strlen(text), "test") != VLP_OK) fail_msg("%s", vlp_error());
    vlp_status status = vlp_transform_from_json(out, json, "preprocessor_config.json");
    vlp_json_free(json);
    return status;
}

static void parse_pipeline(vlp_transform *out, size_t index) {
    if (parse(out, pipelines[index].json) != VLP_OK) fail_msg("%s", vlp_error());
}

static void compare_pipelines(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(pipelines); i++) {
        if (!expected_case(&expected, name, pipelines[i].name)) continue;
        vlp_transform t;
        parse_pipeline(&t, i);
        vlp_decode_options how = vlp_transform_decode_options(&t, false);
        decode_case(&source, "files", name, &how);
        assert_int_equal(vlp_transform_pixels(&t, &source, NULL, &actual, &scratch), VLP_OK);
        assert_same_pixels(&actual, &expected, name, pipelines[i].name);
        compared++;
    }
}

static void test_vision_transform__equals_published_pipelines_exactly(void **state) {
    (void)state;
    compared = 0;
    for_each_case("files", compare_pipelines);
    assert_int_equal(compared, 119);
}

static void test_vision_transform__pixel_values_equal_the_reference(void **state) {
    (void)state;
    static const struct {
        const char *file, *values;
        size_t pipeline;
    } cases[] = {{"rgb8.png", "rgb8.png.clip.f32", 0}, {"s2x3.png", "s2x3.png.vit.f32", 2}};
    vlp_buf values = {0};
    for (size_t k = 0; k < VLP_COUNT(cases); k++) {
        vlp_transform t;
        parse_pipeline(&t, cases[k].pipeline);
        decode_case(&source, "files", cases[k].file, NULL);
        float out[3 * 28 * 28], reference[3 * 28 * 28];
        assert_int_equal(vlp_transform_apply(&t, &source, NULL, &scratch, out), VLP_OK);
        read_case(&values, "expected", cases[k].values);
        assert_int_equal(values.len, sizeof reference);
        memcpy(reference, values.data, sizeof reference);
        for (size_t i = 0; i < VLP_COUNT(out); i++)
            if (!(fabsf(out[i] - reference[i]) <= 1e-5f))
                fail_msg("%s [%zu] %g, expected %g", cases[k].file, i, (double)out[i],
                         (double)reference[i]);
    }
    vlp_buf_free(&values);
}

static void test_vision_transform__published_configurations_are_understood(void **state) {
    (void)state;
    vlp_transform t;
    parse_pipeline(&t, 0);
    assert_int_equal(t.background, -1); /* what the references do */
    assert_false(t.exif_rotate);
    assert_int_equal(t.fit, VLP_FIT_SHORT_SIDE);
    parse_pipeline(&t, 2);
    assert_int_equal(t.fit, VLP_FIT_SQUASH);
    assert_int_equal(t.filter, VLP_RESIZE_BILINEAR);
    assert_float_equal(t.mean[2], 0.5, 0);
    assert_int_equal(parse(&t, "{\"size\": 256, \"crop_size\": 224, \"do_center_crop\": true,"
                               " \"feature_extractor_type\": \"DeiTFeatureExtractor\","
                               " \"resample\": 3, \"do_rescale\": false}"),
                     VLP_OK);
    assert_int_equal(t.fit, VLP_FIT_SQUASH);
    assert_int_equal(t.resize_size, 256);
    assert_int_equal(t.image_size, 224);
    assert_float_equal(t.rescale, 1, 0);
}

static void test_vision_transform__json_round_trip(void **state) {
    (void)state;
    vlp_transform t = vlp_transform_defaults(224), back;
    t.fit = VLP_FIT_SQUASH;
    t.resize_size = 256;
    t.crop_offset = VLP_CROP_ROUND;
    t.filter = VLP_RESIZE_LANCZOS;
    t.background = 0x12ab00;
    t.jpeg_scaling = true;
    t.max_pixels = 1234567;
    t.std[1] = 0.75;
    t.augment = (vlp_augment){0.25, 0.5, 0.5, 2, 0.5, 0.125, 0.25, 0.375, 7};
    vlp_json *json = vlp_transform_to_json(&t);
    assert_int_equal(vlp_transform_from_json(&back, json, "test"), VLP_OK);
    vlp_json_free(json);
    assert_int_equal(back.image_size, 224);
    assert_int_equal(back.resize_size, 256);
    assert_int_equal(back.fit, t.fit);
    assert_int_equal(back.crop_offset, t.crop_offset);
    assert_int_equal(back.filter, t.filter);
    assert_int_equal(back.background, t.background);
    assert_int_equal(back.exif_rotate, t.exif_rotate);
    assert_int_equal(back.jpeg_scaling, t.jpeg_scaling);
    assert_int_equal(back.max_pixels, t.max_pixels);
    assert_float_equal(back.std[1], 0.75, 0);
    assert_memory_equal(&back.augment, &t.augment, sizeof t.augment);

    t.background = -1;
    json = vlp_transform_to_json(&t);
    assert_int_equal(vlp_transform_from_json(&back, json, "test"), VLP_OK);
    vlp_json_free(json);
    assert_int_equal(back.background, -1);
}

static void test_vision_transform__bad_configurations_name_the_key(void **state) {
    (void)state;
    static const char *cases[][2] = {
        {"{}", "\"size\""},
        {"[]", "JSON object"},
        {"{\"size\": 0}", "\"size\""},
        {"{\"size\": 2.5}", "\"size\""},
        {"{\"size\": \"224\"}", "\"size\""},
        {"{\"size\": {\"height\": 10}}", "\"size\""},
        {"{\"size\": {\"height\": 10, \"width\": 12}}", "10 x 12"},
        {"{\"size\": {\"shortest_edge\": 384}, \"do_center_crop\": false}", "shortest_edge"},
        {"{\"size\": 224, \"crop_size\": 225}", "crop_size"},
        {"{\"size\": 224, \"do_resize\": false}", "do_resize"},
        {"{\"size\": 224, \"do_resize\": 1}", "do_resize"},
        {"{\"size\": 224, \"resample\": 0}", "resample"},
        {"{\"size\": 224, \"resample\": \"bicubic\"}", "resample"},
        {"{\"size\": 224, \"image_mean\": [1, 2]}", "image_mean"},
        {"{\"size\": 224, \"image_std\": [1, 0, 1]}", "image_std"},
        {"{\"size\": 224, \"rescale_factor\": \"x\"}", "rescale_factor"},
        {"{\"size\": 224, \"background\": \"white\"}", "background"},
        {"{\"size\": 224, \"crop_offset\": \"ceil\"}", "crop_offset"},
        {"{\"size\": 224, \"augment\": {\"scale\": [0, 1]}}", "augment.scale"},
        {"{\"size\": 224, \"augment\": {\"ratio\": [2, 1]}}", "augment.ratio"},
        {"{\"size\": 224, \"augment\": {\"flip\": 2}}", "augment.flip"},
        {"{\"size\": 224, \"augment\": {\"randaugment\": 11}}", "augment.randaugment"},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        vlp_transform t;
        if (parse(&t, cases[i][0]) == VLP_OK) fail_msg("%s is accepted", cases[i][0]);
        if (!strstr(vlp_error(), cases[i][1]) || !strstr(vlp_error(), "preprocessor_config.json"))
            fail_msg("%s: \"%s\" lacks %s", cases[i][0], vlp_error(), cases[i][1]);
    }
}

static void test_vision_transform__flipped_crops_equal_torchvision(void **state) {
    (void)state;
    static const struct {
        int top, left, height, width;
        const char *kind;
    } crops[] = {{0, 0, 72, 96, "crop1"}, {33, 20, 17, 23, "crop2"}};
    decode_case(&source, "files", "crops.png", NULL);
    for (size_t i = 0; i < VLP_COUNT(crops); i++) {
        assert_true(expected_case(&expected, "crops.png", crops[i].kind));
        vlp_image_view view = vlp_image_view_crop(&source, crops[i].left, crops[i].top,
                                                  crops[i].width, crops[i].height);
        vlp_resize_options resize = {28, 28, VLP_RESIZE_BICUBIC, NULL, NULL};
        assert_int_equal(vlp_resize(&actual, &view, &resize, &scratch.resize), VLP_OK);
        vlp_image_mirror(&actual);
        assert_same_pixels(&actual, &expected, "crops.png", crops[i].kind);
    }
}

static void test_vision_transform__training_depends_on_the_stream_alone(void **state) {
    (void)state;
    vlp_transform t = vlp_transform_defaults(16);
    t.augment.flip = 0.5;
    t.augment.brightness = t.augment.contrast = t.augment.saturation = 0.4;
    enum { N = 3 * 16 * 16 };
    float a[N], b[N], other[N];
    decode_case(&source, "files", "crops.png", NULL);
    vlp_rng one = vlp_rng_at(1, VLP_RNG_AUGMENT, 0, 7), same = one;
    vlp_rng two = vlp_rng_at(1, VLP_RNG_AUGMENT, 1, 7);
    assert_int_equal(vlp_transform_apply(&t, &source, &one, &scratch, a), VLP_OK);
    assert_int_equal(vlp_transform_apply(&t, &source, &two, &scratch, other), VLP_OK);
    assert_int_equal(vlp_transform_apply(&t, &source, &same, &scratch, b), VLP_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_true(memcmp(a, other, sizeof a) != 0);
}

/* A ramp in red (x) and green (y) shows where a crop came from. */
static void test_vision_transform__random_crops_cover_what_they_should(void **state) {
    (void)state;
    enum { SIDE = 200, TRIES = 2000 };
    assert_int_equal(vlp_image_resize_memory(&source, SIDE, SIDE), VLP_OK);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        source.pixels[3 * i] = (uint8_t)(i % SIDE);
        source.pixels[3 * i + 1] = (uint8_t)(i / SIDE);
        source.pixels[3 * i + 2] = 0;
    }
    vlp_transform t = vlp_transform_defaults(8);
    t.filter = VLP_RESIZE_BOX;
    t.augment.flip = 0.25;
    double area = 0, smallest = 1, largest = 0, flips = 0, worst_ratio = 1;
    for (uint64_t id = 0; id < TRIES; id++) {
        vlp_rng rng = vlp_rng_at(2, VLP_RNG_AUGMENT, 0, id);
        assert_int_equal(vlp_transform_pixels(&t, &source, &rng, &actual, &scratch), VLP_OK);
        const uint8_t *first = actual.pixels, *last = actual.pixels + 3 * 63;
        double w = abs(last[0] - first[0]) * 8.0 / 7, h = (last[1] - first[1]) * 8.0 / 7;
        flips += first[0] > last[0];
        area += w * h / (SIDE * SIDE);
        smallest = fmin(smallest, w * h / (SIDE * SIDE));
        largest = fmax(largest, w * h / (SIDE * SIDE));
        worst_ratio = fmax(worst_ratio, fmax(w / h, h / w));
    }
    /* Below 0.75: large areas of unequal sides do not fit and are drawn again. */
    assert_float_equal(area / TRIES, 0.693, 0.01);
    assert_float_equal(smallest, 0.5, 0.03);
    assert_float_equal(largest, 1, 0.03);
    assert_float_equal(worst_ratio, 4.0 / 3, 0.05);
    assert_float_equal(flips / TRIES, 0.25, 0.03);
}

static void test_vision_transform__colour_changes_are_pil_s(void **state) {
    (void)state;
    static const uint8_t pixels[] = {10, 100, 255, 0, 255, 128};
    static const struct {
        void (*adjust)(vlp_image *image, double factor);
        double factor;
        uint8_t expected[6];
    } cases[] = {
        {vlp_adjust_brightness, 1, {10, 100, 255, 0, 255, 128}},
        {vlp_adjust_brightness, 0, {0, 0, 0, 0, 0, 0}},
        {vlp_adjust_brightness, 1.5, {15, 150, 255, 0, 255, 192}},
        /* luma 90.8 and 164.3, rounded: mean 127.5 */
        {vlp_adjust_contrast, 0, {128, 128, 128, 128, 128, 128}},
        {vlp_adjust_contrast, 0.5, {69, 114, 191, 64, 191, 128}},
        {vlp_adjust_saturation, 0, {91, 91, 91, 164, 164, 164}},
        {vlp_adjust_saturation, 2, {0, 109, 255, 0, 255, 92}},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        assert_int_equal(vlp_image_resize_memory(&actual, 2, 1), VLP_OK);
        memcpy(actual.pixels, pixels, sizeof pixels);
        cases[i].adjust(&actual, cases[i].factor);
        for (size_t k = 0; k < 6; k++)
            if (actual.pixels[k] != cases[i].expected[k])
                fail_msg("case %zu [%zu]: %d, expected %d", i, k, actual.pixels[k],
                         cases[i].expected[k]);
    }
}

static void test_vision_transform__warm_scratch_is_not_reallocated(void **state) {
    (void)state;
    vlp_transform t = vlp_transform_defaults(28);
    float out[3 * 28 * 28];
    decode_case(&source, "files", "huge.jpg", NULL);
    assert_int_equal(vlp_transform_apply(&t, &source, NULL, &scratch, out), VLP_OK);
    vlp_rng warm = vlp_rng_at(1, VLP_RNG_AUGMENT, 0, 0);
    assert_int_equal(vlp_transform_apply(&t, &source, &warm, &scratch, out), VLP_OK);
    int64_t before = vlp_alloc_count();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vlp_transform_apply(&t, &source, NULL, &scratch, out), VLP_OK);
        vlp_rng same = vlp_rng_at(1, VLP_RNG_AUGMENT, 0, 0);
        assert_int_equal(vlp_transform_apply(&t, &source, &same, &scratch, out), VLP_OK);
    }
    assert_int_equal(vlp_alloc_count(), before);
}

static void test_vision_transform__extreme_shapes(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 5000}, {5000, 1}, {1 << 20, 1}};
    const vlp_transform clip = vlp_transform_defaults(28);
    const float grey = (float)((90 / 255.0 - clip.mean[0]) / clip.std[0]);
    float out[3 * 28 * 28];
    for (size_t s = 0; s < VLP_COUNT(sizes); s++) {
        assert_int_equal(vlp_image_resize_memory(&source, sizes[s][0], sizes[s][1]), VLP_OK);
        memset(source.pixels, 90, (size_t)sizes[s][0] * (size_t)sizes[s][1] * 3);
        vlp_transform t = clip;
        assert_int_equal(vlp_transform_apply(&t, &source, NULL, &scratch, out), VLP_OK);
        assert_float_equal(out[5], grey, 1e-5);
        vlp_rng rng = vlp_rng_at(1, VLP_RNG_AUGMENT, 0, s);
        assert_int_equal(vlp_transform_apply(&t, &source, &rng, &scratch, out), VLP_OK);
        assert_float_equal(out[5], grey, 1e-5);
        t.resize_size = 1 << 14;
        if (sizes[s][0] == 1 << 20)
            assert_int_equal(vlp_transform_apply(&t, &source, NULL, &scratch, out), VLP_ERR_LIMIT);
    }
}

static void test_vision_transform__jpeg_scaling_stays_near(void **state) {
    (void)state;
    vlp_transform t = vlp_transform_defaults(28);
    decode_case(&source, "files", "huge.jpg", NULL);
    assert_int_equal(vlp_transform_pixels(&t, &source, NULL, &expected, &scratch), VLP_OK);
    int full = source.width;
    t.jpeg_scaling = true;
    vlp_decode_options how = vlp_transform_decode_options(&t, false);
    decode_case(&source, "files", "huge.jpg", &how);
    assert_true(source.width * 4 <= full + 3);
    assert_true(source.height >= 56);
    assert_int_equal(vlp_transform_pixels(&t, &source, NULL, &actual, &scratch), VLP_OK);
    double sum = 0;
    for (size_t i = 0; i < 3 * 28 * 28; i++) sum += abs(actual.pixels[i] - expected.pixels[i]);
    if (sum / (3 * 28 * 28) > 1.5) fail_msg("mean difference %g", sum / (3 * 28 * 28));
}

static void test_vision_transform__thumbnails_are_small_jpegs(void **state) {
    (void)state;
    vlp_buf bytes = {0};
    decode_case(&source, "files", "huge.jpg", NULL);
    assert_int_equal(vlp_thumbnail(&source, 100, &bytes), VLP_OK);
    assert_int_equal(vlp_image_decode(&actual, (uint8_t *)bytes.data, bytes.len, NULL), VLP_OK);
    assert_int_equal(actual.width > actual.height ? actual.width : actual.height, 100);
    vlp_buf_clear(&bytes);
    decode_case(&source, "files", "tall.png", NULL); /* 3 x 1000 */
    assert_int_equal(vlp_thumbnail(&source, 100, &bytes), VLP_OK);
    assert_int_equal(vlp_image_decode(&actual, (uint8_t *)bytes.data, bytes.len, NULL), VLP_OK);
    assert_int_equal(actual.width, 1);
    vlp_buf_clear(&bytes);
    decode_case(&source, "files", "s2x3.png", NULL);
    assert_int_equal(vlp_thumbnail(&source, 100, &bytes), VLP_OK); /* never enlarged */
    assert_int_equal(vlp_image_decode(&actual, (uint8_t *)bytes.data, bytes.len, NULL), VLP_OK);
    assert_int_equal(actual.width, 2);
    vlp_buf_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_transform__equals_published_pipelines_exactly),
        cmocka_unit_test(test_vision_transform__pixel_values_equal_the_reference),
        cmocka_unit_test(test_vision_transform__published_configurations_are_understood),
        cmocka_unit_test(test_vision_transform__json_round_trip),
        cmocka_unit_test(test_vision_transform__bad_configurations_name_the_key),
        cmocka_unit_test(test_vision_transform__flipped_crops_equal_torchvision),
        cmocka_unit_test(test_vision_transform__training_depends_on_the_stream_alone),
        cmocka_unit_test(test_vision_transform__random_crops_cover_what_they_should),
        cmocka_unit_test(test_vision_transform__colour_changes_are_pil_s),
        cmocka_unit_test(test_vision_transform__warm_scratch_is_not_reallocated),
        cmocka_unit_test(test_vision_transform__extreme_shapes),
        cmocka_unit_test(test_vision_transform__jpeg_scaling_stays_near),
        cmocka_unit_test(test_vision_transform__thumbnails_are_small_jpegs),
    };
    return cmocka_run_group_tests(tests, NULL, free_images);
}
