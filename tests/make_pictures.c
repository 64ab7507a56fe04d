/* make_pictures DIR [COUNT] [SIDE]: coloured shapes with captions, for tests of the whole program.
 *
 * DIR/pictures/NNN.png, DIR/pictures.jsonl with image, caption (two a picture), label (the colour)
 * and split (every fourth: test), DIR/colours.txt with the labels. The same every time. */
#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/rng.h"
#include "vision/thumbnail.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    uint8_t rgb[3];
} colours[] = {
    {"red", {220, 30, 30}},     {"green", {30, 180, 40}}, {"blue", {40, 60, 220}},
    {"yellow", {240, 220, 40}}, {"black", {20, 20, 20}},
};

static const char *const shapes[] = {"square", "circle", "stripe"};

static bool inside(int shape, double x, double y) {
    switch (shape) {
    case 0:
        return x > -0.6 && x < 0.6 && y > -0.6 && y < 0.6;
    case 1:
        return x * x + y * y < 0.5;
    default:
        return y > -0.25 && y < 0.25;
    }
}

/* The shape's place and the paper's grey differ from picture to picture. */
static void draw(vlp_image *image, int colour, int shape, vlp_rng *rng) {
    double dx = 0.3 * vlp_rng_double(rng) - 0.15, dy = 0.3 * vlp_rng_double(rng) - 0.15;
    uint8_t paper = (uint8_t)(200 + vlp_rng_below(rng, 50));
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++) {
            bool in =
                inside(shape, 2.0 * x / image->width - 1 + dx, 2.0 * y / image->height - 1 + dy);
            for (int c = 0; c < 3; c++)
                image->pixels[(y * image->width + x) * 3 + c] = in ? colours[colour].rgb[c] : paper;
        }
}

static vlp_status add_row(vlp_buf *rows, const char *name, int colour, int shape, int i) {
    char text[64];
    vlp_json *row = vlp_json_new_object(), *captions = vlp_json_new_array();
    snprintf(text, sizeof text, "a %s %s", colours[colour].name, shapes[shape]);
    vlp_json_append(captions, vlp_json_new_string(text));
    snprintf(text, sizeof text, "picture %d: %s & %s", i, shapes[shape], colours[colour].name);
    vlp_json_append(captions, vlp_json_new_string(text));
    vlp_json_set_string(row, "image", name);
    vlp_json_set(row, "caption", captions);
    vlp_json_set_string(row, "label", colours[colour].name);
    vlp_json_set_string(row, "split", i % 4 == 3 ? "test" : "train");
    vlp_status status = vlp_json_dump(row, 0, rows);
    vlp_json_free(row);
    return status == VLP_OK ? vlp_buf_puts(rows, "\n") : status;
}

static vlp_status make(const char *folder, int count, int side) {
    vlp_buf rows = {0}, path = {0};
    vlp_image image = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_path_join(&path, folder, "pictures"));
    VLP_TRY_DONE(vlp_make_folder(path.data));
    VLP_TRY_DONE(vlp_image_resize_memory(&image, side, side));
    for (int i = 0; i < count; i++) {
        char name[32];
        int colour = i % (int)VLP_COUNT(colours), shape = i / (int)VLP_COUNT(colours) % 3;
        vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, (uint64_t)i, 0);
        snprintf(name, sizeof name, "pictures/%03d.png", i);
        draw(&image, colour, shape, &rng);
        VLP_TRY_DONE(vlp_path_join(&path, folder, name));
        VLP_TRY_DONE(vlp_image_write_png(&image, path.data));
        VLP_TRY_DONE(add_row(&rows, name, colour, shape, i));
    }
    VLP_TRY_DONE(vlp_path_join(&path, folder, "pictures.jsonl"));
    VLP_TRY_DONE(vlp_file_write(path.data, rows.data, rows.len));
    vlp_buf_clear(&rows);
    for (size_t c = 0; c < VLP_COUNT(colours); c++)
        VLP_TRY_DONE(vlp_buf_printf(&rows, "%s\n", colours[c].name));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "colours.txt"));
    VLP_TRY_DONE(vlp_file_write(path.data, rows.data, rows.len));
done:
    vlp_image_free(&image);
    vlp_buf_free(&rows);
    vlp_buf_free(&path);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: make_pictures DIR [COUNT] [SIDE]\n", stderr);
        return 2;
    }
    int count = argc > 2 ? atoi(argv[2]) : 30, side = argc > 3 ? atoi(argv[3]) : 48;
    if (count < 1 || count > 999 || side < 8 || side > 4096) {
        fputs("make_pictures: COUNT is 1 to 999, SIDE 8 to 4096\n", stderr);
        return 2;
    }
    if (make(argv[1], count, side) == VLP_OK) return 0;
    fprintf(stderr, "make_pictures: %s\n", vlp_error());
    return 1;
}
