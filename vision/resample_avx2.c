#include "vision/resample.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

/* Along x, the two halves of a register are two rows of the image, so that they share weights. */

/* Bytes of four RGB pixels as 16-bit pairs r0 r1 g0 g1 b0 b1 - -, and the same of pixels 2 and 3.
 */
#define PAIR(a, b) a, -1, b, -1
#define FIRST_PAIR PAIR(0, 3), PAIR(1, 4), PAIR(2, 5), -1, -1, -1, -1
#define SECOND_PAIR PAIR(6, 9), PAIR(7, 10), PAIR(8, 11), -1, -1, -1, -1

typedef struct {
    __m256i low, high;
} pixel_sums;

static inline AVX2 __m256i load_weights(const int16_t *weights) {
    int32_t pair;
    memcpy(&pair, weights, sizeof pair);
    return _mm256_set1_epi32(pair);
}

static inline AVX2 pixel_sums add_four_taps(pixel_sums s, __m128i a, __m128i b, const int16_t *low,
                                            const int16_t *high) {
    const __m256i first = _mm256_setr_epi8(FIRST_PAIR, FIRST_PAIR);
    const __m256i second = _mm256_setr_epi8(SECOND_PAIR, SECOND_PAIR);
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    __m256i left = _mm256_shuffle_epi8(both, first), right = _mm256_shuffle_epi8(both, second);
    s.low = _mm256_add_epi32(s.low, _mm256_madd_epi16(left, load_weights(low)));
    s.high = _mm256_add_epi32(s.high, _mm256_madd_epi16(left, load_weights(high)));
    s.low = _mm256_add_epi32(s.low, _mm256_madd_epi16(right, load_weights(low + 2)));
    s.high = _mm256_add_epi32(s.high, _mm256_madd_epi16(right, load_weights(high + 2)));
    return s;
}

static inline AVX2 __m256i round_sums(__m256i low, __m256i high) {
    __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, VLP_RESAMPLE_SPLIT));
    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(1 << (VLP_RESAMPLE_BITS - 1)));
    return _mm256_srai_epi32(sum, VLP_RESAMPLE_BITS);
}

static inline AVX2 __m128i load_16(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Near the end of a row: what is left of it, zeros after that. */
static AVX2 __m128i load_rest(const uint8_t *p, size_t left) {
    uint8_t bytes[16] = {0};
    memcpy(bytes, p, left);
    return load_16(bytes);
}

static inline AVX2 void store_pixel(uint8_t *out, __m128i levels) {
    int rgb = _mm_cvtsi128_si32(levels);
    memcpy(out, &rgb, 3);
}

/* Two rows a and b of `bytes` bytes; out_a may be out_b where there is only one. */
static AVX2 void two_rows(uint8_t *out_a, uint8_t *out_b, int kept, const uint8_t *a,
                          const uint8_t *b, size_t bytes, const vlp_resample_axis *axis) {
    for (int x = 0; x < kept; x++, out_a += 3, out_b += 3) {
        const int16_t *l = axis->low + (size_t)x * (size_t)axis->stride;
        const int16_t *h = axis->high + (size_t)x * (size_t)axis->stride;
        size_t at = 3 * (size_t)axis->first[x];
        pixel_sums s = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        int t = 0, count = axis->count[x];
        for (; t < count && at + 16 <= bytes; t += 4, at += 12)
            s = add_four_taps(s, load_16(a + at), load_16(b + at), l + t, h + t);
        for (; t < count; t += 4, at += 12) {
            size_t left = bytes - at < 16 ? bytes - at : 16;
            s = add_four_taps(s, load_rest(a + at, left), load_rest(b + at, left), l + t, h + t);
        }
        __m256i words = _mm256_packs_epi32(round_sums(s.low, s.high), _mm256_setzero_si256());
        __m256i levels = _mm256_packus_epi16(words, words);
        store_pixel(out_a, _mm256_castsi256_si128(levels));
        store_pixel(out_b, _mm256_extracti128_si256(levels, 1));
    }
}

static AVX2 void avx2_columns(uint8_t *out, int kept, const vlp_resample_source *source,
                              const vlp_resample_axis *axis) {
    size_t bytes = (size_t)source->width * 3, out_bytes = (size_t)kept * 3;
    for (int y = 0; y < source->rows; y += 2) {
        size_t a = (size_t)y, b = y + 1 < source->rows ? a + 1 : a;
        two_rows(out + a * out_bytes, out + b * out_bytes, kept,
                 source->pixels + a * source->stride, source->pixels + b * source->stride, bytes,
                 axis);
    }
}

/* Along y, 32 neighbouring bytes. Unpacking and packing work within halves, so they cancel out. */
typedef struct {
    __m256i low[4], high[4];
} column_sums;

static inline AVX2 void add_two_rows(column_sums *s, const uint8_t *a, const uint8_t *b,
                                     const int16_t *low, const int16_t *high) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i l = load_weights(low), h = load_weights(high);
    __m256i upper = _mm256_loadu_si256((const __m256i *)(const void *)a);
    __m256i lower = _mm256_loadu_si256((const __m256i *)(const void *)b);
    __m256i left = _mm256_unpacklo_epi8(upper, lower), right = _mm256_unpackhi_epi8(upper, lower);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(left, zero), _mm256_unpackhi_epi8(left, zero),
                              _mm256_unpacklo_epi8(right, zero), _mm256_unpackhi_epi8(right, zero)};
    for (int i = 0; i < 4; i++) {
        s->low[i] = _mm256_add_epi32(s->low[i], _mm256_madd_epi16(pairs[i], l));
        s->high[i] = _mm256_add_epi32(s->high[i], _mm256_madd_epi16(pairs[i], h));
    }
}

static AVX2 void avx2_rows(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride,
                           int count, const int16_t *low, const int16_t *high) {
    size_t at = 0;
    for (; at + 32 <= bytes; at += 32) {
        column_sums s;
        memset(&s, 0, sizeof s);
        const uint8_t *p = rows + at;
        for (int t = 0; t < count; t += 2, p += 2 * stride)
            add_two_rows(&s, p, t + 1 < count ? p + stride : p, low + t, high + t);
        __m256i left =
            _mm256_packs_epi32(round_sums(s.low[0], s.high[0]), round_sums(s.low[1], s.high[1]));
        __m256i right =
            _mm256_packs_epi32(round_sums(s.low[2], s.high[2]), round_sums(s.low[3], s.high[3]));
        _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_packus_epi16(left, right));
    }
    vlp_resample_sse2.rows(out + at, bytes - at, rows + at, stride, count, low, high);
}

const vlp_resample_kernels vlp_resample_avx2 = {"avx2", VLP_ISA_AVX2, avx2_columns, avx2_rows};

#endif
