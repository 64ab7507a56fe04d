#include "vision/sniff.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAGIC(text) text, sizeof(text) - 1

static const struct {
    size_t at;
    const char *bytes;
    size_t len;
    vlp_image_format format;
} formats[] = {
    {0, MAGIC("\xff\xd8\xff"), VLP_FORMAT_JPEG}, {0, MAGIC("\x89PNG\r\n\x1a\n"), VLP_FORMAT_PNG},
    {8, MAGIC("WEBP"), VLP_FORMAT_WEBP},         {0, MAGIC("GIF87a"), VLP_FORMAT_GIF},
    {0, MAGIC("GIF89a"), VLP_FORMAT_GIF},        {0, MAGIC("II*\0"), VLP_FORMAT_TIFF},
    {0, MAGIC("MM\0*"), VLP_FORMAT_TIFF},        {0, MAGIC("II+\0"), VLP_FORMAT_TIFF}, /* BigTIFF */
    {0, MAGIC("MM\0+"), VLP_FORMAT_TIFF},
};

static const struct {
    size_t at;
    const char *bytes;
    size_t len;
    const char *name;
} other_formats[] = {
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
    if (text[0]) return VLP_FAIL(VLP_ERR_FORMAT, "is text, not an image");
    return VLP_FAIL(VLP_ERR_FORMAT, "is not an image that vlp knows (it begins with %02x %02x)",
                    data[0], len > 1 ? data[1] : 0);
}

/* "BM" alone begins many a text: the header's own length must be one that exists. */
static bool is_bmp(const uint8_t *data, size_t len) {
    static const uint8_t lengths[] = {12, 40, 52, 56, 64, 108, 124};
    return len >= 18 && data[0] == 'B' && data[1] == 'M' && !data[15] && !data[16] && !data[17] &&
           memchr(lengths, data[14], sizeof lengths);
}

vlp_status vlp_sniff(vlp_image_format *out, const uint8_t *data, size_t len) {
    *out = VLP_FORMAT_UNKNOWN;
    if (len == 0) return VLP_FAIL(VLP_ERR_FORMAT, "is empty (0 bytes)");
    for (size_t i = 0; i < VLP_COUNT(formats); i++) {
        size_t at = formats[i].at, n = formats[i].len;
        if (len < at + n || memcmp(data + at, formats[i].bytes, n) != 0) continue;
        *out = formats[i].format;
        return VLP_OK;
    }
    if (is_bmp(data, len)) {
        *out = VLP_FORMAT_BMP;
        return VLP_OK;
    }
    return not_an_image(data, len);
}
