#include "vision/exif.h"

#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

typedef struct {
    const uint8_t *data;
    size_t len;
    bool big_endian;
} tiff_block;

static uint32_t tiff_u16(const tiff_block *t, size_t at) {
    const uint8_t *p = t->data + at;
    return t->big_endian ? (uint32_t)(p[0] << 8 | p[1]) : (uint32_t)(p[1] << 8 | p[0]);
}

static uint32_t tiff_u32(const tiff_block *t, size_t at) {
    uint32_t first = tiff_u16(t, at), second = tiff_u16(t, at + 2);
    return t->big_endian ? first << 16 | second : second << 16 | first;
}

int vlp_exif_orientation(const uint8_t *tiff, size_t len) {
    if (len < 8) return 1;
    tiff_block t = {tiff, len, tiff[0] == 'M'};
    if (memcmp(tiff, t.big_endian ? "MM\0*" : "II*\0", 4) != 0) return 1;

    size_t at = tiff_u32(&t, 4);
    if (at > len - 2) return 1;
    size_t entries = tiff_u16(&t, at);
    at += 2;
    for (size_t i = 0; i < entries && len - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        if (tiff_u16(&t, at) != TAG_ORIENTATION) continue;
        uint32_t value = tiff_u16(&t, at + 8);
        bool valid = tiff_u16(&t, at + 2) == TYPE_SHORT && value >= 1 && value <= 8;
        return valid ? (int)value : 1;
    }
    return 1;
}

/* Where the upright pixel (x, y) comes from: offset + x * step_x + y * step_y, in stored pixels. */
typedef struct {
    ptrdiff_t offset, step_x, step_y;
} walk;

static walk walk_of(int orientation, ptrdiff_t w, ptrdiff_t h) {
    const walk walks[] = {
        {0, 1, w},            /* 1 upright */
        {w - 1, -1, w},       /* 2 mirrored */
        {w * h - 1, -1, -w},  /* 3 half a turn */
        {w * (h - 1), 1, -w}, /* 4 upside down, mirrored */
        {0, w, 1},            /* 5 transposed */
        {w * (h - 1), -w, 1}, /* 6 needs a quarter turn clockwise */
        {w * h - 1, -w, -1},  /* 7 transposed over the other diagonal */
        {w - 1, w, -1},       /* 8 needs a quarter turn anticlockwise */
    };
    return walks[orientation - 1];
}

/* Mirrors rows, columns or both by swapping pixels. */
static void flip_in_place(vlp_image *image, walk from) {
    ptrdiff_t w = image->width, h = image->height;
    bool rows_stay = from.step_y > 0;
    for (ptrdiff_t y = 0; y < h; y++) {
        for (ptrdiff_t x = 0; x < w; x++) {
            ptrdiff_t to = y * w + x, other = from.offset + x * from.step_x + y * from.step_y;
            if (other <= to) {
                if (rows_stay) break;
                if (other < y * w) return;
                continue;
            }
            uint8_t *a = image->pixels + 3 * to, *b = image->pixels + 3 * other;
            for (int c = 0; c < 3; c++) {
                uint8_t swap = a[c];
                a[c] = b[c];
                b[c] = swap;
            }
        }
    }
}

void vlp_exif_apply(vlp_image *image, int orientation) {
    if (orientation <= 1) return;
    VLP_ASSERT(orientation <= 8, "orientation %d", orientation);
    int w = image->width, h = image->height;
    walk from = walk_of(orientation, w, h);
    if (orientation <= 4) {
        flip_in_place(image, from);
        return;
    }
    size_t bytes = (size_t)w * (size_t)h * 3;
    VLP_ASSERT(image->capacity >= 2 * bytes, "no room to transpose %d x %d", w, h);
    uint8_t *upright = image->pixels + bytes, *to = upright;
    for (ptrdiff_t y = 0; y < w; y++) {
        const uint8_t *p = image->pixels + 3 * (from.offset + y * from.step_y);
        for (ptrdiff_t x = 0; x < h; x++, to += 3, p += 3 * from.step_x) memcpy(to, p, 3);
    }
    memcpy(image->pixels, upright, bytes);
    image->width = h;
    image->height = w;
}
