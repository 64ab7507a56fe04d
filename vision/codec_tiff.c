/* TIFF: the first page, of whatever kind libtiff turns into RGBA. */
#include "core/memory.h"
#include "vision/codec.h"

#include <string.h>

#include <tiffio.h>

enum { MAX_BLOCK = 1 << 28 }; /* bytes that one directory, strip or tile may ask for */

typedef struct {
    const uint8_t *data;
    size_t len, at;
} source;

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t want) {
    source *s = handle;
    size_t left = s->at < s->len ? s->len - s->at : 0,
           n = (size_t)want < left ? (size_t)want : left;
    memcpy(to, s->data + (n ? s->at : 0), n);
    s->at += n;
    return (tmsize_t)n;
}

static tmsize_t write_nothing(thandle_t handle, void *from, tmsize_t want) {
    (void)handle, (void)from, (void)want;
    return 0;
}

static toff_t seek(thandle_t handle, toff_t to, int whence) {
    source *s = handle;
    s->at = whence == SEEK_SET ? to : whence == SEEK_CUR ? s->at + to : s->len + to;
    return s->at;
}

static int close_nothing(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) {
    return ((source *)handle)->len;
}

static int map(thandle_t handle, void **data, toff_t *size) {
    source *s = handle;
    *data = (void *)(uintptr_t)s->data;
    *size = s->len;
    return 1;
}

static void unmap(thandle_t handle, void *data, toff_t size) {
    (void)handle, (void)data, (void)size;
}

static int ignore(TIFF *tiff, void *user, const char *module, const char *format, va_list list) {
    (void)tiff, (void)user, (void)module, (void)format, (void)list;
    return 1;
}

static TIFF *open_tiff(source *s) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_BLOCK);
    TIFFOpenOptionsSetErrorHandlerExtR(options, ignore, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, NULL);
    TIFF *tiff = TIFFClientOpenExt("memory", "r", s, read_bytes, write_nothing, seek, close_nothing,
                                   size_of, map, unmap, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

static vlp_status read_header(TIFF *tiff, vlp_image_header *out) {
    uint32_t width = 0, height = 0;
    uint16_t orientation = 1;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a TIFF file with a bad header");
    out->format = VLP_FORMAT_TIFF;
    out->width = (int)width;
    out->height = (int)height;
    out->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    return VLP_OK;
}

static vlp_status not_opened(void) {
    return VLP_FAIL(VLP_ERR_FORMAT, "is a TIFF file that is cut off or has a bad header");
}

vlp_status vlp_tiff_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    source s = {.data = data, .len = len};
    TIFF *tiff = open_tiff(&s);
    if (!tiff) return not_opened();
    vlp_status status = read_header(tiff, out);
    TIFFClose(tiff);
    return status;
}

/* libtiff packs a pixel as 0xAABBGGRR; alpha comes multiplied in. */
static void unpack(vlp_image *out) {
    size_t count = (size_t)out->width * (size_t)out->height;
    for (size_t i = 0; i < count; i++) {
        uint32_t packed;
        memcpy(&packed, out->pixels + 4 * i, 4);
        uint32_t alpha = TIFFGetA(packed);
        uint32_t rgb[3] = {TIFFGetR(packed), TIFFGetG(packed), TIFFGetB(packed)};
        for (int c = 0; c < 3; c++) {
            uint32_t straight = alpha ? (rgb[c] * 255 + alpha / 2) / alpha : 0;
            out->pixels[4 * i + (size_t)c] = (uint8_t)(straight > 255 ? 255 : straight);
        }
        out->pixels[4 * i + 3] = (uint8_t)alpha;
    }
}

/* A kind that the conversion cannot take is another thing than damage. */
static vlp_status read_pixels(TIFF *tiff, vlp_image *out) {
    char why[1024] = "";
    if (!TIFFRGBAImageOK(tiff, why))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "is a rare kind of TIFF file: %.200s", why);
    if (!TIFFReadRGBAImageOriented(tiff, (uint32_t)out->width, (uint32_t)out->height,
                                   (uint32_t *)(void *)out->pixels, ORIENTATION_TOPLEFT, 1))
        return VLP_FAIL(VLP_ERR_FORMAT, "is a TIFF file that is cut off or does not decode");
    unpack(out);
    return VLP_OK;
}

/* Run-length and deflate shrink by a thousand at most; fax codes by far more, but their pixels are
 * bits. */
static vlp_status check_enough_data(TIFF *tiff, const vlp_image_header *header, size_t len) {
    uint64_t bits = (uint64_t)TIFFScanlineSize64(tiff) * 8 * (uint64_t)header->height;
    if (bits / (8 * 2048) <= len) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "is a TIFF file of %zu bytes, too few for its %d x %d pixels",
                    len, header->width, header->height);
}

static vlp_status decode(TIFF *tiff, vlp_image *out, int *orientation, size_t len,
                         const vlp_decode_options *options) {
    vlp_image_header header = {0};
    VLP_TRY(read_header(tiff, &header));
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    VLP_TRY(check_enough_data(tiff, &header, len));
    *orientation = options->exif_rotate ? header.orientation : 1;
    /* rows as stored: turning is done once, for all formats alike */
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    VLP_TRY(vlp_image_prepare(out, header.width, header.height, 4, *orientation));
    VLP_TRY(read_pixels(tiff, out));
    vlp_image_rgba_to_rgb(out, options->background);
    return VLP_OK;
}

vlp_status vlp_tiff_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options) {
    source s = {.data = data, .len = len};
    TIFF *tiff = open_tiff(&s);
    if (!tiff) return not_opened();
    vlp_status status = decode(tiff, out, orientation, len, options);
    TIFFClose(tiff);
    return status;
}
