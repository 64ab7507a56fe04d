#include "vision/randaugment.h"

#include <math.h>
#include <string.h>

enum { OPERATIONS = 2, FILL = 128 };

static size_t byte_count(const vlp_image *image) {
    return (size_t)image->width * (size_t)image->height * 3;
}

static uint8_t cut(double value) {
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value);
}

/* ---- look-ups: a table for each channel ---- */

static void look_up(vlp_image *image, uint8_t tables[3][256]) {
    size_t count = byte_count(image);
    for (size_t i = 0; i < count; i += 3)
        for (size_t c = 0; c < 3; c++) image->pixels[i + c] = tables[c][image->pixels[i + c]];
}

static void same_table(vlp_image *image, uint8_t tables[3][256]) {
    memcpy(tables[1], tables[0], 256);
    memcpy(tables[2], tables[0], 256);
    look_up(image, tables);
}

static void histograms(const vlp_image *image, uint64_t counts[3][256]) {
    memset(counts, 0, 3 * 256 * sizeof counts[0][0]);
    size_t count = byte_count(image);
    for (size_t i = 0; i < count; i += 3)
        for (size_t c = 0; c < 3; c++) counts[c][image->pixels[i + c]]++;
}

static vlp_status identity(vlp_image *image, double value, vlp_image *scratch) {
    (void)image;
    (void)value;
    (void)scratch;
    return VLP_OK;
}

/* Each channel from its least and greatest level to 0 .. 255; but the least level is negated in 8
 * bits, so where it is not 0 most of the channel becomes white. */
static vlp_status auto_contrast(vlp_image *image, double value, vlp_image *scratch) {
    (void)value;
    (void)scratch;
    uint64_t counts[3][256];
    uint8_t tables[3][256];
    histograms(image, counts);
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 255;
        while (low < 255 && !counts[c][low]) low++;
        while (high > 0 && !counts[c][high]) high--;
        double scale = high > low ? 255.0 / (high - low) : 1;
        double offset = high > low ? (256 - low) % 256 * scale : 0;
        for (int v = 0; v < 256; v++) tables[c][v] = cut(v * scale + offset);
    }
    look_up(image, tables);
    return VLP_OK;
}

/* PIL's equalize: step = pixels below the greatest level / 255. */
static vlp_status equalize(vlp_image *image, double value, vlp_image *scratch) {
    (void)value;
    (void)scratch;
    uint64_t counts[3][256];
    uint8_t tables[3][256];
    histograms(image, counts);
    for (int c = 0; c < 3; c++) {
        int high = 255;
        uint64_t below = 0;
        while (high > 0 && !counts[c][high]) high--;
        for (int v = 0; v < high; v++) below += counts[c][v];
        uint64_t step = below / 255, sum = step / 2;
        for (int v = 0; v < 256; v++) {
            uint64_t level = step ? sum / step : (uint64_t)v;
            tables[c][v] = (uint8_t)(level > 255 ? 255 : level);
            sum += counts[c][v];
        }
    }
    look_up(image, tables);
    return VLP_OK;
}

static vlp_status solarize(vlp_image *image, double threshold, vlp_image *scratch) {
    (void)scratch;
    uint8_t tables[3][256];
    for (int v = 0; v < 256; v++) tables[0][v] = (uint8_t)(v < threshold ? v : 255 - v);
    same_table(image, tables);
    return VLP_OK;
}

static vlp_status posterize(vlp_image *image, double bits, vlp_image *scratch) {
    (void)scratch;
    uint8_t tables[3][256];
    int drop = bits <= 0 ? 8 : bits >= 8 ? 0 : 8 - (int)bits;
    for (int v = 0; v < 256; v++) tables[0][v] = (uint8_t)(v >> drop << drop);
    same_table(image, tables);
    return VLP_OK;
}

static vlp_status brightness(vlp_image *image, double factor, vlp_image *scratch) {
    (void)scratch;
    uint8_t tables[3][256];
    for (int v = 0; v < 256; v++) tables[0][v] = cut((double)((float)v * (float)factor));
    same_table(image, tables);
    return VLP_OK;
}

static const double weights[3] = {0.114, 0.587, 0.299}; /* of red, green, blue: see the header */

