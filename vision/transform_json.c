#include "vision/transform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 16384 };

/* PIL's numbers of the resampling filters. */
static const struct {
    int pil;
    vlp_resize_filter filter;
} resamples[] = {
    {1, VLP_RESIZE_LANCZOS}, {2, VLP_RESIZE_BILINEAR}, {3, VLP_RESIZE_BICUBIC},
    {4, VLP_RESIZE_BOX},     {5, VLP_RESIZE_HAMMING},
};

static const char *const crop_offsets[] = {[VLP_CROP_FLOOR] = "floor", [VLP_CROP_ROUND] = "round"};

/* Where an error is: file and key come first in every message. */
typedef struct {
    const vlp_json *config;
    const char *where;
} reader;

static vlp_status wrong(const reader *r, const char *key, const char *expected) {
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must be %s", r->where, key, expected);
}

static const vlp_json *value_of(const reader *r, const char *path) {
    const vlp_json *value = vlp_json_get(r->config, path);
    return vlp_json_is_null(value) ? NULL : value;
}

static vlp_status read_bool(const reader *r, const char *key, bool *out) {
    const vlp_json *value = value_of(r, key);
    if (!value) return VLP_OK;
    if (!vlp_json_is_bool(value)) return wrong(r, key, "true or false");
    *out = vlp_json_as_bool(value);
    return VLP_OK;
}

static vlp_status read_double(const reader *r, const char *key, double low, double high,
                              double *out) {
    const vlp_json *value = value_of(r, key);
    if (!value) return VLP_OK;
    *out = vlp_json_as_double(value);
    if (vlp_json_is_number(value) && *out >= low && *out <= high) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must be a number from %g to %g", r->where, key, low,
                    high);
}

static vlp_status read_doubles(const reader *r, const char *key, double *out, size_t count) {
    const vlp_json *value = value_of(r, key);
    if (!value) return VLP_OK;
    bool valid = vlp_json_is_array(value) && vlp_json_len(value) == count;
    for (size_t i = 0; valid && i < count; i++) {
        const vlp_json *item = vlp_json_at(value, i);
        valid = vlp_json_is_number(item);
        out[i] = vlp_json_as_double(item);
    }
    return valid ? VLP_OK : wrong(r, key, count == 3 ? "three numbers" : "two numbers");
}

static vlp_status as_size(const reader *r, const char *key, const vlp_json *value, int *out) {
    int64_t size = vlp_json_as_int(value);
    if (!vlp_json_is_integer(value) || size < 1 || size > MAX_SIZE)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must hold whole numbers from 1 to %d", r->where,
                        key, MAX_SIZE);
    *out = (int)size;
    return VLP_OK;
}

/* size and crop_size: a number, {"shortest_edge": n} or {"height": n, "width": n}. */
static vlp_status read_size(const reader *r, const char *key, int *out, vlp_fit *fit, bool *given) {
    const vlp_json *value = value_of(r, key);
    *given = value != NULL;
    if (!value) return VLP_OK;
    if (!vlp_json_is_object(value)) return as_size(r, key, value, out);
    const vlp_json *edge = vlp_json_key(value, "shortest_edge");
    if (edge) {
        if (fit) *fit = VLP_FIT_SHORT_SIDE;
        return as_size(r, key, edge, out);
    }
    int height = 0, width = 0;
    VLP_TRY(as_size(r, key, vlp_json_key(value, "height"), &height));
    VLP_TRY(as_size(r, key, vlp_json_key(value, "width"), &width));
    if (height != width)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: \"%s\" is %d x %d; vlp's images are square",
                        r->where, key, height, width);
    if (fit) *fit = VLP_FIT_SQUASH;
    *out = height;
    return VLP_OK;
}

/* What a bare number as size means depends on the processor's class. */
static vlp_fit fit_of_number(const reader *r, bool crop) {
    const char *type = vlp_json_string(r->config, "image_processor_type", NULL);
    if (!type) type = vlp_json_string(r->config, "feature_extractor_type", NULL);
    if (!type) return crop ? VLP_FIT_SHORT_SIDE : VLP_FIT_SQUASH;
    return strstr(type, "CLIP") ? VLP_FIT_SHORT_SIDE : VLP_FIT_SQUASH;
}

