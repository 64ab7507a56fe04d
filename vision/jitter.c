#include "vision/jitter.h"

#include <math.h>
#include <string.h>

static size_t pixel_count(const vlp_image *image) {
    return (size_t)image->width * (size_t)image->height;
}

void vlp_image_mirror(vlp_image *image) {
    size_t stride = (size_t)image->width * 3;
    for (int y = 0; y < image->height; y++) {
        uint8_t *a = image->pixels + (size_t)y * stride, *b = a + stride - 3;
        for (; a < b; a += 3, b -= 3) {
            uint8_t swap[3];
            memcpy(swap, a, 3);
            memcpy(a, b, 3);
            memcpy(b, swap, 3);
        }
    }
}

/* Luma of ITU-R 601-2 in 16-bit fixed point, PIL's convert("L"). */
static int luma(const uint8_t *p) {
    return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16;
}

/* from + factor * (to - from), in float and cut off, as PIL blends. */
static uint8_t blend(int from, int to, float factor) {
    float value = (float)from + factor * (float)(to - from);
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value);
}

static void blend_with_level(vlp_image *image, int level, double factor) {
    uint8_t table[256];
    for (int v = 0; v < 256; v++) table[v] = blend(level, v, (float)factor);
    for (size_t i = 0; i < pixel_count(image) * 3; i++) image->pixels[i] = table[image->pixels[i]];
}

void vlp_adjust_brightness(vlp_image *image, double factor) {
    blend_with_level(image, 0, factor);
}

void vlp_adjust_contrast(vlp_image *image, double factor) {
    uint64_t sum = 0;
    size_t count = pixel_count(image);
    for (size_t i = 0; i < count; i++) sum += (uint64_t)luma(image->pixels + 3 * i);
    blend_with_level(image, (int)((double)sum / (double)count + 0.5), factor);
}

void vlp_adjust_saturation(vlp_image *image, double factor) {
    uint8_t *p = image->pixels;
    for (size_t i = 0; i < pixel_count(image); i++, p += 3) {
        int grey = luma(p);
        for (int c = 0; c < 3; c++) p[c] = blend(grey, p[c], (float)factor);
    }
}

void vlp_jitter(vlp_image *image, const vlp_augment *augment, vlp_rng *rng) {
    struct {
        void (*adjust)(vlp_image *image, double factor);
        double strength;
    } steps[] = {
        {vlp_adjust_brightness, augment->brightness},
        {vlp_adjust_contrast, augment->contrast},
        {vlp_adjust_saturation, augment->saturation},
    };
    for (size_t left = VLP_COUNT(steps); left > 0; left--) {
        size_t pick = (size_t)vlp_rng_below(rng, left);
        double strength = steps[pick].strength, low = fmax(0, 1 - strength);
        double factor = low + (1 + strength - low) * vlp_rng_double(rng);
        if (strength > 0) steps[pick].adjust(image, factor);
        steps[pick] = steps[left - 1];
    }
}
