/* Images out: JPEG and PNG bytes, for galleries in HTML pages. */
#ifndef VLP_VISION_THUMBNAIL_H
#define VLP_VISION_THUMBNAIL_H

#include "core/memory.h"
#include "vision/image.h"

/* Appends the encoded image to out. quality is 1..100. */
vlp_status vlp_image_encode_jpeg(const vlp_image *image, int quality, vlp_buf *out);
vlp_status vlp_image_encode_png(const vlp_image *image, vlp_buf *out);

/* Appends a JPEG whose sides are at most max_side, aspect kept, never enlarged. */
vlp_status vlp_thumbnail(const vlp_image *image, int max_side, vlp_buf *out);

/* Replaces the file at path by the image as PNG. */
vlp_status vlp_image_write_png(const vlp_image *image, const char *path);

#endif
