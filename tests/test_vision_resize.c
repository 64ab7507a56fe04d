#include "core/memory.h"
#include "core/rng.h"
#include "image_case.h"
#include "vision/resample.h"
#include "vision/resize.h"

#include <math.h>

static const vlp_decode_options as_reference = {.exif_rotate = false, .background = -1};
static vlp_image source, actual, expected;
static vlp_resize_scratch scratch;
static int compared;

static int free_images(void **state) {
    (void)state;
    vlp_image_free(&source);
    vlp_image_free(&actual);
    vlp_image_free(&expected);
    vlp_resize_scratch_free(&scratch);
    return 0;
}

static void resize(vlp_image *out, const vlp_image_view *from, const vlp_resize_options *options) {
    if (vlp_resize(out, from, options, &scratch) != VLP_OK) fail_msg("%s", vlp_error());
}

static void resize_to(vlp_image *out, const vlp_image *from, int width, int height,
                      vlp_resize_filter filter) {
    vlp_image_view view = vlp_image_view_of(from);
    resize(out, &view, &(vlp_resize_options){.width = width, .height = height, .filter = filter});
}

static void random_image(vlp_image *image, int width, int height, uint64_t id) {
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, 0, id);
    assert_int_equal(vlp_image_resize_memory(image, width, height), VLP_OK);
    size_t bytes = (size_t)width * (size_t)height * 3;
    for (size_t i = 0; i < bytes; i++) /* extremes, so that kernels overshoot */
        image->pixels[i] = vlp_rng_below(&rng, 3) ? (uint8_t)vlp_rng_u32(&rng)
                                                  : (uint8_t)(vlp_rng_below(&rng, 2) * 255);
}

static const struct {
    const char *pipeline;
    vlp_resize_filter filter;
} squashes[] = {{"vit", VLP_RESIZE_BILINEAR}, {"albef", VLP_RESIZE_BICUBIC}};

static void compare_squashed(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(squashes); i++) {
        if (!expected_case(&expected, name, squashes[i].pipeline)) continue;
        decode_case(&source, "files", name, &as_reference);
        resize_to(&actual, &source, 28, 28, squashes[i].filter);
        assert_same_pixels(&actual, &expected, name, squashes[i].pipeline);
        compared++;
    }
}

static void test_vision_resize__equals_pil_exactly(void **state) {
    (void)state;
    compared = 0;
    for_each_case("files", compare_squashed);
    assert_int_equal(compared, 73);
}

static void test_vision_resize__crops_equal_torchvision(void **state) {
    (void)state;
    static const struct {
        int top, left, height, width;
        bool flip;
    } crops[] = {{5, 11, 40, 52, false},
                 {0, 0, 72, 96, true},
                 {33, 20, 17, 23, true},
                 {2, 50, 61, 20, false}};
    decode_case(&source, "files", "crops.png", NULL);
    for (size_t i = 0; i < VLP_COUNT(crops); i++) {
        char kind[16];
        snprintf(kind, sizeof kind, "crop%zu", i);
        assert_true(expected_case(&expected, "crops.png", kind));
        if (crops[i].flip) continue; /* the flipped ones are in the transform's test */
        vlp_image_view view = vlp_image_view_crop(&source, crops[i].left, crops[i].top,
                                                  crops[i].width, crops[i].height);
        resize(&actual, &view,
               &(vlp_resize_options){.width = 28, .height = 28, .filter = VLP_RESIZE_BICUBIC});
        assert_same_pixels(&actual, &expected, "crops.png", kind);
    }
}

static double sinc(double x) {
    return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
}

static double kernel(vlp_resize_filter filter, double x) {
    x = fabs(x);
    switch (filter) {
    case VLP_RESIZE_BOX:
        return x < 0.5;
    case VLP_RESIZE_BILINEAR:
        return x < 1 ? 1 - x : 0;
    case VLP_RESIZE_HAMMING:
        return x < 1 ? sinc(x) * (0.54 + 0.46 * cos(M_PI * x)) : 0;
    case VLP_RESIZE_LANCZOS:
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    default:
        return x < 1   ? 1.5 * x * x * x - 2.5 * x * x + 1
               : x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2
                       : 0;
    }
}

