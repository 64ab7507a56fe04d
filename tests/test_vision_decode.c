#include "core/rng.h"
#include "image_case.h"
#include "vision/exif.h"
#include "vision/thumbnail.h"

static const vlp_decode_options as_reference = {.exif_rotate = false, .background = -1};
static vlp_image actual, expected;
static int compared;

static int free_images(void **state) {
    (void)state;
    vlp_image_free(&actual);
    vlp_image_free(&expected);
    return 0;
}

static void compare_decoded(const char *name) {
    if (expected_case(&expected, name, "rgb")) {
        decode_case(&actual, "files", name, &as_reference);
        assert_same_pixels(&actual, &expected, name, "as stored");
        compared++;
    }
    if (expected_case(&expected, name, "upright")) {
        vlp_decode_options rotate = as_reference;
        rotate.exif_rotate = true;
        decode_case(&actual, "files", name, &rotate);
        assert_same_pixels(&actual, &expected, name, "upright");
        compared++;
    }
}

static void test_vision_decode__pixels_equal_the_reference(void **state) {
    (void)state;
    compared = 0;
    assert_true(for_each_case("files", compare_decoded) >= 50);
    assert_true(compared == 46);
}

/* The expected files above are PNG too; this one is not. */
static void test_vision_decode__rgb_png_equals_ppm(void **state) {
    (void)state;
    vlp_buf ppm = {0};
    read_case(&ppm, "expected", "rgb8.png.rgb.ppm");
    decode_case(&actual, "files", "rgb8.png", NULL);
    size_t bytes = (size_t)actual.width * (size_t)actual.height * 3;
    assert_int_equal(actual.width, 51);
    assert_int_equal(actual.height, 39);
    assert_memory_equal(actual.pixels, ppm.data + ppm.len - bytes, bytes);
    vlp_buf_free(&ppm);
}

/* 3 x 1, grey + alpha: (0, 0) (100, 128) (200, 255) */
static const uint8_t grey_alpha_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x08, 0x04, 0x00, 0x00, 0x00, 0xb1,
    0xe9, 0xdc, 0x3f, 0x00, 0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0x01, 0x01, 0x07,
    0x00, 0xf8, 0xff, 0x00, 0x00, 0x00, 0x64, 0x80, 0xc8, 0xff, 0x05, 0xa6, 0x02, 0xac, 0x3b,
    0xce, 0x0f, 0x6d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void test_vision_decode__alpha_is_composited_over_the_background(void **state) {
    (void)state;
    vlp_decode_options options = vlp_decode_defaults;
    static const struct {
        int background;
        uint8_t rgb[9];
    } cases[] = {
        {0xffffff, {255, 255, 255, 177, 177, 177, 200, 200, 200}},
        {0xff8000, {255, 128, 0, 177, 114, 50, 200, 200, 200}},
        {-1, {0, 0, 0, 100, 100, 100, 200, 200, 200}},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        options.background = cases[i].background;
        vlp_status status =
            vlp_image_decode(&actual, grey_alpha_png, sizeof grey_alpha_png, &options);
        if (status != VLP_OK) fail_msg("%s", vlp_error());
        assert_memory_equal(actual.pixels, cases[i].rgb, 9);
    }
}

static void test_vision_decode__palette_transparency_shows_the_background(void **state) {
    (void)state;
    vlp_decode_options red = vlp_decode_defaults;
    red.background = 0xff0000;
    decode_case(&actual, "files", "pkg-1-LA.png", &red); /* a drawing on transparent ground */
    static const uint8_t expected_corner[] = {255, 0, 0};
    assert_memory_equal(actual.pixels, expected_corner, 3);
    decode_case(&actual, "files", "palette4-trns.png", &red);
    decode_case(&expected, "files", "palette4-trns.png", &as_reference);
    assert_true(max_difference(&actual, &expected) > 50);
}

static void test_vision_decode__grey16_keeps_the_high_byte_with_a_background(void **state) {
    (void)state;
    decode_case(&actual, "files", "gray16.png", NULL);
    size_t count = (size_t)actual.width * (size_t)actual.height, white = 0;
    for (size_t i = 0; i < count; i++) white += actual.pixels[3 * i] == 255;
    assert_true(white < count / 10);
}

