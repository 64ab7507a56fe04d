#include "vision/resample.h"

/* Sums are taken modulo 2^32: halves may wrap on very wide kernels, their final sum cannot. */
static uint8_t to_u8(uint32_t low, uint32_t high) {
    int32_t sum = (int32_t)(low + (high << VLP_RESAMPLE_SPLIT) + (1u << (VLP_RESAMPLE_BITS - 1)));
    sum >>= VLP_RESAMPLE_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void plain_row(uint8_t *out, int kept, const uint8_t *row, const vlp_resample_axis *axis) {
    for (int x = 0; x < kept; x++) {
        const uint8_t *p = row + 3 * (size_t)axis->first[x];
        const int16_t *l = axis->low + (size_t)x * (size_t)axis->stride;
        const int16_t *h = axis->high + (size_t)x * (size_t)axis->stride;
        uint32_t low[3] = {0}, high[3] = {0};
        for (int t = 0; t < axis->count[x]; t++, p += 3)
            for (int c = 0; c < 3; c++) {
                low[c] += (uint32_t)(l[t] * p[c]);
                high[c] += (uint32_t)(h[t] * p[c]);
            }
        for (int c = 0; c < 3; c++) *out++ = to_u8(low[c], high[c]);
    }
}

static void plain_columns(uint8_t *out, int kept, const vlp_resample_source *source,
                          const vlp_resample_axis *axis) {
    for (int y = 0; y < source->rows; y++)
        plain_row(out + (size_t)y * (size_t)kept * 3, kept,
                  source->pixels + (size_t)y * source->stride, axis);
}

static void plain_rows(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride, int count,
                       const int16_t *low, const int16_t *high) {
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t *p = rows + i;
        uint32_t sum_low = 0, sum_high = 0;
        for (int t = 0; t < count; t++, p += stride) {
            sum_low += (uint32_t)(low[t] * *p);
            sum_high += (uint32_t)(high[t] * *p);
        }
        out[i] = to_u8(sum_low, sum_high);
    }
}

const vlp_resample_kernels vlp_resample_plain = {"plain", VLP_ISA_PLAIN, plain_columns, plain_rows};

const vlp_resample_kernels *vlp_resample_kernels_get(void) {
#ifdef __x86_64__
    return vlp_isa_chosen() >= VLP_ISA_AVX2 ? &vlp_resample_avx2 : &vlp_resample_sse2;
#else
    return &vlp_resample_plain;
#endif
}
