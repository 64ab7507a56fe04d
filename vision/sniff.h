/* What a file is, from its first bytes. */
#ifndef VLP_VISION_SNIFF_H
#define VLP_VISION_SNIFF_H

#include "vision/image.h"

/* One of the formats that vlp reads; anything else fails with what the bytes are, when they are
 * recognised ("is HEIC, which vlp does not read; ..."). */
vlp_status vlp_sniff(vlp_image_format *out, const uint8_t *data, size_t len);

#endif
