#include "vision/thumbnail.h"

#include "core/file.h"
#include "vision/resize.h"

enum { QUALITY = 85 };

static int shrink(int side, int longest, int max_side) {
    int64_t result = ((int64_t)side * max_side + longest / 2) / longest;
    return result < 1 ? 1 : (int)result;
}

vlp_status vlp_thumbnail(const vlp_image *image, int max_side, vlp_buf *out) {
    VLP_ASSERT(max_side > 0, "thumbnail of %d pixels", max_side);
    int longest = image->width > image->height ? image->width : image->height;
    if (longest <= max_side) return vlp_image_encode_jpeg(image, QUALITY, out);

    vlp_image small = {0};
    vlp_resize_scratch scratch = {0};
    vlp_image_view view = vlp_image_view_of(image);
    vlp_resize_options resize = {.width = shrink(image->width, longest, max_side),
                                 .height = shrink(image->height, longest, max_side),
                                 .filter = VLP_RESIZE_BICUBIC};
    vlp_status status = vlp_resize(&small, &view, &resize, &scratch);
    if (status == VLP_OK) status = vlp_image_encode_jpeg(&small, QUALITY, out);
    vlp_resize_scratch_free(&scratch);
    vlp_image_free(&small);
    return status;
}

vlp_status vlp_image_write_png(const vlp_image *image, const char *path) {
    vlp_buf bytes = {0};
    vlp_status status = vlp_image_encode_png(image, &bytes);
    if (status == VLP_OK) status = vlp_file_write(path, bytes.data, bytes.len);
    vlp_buf_free(&bytes);
    return status;
}
