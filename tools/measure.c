/* Looks at every picture: exact content, coarse look, blankness; and writes the shrunken copies.
 *
 * Copies: the originals hold 1.3 gigapixels, most of them far above what a model of this size sees,
 * so decoding them again in each epoch would cost more than the training step. */
#include "core/file.h"
#include "tools/picture.h"
#include "vision/image.h"
#include "vision/resize.h"
#include "vision/thumbnail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_PIXELS = 16 * 1000 * 1000,
    MAX_FILE = 64 << 20,
    FLAT = 8,
    WHITE = 250,
    JPEG_QUALITY = 95
};

/* Mean over the source box of each cell: image [h,w,3] u8 -> out [rows,cols,3] f64, 0..255. */
static void box_means(const vlp_image *image, int rows, int cols, double *out) {
    for (int r = 0; r < rows; r++) {
        int y0 = (int)((int64_t)image->height * r / rows);
        int y1 = (int)((int64_t)image->height * (r + 1) / rows);
        for (int c = 0; c < cols; c++) {
            int x0 = (int)((int64_t)image->width * c / cols);
            int x1 = (int)((int64_t)image->width * (c + 1) / cols);
            uint64_t sum[3] = {0};
            int64_t n = 0;
            for (int y = y0; y < (y1 > y0 ? y1 : y0 + 1); y++) {
                const uint8_t *p = image->pixels + ((int64_t)y * image->width + x0) * 3;
                for (int x = x0; x < (x1 > x0 ? x1 : x0 + 1); x++, p += 3, n++) {
                    for (int k = 0; k < 3; k++) sum[k] += p[k];
                }
            }
            for (int k = 0; k < 3; k++) out[(r * cols + c) * 3 + k] = (double)sum[k] / (double)n;
        }
    }
}

