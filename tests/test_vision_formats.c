/* WebP, GIF, BMP, TIFF and animated PNG: each file in formats/ holds the same 12 x 10 picture,
 * whose pixels follow a formula; moving ones have a red second frame or page. */
#include "image_case.h"

enum { W = 12, H = 10 };

static vlp_image actual;

static int free_image(void **state) {
    (void)state;
    vlp_image_free(&actual);
    return 0;
}

static void pixel_of(int x, int y, int out[3]) {
    out[0] = x * 20;
    out[1] = y * 20;
    out[2] = (x + y) % 2 ? 255 : 0;
}

static void assert_picture(const char *name, int from_row) {
    assert_int_equal(actual.width, W);
    assert_int_equal(actual.height, H);
    for (int y = from_row; y < H; y++)
        for (int x = 0; x < W; x++) {
            int want[3];
            pixel_of(x, y, want);
            const uint8_t *p = actual.pixels + 3 * (y * W + x);
            for (int c = 0; c < 3; c++)
                if (p[c] != want[c])
                    fail_msg("%s at %d,%d: %d %d %d", name, x, y, p[0], p[1], p[2]);
        }
}

static const struct {
    const char *name;
    vlp_image_format format;
} files[] = {
    {"still.webp", VLP_FORMAT_WEBP},   {"moving.webp", VLP_FORMAT_WEBP},
    {"plain.gif", VLP_FORMAT_GIF},     {"interlaced.gif", VLP_FORMAT_GIF},
    {"deflate.tif", VLP_FORMAT_TIFF},  {"lzw-big-endian.tif", VLP_FORMAT_TIFF},
    {"big.tif", VLP_FORMAT_TIFF},      {"rows-up.bmp", VLP_FORMAT_BMP},
    {"rows-down.bmp", VLP_FORMAT_BMP}, {"moving.png", VLP_FORMAT_PNG},
};

static void test_vision_formats__first_frames_have_the_right_pixels(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(files); i++) {
        vlp_buf file = {0};
        vlp_image_header header;
        read_case(&file, "formats", files[i].name);
        if (vlp_image_probe(&header, (uint8_t *)file.data, file.len) != VLP_OK)
            fail_msg("%s %s", files[i].name, vlp_error());
        assert_int_equal(header.format, files[i].format);
        assert_int_equal(header.width, W);
        assert_int_equal(header.height, H);
        vlp_buf_free(&file);
        decode_case(&actual, "formats", files[i].name, NULL);
        assert_picture(files[i].name, 0);
    }
}

static void test_vision_formats__transparency_shows_the_background(void **state) {
    (void)state;
    vlp_decode_options red = vlp_decode_defaults;
    red.background = 0xff0000;
    decode_case(&actual, "formats", "alpha.webp", &red);
    assert_picture("alpha.webp", 1);
    static const uint8_t ground[] = {255, 0, 0}, opaque[] = {120, 0, 0};
    assert_memory_equal(actual.pixels, ground, 3);
    assert_memory_equal(actual.pixels + 3 * 6, opaque, 3);
    red.background = -1;
    decode_case(&actual, "formats", "alpha.webp", &red);
    assert_picture("alpha.webp, alpha dropped", 0);
    /* a frame of 4 x 3 at 5,6 whose first pixel is transparent */
    red.background = 0xff0000;
    decode_case(&actual, "formats", "part.gif", &red);
    assert_memory_equal(actual.pixels, ground, 3);
    assert_memory_equal(actual.pixels + 3 * (6 * W + 5), ground, 3);
    int want[3];
    pixel_of(6, 6, want);
    for (int c = 0; c < 3; c++) assert_int_equal(actual.pixels[3 * (6 * W + 6) + c], want[c]);
}

static void test_vision_formats__tiff_is_turned_upright(void **state) {
    (void)state;
    decode_case(&actual, "formats", "turned.tif", NULL); /* 6: a quarter to the right */
    assert_int_equal(actual.width, H);
    assert_int_equal(actual.height, W);
    int want[3];
    pixel_of(0, H - 1, want);
    for (int c = 0; c < 3; c++) assert_int_equal(actual.pixels[c], want[c]);
    vlp_decode_options stored = vlp_decode_defaults;
    stored.exif_rotate = false;
    decode_case(&actual, "formats", "turned.tif", &stored);
    assert_picture("turned.tif as stored", 0);
}

/* Cut anywhere, a file fails with a reason or gives a whole picture; never less. */
static void test_vision_formats__cut_files_fail_with_a_reason(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(files); i++) {
        vlp_buf file = {0};
        read_case(&file, "formats", files[i].name);
        int failed = 0;
        for (size_t len = 0; len < file.len; len += len < 64 ? 1 : 7) {
            vlp_status status = vlp_image_decode(&actual, (uint8_t *)file.data, len, NULL);
            if (status == VLP_OK) continue;
            failed++;
            assert_true(status == VLP_ERR_FORMAT || status == VLP_ERR_UNSUPPORTED);
            assert_int_equal(actual.width, 0);
        }
        assert_true(failed > 20);
        vlp_image_decode(&actual, (uint8_t *)file.data, file.len / 2, NULL);
        if (actual.width != 0) fail_msg("half of %s is a picture", files[i].name);
        vlp_buf_free(&file);
    }
}

static void test_vision_formats__bombs_are_bounded_by_pixels_and_bytes(void **state) {
    (void)state;
    vlp_decode_options few_pixels = vlp_decode_defaults, few_bytes = vlp_decode_defaults;
    few_pixels.max_pixels = W * H - 1;
    few_bytes.max_bytes = 60;
    for (size_t i = 0; i < VLP_COUNT(files); i++) {
        vlp_buf file = {0};
        read_case(&file, "formats", files[i].name);
        const uint8_t *data = (uint8_t *)file.data;
        assert_int_equal(vlp_image_decode(&actual, data, file.len, &few_pixels), VLP_ERR_LIMIT);
        assert_int_equal(vlp_image_decode(&actual, data, file.len, &few_bytes), VLP_ERR_LIMIT);
        vlp_buf_free(&file);
    }
    /* a canvas of 60000 x 60000 in thirteen bytes, and a bitmap without its rows */
    static const uint8_t gif[] = "GIF89a\x60\xea\x60\xea\0\0\0,\0\0\0\0\1\0\1\0\0";
    assert_int_equal(vlp_image_decode(&actual, gif, sizeof gif, NULL), VLP_ERR_LIMIT);
    static const uint8_t bmp[54] =
        "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\0\x10\0\0\0\x10\0\0\1\0\x18";
    assert_int_equal(vlp_image_decode(&actual, bmp, sizeof bmp, NULL), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "ends too early"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_formats__first_frames_have_the_right_pixels),
        cmocka_unit_test(test_vision_formats__transparency_shows_the_background),
        cmocka_unit_test(test_vision_formats__tiff_is_turned_upright),
        cmocka_unit_test(test_vision_formats__cut_files_fail_with_a_reason),
        cmocka_unit_test(test_vision_formats__bombs_are_bounded_by_pixels_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, free_image);
}
