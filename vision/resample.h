/* Inside vision/ only: the parts of vlp_resize. */
#ifndef VLP_VISION_RESAMPLE_H
#define VLP_VISION_RESAMPLE_H

#include "vision/resize.h"

/* The weights of one axis. Result i is the sum over t < count[i] of weight * source[first[i] + t].
 * A weight is 22-bit fixed point, kept in two halves, weight = high * 2048 + low, because products
 * of 16-bit numbers are what baseline x86 adds in pairs. Taps come in pairs; an odd count is padded
 * by a zero: pair t of result i is low[i * stride + 2 t], low[... + 1]. */
typedef struct {
    int count_max, stride;
    int *first, *count;
    int16_t *low, *high;
} vlp_resample_axis;

enum { VLP_RESAMPLE_BITS = 22, VLP_RESAMPLE_SPLIT = 11 };

/* out[x] = weighted sum of the row's pixels, for `width` RGB pixels. */
void vlp_resample_row(uint8_t *out, int width, const uint8_t *row, const vlp_resample_axis *axis);

/* out[0..bytes) = weighted sum of count rows which lie stride bytes apart. */
void vlp_resample_rows(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride, int count,
                       const int16_t *low, const int16_t *high);

/* The same in portable C, which defines the result (and is all that other processors have). */
void vlp_resample_row_plain(uint8_t *out, int width, const uint8_t *row,
                            const vlp_resample_axis *axis);
void vlp_resample_rows_plain(uint8_t *out, size_t bytes, const uint8_t *rows, size_t stride,
                             int count, const int16_t *low, const int16_t *high);

/* VLP_RESIZE_STB: out has its size; memory for stb is taken from scratch. */
vlp_status vlp_resize_stb(vlp_image *out, const vlp_image_view *source, const vlp_box *region,
                          vlp_resize_scratch *scratch);

/* Grows scratch to at least `bytes`; its content is lost. */
vlp_status vlp_resize_scratch_reserve(vlp_resize_scratch *scratch, size_t bytes);

#endif