static double grey(const double *rgb) {
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

/* dHash: bit = next cell brighter than this one; across on 8 x 9 cells, down on 9 x 8. */
static void gradient_bits(const vlp_image *image, uint64_t out[2]) {
    double cell[72 * 3];
    box_means(image, 8, 9, cell);
    out[0] = out[1] = 0;
    for (int i = 0; i < 64; i++) {
        const double *at = cell + (i / 8 * 9 + i % 8) * 3;
        out[0] |= (uint64_t)(grey(at + 3) > grey(at) + 1) << i;
    }
    box_means(image, 9, 8, cell);
    for (int i = 0; i < 64; i++) {
        const double *at = cell + i * 3;
        out[1] |= (uint64_t)(grey(at + 24) > grey(at) + 1) << i;
    }
}

static bool is_flat(const vlp_image *image) {
    uint8_t low[3] = {255, 255, 255}, high[3] = {0};
    int64_t n = (int64_t)image->width * image->height;
    for (int64_t i = 0; i < 3 * n; i++) {
        uint8_t v = image->pixels[i];
        if (v < low[i % 3]) low[i % 3] = v;
        if (v > high[i % 3]) high[i % 3] = v;
    }
    for (int k = 0; k < 3; k++) {
        if (high[k] - low[k] >= FLAT) return false;
    }
    return true;
}

static bool is_white(const uint8_t *p) {
    return p[0] >= WHITE && p[1] >= WHITE && p[2] >= WHITE;
}

static bool row_is_white(const vlp_image *image, int y) {
    const uint8_t *p = image->pixels + (int64_t)y * image->width * 3;
    for (int x = 0; x < image->width; x++, p += 3) {
        if (!is_white(p)) return false;
    }
    return true;
}

static bool column_is_white(const vlp_image *image, int x, int top, int bottom) {
    for (int y = top; y < bottom; y++) {
        if (!is_white(image->pixels + ((int64_t)y * image->width + x) * 3)) return false;
    }
    return true;
}

/* Many a drawing stands small on a sheet of paper: cuts white margins to a thirtieth of the
 * drawing, in place. A white image stays as it is. */
static void crop_margins(vlp_image *image) {
    int top = 0, bottom = image->height, left = 0, right = image->width;
    while (top < bottom && row_is_white(image, top)) top++;
    if (top == bottom) return;
    while (row_is_white(image, bottom - 1)) bottom--;
    while (column_is_white(image, left, top, bottom)) left++;
    while (column_is_white(image, right - 1, top, bottom)) right--;
    int margin = (bottom - top > right - left ? bottom - top : right - left) / 30;
    top = top > margin ? top - margin : 0;
    left = left > margin ? left - margin : 0;
    bottom = bottom + margin < image->height ? bottom + margin : image->height;
    right = right + margin < image->width ? right + margin : image->width;
    size_t row = (size_t)(right - left) * 3;
    for (int y = top; y < bottom; y++)
        memmove(image->pixels + (size_t)(y - top) * row,
                image->pixels + ((size_t)y * (size_t)image->width + (size_t)left) * 3, row);
    image->width = right - left;
    image->height = bottom - top;
}

static void look(const vlp_image *image, corpus_picture *picture) {
    int32_t size[2] = {image->width, image->height};
    double tone[48];
    picture->content = vlp_hash_bytes(size, sizeof size);
    picture->content = vlp_hash_more(picture->content, image->pixels,
                                     (size_t)image->width * (size_t)image->height * 3);
    gradient_bits(image, picture->gradient);
    box_means(image, 4, 4, tone);
    for (int i = 0; i < 48; i++) picture->tone[i] = (uint8_t)(tone[i] + 0.5);
}

/* What one thread decodes and shrinks with. */
typedef struct {
    vlp_image image, small;
    vlp_resize_scratch scratch;
    vlp_buf file, path, jpeg;
} bench;

static void bench_free(bench *b) {
    vlp_image_free(&b->image);
    vlp_image_free(&b->small);
    vlp_resize_scratch_free(&b->scratch);
    vlp_buf_free(&b->file);
    vlp_buf_free(&b->path);
    vlp_buf_free(&b->jpeg);
}

/* The image itself, or a copy with its longest side `side`. */
static vlp_status shrink(bench *b, int side, const vlp_image **out) {
    int longest = b->image.width > b->image.height ? b->image.width : b->image.height;
    *out = &b->image;
    if (longest <= side) return VLP_OK;
    vlp_image_view view = vlp_image_view_of(&b->image);
    vlp_resize_options options = {.filter = VLP_RESIZE_LANCZOS};
    options.width = (int)((int64_t)b->image.width * side / longest);
    options.height = (int)((int64_t)b->image.height * side / longest);
    if (options.width < 1) options.width = 1;
    if (options.height < 1) options.height = 1;
    *out = &b->small;
    return vlp_resize(&b->small, &view, &options, &b->scratch);
}

/* Complete under its name or not there; not flushed to the disk, since it can be made again. */
static vlp_status write_file(const char *path, const vlp_buf *bytes) {
    char temporary[4096];
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        return VLP_FAIL(VLP_ERR_LIMIT, "%s: the path is too long", path);
    FILE *file = fopen(temporary, "wb");
    if (!file) return VLP_FAIL(VLP_ERR_IO, "%s: cannot write: %s", temporary, strerror(errno));
    bool whole = fwrite(bytes->data, 1, bytes->len, file) == bytes->len;
    whole = fclose(file) == 0 && whole;
    if (whole && rename(temporary, path) == 0) return VLP_OK;
    vlp_status status = VLP_FAIL(VLP_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    remove(temporary);
    return status;
}

/* folder/source/<content>.jpg */
static vlp_status write_copy(bench *b, const char *folder, int side, corpus_picture *picture) {
    char hex[33];
    const vlp_image *small;
    vlp_hash_hex(picture->content, hex);
    vlp_buf_clear(&b->path);
    VLP_TRY(vlp_buf_printf(&b->path, "%s/%s/%s.jpg", folder, picture->source, hex));
    picture->image = vlp_strdup(b->path.data);
    if (!picture->image) return VLP_ERR_MEMORY;
    if (vlp_path_exists(b->path.data)) return VLP_OK;
    VLP_TRY(shrink(b, side, &small));
    vlp_buf_clear(&b->jpeg);
    VLP_TRY(vlp_image_encode_jpeg(small, JPEG_QUALITY, &b->jpeg));
    return write_file(b->path.data, &b->jpeg);
}

static vlp_status measure(corpus_picture *picture, const char *folder, int side, bench *b) {
    vlp_image_header header;
    const uint8_t *data;
    vlp_decode_options options = vlp_decode_defaults;
    options.max_pixels = MAX_PIXELS;
    options.background = 0xFFFFFF;
    vlp_buf_clear(&b->file);
    VLP_TRY(vlp_file_read(picture->file, MAX_FILE, &b->file));
    data = (const uint8_t *)b->file.data;
    if (vlp_image_probe(&header, data, b->file.len) != VLP_OK) {
        picture->skip = "not decodable";
        return VLP_OK;
    }
    if ((int64_t)header.width * header.height > MAX_PIXELS) {
        picture->skip = "above 16 megapixels";
        return VLP_OK;
    }
    if (vlp_image_decode(&b->image, data, b->file.len, &options) != VLP_OK) {
        picture->skip = "not decodable";
        return VLP_OK;
    }
    crop_margins(&b->image);
    look(&b->image, picture);
    if (is_flat(&b->image)) {
        picture->skip = "blank";
        return VLP_OK;
    }
    return write_copy(b, folder, side, picture);
}

static vlp_status make_folders(const corpus_list *list, const char *folder) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    const char *last = NULL;
    for (int i = 0; i < list->count && status == VLP_OK; i++) {
        if (list->item[i].source == last) continue;
        last = list->item[i].source;
        status = vlp_path_join(&path, folder, last);
        if (status == VLP_OK) status = vlp_make_folder(path.data);
    }
    vlp_buf_free(&path);
    return status;
}

vlp_status corpus_measure(corpus_list *list, const char *folder, int side) {
    VLP_TRY(make_folders(list, folder));
    vlp_status worst = VLP_OK;
    char message[512] = "";
#pragma omp parallel
    {
        bench b = {0};
#pragma omp for schedule(dynamic, 16)
        for (int i = 0; i < list->count; i++) {
            if (list->item[i].skip) continue;
            vlp_status status = measure(&list->item[i], folder, side, &b);
            if (status == VLP_OK) continue;
#pragma omp critical
            {
                worst = status;
                snprintf(message, sizeof message, "%s", vlp_error());
            }
        }
        bench_free(&b);
    }
    return worst == VLP_OK ? VLP_OK : VLP_FAIL(worst, "%s", message);
}
