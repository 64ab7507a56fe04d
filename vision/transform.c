#include "vision/transform.h"

#include "vision/jitter.h"
#include "vision/randaugment.h"

#include <limits.h>
#include <math.h>
#include <string.h>

vlp_transform vlp_transform_defaults(int image_size) {
    return (vlp_transform){
        .image_size = image_size,
        .resize_size = image_size,
        .fit = VLP_FIT_SHORT_SIDE,
        .crop_offset = VLP_CROP_FLOOR,
        .filter = VLP_RESIZE_BICUBIC,
        .rescale = 1.0 / 255,
        .mean = {0.48145466, 0.4578275, 0.40821073},
        .std = {0.26862954, 0.26130258, 0.27577711},
        .exif_rotate = true,
        .background = 0xffffff,
        .max_pixels = vlp_decode_defaults.max_pixels,
        .augment = {.scale_min = 0.5, .scale_max = 1, .ratio_min = 3.0 / 4, .ratio_max = 4.0 / 3},
    };
}

vlp_decode_options vlp_transform_decode_options(const vlp_transform *transform, bool train) {
    vlp_decode_options options = {
        .max_pixels = transform->max_pixels,
        .exif_rotate = transform->exif_rotate,
        .background = transform->background,
    };
    if (!transform->jpeg_scaling) return options;
    double side = transform->resize_size;
    if (train) side = transform->image_size / sqrt(transform->augment.scale_min);
    options.min_side = (int)ceil(fmin(2 * side, 1 << 20));
    return options;
}

void vlp_transform_scratch_free(vlp_transform_scratch *scratch) {
    vlp_image_free(&scratch->resized);
    vlp_image_free(&scratch->augmented);
    vlp_resize_scratch_free(&scratch->resize);
}

static int crop_start(int size, int crop, vlp_crop_offset how) {
    int spare = size - crop;
    return how == VLP_CROP_FLOOR ? spare / 2 : (int)nearbyint(spare / 2.0);
}

/* The longer side is floor(size * longer / shorter), computed in integers as torchvision's int().
 */
static vlp_status fit_size(const vlp_transform *t, const vlp_image *source, int *width,
                           int *height) {
    *width = *height = t->resize_size;
    if (t->fit == VLP_FIT_SQUASH) return VLP_OK;
    bool wide = source->width > source->height;
    int64_t shorter = wide ? source->height : source->width;
    int64_t longer = (int64_t)t->resize_size * (wide ? source->width : source->height) / shorter;
    if (longer > INT_MAX / 4)
        return VLP_FAIL(VLP_ERR_LIMIT, "is too long and thin to crop (%d x %d pixels)",
                        source->width, source->height);
    *(wide ? width : height) = (int)longer;
    return VLP_OK;
}

static vlp_status evaluation_pixels(const vlp_transform *t, const vlp_image *source, vlp_image *out,
                                    vlp_resize_scratch *scratch) {
    vlp_image_view view = vlp_image_view_of(source);
    vlp_resize_options resize = {.filter = t->filter};
    VLP_TRY(fit_size(t, source, &resize.width, &resize.height));
    vlp_window window = {crop_start(resize.width, t->image_size, t->crop_offset),
                         crop_start(resize.height, t->image_size, t->crop_offset), t->image_size,
                         t->image_size};
    resize.window = &window;
    return vlp_resize(out, &view, &resize, scratch);
}

static double uniform(vlp_rng *rng, double low, double high) {
    return low + (high - low) * vlp_rng_double(rng);
}

/* The largest centred part whose ratio is within the limits. */
static vlp_window fallback_crop(const vlp_augment *a, int width, int height) {
    double ratio = (double)width / height;
    vlp_window crop = {0, 0, width, height};
    if (ratio < a->ratio_min)
        crop.height = (int)nearbyint(width / a->ratio_min);
    else if (ratio > a->ratio_max)
        crop.width = (int)nearbyint(height * a->ratio_max);
    if (crop.width < 1) crop.width = 1;
    if (crop.height < 1) crop.height = 1;
    crop.left = (width - crop.width) / 2;
    crop.top = (height - crop.height) / 2;
    return crop;
}

/* Random resized crop (Szegedy et al., "Going Deeper with Convolutions", 2015; torchvision's
 * RandomResizedCrop): area uniform, ratio log-uniform, ten tries. */
static vlp_window random_crop(const vlp_augment *a, int width, int height, vlp_rng *rng) {
    for (int attempt = 0; attempt < 10; attempt++) {
        double area = (double)width * height * uniform(rng, a->scale_min, a->scale_max);
        double ratio = exp(uniform(rng, log(a->ratio_min), log(a->ratio_max)));
        double w = nearbyint(sqrt(area * ratio)), h = nearbyint(sqrt(area / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        vlp_window crop = {.width = (int)w, .height = (int)h};
        crop.top = (int)vlp_rng_below(rng, (uint64_t)(height - crop.height + 1));
        crop.left = (int)vlp_rng_below(rng, (uint64_t)(width - crop.width + 1));
        return crop;
    }
    return fallback_crop(a, width, height);
}

static vlp_status training_pixels(const vlp_transform *t, const vlp_image *source, vlp_rng *rng,
                                  vlp_image *out, vlp_transform_scratch *scratch) {
    vlp_window crop = random_crop(&t->augment, source->width, source->height, rng);
    vlp_image_view view = vlp_image_view_crop(source, crop.left, crop.top, crop.width, crop.height);
    vlp_resize_options resize = {t->image_size, t->image_size, t->filter, NULL, NULL};
    VLP_TRY(vlp_resize(out, &view, &resize, &scratch->resize));
    if (vlp_rng_double(rng) < t->augment.flip) vlp_image_mirror(out);
    vlp_jitter(out, &t->augment, rng);
    if (t->augment.randaugment <= 0) return VLP_OK;
    return vlp_randaugment(out, t->augment.randaugment, rng, &scratch->augmented);
}

vlp_status vlp_transform_pixels(const vlp_transform *transform, const vlp_image *source,
                                vlp_rng *rng, vlp_image *out, vlp_transform_scratch *scratch) {
    VLP_ASSERT(source->width > 0 && source->height > 0, "transform of an empty image");
    return rng ? training_pixels(transform, source, rng, out, scratch)
               : evaluation_pixels(transform, source, out, &scratch->resize);
}

/* 256 levels only: the arithmetic is done once a level and channel. */
void vlp_transform_normalise(const vlp_transform *transform, const vlp_image *image, float *out) {
    size_t count = (size_t)image->width * (size_t)image->height;
    float levels[3][256];
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            levels[c][v] =
                (float)((v * transform->rescale - transform->mean[c]) / transform->std[c]);
    float *red = out, *green = out + count, *blue = out + 2 * count;
    const uint8_t *p = image->pixels;
    for (size_t i = 0; i < count; i++, p += 3) {
        red[i] = levels[0][p[0]];
        green[i] = levels[1][p[1]];
        blue[i] = levels[2][p[2]];
    }
}

vlp_status vlp_transform_apply(const vlp_transform *transform, const vlp_image *source,
                               vlp_rng *rng, vlp_transform_scratch *scratch, float *out) {
    VLP_TRY(vlp_transform_pixels(transform, source, rng, &scratch->resized, scratch));
    vlp_transform_normalise(transform, &scratch->resized, out);
    return VLP_OK;
}
