#include "image_case.h"
#include "vision/randaugment.h"

#include "core/memory.h"
#include "core/rng.h"

static vlp_image image, before, scratch;

static int free_images(void **state) {
    (void)state;
    vlp_image_free(&image);
    vlp_image_free(&before);
    vlp_image_free(&scratch);
    return 0;
}

static void random_image(int width, int height) {
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, 0, (uint64_t)(width * 1000 + height));
    size_t bytes = (size_t)width * (size_t)height * 3;
    assert_int_equal(vlp_image_resize_memory(&image, width, height), VLP_OK);
    assert_int_equal(vlp_image_resize_memory(&before, width, height), VLP_OK);
    for (size_t i = 0; i < bytes; i++) image.pixels[i] = (uint8_t)vlp_rng_u32(&rng);
    memcpy(before.pixels, image.pixels, bytes);
}

static const char *const names[] = {
    "Identity",   "AutoContrast", "Equalize", "Brightness", "Sharpness", "ShearX",   "ShearY",
    "TranslateX", "TranslateY",   "Rotate",   "Color",      "Contrast",  "Solarize", "Posterize"};

static void apply(const char *name, double value) {
    int operation = vlp_randaugment_find(name);
    assert_true(operation >= 0);
    assert_int_equal(vlp_randaugment_apply(operation, &image, value, &scratch), VLP_OK);
}

static void test_vision_randaugment__neutral_values_change_nothing(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"Identity", 0}, {"Brightness", 1}, {"Sharpness", 1},  {"ShearX", 0},
                {"ShearY", 0},   {"TranslateX", 0}, {"TranslateY", 0}, {"Rotate", 0},
                {"Contrast", 1}, {"Solarize", 256}, {"Posterize", 8}};
    random_image(23, 17);
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        apply(rows[i].name, rows[i].value);
        if (strcmp(rows[i].name, "Contrast") == 0) { /* truncation may cost a level */
            assert_true(max_difference(&image, &before) <= 1);
            random_image(23, 17);
        }
        assert_same_pixels(&image, &before, rows[i].name, "neutral");
    }
}

static void test_vision_randaugment__whole_pixels_move_exactly(void **state) {
    (void)state;
    random_image(20, 10);
    apply("TranslateX", 3); /* to the left */
    for (size_t y = 0; y < 10; y++) {
        assert_memory_equal(image.pixels + y * 60, before.pixels + y * 60 + 9, 51);
        for (size_t i = 51; i < 60; i++) assert_int_equal(image.pixels[y * 60 + i], 128);
    }
    random_image(20, 10);
    apply("TranslateY", -2); /* downwards */
    assert_memory_equal(image.pixels + 2 * 60, before.pixels, 8 * 60);
    for (size_t i = 0; i < 2 * 60; i++) assert_int_equal(image.pixels[i], 128);
    random_image(9, 9);
    for (int turn = 0; turn < 2; turn++) apply("Rotate", 180);
    for (size_t y = 1; y < 9; y++) /* about (4.5, 4.5): the first row and column leave */
        assert_memory_equal(image.pixels + y * 27 + 3, before.pixels + y * 27 + 3, 24);
}

static void test_vision_randaugment__small_images_are_safe(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {2, 2}, {1, 40}, {40, 1}, {3, 3}};
    for (size_t s = 0; s < VLP_COUNT(sizes); s++)
        for (size_t i = 0; i < VLP_COUNT(names); i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                random_image(sizes[s][0], sizes[s][1]);
                apply(names[i], sign * 9.5);
                assert_int_equal(image.width, sizes[s][0]);
            }
    assert_int_equal(vlp_randaugment_find("Invert"), -1);
}

static void test_vision_randaugment__draws_do_not_depend_on_the_picture(void **state) {
    (void)state;
    int changed = 0;
    for (uint64_t i = 0; i < 400; i++) {
        vlp_rng a = vlp_rng_at(1, VLP_RNG_TEST, 0, i), b = a;
        random_image(12, 12);
        assert_int_equal(vlp_randaugment(&image, 7, &a, &scratch), VLP_OK);
        changed += max_difference(&image, &before) > 0;
        random_image(5, 31);
        assert_int_equal(vlp_randaugment(&image, 2, &b, &scratch), VLP_OK);
        assert_int_equal(vlp_rng_u32(&a), vlp_rng_u32(&b));
    }
    /* None of two applied: 1/4; one, and it is Identity or nothing to do: a little more. */
    assert_true(changed > 220 && changed < 320);
}

static void test_vision_randaugment__a_transform_applies_it(void **state) {
    (void)state;
    vlp_transform t = vlp_transform_defaults(16);
    vlp_transform_scratch working = {0};
    static float plain[3 * 256], augmented[3 * 256];
    int changed = 0;
    random_image(40, 30);
    for (uint64_t i = 0; i < 60; i++) {
        vlp_rng a = vlp_rng_at(1, VLP_RNG_TEST, 0, i), b = a;
        t.augment.randaugment = 0;
        assert_int_equal(vlp_transform_apply(&t, &image, &a, &working, plain), VLP_OK);
        t.augment.randaugment = 7;
        int64_t allocations = vlp_alloc_count();
        assert_int_equal(vlp_transform_apply(&t, &image, &b, &working, augmented), VLP_OK);
        if (i > 20) assert_int_equal(vlp_alloc_count(), allocations);
        changed += memcmp(plain, augmented, sizeof plain) != 0;
        assert_int_equal(vlp_transform_apply(&t, &image, NULL, &working, plain), VLP_OK);
    }
    assert_true(changed > 25 && changed < 58);
    vlp_transform_scratch_free(&working);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_randaugment__neutral_values_change_nothing),
        cmocka_unit_test(test_vision_randaugment__whole_pixels_move_exactly),
        cmocka_unit_test(test_vision_randaugment__small_images_are_safe),
        cmocka_unit_test(test_vision_randaugment__draws_do_not_depend_on_the_picture),
        cmocka_unit_test(test_vision_randaugment__a_transform_applies_it),
    };
    return cmocka_run_group_tests(tests, NULL, free_images);
}
