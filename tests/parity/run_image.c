/* Images: decoding, resizing, normalisation, augmentation and malformed files. Pixels are compared
 * exactly. */
#include "parity/runners.h"

#include "core/file.h"
#include "vision/jitter.h"
#include "vision/randaugment.h"
#include "vision/transform.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const parity_case *c;
    parity_report *report;
    int size; /* n of config.json */
    vlp_image source, actual, expected;
    vlp_transform_scratch scratch;
} run;

/* What the references do with a file: no rotation, alpha dropped. */
static const vlp_decode_options as_reference = {.exif_rotate = false, .background = -1};

static vlp_status decode(const run *r, const char *file, const vlp_decode_options *options,
                         vlp_image *out) {
    vlp_buf path = {0}, bytes = {0};
    vlp_status status = parity_path(r->c, file, &path);
    if (status == VLP_OK) status = vlp_file_read(path.data, 0, &bytes);
    if (status == VLP_OK) {
        status = vlp_image_decode(out, (const uint8_t *)bytes.data, bytes.len, options);
        if (status != VLP_OK) vlp_fail_in(status, "%s", file);
    }
    vlp_buf_free(&path);
    vlp_buf_free(&bytes);
    return status;
}

/* r->actual against an expected PNG. */
static vlp_status compare_png(run *r, const char *file, int limit) {
    VLP_TRY(decode(r, file, &as_reference, &r->expected));
    const vlp_image *a = &r->actual, *e = &r->expected;
    int worst = a->width == e->width && a->height == e->height ? 0 : 256;
    size_t bytes = (size_t)a->width * (size_t)a->height * 3;
    for (size_t i = 0; worst < 256 && i < bytes; i++) {
        int d = abs(a->pixels[i] - e->pixels[i]);
        if (d > worst) worst = d;
    }
    parity_check(r->report, file, worst <= limit, "%d x %d, largest difference %d, limit %d",
                 a->width, a->height, worst, limit);
    return VLP_OK;
}

/* An image as the tensor [height, width, 3]. */
static vlp_status expect_pixels(run *r, const vlp_image *image, const char *name) {
    if (!parity_wants(r->report, name)) return VLP_OK;
    const int64_t shape[] = {image->height, image->width, 3};
    size_t count = (size_t)image->width * (size_t)image->height * 3;
    int32_t *values = vlp_alloc(count * sizeof *values);
    if (!values) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) values[i] = image->pixels[i];
    parity_expect_i32(r->report, name, 3, shape, values);
    vlp_free(values);
    return VLP_OK;
}

static vlp_status expect_normalised(run *r, const vlp_transform *t, const char *name) {
    if (!parity_wants(r->report, name)) return VLP_OK;
    const int64_t shape[] = {3, r->actual.height, r->actual.width};
    float *values = vlp_alloc((size_t)(shape[0] * shape[1] * shape[2]) * sizeof *values);
    if (!values) return VLP_ERR_MEMORY;
    vlp_transform_normalise(t, &r->actual, values);
    parity_expect(r->report, name, 3, shape, values);
    vlp_free(values);
    return VLP_OK;
}

/* ---- preprocessing ---- */

typedef struct {
    const char *name;
    vlp_fit fit;
    vlp_crop_offset crop;
    vlp_resize_filter filter;
    bool half; /* mean and deviation 0.5 instead of CLIP's */
} pipeline;

static const pipeline pipelines[] = {
    {"clip", VLP_FIT_SHORT_SIDE, VLP_CROP_ROUND, VLP_RESIZE_BICUBIC, false},
    {"clip_rgb_first", VLP_FIT_SHORT_SIDE, VLP_CROP_ROUND, VLP_RESIZE_BICUBIC, false},
    {"hf_clip", VLP_FIT_SHORT_SIDE, VLP_CROP_FLOOR, VLP_RESIZE_BICUBIC, false},
    {"vit", VLP_FIT_SQUASH, VLP_CROP_FLOOR, VLP_RESIZE_BILINEAR, true},
    {"albef", VLP_FIT_SQUASH, VLP_CROP_FLOOR, VLP_RESIZE_BICUBIC, false},
};

