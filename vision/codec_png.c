#include "core/memory.h"
#include "vision/codec.h"
#include "vision/exif.h"
#include "vision/thumbnail.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

enum { SIGNATURE_BYTES = 8, CHUNK_OVERHEAD = 12, IHDR_BYTES = 13 };

/* libpng reports errors by a jump: whatever must be released lives here, not in locals. */
typedef struct {
    png_structp png;
    png_infop info;
    const uint8_t *data;
    size_t len, at;
    vlp_buf *out; /* writing only */
    vlp_status status;
    jmp_buf jump;
} png_session;

static _Noreturn void on_error(png_structp png, png_const_charp message) {
    png_session *s = png_get_error_ptr(png);
    if (s->status == VLP_OK) s->status = VLP_FAIL(VLP_ERR_FORMAT, "is a bad PNG file: %s", message);
    longjmp(s->jump, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* eXIf may stand before or after the pixels. */
static int orientation_of(const uint8_t *data, size_t len) {
    size_t at = SIGNATURE_BYTES;
    while (len - at >= CHUNK_OVERHEAD) {
        size_t bytes = be32(data + at);
        if (bytes > len - at - CHUNK_OVERHEAD) break;
        if (memcmp(data + at + 4, "eXIf", 4) == 0)
            return vlp_exif_orientation(data + at + 8, bytes);
        at += CHUNK_OVERHEAD + bytes;
    }
    return 1;
}

vlp_status vlp_png_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    if (len < SIGNATURE_BYTES + CHUNK_OVERHEAD + IHDR_BYTES)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a PNG file that ends within its header");
    const uint8_t *ihdr = data + SIGNATURE_BYTES;
    uint32_t width = be32(ihdr + 8), height = be32(ihdr + 12);
    bool valid = be32(ihdr) == IHDR_BYTES && memcmp(ihdr + 4, "IHDR", 4) == 0 && width > 0 &&
                 height > 0 && width <= INT32_MAX && height <= INT32_MAX;
    if (!valid) return VLP_FAIL(VLP_ERR_FORMAT, "is a PNG file with a bad header");
    out->format = VLP_FORMAT_PNG;
    out->width = (int)width;
    out->height = (int)height;
    out->orientation = orientation_of(data, len);
    return VLP_OK;
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes) {
    png_session *s = png_get_io_ptr(png);
    if (bytes > s->len - s->at) {
        s->status =
            VLP_FAIL(VLP_ERR_FORMAT, "is a PNG file that ends too early, after %zu bytes", s->len);
        png_error(png, "truncated");
    }
    memcpy(to, s->data + s->at, bytes);
    s->at += bytes;
}

/* Deflate cannot shrink below 1/1032: a header that promises more is refused before any pixel of
 * it is allocated. */
static vlp_status check_enough_data(const png_session *s) {
    uint64_t raw =
        (uint64_t)png_get_rowbytes(s->png, s->info) * png_get_image_height(s->png, s->info);
    if (raw / 1040 <= s->len) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "is a PNG file of %zu bytes, too few for its %u x %u pixels",
                    s->len, png_get_image_width(s->png, s->info),
                    png_get_image_height(s->png, s->info));
}

typedef enum { ROW_RGB, ROW_RGBA, ROW_GREY16 } row_kind;

/* Asks libpng for one of three row layouts. */
static row_kind set_transforms(png_session *s, int background) {
    png_structp png = s->png;
    int type = png_get_color_type(png, s->info), depth = png_get_bit_depth(png, s->info);
    if (type == PNG_COLOR_TYPE_GRAY && depth == 16 && background < 0) return ROW_GREY16;

    bool alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, s->info, PNG_INFO_tRNS);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (depth == 16) png_set_strip_16(png);
    if (!(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    if (!alpha) return ROW_RGB;
    if (background < 0) {
        png_set_strip_alpha(png);
        return ROW_RGB;
    }
    png_set_tRNS_to_alpha(png);
    return ROW_RGBA;
}

/* In place, back to front. */
static void clip_grey16(uint8_t *pixels, size_t count) {
    for (size_t i = count; i-- > 0;) {
        uint8_t value = pixels[2 * i] ? 255 : pixels[2 * i + 1];
        memset(pixels + 3 * i, value, 3);
    }
}

static void read_rows(png_session *s, uint8_t *pixels, size_t row_bytes) {
    int passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    VLP_ASSERT(png_get_rowbytes(s->png, s->info) == row_bytes, "PNG rows of %zu bytes, not %zu",
               png_get_rowbytes(s->png, s->info), row_bytes);
    uint32_t height = png_get_image_height(s->png, s->info);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++) png_read_row(s->png, pixels + y * row_bytes, NULL);
}