/* One axis by the definition: every source sample, weight by distance, normalised. */
static uint8_t sample(vlp_resize_filter filter, const uint8_t *p, size_t step, int n, double centre,
                      double scale) {
    double sum = 0, weights = 0;
    for (int i = 0; i < n; i++) {
        double w = kernel(filter, (i + 0.5 - centre) / fmax(scale, 1));
        sum += w * p[(size_t)i * step];
        weights += w;
    }
    double value = floor(sum / weights + 0.5);
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void resize_by_definition(vlp_image *out, const vlp_image *in, int width, int height,
                                 vlp_resize_filter filter) {
    size_t w = (size_t)width, stride = (size_t)in->width * 3;
    uint8_t *between = malloc(w * 3 * (size_t)in->height);
    double sx = (double)in->width / width, sy = (double)in->height / height;
    assert_int_equal(vlp_image_resize_memory(out, width, height), VLP_OK);
    for (size_t y = 0; y < (size_t)in->height; y++)
        for (size_t i = 0; i < w * 3; i++)
            between[y * w * 3 + i] = sample(filter, in->pixels + y * stride + i % 3, 3, in->width,
                                            ((double)(i / 3) + 0.5) * sx, sx);
    for (size_t y = 0; y < (size_t)height; y++)
        for (size_t i = 0; i < w * 3; i++)
            out->pixels[y * w * 3 + i] =
                sample(filter, between + i, w * 3, in->height, ((double)y + 0.5) * sy, sy);
    free(between);
}

static void test_vision_resize__every_filter_follows_its_definition(void **state) {
    (void)state;
    static const int sizes[][4] = {{37, 23, 11, 17}, {9, 14, 31, 5}, {64, 64, 7, 40}, {5, 3, 5, 9}};
    for (size_t s = 0; s < VLP_COUNT(sizes); s++) {
        random_image(&source, sizes[s][0], sizes[s][1], s);
        for (int filter = VLP_RESIZE_BOX; filter <= VLP_RESIZE_LANCZOS; filter++) {
            resize_to(&actual, &source, sizes[s][2], sizes[s][3], (vlp_resize_filter)filter);
            resize_by_definition(&expected, &source, sizes[s][2], sizes[s][3],
                                 (vlp_resize_filter)filter);
            int worst = max_difference(&actual, &expected);
            if (worst > 1) fail_msg("filter %d, sizes %zu: differs by %d", filter, s, worst);
        }
    }
}

static void test_vision_resize__window_is_a_part_of_the_whole(void **state) {
    (void)state;
    random_image(&source, 61, 47, 1);
    vlp_image_view view = vlp_image_view_of(&source);
    static const int sizes[][2] = {{40, 30}, {61, 30}, {40, 47}, {61, 47}, {90, 80}};
    for (size_t s = 0; s < VLP_COUNT(sizes); s++) {
        vlp_window window = {7, 9, 20, 18};
        vlp_resize_options options = {sizes[s][0], sizes[s][1], VLP_RESIZE_BICUBIC, NULL, NULL};
        resize(&expected, &view, &options);
        options.window = &window;
        resize(&actual, &view, &options);
        for (size_t y = 0; y < 18; y++)
            assert_memory_equal(actual.pixels + y * 60,
                                expected.pixels + ((y + 9) * (size_t)sizes[s][0] + 7) * 3, 60);
    }
}

static void test_vision_resize__box_sees_beyond_its_edges(void **state) {
    (void)state;
    random_image(&source, 40, 30, 2);
    vlp_image_view view = vlp_image_view_of(&source);
    vlp_box whole = {0, 0, 40, 30}, inner = {10, 5, 30, 25};
    vlp_resize_options options = {10, 10, VLP_RESIZE_BOX, &inner, NULL};

    /* A box filter at an integer reduction stays inside, so it equals the crop. */
    resize(&actual, &view, &options);
    vlp_image_view crop = vlp_image_view_crop(&source, 10, 5, 20, 20);
    options.box = NULL;
    resize(&expected, &crop, &options);
    assert_same_pixels(&actual, &expected, "box", "inner");

    /* The bicubic one does not: the first pixel depends on what lies outside. */
    options.filter = VLP_RESIZE_BICUBIC;
    resize(&expected, &crop, &options);
    options.box = &inner;
    resize(&actual, &view, &options);
    assert_true(max_difference(&actual, &expected) > 0);
    options.box = &whole;
    resize(&actual, &view, &options);
    options.box = NULL;
    resize(&expected, &view, &options);
    assert_same_pixels(&actual, &expected, "box", "whole");
}

enum { TAPS = 13, STRIDE = 16, BYTES = 200 };

static void random_weights(vlp_rng *rng, int count, int16_t *low, int16_t *high) {
    memset(low, 0, STRIDE * sizeof *low);
    memset(high, 0, STRIDE * sizeof *high);
    for (int t = 0; t < count; t++) {
        low[t] = (int16_t)((int)vlp_rng_below(rng, 2048) - 1024);
        high[t] = (int16_t)((int)vlp_rng_below(rng, 1000) - 300);
    }
}

/* Exactly as long as it says, so that sanitizers see reads beyond the end. */
static uint8_t *random_bytes(vlp_rng *rng, size_t count) {
    uint8_t *bytes = malloc(count);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)vlp_rng_u32(rng);
    return bytes;
}

