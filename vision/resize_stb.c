#include "vision/resample.h"

/* stb's memory is the scratch of the caller: it asks for one block a call. */
static void *take_scratch(size_t bytes, void *context) {
    vlp_resize_scratch *scratch = context;
    return vlp_resize_scratch_reserve(scratch, bytes) == VLP_OK ? scratch->memory : NULL;
}

#define STBIR_MALLOC(bytes, context) take_scratch((bytes), (context))
#define STBIR_FREE(pointer, context) ((void)(pointer), (void)(context))
/* Its checks of rounding in the sums of weights fail for harmless sizes. */
#define STBIR_ASSERT(condition) ((void)sizeof(condition))
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include <stb/stb_image_resize.h>
#pragma GCC diagnostic pop

/* Catmull-Rom is PIL's bicubic kernel; stb's default for reductions, Mitchell, is another. */
vlp_status vlp_resize_stb(vlp_image *out, const vlp_image_view *source, const vlp_box *region,
                          vlp_resize_scratch *scratch) {
    float w = (float)source->width, h = (float)source->height;
    int done = stbir_resize_region(
        source->pixels, source->width, source->height, (int)source->stride, out->pixels, out->width,
        out->height, 0, STBIR_TYPE_UINT8, 3, STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP,
        STBIR_EDGE_CLAMP, STBIR_FILTER_CATMULLROM, STBIR_FILTER_CATMULLROM, STBIR_COLORSPACE_LINEAR,
        scratch, (float)region->left / w, (float)region->top / h, (float)region->right / w,
        (float)region->bottom / h);
    if (done) return VLP_OK;
    return VLP_FAIL(VLP_ERR_MEMORY, "no memory to resize %d x %d to %d x %d", source->width,
                    source->height, out->width, out->height);
}
