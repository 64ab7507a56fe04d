/* Inside vision/ only: what the readers of each format share with image.c. */
#ifndef VLP_VISION_CODEC_H
#define VLP_VISION_CODEC_H

#include "vision/image.h"

/* Header and pixels of one format. Pixels come out as stored: *orientation (1..8) is what is left
 * to do, and is 1 unless options->exif_rotate. The data begins with the format's signature. */
vlp_status vlp_jpeg_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_jpeg_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options);
vlp_status vlp_png_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_png_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options);

vlp_status vlp_webp_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_webp_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options);
vlp_status vlp_gif_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_gif_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options);
vlp_status vlp_bmp_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_bmp_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options);
vlp_status vlp_tiff_probe(vlp_image_header *out, const uint8_t *data, size_t len);
vlp_status vlp_tiff_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options);

/* VLP_ERR_LIMIT when width * height > max_pixels. */
vlp_status vlp_image_check_limit(int64_t width, int64_t height, int64_t max_pixels);

/* Sets the size, with room for pixel_bytes a pixel while decoding (3 are kept) and for a second
 * image when the orientation will transpose this one. */
vlp_status vlp_image_prepare(vlp_image *image, int width, int height, int pixel_bytes,
                             int orientation);

/* RGBA rows of a prepared image become RGB in place: composited over 0xRRGGBB, or with the alpha
 * dropped when background < 0. */
void vlp_image_rgba_to_rgb(vlp_image *image, int background);

#endif
