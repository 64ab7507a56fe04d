/* What a picture looks like in 64 bits, to find near duplicates: copies that were resized,
 * recompressed or slightly retouched.
 *
 * The hash is a difference hash: the picture is box-filtered to 9 x 8 greys, each bit tells whether
 * a grey is darker than its right neighbour. Hashes of copies differ in few bits. */
#ifndef VLP_DATASETS_LOOK_H
#define VLP_DATASETS_LOOK_H

#include "core/json.h"
#include "datasets/index.h"
#include "vision/resize.h"

enum { VLP_LOOK_NEAR = 3 }; /* bits that near duplicates differ in, at most */

typedef struct {
    vlp_image small;
    vlp_resize_scratch resize;
} vlp_look_scratch; /* {0} is valid */
void vlp_look_scratch_free(vlp_look_scratch *scratch);

vlp_status vlp_look(uint64_t *out, const vlp_image *image, vlp_look_scratch *scratch);

/* Pairs of decoded images that look alike but are not the same bytes; flat pictures, which all look
 * alike, are left out. `count` pairs in all, `crossed` of them in different splits; the first
 * `most` as [path, path] in `examples` (an array). Every image is compared with those that share a
 * quarter of its hash, at most 64 of them for each quarter. 16 bytes an image. */
typedef struct {
    int64_t images, pairs, crossed;
} vlp_look_report;
vlp_status vlp_look_near(const vlp_index *index, int most, vlp_look_report *report,
                         vlp_json *examples);

#endif