static vlp_transform transform_of(const run *r, const pipeline *p) {
    vlp_transform t = vlp_transform_defaults(r->size);
    t.fit = p->fit;
    t.crop_offset = p->crop;
    t.filter = p->filter;
    for (int c = 0; p->half && c < 3; c++) t.mean[c] = t.std[c] = 0.5;
    return t;
}

/* What the case's tensors of this file begin with. */
static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static vlp_status run_pipeline(run *r, const pipeline *p, const char *file, const char *png,
                               bool own_mode) {
    vlp_buf name = {0};
    vlp_status status = vlp_buf_printf(&name, "%s/%s/pixel_values", base_name(file), p->name);
    if (status == VLP_OK && own_mode && strcmp(p->name, "clip") == 0) {
        parity_pass_over(r->report, name.data,
                         "resized before the conversion to RGB; clip_rgb_first is vlp's");
    } else if (status == VLP_OK) {
        vlp_transform t = transform_of(r, p);
        status = vlp_transform_pixels(&t, &r->source, NULL, &r->actual, &r->scratch);
        if (status == VLP_OK) status = compare_png(r, png, 0);
        if (status == VLP_OK) status = expect_normalised(r, &t, name.data);
    }
    vlp_buf_free(&name);
    return status;
}

static vlp_status run_decoding(run *r, const char *file) {
    vlp_decode_options upright = as_reference;
    upright.exif_rotate = true;
    vlp_buf name = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_buf_printf(&name, "%s/exif_transposed_rgb", base_name(file)));
    VLP_TRY_DONE(decode(r, file, &upright, &r->source));
    VLP_TRY_DONE(expect_pixels(r, &r->source, name.data));
    vlp_buf_clear(&name);
    VLP_TRY_DONE(vlp_buf_printf(&name, "%s/decoded_rgb", base_name(file)));
    VLP_TRY_DONE(decode(r, file, &as_reference, &r->source));
    VLP_TRY_DONE(expect_pixels(r, &r->source, name.data));
    vlp_buf_clear(&name);
    VLP_TRY_DONE(vlp_buf_printf(&name, "%s/samples", base_name(file)));
    parity_pass_over(r->report, name.data, "vlp keeps 8 of the 16 bits");
done:
    vlp_buf_free(&name);
    return status;
}

static vlp_status run_file(run *r, const vlp_json *entry) {
    const char *file = vlp_json_string(entry, "file", "");
    const vlp_json *outputs = vlp_json_key(entry, "outputs");
    bool own_mode = vlp_json_key(outputs, "clip_rgb_first") != NULL;
    VLP_TRY(run_decoding(r, file));
    for (void *it = vlp_json_first(outputs); it; it = vlp_json_next(outputs, it)) {
        const pipeline *p = NULL;
        for (size_t i = 0; i < VLP_COUNT(pipelines); i++)
            if (strcmp(pipelines[i].name, vlp_json_iter_key(it)) == 0) p = &pipelines[i];
        if (!p)
            parity_check(r->report, vlp_json_iter_key(it), false, "no such pipeline");
        else
            VLP_TRY(
                run_pipeline(r, p, file, vlp_json_as_string(vlp_json_iter_value(it)), own_mode));
    }
    return VLP_OK;
}

/* ---- malformed files ---- */

static vlp_status run_bad_file(run *r, const vlp_json *entry) {
    const char *file = vlp_json_string(entry, "file", "");
    const char *reference = vlp_json_string(entry, "reference", "");
    bool accepts = strncmp(reference, "PIL accepts", 11) == 0, same = true;
    vlp_status status = decode(r, file, &as_reference, &r->actual);
    const char *sizes = strchr(reference, '(');
    int width, height;
    if (accepts && sizes && sscanf(sizes, "(%d, %d)", &width, &height) == 2)
        same = r->actual.width == width && r->actual.height == height;
    bool pass = accepts ? status == VLP_OK && same : status != VLP_OK;
    parity_check(r->report, file, pass, "%s", status == VLP_OK ? "decodes" : vlp_error());
    return VLP_OK;
}