static void compare_rows(const vlp_resample_kernels *fast, vlp_rng *rng, int count, size_t bytes) {
    uint8_t *rows = random_bytes(rng, (size_t)count * bytes), a[BYTES], b[BYTES];
    int16_t low[STRIDE], high[STRIDE];
    random_weights(rng, count, low, high);
    fast->rows(a, bytes, rows, bytes, count, low, high);
    vlp_resample_plain.rows(b, bytes, rows, bytes, count, low, high);
    assert_memory_equal(a, b, bytes);
    free(rows);
}

/* `count` taps at the first, the last and a middle position of rows that are `width` long. */
static void compare_columns(const vlp_resample_kernels *fast, vlp_rng *rng, int count, int width,
                            int rows) {
    uint8_t *pixels = random_bytes(rng, (size_t)width * (size_t)rows * 3), a[27], b[27];
    int first[3] = {0, (width - count) / 2, width - count}, counts[3] = {count, count, count};
    int16_t low[3 * STRIDE], high[3 * STRIDE];
    for (size_t i = 0; i < 3; i++) random_weights(rng, count, low + i * STRIDE, high + i * STRIDE);
    const vlp_resample_axis axis = {count, STRIDE, first, counts, low, high};
    const vlp_resample_source from = {pixels, width, rows, (size_t)width * 3};
    fast->columns(a, 3, &from, &axis);
    vlp_resample_plain.columns(b, 3, &from, &axis);
    assert_memory_equal(a, b, (size_t)rows * 9);
    free(pixels);
}

static void test_vision_resize__vector_and_plain_kernels_agree(void **state) {
    (void)state;
#ifdef __x86_64__
    const vlp_resample_kernels *const sets[] = {&vlp_resample_sse2, &vlp_resample_avx2};
    vlp_rng rng = vlp_rng_at(8, VLP_RNG_TEST, 0, 0);
    for (size_t s = 0; s < VLP_COUNT(sets); s++) {
        if (sets[s]->isa > vlp_isa_best()) continue;
        for (int count = 1; count <= TAPS; count++) {
            for (size_t bytes = 1; bytes <= BYTES; bytes += 3)
                compare_rows(sets[s], &rng, count, bytes);
            for (int width = count; width <= count + 9; width++)
                for (int rows = 1; rows <= 3; rows++)
                    compare_columns(sets[s], &rng, count, width, rows);
        }
    }
#endif
}

static void test_vision_resize__warm_scratch_is_not_reallocated(void **state) {
    (void)state;
    random_image(&source, 200, 150, 3);
    resize_to(&actual, &source, 60, 50, VLP_RESIZE_LANCZOS);
    resize_to(&actual, &source, 60, 50, VLP_RESIZE_STB);
    int64_t before = vlp_alloc_count();
    for (int i = 0; i < 4; i++) {
        resize_to(&actual, &source, 60 - i, 50, VLP_RESIZE_LANCZOS);
        resize_to(&actual, &source, 60, 50 - i, VLP_RESIZE_STB);
    }
    assert_int_equal(vlp_alloc_count(), before);
}

