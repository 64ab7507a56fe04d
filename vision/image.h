/* Images: bytes to 8-bit RGB pixels. Decoding sniffs the content, never the file name. */
#ifndef VLP_VISION_IMAGE_H
#define VLP_VISION_IMAGE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* [height, width, 3] u8, rows packed. The pixel memory is reused from decode to decode and grows
 * only when an image needs more: {0} is valid; release with vlp_image_free. */
typedef struct {
    int width, height;
    uint8_t *pixels;
    size_t capacity;
} vlp_image;

/* A rectangle of an image, borrowed: rows are stride bytes apart. */
typedef struct {
    const uint8_t *pixels;
    int width, height;
    size_t stride;
} vlp_image_view;

vlp_image_view vlp_image_view_of(const vlp_image *image);
/* The rectangle must lie inside the image (a programming error otherwise). */
vlp_image_view vlp_image_view_crop(const vlp_image *image, int left, int top, int width,
                                   int height);

/* Makes the image width x height with undefined pixels; memory is reused when it is large enough.
 */
vlp_status vlp_image_resize_memory(vlp_image *image, int width, int height);

typedef enum {
    VLP_FORMAT_UNKNOWN,
    VLP_FORMAT_JPEG,
    VLP_FORMAT_PNG,
    VLP_FORMAT_WEBP,
    VLP_FORMAT_GIF,
    VLP_FORMAT_BMP,
    VLP_FORMAT_TIFF
} vlp_image_format;

typedef struct {
    vlp_image_format format;
    int width, height; /* as stored, before EXIF rotation */
    int orientation;   /* EXIF 1..8, 1 when absent */
} vlp_image_header;

typedef struct {
    int64_t
        max_pixels; /* larger images are VLP_ERR_LIMIT before any pixel is allocated; 0 = default */
    int64_t max_bytes; /* of the encoded image; 0 = default, 1 GiB */
    int min_side; /* JPEG: smallest DCT scale (1/8, 1/4, 1/2) with both sides >= this; 0 = full */
    bool exif_rotate; /* turn upright by the EXIF orientation */
    int background;   /* 0xRRGGBB to composite alpha over; -1 = as the reference pipelines, below */
} vlp_decode_options;

/* background = -1 reproduces the pixels of PIL's Image.open().convert("RGB"), which published
 * checkpoints were trained on: alpha and tRNS are dropped (the colours hidden under alpha 0 appear)
 * and 16-bit grey is clipped at 255, which makes nearly all of it white. With a background, alpha
 * is composited and 16-bit grey keeps its high byte. Colour profiles and gamma are ignored by both.
 */
extern const vlp_decode_options
    vlp_decode_defaults; /* 178956970 pixels, full size, rotate, white */

/* Reads the header only. Errors as vlp_image_decode, without the pixel limit. */
vlp_status vlp_image_probe(vlp_image_header *out, const uint8_t *data, size_t len);

/* Decodes any PNG (1 to 16 bits, palette, alpha, grey, interlaced), JPEG (grey, YCbCr, RGB, CMYK,
 * YCCK, progressive, arithmetic), WebP, GIF, BMP (not compressed) or TIFF; of several frames or
 * pages the first. options NULL = vlp_decode_defaults. Errors complete a sentence
 * that begins with the file's name ("is empty (0 bytes)"); vlp_fail_in adds it: VLP_ERR_FORMAT
 * truncated, corrupt, or no image at all (an HTML page, text, zero bytes) VLP_ERR_UNSUPPORTED
 * another image format, named; or a rare kind of JPEG VLP_ERR_LIMIT        more than max_pixels On
 * failure the image has no pixels (0 x 0) but keeps its memory. */
vlp_status vlp_image_decode(vlp_image *out, const uint8_t *data, size_t len,
                            const vlp_decode_options *options);

void vlp_image_free(vlp_image *image);

const char *vlp_png_version(void);  /* of libpng, at run time */
const char *vlp_jpeg_version(void); /* of libjpeg-turbo, that this was built with */

#endif
