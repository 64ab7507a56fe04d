#include "vision/image.h"

#include "core/memory.h"
#include "vision/codec.h"
#include "vision/exif.h"
#include "vision/sniff.h"

#include <stdint.h>

enum { MAX_SIDE = 1 << 20 }; /* a million by one: resizing it would need gigabytes of weights */

const vlp_decode_options vlp_decode_defaults = {
    .max_pixels = 178956970, /* PIL's decompression bomb limit */
    .max_bytes = (int64_t)1 << 30,
    .min_side = 0,
    .exif_rotate = true,
    .background = 0xffffff,
};

vlp_image_view vlp_image_view_of(const vlp_image *image) {
    return (vlp_image_view){image->pixels, image->width, image->height, (size_t)image->width * 3};
}

vlp_image_view vlp_image_view_crop(const vlp_image *image, int left, int top, int width,
                                   int height) {
    VLP_ASSERT(left >= 0 && top >= 0 && width > 0 && height > 0 && left <= image->width - width &&
                   top <= image->height - height,
               "crop %d,%d %d x %d of %d x %d", left, top, width, height, image->width,
               image->height);
    size_t stride = (size_t)image->width * 3;
    const uint8_t *first = image->pixels + (size_t)top * stride + (size_t)left * 3;
    return (vlp_image_view){first, width, height, stride};
}

void vlp_image_free(vlp_image *image) {
    vlp_free(image->pixels);
    *image = (vlp_image){0};
}

vlp_status vlp_image_check_limit(int64_t width, int64_t height, int64_t max_pixels) {
    int64_t limit = max_pixels > 0 ? max_pixels : vlp_decode_defaults.max_pixels;
    if (width > MAX_SIDE || height > MAX_SIDE)
        return VLP_FAIL(VLP_ERR_LIMIT, "has %lld x %lld pixels, above the limit of %d a side",
                        (long long)width, (long long)height, MAX_SIDE);
    if (width * height <= limit) return VLP_OK;
    return VLP_FAIL(VLP_ERR_LIMIT, "has %lld x %lld pixels, above the limit of %lld in all",
                    (long long)width, (long long)height, (long long)limit);
}

vlp_status vlp_image_prepare(vlp_image *image, int width, int height, int pixel_bytes,
                             int orientation) {
    VLP_ASSERT(width > 0 && height > 0, "image of %d x %d", width, height);
    size_t pixels = (size_t)width * (size_t)height; /* both < 2^31: fits 62 bits */
    size_t each = (size_t)(orientation >= 5 ? 6 : pixel_bytes > 3 ? pixel_bytes : 3);
    if (pixels > SIZE_MAX / 8 / each)
        return VLP_FAIL(VLP_ERR_LIMIT, "an image of %d x %d pixels does not fit memory", width,
                        height);
    if (pixels * each > image->capacity) {
        vlp_image_free(image);
        image->pixels = vlp_alloc(pixels * each);
        if (!image->pixels) return VLP_ERR_MEMORY;
        image->capacity = pixels * each;
    }
    image->width = width;
    image->height = height;
    return VLP_OK;
}

vlp_status vlp_image_resize_memory(vlp_image *image, int width, int height) {
    return vlp_image_prepare(image, width, height, 3, 1);
}

void vlp_image_rgba_to_rgb(vlp_image *image, int background) {
    const uint32_t under[3] = {(uint32_t)background >> 16 & 255, (uint32_t)background >> 8 & 255,
                               (uint32_t)background & 255};
    size_t count = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < count; i++) { /* three bytes for four: front to back is safe */
        const uint8_t *p = image->pixels + 4 * i;
        uint32_t alpha = background < 0 ? 255 : p[3];
        for (size_t c = 0; c < 3; c++) {
            uint32_t sum = p[c] * alpha + under[c] * (255 - alpha) + 128;
            image->pixels[3 * i + c] = (uint8_t)((sum + (sum >> 8)) >> 8); /* sum / 255, rounded */
        }
    }
}

typedef struct {
    vlp_status (*probe)(vlp_image_header *out, const uint8_t *data, size_t len);
    vlp_status (*decode)(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                         const vlp_decode_options *options);
} codec;

static const codec codecs[] = {
    [VLP_FORMAT_JPEG] = {vlp_jpeg_probe, vlp_jpeg_decode},
    [VLP_FORMAT_PNG] = {vlp_png_probe, vlp_png_decode},
    [VLP_FORMAT_WEBP] = {vlp_webp_probe, vlp_webp_decode},
    [VLP_FORMAT_GIF] = {vlp_gif_probe, vlp_gif_decode},
    [VLP_FORMAT_BMP] = {vlp_bmp_probe, vlp_bmp_decode},
    [VLP_FORMAT_TIFF] = {vlp_tiff_probe, vlp_tiff_decode},
};

vlp_status vlp_image_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    *out = (vlp_image_header){.orientation = 1};
    vlp_image_format format;
    VLP_TRY(vlp_sniff(&format, data, len));
    out->format = format;
    return codecs[format].probe(out, data, len);
}

vlp_status vlp_image_decode(vlp_image *out, const uint8_t *data, size_t len,
                            const vlp_decode_options *options) {
    if (!options) options = &vlp_decode_defaults;
    out->width = out->height = 0;
    vlp_image_format format;
    VLP_TRY(vlp_sniff(&format, data, len));
    int64_t most = options->max_bytes > 0 ? options->max_bytes : vlp_decode_defaults.max_bytes;
    if (len > (uint64_t)most)
        return VLP_FAIL(VLP_ERR_LIMIT, "has %zu bytes, above the limit of %lld", len,
                        (long long)most);
    int orientation = 1;
    vlp_status status = codecs[format].decode(out, &orientation, data, len, options);
    if (status != VLP_OK) {
        out->width = out->height = 0;
        return status;
    }
    vlp_exif_apply(out, orientation);
    return VLP_OK;
}