static void test_vision_decode__bad_files_say_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *file;
        vlp_status status;
        const char *message; /* NULL: decodes */
    } cases[] = {
        {"empty.png", VLP_ERR_FORMAT, "is empty (0 bytes)"},
        {"text.jpg", VLP_ERR_FORMAT, "text"},
        {"trunc-header.png", VLP_ERR_FORMAT, "ends within its header"},
        {"trunc-half.png", VLP_ERR_FORMAT, "ends too early"},
        {"trunc-iend.png", VLP_OK, NULL},
        {"trunc-half.jpg", VLP_ERR_FORMAT, "ends too early"},
        {"trunc-eoi.jpg", VLP_ERR_FORMAT, "ends too early"},
        {"trunc-head.jpg", VLP_ERR_FORMAT, "ends too early"},
        {"bad-crc.png", VLP_ERR_FORMAT, "bad PNG file"},
        {"bomb.png", VLP_ERR_LIMIT, "60000 x 60000"},
        {"zero.png", VLP_ERR_FORMAT, "bad header"},
        {"palette-range.png", VLP_OK, NULL},
        {"png-as.jpg", VLP_OK, NULL},
        {"jpg-as.png", VLP_OK, NULL},
        {"trailing.jpg", VLP_OK, NULL},
    };
    vlp_buf file = {0};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        read_case(&file, "bad", cases[i].file);
        vlp_status status = vlp_image_decode(&actual, (uint8_t *)file.data, file.len, NULL);
        if (status != cases[i].status)
            fail_msg("%s: status %d, %s", cases[i].file, status, vlp_error());
        if (cases[i].message && !strstr(vlp_error(), cases[i].message))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].file, vlp_error(), cases[i].message);
        if (cases[i].message) assert_int_equal(actual.width, 0);
    }
    vlp_buf_free(&file);
}

#define BYTES(text) text, sizeof(text) - 1

static void test_vision_decode__other_content_is_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } cases[] = {
        {BYTES("\0\0\0\x18"
               "ftypheic\0\0\0\0"),
         "is HEIC"},
        {BYTES("\0\0\0\x18"
               "ftypavif\0\0\0\0"),
         "is AVIF"},
        {BYTES("\n\n  <!DOCTYPE html><html>"), "is an HTML page"},
        {BYTES("\xef\xbb\xbf<HTML><body>404"), "is an HTML page"},
        {BYTES("<svg xmlns="), "is SVG"},
        {BYTES("{\"error\": 403}"), "is text"},
        {BYTES("version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer"},
        {BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), "only zero bytes"},
        {BYTES("\0"), "only zero bytes"},
        {BYTES("\xff\xd8"), "begins with ff d8"},
        {BYTES("\x89PNG"), "begins with 89 50"},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        const uint8_t *data = (const uint8_t *)cases[i].bytes;
        assert_int_not_equal(vlp_image_decode(&actual, data, cases[i].len, NULL), VLP_OK);
        if (!strstr(vlp_error(), cases[i].message))
            fail_msg("\"%s\" lacks \"%s\"", vlp_error(), cases[i].message);
        vlp_image_header header;
        assert_int_not_equal(vlp_image_probe(&header, data, cases[i].len), VLP_OK);
    }
}

static void probe_and_decode_agree(const char *name) {
    vlp_buf file = {0};
    read_case(&file, "files", name);
    vlp_image_header header;
    assert_int_equal(vlp_image_probe(&header, (uint8_t *)file.data, file.len), VLP_OK);
    decode_case(&actual, "files", name, &as_reference);
    assert_int_equal(header.width, actual.width);
    assert_int_equal(header.height, actual.height);
    bool png = strstr(name, ".png") != NULL;
    assert_int_equal(header.format, png ? VLP_FORMAT_PNG : VLP_FORMAT_JPEG);
    if (strncmp(name, "exif-", 5) == 0 && strcmp(name, "exif-bad.jpg") != 0)
        assert_int_equal(header.orientation, name[5] - '0');
    else
        assert_int_equal(header.orientation, 1);
    vlp_buf_free(&file);
}

static void test_vision_decode__probe_agrees_with_decode(void **state) {
    (void)state;
    assert_true(for_each_case("files", probe_and_decode_agree) >= 50);
}