static void test_vision_resize__out_of_memory_is_reported(void **state) {
    (void)state;
    random_image(&source, 30, 30, 4);
    vlp_image_view view = vlp_image_view_of(&source);
    for (int filter = VLP_RESIZE_BICUBIC; filter <= VLP_RESIZE_STB; filter++)
        for (int64_t n = 1; n <= 2; n++) {
            vlp_image out = {0};
            vlp_resize_scratch fresh = {0};
            vlp_resize_options options = {8, 8, (vlp_resize_filter)filter, NULL, NULL};
            vlp_alloc_fail_at(n);
            assert_int_equal(vlp_resize(&out, &view, &options, &fresh), VLP_ERR_MEMORY);
            vlp_alloc_fail_at(0);
            vlp_image_free(&out);
            vlp_resize_scratch_free(&fresh);
        }
}

static void test_vision_resize__stb_is_near_bicubic(void **state) {
    (void)state;
    static const char *names[] = {"huge.jpg", "crops.png"};
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        decode_case(&source, "files", names[i], NULL);
        vlp_image_view view = vlp_image_view_of(&source);
        vlp_window window = {3, 2, 40, 40};
        vlp_resize_options options = {50, 44, VLP_RESIZE_BICUBIC, NULL, &window};
        resize(&expected, &view, &options);
        options.filter = VLP_RESIZE_STB;
        resize(&actual, &view, &options);
        double sum = 0;
        for (size_t k = 0; k < 40 * 40 * 3; k++) sum += abs(actual.pixels[k] - expected.pixels[k]);
        if (sum / (40 * 40 * 3) > 0.5) fail_msg("%s: mean %g", names[i], sum / (40 * 40 * 3));
    }
    /* Sizes at which stb's own assertions would end the program. */
    random_image(&source, 75, 37, 6);
    resize_to(&actual, &source, 28, 28, VLP_RESIZE_STB);
}

static void test_vision_resize__extreme_shapes(void **state) {
    (void)state;
    static const int sizes[][4] = {{1, 1, 50, 60}, {30000, 1, 3, 3}, {1, 30000, 2, 5},
                                   {2, 2, 1, 1},   {1, 1, 1, 1},     {3, 500, 500, 3}};
    for (size_t s = 0; s < VLP_COUNT(sizes); s++) {
        assert_int_equal(vlp_image_resize_memory(&source, sizes[s][0], sizes[s][1]), VLP_OK);
        size_t bytes = (size_t)sizes[s][0] * (size_t)sizes[s][1] * 3;
        memset(source.pixels, 201, bytes);
        for (int filter = VLP_RESIZE_BOX; filter <= VLP_RESIZE_LANCZOS; filter++) {
            resize_to(&actual, &source, sizes[s][2], sizes[s][3], (vlp_resize_filter)filter);
            /* A constant stays itself, up to the rounding of many small weights. */
            for (int i = 0; i < sizes[s][2] * sizes[s][3] * 3; i++)
                assert_in_range(actual.pixels[i], 199, 203);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_resize__equals_pil_exactly),
        cmocka_unit_test(test_vision_resize__crops_equal_torchvision),
        cmocka_unit_test(test_vision_resize__every_filter_follows_its_definition),
        cmocka_unit_test(test_vision_resize__window_is_a_part_of_the_whole),
        cmocka_unit_test(test_vision_resize__box_sees_beyond_its_edges),
        cmocka_unit_test(test_vision_resize__vector_and_plain_kernels_agree),
        cmocka_unit_test(test_vision_resize__warm_scratch_is_not_reallocated),
        cmocka_unit_test(test_vision_resize__out_of_memory_is_reported),
        cmocka_unit_test(test_vision_resize__stb_is_near_bicubic),
        cmocka_unit_test(test_vision_resize__extreme_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, free_images);
}
