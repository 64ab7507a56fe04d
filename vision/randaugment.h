/* RandAugment (Cubuk et al., 2020, arXiv:1909.13719) as ALBEF and BLIP train with it: their
 * operations on 8-bit pixels, which are OpenCV's, and their way of choosing.
 *
 * Easy to get wrong, and kept because checkpoints were trained so: the operations were written for
 * BGR and receive RGB, so Color and Contrast weigh red with 0.114 and blue with 0.299; Translate
 * shifts by pixels whatever the image's size; Sharpness leaves the outermost pixels as they are and
 * wraps around where it overshoots; AutoContrast turns a channel without black mostly white. */
#ifndef VLP_VISION_RANDAUGMENT_H
#define VLP_VISION_RANDAUGMENT_H

#include "vision/transform.h"

/* The operation of this name ("ShearX"), or -1. */
int vlp_randaugment_find(const char *name);

/* In place. `value` is the operation's own argument: degrees (Rotate, counter-clockwise), a
 * fraction (Shear), pixels (Translate), a factor (Color, Contrast, Brightness, Sharpness), a
 * threshold (Solarize), bits (Posterize), nothing (Identity, AutoContrast, Equalize). What comes in
 * from outside is grey 128. scratch is reused memory. */
vlp_status vlp_randaugment_apply(int operation, vlp_image *image, double value, vlp_image *scratch);

/* Two operations drawn from ALBEF's ten (with replacement, each applied with probability 1/2, signs
 * at random) at `magnitude` of 10. Draws the same count of numbers whatever happens. */
vlp_status vlp_randaugment(vlp_image *image, double magnitude, vlp_rng *rng, vlp_image *scratch);

#endif
