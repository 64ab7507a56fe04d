/* EXIF: the orientation of a photograph. */
#ifndef VLP_VISION_EXIF_H
#define VLP_VISION_EXIF_H

#include "vision/image.h"

/* The orientation tag (1..8) of a TIFF block, as in JPEG's APP1 after "Exif\0\0" or PNG's eXIf;
 * 1 when it is absent or the block is malformed. */
int vlp_exif_orientation(const uint8_t *tiff, size_t len);

/* Turns the image upright in place. Orientations 5..8 swap width and height and need a capacity of
 * two images (vlp_image_prepare gives it). */
void vlp_exif_apply(vlp_image *image, int orientation);

#endif
