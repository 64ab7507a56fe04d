/* From an image to the normalised planes that a model sees.
 *
 * Evaluation: resize, centre crop, (x * rescale - mean) / std, as the checkpoint's
 * preprocessor_config.json says. Training: random resized crop, flip, colour jitter, then the same
 * normalisation.
 *
 *     vlp_transform t = vlp_transform_defaults(224);
 *     vlp_decode_options how = vlp_transform_decode_options(&t, false);
 *     vlp_image_decode(&image, bytes, len, &how);
 *     vlp_transform_apply(&t, &image, NULL, &scratch, pixels);        // [3, 224, 224] f32
 */
#ifndef VLP_VISION_TRANSFORM_H
#define VLP_VISION_TRANSFORM_H

#include "core/json.h"
#include "core/rng.h"
#include "vision/image.h"
#include "vision/resize.h"

typedef enum {
    VLP_FIT_SHORT_SIDE, /* shorter side to resize_size, aspect kept, then centre crop (CLIP) */
    VLP_FIT_SQUASH,     /* both sides to resize_size, aspect lost (ViT, ALBEF, BLIP) */
} vlp_fit;

/* The first pixel of a centre crop when (size - crop) is odd. */
typedef enum {
    VLP_CROP_FLOOR, /* transformers */
    VLP_CROP_ROUND, /* torchvision, hence openai/CLIP and open_clip: half to even */
} vlp_crop_offset;

/* Random changes of training images. Jitter x: a factor uniform in [max(0, 1 - x), 1 + x]. */
typedef struct {
    double scale_min, scale_max; /* area of the crop, as a fraction of the image */
    double ratio_min, ratio_max; /* its width / height */
    double flip;                 /* probability of mirroring; 0: captions may say "left" */
    double brightness, contrast, saturation;
    double
        randaugment; /* magnitude of 10 of two random operations (vision/randaugment.h); 0 = off */
} vlp_augment;

typedef struct {
    int image_size;  /* the model's input: [3, image_size, image_size] */
    int resize_size; /* before the centre crop, >= image_size */
    vlp_fit fit;
    vlp_crop_offset crop_offset;
    vlp_resize_filter filter;
    double rescale; /* 1/255 */
    double mean[3], std[3];
    bool exif_rotate; /* these four are how to decode: see vlp_transform_decode_options */
    int background;
    int64_t max_pixels;
    bool jpeg_scaling; /* decode large JPEGs at a reduced size: faster, pixels differ slightly */
    vlp_augment augment;
} vlp_transform;

/* CLIP's: short side and crop to image_size, bicubic, its mean and std, upright, white background;
 * training crops of 0.5 to 1 of the area, ratio 3/4 to 4/3, no flip, no jitter. */
vlp_transform vlp_transform_defaults(int image_size);

/* min_side leaves at least twice the pixels that the resize needs. */
vlp_decode_options vlp_transform_decode_options(const vlp_transform *transform, bool train);

/* Reused working memory; {0} is valid, nothing is allocated once warm. */
typedef struct {
    vlp_image resized;
    vlp_resize_scratch resize;
    vlp_image augmented;
} vlp_transform_scratch;
void vlp_transform_scratch_free(vlp_transform_scratch *scratch);

/* out [3, image_size, image_size] f32. rng NULL = evaluation; otherwise training, and the numbers
 * drawn depend on rng and the image's size alone. VLP_ERR_LIMIT: the image is too long and thin. */
vlp_status vlp_transform_apply(const vlp_transform *transform, const vlp_image *source,
                               vlp_rng *rng, vlp_transform_scratch *scratch, float *out);

/* The stages, for tests and previews: the 8-bit image before normalisation, and normalisation. */
vlp_status vlp_transform_pixels(const vlp_transform *transform, const vlp_image *source,
                                vlp_rng *rng, vlp_image *out, vlp_transform_scratch *scratch);
void vlp_transform_normalise(const vlp_transform *transform, const vlp_image *image, float *out);

/* preprocessor_config.json: do_resize, size (a number, {shortest_edge} or {height, width}),
 * resample (PIL's number), do_center_crop, crop_size, do_rescale, rescale_factor, do_normalize,
 * image_mean, image_std. A number as size means the shorter side for CLIP's processors and a square
 * for the others. vlp's own keys: exif_rotate, background ("#rrggbb" or null), crop_offset
 * ("floor", "round"), jpeg_scaling, max_pixels, augment {scale, ratio, flip, brightness, contrast,
 * saturation, randaugment}; a file without them is a published checkpoint's, and gets what its
 * reference does: no rotation, alpha dropped. `where` names the file in errors. */
vlp_status vlp_transform_from_json(vlp_transform *out, const vlp_json *config, const char *where);

/* A new object with all the keys above; NULL when out of memory. */
vlp_json *vlp_transform_to_json(const vlp_transform *transform);

#endif
