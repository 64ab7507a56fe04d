/* Inside vision/ only: the parts of vlp_resize. */
#ifndef VLP_VISION_RESAMPLE_H
#define VLP_VISION_RESAMPLE_H

#include "core/cpu.h"
#include "vision/resize.h"

/* The weights of one axis. Result i is the sum over t < count[i] of weight * source[first[i] + t].
 * A weight is 22-bit fixed point, kept in two halves, weight = high * 2048 + low, because products
 * of 16-bit numbers are what x86 adds in pairs. Those of result i begin at low[i * stride]; zeros
 * fill them up to the stride, a multiple of 4. */
typedef struct {
    int count_max, stride;
    int *first, *count;
    int16_t *low, *high;
} vlp_resample_axis;

enum { VLP_RESAMPLE_BITS = 22, VLP_RESAMPLE_SPLIT = 11 };

/* The two passes. A source is `rows` rows of `width` RGB pixels, `stride` bytes apart. */
typedef struct {
    const uint8_t *pixels;
    int width, rows;
    size_t stride;
} vlp_resample_source;

typedef struct {
    const char *name;
    vlp_isa isa;
    /* Along x: out [rows, kept, 3] packed. No byte beyond a row's `width` pixels is read. */
    void (*columns)(uint8_t *out, int kept, const vlp_resample_source *source,
                    const vlp_resample_axis *axis);
    /* Along y: out[0..bytes) = weighted sum of count rows which lie stride bytes apart. */
    void (*rows)(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride, int count,
                 const int16_t *low, const int16_t *high);
} vlp_resample_kernels;

/* Plain C defines the result; the others give the same bytes. */
extern const vlp_resample_kernels vlp_resample_plain;
#ifdef __x86_64__
extern const vlp_resample_kernels vlp_resample_sse2, vlp_resample_avx2;
#endif

/* The fastest that the processor has and VLP_ISA allows. */
const vlp_resample_kernels *vlp_resample_kernels_get(void);

/* VLP_RESIZE_STB: out has its size; memory for stb is taken from scratch. */
vlp_status vlp_resize_stb(vlp_image *out, const vlp_image_view *source, const vlp_box *region,
                          vlp_resize_scratch *scratch);

/* Grows scratch to at least `bytes`; its content is lost. */
vlp_status vlp_resize_scratch_reserve(vlp_resize_scratch *scratch, size_t bytes);

#endif