static vlp_status each_file(run *r, vlp_status (*each)(run *r, const vlp_json *entry)) {
    const vlp_json *files = vlp_json_key(r->c->json, "files");
    for (size_t i = 0; i < vlp_json_len(files); i++) VLP_TRY(each(r, vlp_json_at(files, i)));
    return VLP_OK;
}

/* ---- augmentation ---- */

static vlp_status crop(run *r, const vlp_json *box) {
    vlp_image_view view = vlp_image_view_crop(
        &r->source, (int)vlp_json_int(box, "j", 0), (int)vlp_json_int(box, "i", 0),
        (int)vlp_json_int(box, "w", 0), (int)vlp_json_int(box, "h", 0));
    VLP_TRY(vlp_resize(&r->actual, &view,
                       &(vlp_resize_options){r->size, r->size, VLP_RESIZE_BICUBIC, NULL, NULL},
                       &r->scratch.resize));
    if (vlp_json_int(box, "flip", 0)) vlp_image_mirror(&r->actual);
    return VLP_OK;
}

static vlp_status apply(run *r, const char *op, const vlp_json *args) {
    int operation = vlp_randaugment_find(op);
    if (operation < 0) return VLP_FAIL(VLP_ERR_UNSUPPORTED, "no operation \"%s\"", op);
    return vlp_randaugment_apply(operation, &r->actual, vlp_json_as_double(vlp_json_at(args, 0)),
                                 &r->scratch.augmented);
}

/* What crop K of the case is, "crop" or "full" with operations after it. */
static vlp_status run_crop(run *r, const char *kind, size_t k, const vlp_json *entry) {
    const vlp_json *box = vlp_json_key(entry, "crop"), *ops = vlp_json_key(entry, "ops");
    vlp_transform t = vlp_transform_defaults(r->size);
    char name[64];
    snprintf(name, sizeof name, "%s%zu/pixel_values", kind, k);
    VLP_TRY(crop(r, box ? box : entry));
    for (size_t i = 0; i < vlp_json_len(ops); i++) {
        const vlp_json *op = vlp_json_at(ops, i);
        VLP_TRY(apply(r, vlp_json_as_string(vlp_json_at(op, 0)), vlp_json_at(op, 1)));
    }
    VLP_TRY(compare_png(r, vlp_json_string(entry, "expected", ""), 0));
    return expect_normalised(r, &t, name);
}

static vlp_status run_augmentation(run *r) {
    static const char *const kinds[][2] = {{"crops", "crop"}, {"full", "full"}};
    VLP_TRY(decode(r, "files/src.png", &as_reference, &r->source));
    for (size_t i = 0; i < VLP_COUNT(kinds); i++) {
        const vlp_json *list = vlp_json_key(r->c->json, kinds[i][0]);
        for (size_t k = 0; k < vlp_json_len(list); k++)
            VLP_TRY(run_crop(r, kinds[i][1], k, vlp_json_at(list, k)));
    }
    const vlp_json *ops = vlp_json_key(r->c->json, "ops");
    for (size_t i = 0; i < vlp_json_len(ops); i++) {
        const vlp_json *op = vlp_json_at(ops, i);
        VLP_TRY(decode(r, vlp_json_string(op, "input", ""), &as_reference, &r->actual));
        VLP_TRY(apply(r, vlp_json_string(op, "op", ""), vlp_json_key(op, "args")));
        VLP_TRY(compare_png(r, vlp_json_string(op, "expected", ""), 0));
    }
    return VLP_OK;
}

vlp_status parity_run_image(const parity_case *c, parity_report *report) {
    run r = {.c = c, .report = report, .size = (int)vlp_json_int(c->config, "n", 224)};
    vlp_status status = strcmp(c->system, "image augmentation") == 0 ? run_augmentation(&r)
                        : strcmp(c->system, "image robustness") == 0 ? each_file(&r, run_bad_file)
                                                                     : each_file(&r, run_file);
    vlp_image_free(&r.source);
    vlp_image_free(&r.actual);
    vlp_image_free(&r.expected);
    vlp_transform_scratch_free(&r.scratch);
    return status;
}
