/* Changes of colour and direction, in place, on 8-bit pixels as PIL's ImageEnhance makes them. */
#ifndef VLP_VISION_JITTER_H
#define VLP_VISION_JITTER_H

#include "vision/transform.h"

void vlp_image_mirror(vlp_image *image); /* left to right */

/* factor 1 leaves the image as it is; 0 gives black, the mean grey, the grey image. */
void vlp_adjust_brightness(vlp_image *image, double factor);
void vlp_adjust_contrast(vlp_image *image, double factor);
void vlp_adjust_saturation(vlp_image *image, double factor);

/* Those whose strength is > 0, in random order with random factors (torchvision's ColorJitter). */
void vlp_jitter(vlp_image *image, const vlp_augment *augment, vlp_rng *rng);

#endif
