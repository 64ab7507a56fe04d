/* Image bytes, decoded in every way, resized and normalised. Corpus: tests/data/images/files,
 * formats, bad.
 */
#include "vision/transform.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vlp_image image;
    static vlp_transform_scratch scratch;
    static float out[3 * 8 * 8];
    static const vlp_decode_options ways[] = {
        {.max_pixels = 1 << 18, .exif_rotate = true, .background = 0xff8000},
        {.max_pixels = 1 << 18, .min_side = 8, .background = -1},
    };
    vlp_image_header header;
    bool probed = vlp_image_probe(&header, data, size) == VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(ways); i++) {
        if (vlp_image_decode(&image, data, size, &ways[i]) != VLP_OK) continue;
        if (!probed || image.width < 1 || image.height < 1) abort();
        vlp_transform transform = vlp_transform_defaults(8);
        if (vlp_transform_apply(&transform, &image, NULL, &scratch, out) != VLP_OK) abort();
    }
    return 0;
}