static void test_vision_decode__png_exif_chunk_rotates(void **state) {
    (void)state;
    static const uint8_t exif[] = {0x00, 0x00, 0x00, 0x1a, 0x65, 0x58, 0x49, 0x66, 0x4d, 0x4d,
                                   0x00, 0x2a, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x01, 0x12,
                                   0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x00, 0x06, 0x00, 0x00,
                                   0x00, 0x00, 0x00, 0x00, 0xd6, 0x67, 0x4b, 0x69};
    vlp_buf file = {0}, rotated = {0};
    read_case(&file, "files", "rgb8.png");
    const size_t head = 8 + 12 + 13, tail = 12;
    const size_t places[] = {head, file.len - tail}; /* before the pixels, and after them */
    decode_case(&expected, "files", "rgb8.png", NULL);
    for (size_t i = 0; i < VLP_COUNT(places); i++) {
        vlp_buf_clear(&rotated);
        assert_int_equal(vlp_buf_append(&rotated, file.data, places[i]), VLP_OK);
        assert_int_equal(vlp_buf_append(&rotated, exif, sizeof exif), VLP_OK);
        assert_int_equal(vlp_buf_append(&rotated, file.data + places[i], file.len - places[i]),
                         VLP_OK);
        if (vlp_image_decode(&actual, (uint8_t *)rotated.data, rotated.len, NULL) != VLP_OK)
            fail_msg("%s", vlp_error());
        assert_int_equal(actual.width, expected.height);
        assert_int_equal(actual.height, expected.width);
        /* The stored bottom left pixel is the upright top left one. */
        const uint8_t *corner =
            expected.pixels + 3 * (size_t)expected.width * (size_t)(expected.height - 1);
        assert_memory_equal(actual.pixels, corner, 3);
    }
    vlp_buf_free(&file);
    vlp_buf_free(&rotated);
}

static void test_vision_decode__min_side_scales_jpeg(void **state) {
    (void)state;
    vlp_decode_options options = vlp_decode_defaults;
    decode_case(&expected, "files", "huge.jpg", &options);
    int w = expected.width, h = expected.height, small = w < h ? w : h;
    for (int denominator = 1; denominator <= 8; denominator *= 2) {
        options.min_side = (small + denominator - 1) / denominator;
        decode_case(&actual, "files", "huge.jpg", &options);
        assert_int_equal(actual.width, (w + denominator - 1) / denominator);
        assert_int_equal(actual.height, (h + denominator - 1) / denominator);
        options.min_side++;
        decode_case(&actual, "files", "huge.jpg", &options);
        assert_true(denominator == 1 || actual.width > (w + denominator - 1) / denominator);
    }
}

static void test_vision_decode__max_pixels_is_checked_first(void **state) {
    (void)state;
    vlp_decode_options options = vlp_decode_defaults;
    static const char *names[] = {"rgb8.png", "q90-444.jpg"};
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        decode_case(&actual, "files", names[i], NULL);
        options.max_pixels = (int64_t)actual.width * actual.height;
        decode_case(&actual, "files", names[i], &options);
        options.max_pixels--;
        vlp_buf file = {0};
        read_case(&file, "files", names[i]);
        vlp_image fresh = {0};
        assert_int_equal(vlp_image_decode(&fresh, (uint8_t *)file.data, file.len, &options),
                         VLP_ERR_LIMIT);
        assert_null(fresh.pixels);
        vlp_buf_free(&file);
    }
}

static void test_vision_decode__warm_image_is_not_reallocated(void **state) {
    (void)state;
    vlp_buf file = {0};
    read_case(&file, "files", "exif-6.jpg");
    decode_case(&actual, "files", "huge.jpg", NULL);
    int64_t before = vlp_alloc_count();
    for (int i = 0; i < 3; i++)
        assert_int_equal(vlp_image_decode(&actual, (uint8_t *)file.data, file.len, NULL), VLP_OK);
    assert_int_equal(vlp_alloc_count(), before);
    vlp_buf_free(&file);
}

/* Every prefix of a file is refused, except that the last few bytes of a PNG may be missing. */
static void truncate_everywhere(const char *name) {
    vlp_buf file = {0};
    read_case(&file, "files", name);
    bool png = strstr(name, ".png") != NULL;
    size_t step = file.len / 60 + 1;
    for (size_t len = 0; len < file.len; len += step) {
        uint8_t *copy = malloc(len ? len : 1); /* exact size: a read beyond it is seen */
        memcpy(copy, file.data, len);
        vlp_status status = vlp_image_decode(&actual, copy, len, NULL);
        if (status == VLP_OK && !(png && len + 40 > file.len))
            fail_msg("%s: %zu of %zu bytes decode", name, len, file.len);
        free(copy);
    }
    vlp_buf_free(&file);
}

static void test_vision_decode__truncated_files_are_refused(void **state) {
    (void)state;
    assert_true(for_each_case("files", truncate_everywhere) >= 50);
}

