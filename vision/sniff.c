#include "vision/sniff.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAGIC(text) text, sizeof(text) - 1

static const struct {
    size_t at;
    const char *bytes;
    size_t len;
    const char *name;
} other_formats[] = {
    {0, MAGIC("GIF8"), "GIF"},
    {8, MAGIC("WEBP"), "WebP"},
    {0, MAGIC("BM"), "BMP"},
    {0, MAGIC("II*\0"), "TIFF"},
    {0, MAGIC("MM\0*"), "TIFF"},
    {0, MAGIC("II+\0"), "BigTIFF"},
    {0, MAGIC("MM\0+"), "BigTIFF"},
    {4, MAGIC("ftypavif"), "AVIF"},
    {4, MAGIC("ftypavis"), "AVIF"},
    {4, MAGIC("ftyphei"), "HEIC"},
    {4, MAGIC("ftyphev"), "HEIC"},
    {4, MAGIC("ftypmif1"), "HEIC"},
    {4, MAGIC("ftypmsf1"), "HEIC"},
    {4, MAGIC("ftyp"), "a video (MP4 or QuickTime)"},
    {0, MAGIC("\0\0\0\x0cjP  "), "JPEG 2000"},
    {0, MAGIC("\xff\x4f\xff\x51"), "JPEG 2000"},
    {0, MAGIC("\0\0\0\x0cJXL "), "JPEG XL"},
    {0, MAGIC("\xff\x0a"), "JPEG XL"},
    {0, MAGIC("8BPS"), "a Photoshop document"},
    {0, MAGIC("%PDF"), "PDF"},
    {0, MAGIC("%!PS"), "PostScript"},
    {0, MAGIC("\0\0\1\0"), "a Windows icon"},
    {0, MAGIC("qoif"), "QOI"},
    {0, MAGIC("PK\3\4"), "a ZIP archive"},
    {0, MAGIC("\x1f\x8b"), "gzip data"},
};

static const struct {
    const char *start, *what;
} texts[] = {
    {"<!doctype html", "is an HTML page, not an image; the download probably failed"},
    {"<html", "is an HTML page, not an image; the download probably failed"},
    {"<head", "is an HTML page, not an image; the download probably failed"},
    {"<body", "is an HTML page, not an image; the download probably failed"},
    {"<svg", "is SVG, which vlp does not read; convert it to PNG"},
    {"<?xml", "is XML, which vlp does not read; if it is SVG, convert it to PNG"},
    {"version https://git-lfs", "is a Git LFS pointer, not the image; fetch it with git lfs pull"},
};

/* The first bytes as text, without a byte order mark and leading space; "" for binary data. */
static void leading_text(char *out, size_t size, const uint8_t *data, size_t len) {
    size_t n = 0, at = len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < len && isspace(data[at])) at++;
    for (; at < len && n + 1 < size; at++) {
        if ((data[at] < 0x20 && !isspace(data[at])) || (n == 0 && data[at] >= 0x80)) {
            n = 0;
            break;
        }
        out[n++] = (char)data[at];
    }
    out[n] = '\0';
}

static bool only_zeros(const uint8_t *data, size_t len) {
    return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

static vlp_status not_an_image(const uint8_t *data, size_t len) {
    for (size_t i = 0; i < VLP_COUNT(other_formats); i++) {
        size_t at = other_formats[i].at, n = other_formats[i].len;
        if (len >= at + n && memcmp(data + at, other_formats[i].bytes, n) == 0)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                            "is %s, which vlp does not read; convert it to JPEG or PNG",
                            other_formats[i].name);
    }
    if (only_zeros(data, len))
        return VLP_FAIL(VLP_ERR_FORMAT, "has only zero bytes (%zu of them); copy it again", len);

    char text[64];
    leading_text(text, sizeof text, data, len);
    for (size_t i = 0; i < VLP_COUNT(texts); i++)
        if (strncasecmp(text, texts[i].start, strlen(texts[i].start)) == 0)
            return VLP_FAIL(VLP_ERR_FORMAT, "%s", texts[i].what);
    if (text[0]) return VLP_FAIL(VLP_ERR_FORMAT, "is text, not a JPEG or PNG image");
    return VLP_FAIL(VLP_ERR_FORMAT, "is not a JPEG or PNG image (it begins with %02x %02x)",
                    data[0], len > 1 ? data[1] : 0);
}

vlp_status vlp_sniff(vlp_image_format *out, const uint8_t *data, size_t len) {
    *out = VLP_FORMAT_UNKNOWN;
    if (len == 0) return VLP_FAIL(VLP_ERR_FORMAT, "is empty (0 bytes)");
    if (len >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *out = VLP_FORMAT_PNG;
        return VLP_OK;
    }
    if (len >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0) {
        *out = VLP_FORMAT_JPEG;
        return VLP_OK;
    }
    return not_an_image(data, len);
}
