#include "vision/resample.h"

#ifdef __x86_64__

#include <emmintrin.h>
#include <string.h>

static __m128i load_pair_of_weights(const int16_t *weights) {
    int32_t pair;
    memcpy(&pair, weights, sizeof pair);
    return _mm_set1_epi32(pair);
}

/* r0 g0 b0 r1 g1 b1 -> 16-bit lanes r0 r1 g0 g1 b0 b1 x x, from exactly six bytes. */
static __m128i load_two_pixels(const uint8_t *p) {
    uint32_t first;
    uint16_t second;
    memcpy(&first, p, sizeof first);
    memcpy(&second, p + 4, sizeof second);
    __m128i six = _mm_insert_epi16(_mm_cvtsi32_si128((int)first), second, 2);
    __m128i pairs = _mm_unpacklo_epi8(six, _mm_srli_si128(six, 3));
    return _mm_unpacklo_epi8(pairs, _mm_setzero_si128());
}

static __m128i load_last_pixel(const uint8_t *p) {
    int three = p[0] | p[1] << 8 | p[2] << 16;
    __m128i words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(three), _mm_setzero_si128());
    return _mm_unpacklo_epi16(words, _mm_setzero_si128());
}

/* Four sums to four 32-bit grey levels, not yet clipped. */
static __m128i round_sums(__m128i low, __m128i high) {
    __m128i sum = _mm_add_epi32(low, _mm_slli_epi32(high, VLP_RESAMPLE_SPLIT));
    sum = _mm_add_epi32(sum, _mm_set1_epi32(1 << (VLP_RESAMPLE_BITS - 1)));
    return _mm_srai_epi32(sum, VLP_RESAMPLE_BITS);
}

static void sse2_row(uint8_t *out, int kept, const uint8_t *row, const vlp_resample_axis *axis) {
    for (int x = 0; x < kept; x++, out += 3) {
        const uint8_t *p = row + 3 * (size_t)axis->first[x];
        const int16_t *l = axis->low + (size_t)x * (size_t)axis->stride;
        const int16_t *h = axis->high + (size_t)x * (size_t)axis->stride;
        __m128i low = _mm_setzero_si128(), high = low;
        int t = 0, count = axis->count[x];
        for (; t + 1 < count; t += 2, p += 6) {
            __m128i pixels = load_two_pixels(p);
            low = _mm_add_epi32(low, _mm_madd_epi16(pixels, load_pair_of_weights(l + t)));
            high = _mm_add_epi32(high, _mm_madd_epi16(pixels, load_pair_of_weights(h + t)));
        }
        if (t < count) {
            __m128i pixel = load_last_pixel(p);
            low = _mm_add_epi32(low, _mm_madd_epi16(pixel, load_pair_of_weights(l + t)));
            high = _mm_add_epi32(high, _mm_madd_epi16(pixel, load_pair_of_weights(h + t)));
        }
        __m128i words = _mm_packs_epi32(round_sums(low, high), _mm_setzero_si128());
        int rgb = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
        memcpy(out, &rgb, 3);
    }
}

static void sse2_columns(uint8_t *out, int kept, const vlp_resample_source *source,
                         const vlp_resample_axis *axis) {
    for (int y = 0; y < source->rows; y++)
        sse2_row(out + (size_t)y * (size_t)kept * 3, kept,
                 source->pixels + (size_t)y * source->stride, axis);
}

typedef struct {
    __m128i low[4], high[4];
} column_sums;

/* Adds two rows of 16 bytes, with one pair of weights each. */
static inline void add_two_rows(column_sums *s, const uint8_t *a, const uint8_t *b,
                                const int16_t *low, const int16_t *high) {
    const __m128i zero = _mm_setzero_si128();
    __m128i l = load_pair_of_weights(low), h = load_pair_of_weights(high);
    __m128i upper = _mm_loadu_si128((const __m128i *)(const void *)a);
    __m128i lower = _mm_loadu_si128((const __m128i *)(const void *)b);
    __m128i left = _mm_unpacklo_epi8(upper, lower), right = _mm_unpackhi_epi8(upper, lower);
    const __m128i pairs[4] = {_mm_unpacklo_epi8(left, zero), _mm_unpackhi_epi8(left, zero),
                              _mm_unpacklo_epi8(right, zero), _mm_unpackhi_epi8(right, zero)};
    for (int i = 0; i < 4; i++) {
        s->low[i] = _mm_add_epi32(s->low[i], _mm_madd_epi16(pairs[i], l));
        s->high[i] = _mm_add_epi32(s->high[i], _mm_madd_epi16(pairs[i], h));
    }
}

static void sse2_rows(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride, int count,
                      const int16_t *low, const int16_t *high) {
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
        column_sums s;
        memset(&s, 0, sizeof s);
        const uint8_t *p = rows + at;
        for (int t = 0; t < count; t += 2, p += 2 * stride)
            add_two_rows(&s, p, t + 1 < count ? p + stride : p, low + t, high + t);
        __m128i left =
            _mm_packs_epi32(round_sums(s.low[0], s.high[0]), round_sums(s.low[1], s.high[1]));
        __m128i right =
            _mm_packs_epi32(round_sums(s.low[2], s.high[2]), round_sums(s.low[3], s.high[3]));
        _mm_storeu_si128((__m128i *)(void *)(out + at), _mm_packus_epi16(left, right));
    }
    vlp_resample_plain.rows(out + at, bytes - at, rows + at, stride, count, low, high);
}

const vlp_resample_kernels vlp_resample_sse2 = {"sse2", VLP_ISA_PLAIN, sse2_columns, sse2_rows};

#endif
