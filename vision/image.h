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

typedef enum { VLP_FORMAT_UNKNOWN, VLP_FORMAT_JPEG, VLP_FORMAT_PNG } vlp_image_format;

typedef struct {
    vlp_image_format format;
    int width, height; /* as stored, before EXIF rotation */
    int orientation;   /* EXIF 1..8, 1 when absent */
} vlp_image_header;

typedef struct {
    int64_t max_pixels; /* larger images are VLP_ERR_LIMIT before any pixel is allocated */
    int min_side;       /* JPEG: decode at the smallest DCT scale whose sides are both >= this; 0 = full */
    bool exif_rotate;   /* turn upright by the EXIF orientation */
    int background;     /* 0xRRGGBB to composite alpha over; -1 drops alpha as PIL's convert does */
} vlp_decode_options;

extern const vlp_decode_options vlp_decode_defaults; /* 178956970 pixels, full size, rotate, white */

/* Reads the header only. */
vlp_status vlp_image_probe(vlp_image_header *out, const uint8_t *data, size_t len);

/* Decodes any PNG (1 to 16 bits, palette, alpha, grey, interlaced) or JPEG (grey, YCbCr, RGB, CMYK,
 * YCCK, progressive). A truncated or corrupt file is VLP_ERR_FORMAT with the reason. */
vlp_status vlp_image_decode(vlp_image *out, const uint8_t *data, size_t len,
                            const vlp_decode_options *options);

void vlp_image_free(vlp_image *image);

#endif
