/* Resampling of 8-bit RGB images, equal to PIL's Image.resize to the last bit.
 *
 * PIL widens the kernel with the reduction (no aliasing), resamples along x first, rounds and clips
 * to 8 bits, then along y; weights are fixed point with 22 bits. Published checkpoints saw images
 * made this way: the same kernel in float differs by up to 14 grey levels where bicubic overshoots.
 */
#ifndef VLP_VISION_RESIZE_H
#define VLP_VISION_RESIZE_H

#include "vision/image.h"

typedef enum {
    VLP_RESIZE_BOX,
    VLP_RESIZE_BILINEAR,
    VLP_RESIZE_HAMMING,
    VLP_RESIZE_BICUBIC, /* a = -0.5 */
    VLP_RESIZE_LANCZOS, /* 3 lobes */
    VLP_RESIZE_STB, /* stb_image_resize, Catmull-Rom, for comparison: near BICUBIC, but slower */
} vlp_resize_filter;

/* A part of the source in pixels, edges may be fractional. Weights reach beyond its edges as far as
 * the source goes; crop with a view where they must not. */
typedef struct {
    double left, top, right, bottom;
} vlp_box;

/* A part of the result in whole pixels. */
typedef struct {
    int left, top, width, height;
} vlp_window;

typedef struct {
    int width, height; /* of the whole result */
    vlp_resize_filter filter;
    const vlp_box *box;       /* NULL = the whole source */
    const vlp_window *window; /* compute this part only (a centre crop); NULL = all */
} vlp_resize_options;

/* Working memory, reused: nothing is allocated once it has seen the largest sizes. {0} is valid. */
typedef struct {
    uint8_t *memory;
    size_t capacity;
} vlp_resize_scratch;

/* out becomes the window (or width x height), out's memory is reused. The source must not be out's
 * own memory. Fails with VLP_ERR_MEMORY or VLP_ERR_LIMIT only; sizes <= 0, a window outside the
 * result and a box outside the source are programming errors. */
vlp_status vlp_resize(vlp_image *out, const vlp_image_view *source,
                      const vlp_resize_options *options, vlp_resize_scratch *scratch);

void vlp_resize_scratch_free(vlp_resize_scratch *scratch);

#endif