static vlp_status read_png(png_session *s, vlp_image *out, int orientation,
                           const vlp_decode_options *options) {
    s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, on_error, on_warning);
    s->info = s->png ? png_create_info_struct(s->png) : NULL;
    if (!s->info) return VLP_FAIL(VLP_ERR_MEMORY, "out of memory while reading a PNG file");
    png_set_read_fn(s->png, s, read_bytes);
    png_set_user_limits(s->png, INT32_MAX, INT32_MAX);
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* no text, no ICC */
    png_read_info(s->png, s->info);
    VLP_TRY(check_enough_data(s));

    static const int row_pixel_bytes[] = {[ROW_RGB] = 3, [ROW_RGBA] = 4, [ROW_GREY16] = 2};
    row_kind kind = set_transforms(s, options->background);
    int width = (int)png_get_image_width(s->png, s->info);
    int height = (int)png_get_image_height(s->png, s->info);
    VLP_TRY(vlp_image_prepare(out, width, height, row_pixel_bytes[kind], orientation));
    read_rows(s, out->pixels, (size_t)width * (size_t)row_pixel_bytes[kind]);

    size_t count = (size_t)width * (size_t)height;
    if (kind == ROW_RGBA) vlp_image_rgba_to_rgb(out, options->background);
    if (kind == ROW_GREY16) clip_grey16(out->pixels, count);
    return VLP_OK;
}

static vlp_status read_png_guarded(png_session *s, vlp_image *out, int orientation,
                                   const vlp_decode_options *options) {
    if (setjmp(s->jump)) return s->status;
    return read_png(s, out, orientation, options);
}

vlp_status vlp_png_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options) {
    vlp_image_header header = {0};
    VLP_TRY(vlp_png_probe(&header, data, len));
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    *orientation = options->exif_rotate ? header.orientation : 1;

    png_session session = {.data = data, .len = len};
    vlp_status status = read_png_guarded(&session, out, *orientation, options);
    png_destroy_read_struct(&session.png, &session.info, NULL);
    return status;
}

static void write_bytes(png_structp png, png_bytep from, size_t bytes) {
    png_session *s = png_get_io_ptr(png);
    s->status = vlp_buf_append(s->out, from, bytes);
    if (s->status != VLP_OK) png_error(png, "write");
}

static void flush_nothing(png_structp png) {
    (void)png;
}

static vlp_status write_png_guarded(png_session *s, const vlp_image *image) {
    if (setjmp(s->jump)) return s->status;
    s->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, s, on_error, on_warning);
    s->info = s->png ? png_create_info_struct(s->png) : NULL;
    if (!s->info) return VLP_FAIL(VLP_ERR_MEMORY, "out of memory while writing a PNG file");
    png_set_write_fn(s->png, s, write_bytes, flush_nothing);
    png_set_IHDR(s->png, s->info, (uint32_t)image->width, (uint32_t)image->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(s->png, s->info);
    size_t stride = (size_t)image->width * 3;
    for (int y = 0; y < image->height; y++)
        png_write_row(s->png, image->pixels + (size_t)y * stride);
    png_write_end(s->png, s->info);
    return VLP_OK;
}

vlp_status vlp_image_encode_png(const vlp_image *image, vlp_buf *out) {
    png_session session = {.out = out};
    vlp_status status = write_png_guarded(&session, image);
    png_destroy_write_struct(&session.png, &session.info);
    return status;
}

const char *vlp_png_version(void) {
    return png_get_libpng_ver(NULL);
}