static vlp_status read_geometry(const reader *r, vlp_transform *out) {
    bool resize = true, sized = false, cropped = false, crop = value_of(r, "crop_size") != NULL;
    VLP_TRY(read_bool(r, "do_resize", &resize));
    VLP_TRY(read_bool(r, "do_center_crop", &crop));
    if (!resize)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: \"do_resize\" is false; vlp always resizes, give \"size\"", r->where);
    out->fit = fit_of_number(r, crop);
    VLP_TRY(read_size(r, "size", &out->resize_size, &out->fit, &sized));
    if (!sized) return wrong(r, "size", "given (the image size, for instance 224)");
    out->image_size = out->resize_size;
    if (crop) VLP_TRY(read_size(r, "crop_size", &out->image_size, NULL, &cropped));
    if (!crop && out->fit == VLP_FIT_SHORT_SIDE)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: \"shortest_edge\" without \"do_center_crop\" gives images that are "
                        "not square, which vlp does not do",
                        r->where);
    if (out->image_size > out->resize_size)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: \"crop_size\" %d is larger than \"size\" %d",
                        r->where, out->image_size, out->resize_size);
    return VLP_OK;
}

static vlp_status read_resample(const reader *r, vlp_transform *out) {
    const vlp_json *value = value_of(r, "resample");
    if (!value) return VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(resamples); i++)
        if (vlp_json_is_integer(value) && vlp_json_as_int(value) == resamples[i].pil) {
            out->filter = resamples[i].filter;
            return VLP_OK;
        }
    return wrong(r, "resample", "1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)");
}

static vlp_status read_normalisation(const reader *r, vlp_transform *out) {
    bool rescale = true, normalise = true;
    VLP_TRY(read_bool(r, "do_rescale", &rescale));
    VLP_TRY(read_bool(r, "do_normalize", &normalise));
    VLP_TRY(read_double(r, "rescale_factor", 1e-9, 1e9, &out->rescale));
    VLP_TRY(read_doubles(r, "image_mean", out->mean, 3));
    VLP_TRY(read_doubles(r, "image_std", out->std, 3));
    if (!rescale) out->rescale = 1;
    for (int c = 0; c < 3; c++) {
        if (!normalise) {
            out->mean[c] = 0;
            out->std[c] = 1;
        }
        if (!(out->std[c] > 0)) return wrong(r, "image_std", "three numbers above 0");
    }
    return VLP_OK;
}

static vlp_status read_background(const reader *r, vlp_transform *out) {
    const vlp_json *value = value_of(r, "background");
    if (!value) return VLP_OK; /* absent or null: alpha is dropped */
    const char *text = vlp_json_as_string(value);
    char *end;
    bool valid =
        text[0] == '#' && strlen(text) == 7 && strspn(text + 1, "0123456789abcdefABCDEF") == 6;
    if (!valid) return wrong(r, "background", "a colour as \"#rrggbb\", or null");
    out->background = (int)strtol(text + 1, &end, 16);
    return VLP_OK;
}

static vlp_status read_own_keys(const reader *r, vlp_transform *out) {
    VLP_TRY(read_bool(r, "exif_rotate", &out->exif_rotate));
    VLP_TRY(read_bool(r, "jpeg_scaling", &out->jpeg_scaling));
    VLP_TRY(read_background(r, out));
    double pixels = (double)out->max_pixels;
    VLP_TRY(read_double(r, "max_pixels", 1, 1e12, &pixels));
    out->max_pixels = (int64_t)pixels;
    const vlp_json *offset = value_of(r, "crop_offset");
    if (!offset) return VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(crop_offsets); i++)
        if (strcmp(vlp_json_as_string(offset), crop_offsets[i]) == 0) {
            out->crop_offset = (vlp_crop_offset)i;
            return VLP_OK;
        }
    return wrong(r, "crop_offset", "\"floor\" or \"round\"");
}

static vlp_status read_augment(const reader *r, vlp_augment *out) {
    double scale[2] = {out->scale_min, out->scale_max}, ratio[2] = {out->ratio_min, out->ratio_max};
    VLP_TRY(read_doubles(r, "augment.scale", scale, 2));
    VLP_TRY(read_doubles(r, "augment.ratio", ratio, 2));
    if (!(scale[0] > 0 && scale[0] <= scale[1] && scale[1] <= 1))
        return wrong(r, "augment.scale", "two rising numbers above 0 and at most 1");
    if (!(ratio[0] > 0 && ratio[0] <= ratio[1] && ratio[1] < 1e6))
        return wrong(r, "augment.ratio", "two rising numbers above 0");
    *out = (vlp_augment){
        .scale_min = scale[0], .scale_max = scale[1], .ratio_min = ratio[0], .ratio_max = ratio[1]};
    VLP_TRY(read_double(r, "augment.flip", 0, 1, &out->flip));
    VLP_TRY(read_double(r, "augment.brightness", 0, 10, &out->brightness));
    VLP_TRY(read_double(r, "augment.contrast", 0, 10, &out->contrast));
    VLP_TRY(read_double(r, "augment.saturation", 0, 10, &out->saturation));
    return read_double(r, "augment.randaugment", 0, 10, &out->randaugment);
}