static void damage(const char *name) {
    vlp_buf file = {0};
    read_case(&file, "files", name);
    vlp_decode_options options = vlp_decode_defaults;
    options.max_pixels = 1 << 20;
    vlp_rng rng = vlp_rng_at(3, VLP_RNG_TEST, 0, vlp_rng_name(name));
    int tries = file.len > 20000 ? 4 : 60;
    for (int i = 0; i < tries; i++) {
        uint8_t *copy = malloc(file.len);
        memcpy(copy, file.data, file.len);
        for (int flips = 0; flips <= i % 4; flips++)
            copy[vlp_rng_below(&rng, file.len)] = (uint8_t)vlp_rng_u32(&rng);
        options.background = i % 2 ? 0xffffff : -1;
        options.min_side = i % 3 * 20;
        vlp_status status = vlp_image_decode(&actual, copy, file.len, &options);
        assert_true(status == VLP_OK || (actual.width == 0 && strlen(vlp_error()) > 8));
        free(copy);
    }
    vlp_buf_free(&file);
}

static void test_vision_decode__damaged_files_do_not_crash(void **state) {
    (void)state;
    assert_true(for_each_case("files", damage) >= 50);
}

static void test_vision_decode__exif_blocks(void **state) {
    (void)state;
    static const uint8_t little[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3,
                                     0,   1,   0,  0, 0, 5, 0, 0, 0, 0, 0,    0,    0};
    assert_int_equal(vlp_exif_orientation(little, sizeof little), 5);
    for (size_t len = 0; len < 22; len++) {
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, little, len);
        assert_int_equal(vlp_exif_orientation(copy, len), 1);
        free(copy);
    }
    uint8_t bad[sizeof little];
    memcpy(bad, little, sizeof bad);
    memset(bad + 4, 0xff, 4); /* a directory far outside */
    assert_int_equal(vlp_exif_orientation(bad, sizeof bad), 1);
}

static void test_vision_decode__encoders_round_trip(void **state) {
    (void)state;
    vlp_buf out = {0};
    decode_case(&expected, "files", "rgb8.png", NULL);
    assert_int_equal(vlp_image_encode_png(&expected, &out), VLP_OK);
    assert_int_equal(vlp_image_decode(&actual, (uint8_t *)out.data, out.len, NULL), VLP_OK);
    assert_same_pixels(&actual, &expected, "rgb8", "PNG round trip");

    decode_case(&expected, "files", "huge.jpg", NULL); /* many blocks of output */
    vlp_buf_clear(&out);
    assert_int_equal(vlp_image_encode_jpeg(&expected, 95, &out), VLP_OK);
    assert_true(out.len > 3 * 4096);
    assert_int_equal(vlp_image_decode(&actual, (uint8_t *)out.data, out.len, NULL), VLP_OK);
    double sum = 0;
    size_t bytes = (size_t)expected.width * (size_t)expected.height * 3;
    for (size_t i = 0; i < bytes; i++) sum += abs(actual.pixels[i] - expected.pixels[i]);
    assert_int_equal(actual.width, expected.width);
    assert_true(sum / (double)bytes < 4);
    vlp_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_decode__pixels_equal_the_reference),
        cmocka_unit_test(test_vision_decode__rgb_png_equals_ppm),
        cmocka_unit_test(test_vision_decode__alpha_is_composited_over_the_background),
        cmocka_unit_test(test_vision_decode__palette_transparency_shows_the_background),
        cmocka_unit_test(test_vision_decode__grey16_keeps_the_high_byte_with_a_background),
        cmocka_unit_test(test_vision_decode__bad_files_say_what_is_wrong),
        cmocka_unit_test(test_vision_decode__other_content_is_named),
        cmocka_unit_test(test_vision_decode__probe_agrees_with_decode),
        cmocka_unit_test(test_vision_decode__png_exif_chunk_rotates),
        cmocka_unit_test(test_vision_decode__min_side_scales_jpeg),
        cmocka_unit_test(test_vision_decode__max_pixels_is_checked_first),
        cmocka_unit_test(test_vision_decode__warm_image_is_not_reallocated),
        cmocka_unit_test(test_vision_decode__truncated_files_are_refused),
        cmocka_unit_test(test_vision_decode__damaged_files_do_not_crash),
        cmocka_unit_test(test_vision_decode__exif_blocks),
        cmocka_unit_test(test_vision_decode__encoders_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, free_images);
}