static vlp_status contrast(vlp_image *image, double factor, vlp_image *scratch) {
    (void)scratch;
    uint64_t sums[3] = {0};
    uint8_t tables[3][256];
    size_t count = byte_count(image);
    for (size_t i = 0; i < count; i++) sums[i % 3] += image->pixels[i];
    double mean = 0;
    for (int c = 0; c < 3; c++) mean += weights[c] * ((double)sums[c] / (double)(count / 3));
    for (int v = 0; v < 256; v++) tables[0][v] = cut((v - mean) * factor + mean);
    same_table(image, tables);
    return VLP_OK;
}

/* out = grey + factor (in - grey), as a matrix in single precision. */
static vlp_status color(vlp_image *image, double factor, vlp_image *scratch) {
    (void)scratch;
    static const float base[3][3] = {
        {0.886f, -0.114f, -0.114f}, {-0.587f, 0.413f, -0.587f}, {-0.299f, -0.299f, 0.701f}};
    float m[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) m[i][j] = base[i][j] * (float)factor + (float)weights[i];
    size_t count = byte_count(image);
    for (size_t i = 0; i < count; i += 3) {
        const uint8_t in[3] = {image->pixels[i], image->pixels[i + 1], image->pixels[i + 2]};
        for (size_t c = 0; c < 3; c++)
            image->pixels[i + c] = cut(
                (double)((float)in[0] * m[0][c] + (float)in[1] * m[1][c] + (float)in[2] * m[2][c]));
    }
    return VLP_OK;
}

/* ---- neighbourhoods ---- */

static vlp_status copy_to(vlp_image *scratch, const vlp_image *image) {
    VLP_TRY(vlp_image_resize_memory(scratch, image->width, image->height));
    memcpy(scratch->pixels, image->pixels, byte_count(image));
    return VLP_OK;
}

/* Away from the mean of the 3 x 3 neighbours, of which the middle counts 5 of 13. */
static vlp_status sharpness(vlp_image *image, double factor, vlp_image *scratch) {
    if (factor == 1 || image->width < 3 || image->height < 3) return VLP_OK;
    VLP_TRY(copy_to(scratch, image));
    size_t stride = (size_t)image->width * 3;
    const float side = 1.0f / 13, middle = 5.0f / 13;
    for (size_t y = 1; y + 1 < (size_t)image->height; y++)
        for (size_t i = 3; i < stride - 3; i++) {
            const uint8_t *p = scratch->pixels + y * stride + i;
            float sum = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    sum += (dx || dy ? side : middle) *
                           (float)p[dy * (ptrdiff_t)stride + 3 * (ptrdiff_t)dx];
            float smooth = nearbyintf(sum);
            /* not cut off: what leaves the range comes in at the other end */
            image->pixels[y * stride + i] =
                (uint8_t)(int)(smooth + (float)factor * ((float)*p - smooth));
        }
    return VLP_OK;
}

/* ---- geometry: OpenCV's warpAffine, bilinear, positions in steps of 1/32 pixel ---- */

enum { FRACTION_BITS = 5, POSITION_BITS = 10, ONE = 1 << FRACTION_BITS };

static int pixel(const vlp_image *image, int x, int y, size_t channel) {
    if (x < 0 || y < 0 || x >= image->width || y >= image->height) return FILL;
    return image->pixels[((size_t)y * (size_t)image->width + (size_t)x) * 3 + channel];
}

static uint8_t bilinear(const vlp_image *image, int x, int y, int fx, int fy, size_t channel) {
    int top = pixel(image, x, y, channel) * (ONE - fx) + pixel(image, x + 1, y, channel) * fx;
    int bottom =
        pixel(image, x, y + 1, channel) * (ONE - fx) + pixel(image, x + 1, y + 1, channel) * fx;
    return (uint8_t)((top * (ONE - fy) + bottom * fy + ONE * ONE / 2) / (ONE * ONE));
}

/* m [2, 3] maps the result's positions to the source's. */
static vlp_status warp(vlp_image *image, const double m[6], vlp_image *scratch) {
    VLP_TRY(copy_to(scratch, image));
    const double scale = 1 << POSITION_BITS;
    const int half = 1 << (POSITION_BITS - FRACTION_BITS - 1);
    for (int y = 0; y < image->height; y++) {
        int x0 = (int)lrint((m[1] * y + m[2]) * scale) + half;
        int y0 = (int)lrint((m[4] * y + m[5]) * scale) + half;
        uint8_t *out = image->pixels + (size_t)y * (size_t)image->width * 3;
        for (int x = 0; x < image->width; x++) {
            int px = (x0 + (int)lrint(m[0] * x * scale)) >> (POSITION_BITS - FRACTION_BITS);
            int py = (y0 + (int)lrint(m[3] * x * scale)) >> (POSITION_BITS - FRACTION_BITS);
            for (size_t c = 0; c < 3; c++)
                *out++ = bilinear(scratch, px >> FRACTION_BITS, py >> FRACTION_BITS, px & (ONE - 1),
                                  py & (ONE - 1), c);
        }
    }
    return VLP_OK;
}