vlp_status vlp_transform_from_json(vlp_transform *out, const vlp_json *config, const char *where) {
    static const vlp_json_typed keys[] = {{"image_processor_type", VLP_JSON_STRING},
                                          {"feature_extractor_type", VLP_JSON_STRING},
                                          {"augment", VLP_JSON_OBJECT}};
    reader r = {config, where};
    VLP_TRY(vlp_json_expect(config, keys, VLP_COUNT(keys), where));
    *out = vlp_transform_defaults(0);
    out->exif_rotate = false;
    out->background = -1;
    VLP_TRY(read_geometry(&r, out));
    VLP_TRY(read_resample(&r, out));
    VLP_TRY(read_normalisation(&r, out));
    VLP_TRY(read_own_keys(&r, out));
    return read_augment(&r, &out->augment);
}

static vlp_json *numbers(const double *values, size_t count) {
    vlp_json *array = vlp_json_new_array();
    for (size_t i = 0; i < count; i++) vlp_json_append(array, vlp_json_new_double(values[i]));
    return array;
}

static vlp_json *square(int size) {
    vlp_json *object = vlp_json_new_object();
    vlp_json_set_int(object, "height", size);
    vlp_json_set_int(object, "width", size);
    return object;
}

static vlp_json *augment_to_json(const vlp_augment *a) {
    vlp_json *object = vlp_json_new_object();
    vlp_json_set(object, "scale", numbers((double[]){a->scale_min, a->scale_max}, 2));
    vlp_json_set(object, "ratio", numbers((double[]){a->ratio_min, a->ratio_max}, 2));
    vlp_json_set_double(object, "flip", a->flip);
    vlp_json_set_double(object, "brightness", a->brightness);
    vlp_json_set_double(object, "contrast", a->contrast);
    vlp_json_set_double(object, "saturation", a->saturation);
    vlp_json_set_double(object, "randaugment", a->randaugment);
    return object;
}

/* VLP_RESIZE_STB is a faster bicubic and is saved as that. */
static int pil_number(vlp_resize_filter filter) {
    for (size_t i = 0; i < VLP_COUNT(resamples); i++)
        if (resamples[i].filter == filter) return resamples[i].pil;
    return 3;
}

static vlp_json *size_to_json(const vlp_transform *t) {
    if (t->fit == VLP_FIT_SQUASH) return square(t->resize_size);
    vlp_json *object = vlp_json_new_object();
    vlp_json_set_int(object, "shortest_edge", t->resize_size);
    return object;
}

vlp_json *vlp_transform_to_json(const vlp_transform *transform) {
    const vlp_transform *t = transform;
    bool short_side = t->fit == VLP_FIT_SHORT_SIDE;
    vlp_json *config = vlp_json_new_object();
    if (!config) return NULL;
    vlp_json_set_string(config, "image_processor_type",
                        short_side ? "CLIPImageProcessor" : "ViTImageProcessor");
    vlp_json_set_bool(config, "do_convert_rgb", true);
    vlp_json_set_bool(config, "do_resize", true);
    vlp_json_set(config, "size", size_to_json(t));
    vlp_json_set_int(config, "resample", pil_number(t->filter));
    vlp_json_set_bool(config, "do_center_crop", short_side || t->image_size != t->resize_size);
    vlp_json_set(config, "crop_size", square(t->image_size));
    vlp_json_set_bool(config, "do_rescale", true);
    vlp_json_set_double(config, "rescale_factor", t->rescale);
    vlp_json_set_bool(config, "do_normalize", true);
    vlp_json_set(config, "image_mean", numbers(t->mean, 3));
    vlp_json_set(config, "image_std", numbers(t->std, 3));

    char colour[8];
    snprintf(colour, sizeof colour, "#%06x", (unsigned)t->background & 0xffffff);
    vlp_json_set_bool(config, "exif_rotate", t->exif_rotate);
    if (t->background >= 0) vlp_json_set_string(config, "background", colour);
    vlp_json_set_string(config, "crop_offset", crop_offsets[t->crop_offset]);
    vlp_json_set_bool(config, "jpeg_scaling", t->jpeg_scaling);
    vlp_json_set_int(config, "max_pixels", t->max_pixels);
    vlp_json_set(config, "augment", augment_to_json(&t->augment));
    return config;
}
