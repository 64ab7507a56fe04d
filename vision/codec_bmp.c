/* BMP, through stb_image. */
#include "core/memory.h"
#include "vision/codec.h"

#include <limits.h>
#include <string.h>

#define STBI_MALLOC(bytes) vlp_alloc(bytes)
#define STBI_REALLOC(pointer, bytes) vlp_realloc(pointer, bytes)
#define STBI_FREE(pointer) vlp_free(pointer)
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS (1 << 20)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop
#pragma GCC diagnostic ignored "-Wunused-function" /* found at the end of the file only */

static int32_t le32(const uint8_t *p) {
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                     (uint32_t)p[3] << 24);
}

/* Width, height and bits from either header; a negative height means rows from the top. */
static bool read_header(const uint8_t *data, size_t len, int64_t *width, int64_t *height,
                        int64_t *bits, int64_t *packing) {
    if (len < 26) return false;
    *packing = 0;
    if (le32(data + 14) == 12) {
        *width = data[18] | data[19] << 8;
        *height = data[20] | data[21] << 8;
        *bits = data[24] | data[25] << 8;
        return true;
    }
    if (len < 34) return false;
    *width = le32(data + 18);
    *height = le32(data + 22);
    if (*height < 0) *height = -*height;
    *bits = data[28] | data[29] << 8;
    *packing = le32(data + 30);
    return true;
}

vlp_status vlp_bmp_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    int64_t width, height, bits, packing;
    if (!read_header(data, len, &width, &height, &bits, &packing))
        return VLP_FAIL(VLP_ERR_FORMAT, "is a BMP file that ends within its header");
    if (width < 1 || height < 1 || height > INT_MAX)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a BMP file with a bad header");
    out->format = VLP_FORMAT_BMP;
    out->width = (int)width;
    out->height = (int)height;
    out->orientation = 1;
    return VLP_OK;
}

/* Rows are not compressed (what is, is refused): all their bytes must be there. */
static vlp_status check_whole(const uint8_t *data, size_t len) {
    int64_t width = 0, height = 0, bits = 0, packing = 0;
    bool whole = read_header(data, len, &width, &height, &bits, &packing);
    if (packing != 0 && packing != 3)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "is a compressed BMP file, which vlp does not read; "
                                             "convert it to PNG");
    int64_t row = (width * bits + 31) / 32 * 4;
    if (whole && (int64_t)len >= row * height) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "is a BMP file that ends too early");
}

vlp_status vlp_bmp_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options) {
    vlp_image_header header = {0};
    VLP_TRY(vlp_bmp_probe(&header, data, len));
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    VLP_TRY(check_whole(data, len));
    *orientation = 1;
    if (len > INT_MAX) return VLP_FAIL(VLP_ERR_LIMIT, "is a BMP file of %zu bytes", len);
    int width, height, channels;
    uint8_t *pixels = stbi_load_from_memory(data, (int)len, &width, &height, &channels, 4);
    if (!pixels)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a BMP file that does not decode: %s",
                        stbi_failure_reason());
    vlp_status status = vlp_image_prepare(out, width, height, 4, 1);
    if (status == VLP_OK) {
        memcpy(out->pixels, pixels, (size_t)width * (size_t)height * 4);
        vlp_image_rgba_to_rgb(out, options->background);
    }
    stbi_image_free(pixels);
    return status;
}