/* m [2, 3] maps the source's positions to the result's. */
static vlp_status warp_forward(vlp_image *image, const double m[6], vlp_image *scratch) {
    double d = 1 / (m[0] * m[4] - m[1] * m[3]);
    double inverse[6] = {m[4] * d, -m[1] * d, 0, -m[3] * d, m[0] * d, 0};
    inverse[2] = -inverse[0] * m[2] - inverse[1] * m[5];
    inverse[5] = -inverse[3] * m[2] - inverse[4] * m[5];
    return warp(image, inverse, scratch);
}

static vlp_status shear_x(vlp_image *image, double factor, vlp_image *scratch) {
    return warp_forward(image, (double[]){1, factor, 0, 0, 1, 0}, scratch);
}

static vlp_status shear_y(vlp_image *image, double factor, vlp_image *scratch) {
    return warp_forward(image, (double[]){1, 0, 0, factor, 1, 0}, scratch);
}

static vlp_status translate_x(vlp_image *image, double offset, vlp_image *scratch) {
    return warp_forward(image, (double[]){1, 0, -offset, 0, 1, 0}, scratch);
}

static vlp_status translate_y(vlp_image *image, double offset, vlp_image *scratch) {
    return warp_forward(image, (double[]){1, 0, 0, 0, 1, -offset}, scratch);
}

static vlp_status rotate(vlp_image *image, double degrees, vlp_image *scratch) {
    double angle = degrees * M_PI / 180, a = cos(angle), b = sin(angle);
    double cx = image->width / 2.0, cy = image->height / 2.0;
    return warp_forward(
        image, (double[]){a, b, (1 - a) * cx - b * cy, -b, a, b * cx + (1 - a) * cy}, scratch);
}

/* ---- choosing ---- */

/* The argument is offset + per_level * magnitude / 10, with either sign where it is signed. */
static const struct {
    const char *name;
    vlp_status (*apply)(vlp_image *image, double value, vlp_image *scratch);
    double offset, per_level;
    bool is_signed;
} operations[] = {
    {"Identity", identity, 0, 0, false},       {"AutoContrast", auto_contrast, 0, 0, false},
    {"Equalize", equalize, 0, 0, false},       {"Brightness", brightness, 0.1, 1.8, false},
    {"Sharpness", sharpness, 0.1, 1.8, false}, {"ShearX", shear_x, 0, 0.3, true},
    {"ShearY", shear_y, 0, 0.3, true},         {"TranslateX", translate_x, 0, 10, true},
    {"TranslateY", translate_y, 0, 10, true},  {"Rotate", rotate, 0, 30, true},
    {"Color", color, 0.1, 1.8, false},         {"Contrast", contrast, 0.1, 1.8, false},
    {"Solarize", solarize, 0, 256, false},     {"Posterize", posterize, 0, 4, false},
};
enum { DRAWN = 10 }; /* the first ten are those that ALBEF and BLIP draw from */

int vlp_randaugment_find(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(operations); i++)
        if (strcmp(name, operations[i].name) == 0) return (int)i;
    return -1;
}

vlp_status vlp_randaugment_apply(int operation, vlp_image *image, double value,
                                 vlp_image *scratch) {
    VLP_ASSERT(operation >= 0 && (size_t)operation < VLP_COUNT(operations), "operation %d",
               operation);
    return operations[operation].apply(image, value, scratch);
}

vlp_status vlp_randaugment(vlp_image *image, double magnitude, vlp_rng *rng, vlp_image *scratch) {
    for (int i = 0; i < OPERATIONS; i++) {
        int pick = (int)vlp_rng_below(rng, DRAWN);
        bool apply = vlp_rng_double(rng) < 0.5, negative = vlp_rng_double(rng) < 0.5;
        double value = operations[pick].offset + operations[pick].per_level * magnitude / 10;
        if (operations[pick].is_signed && negative) value = -value;
        if (apply) VLP_TRY(vlp_randaugment_apply(pick, image, value, scratch));
    }
    return VLP_OK;
}
