#include "vision/resize.h"

#include "core/memory.h"
#include "vision/resample.h"

#include <math.h>
#include <string.h>

static double box_filter(double x) {
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double bilinear_filter(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double sinc(double x) {
    return x == 0 ? 1 : sin(x * M_PI) / (x * M_PI);
}

static double hamming_filter(double x) {
    x = fabs(x);
    return x < 1 ? sinc(x) * (0.54 + 0.46 * cos(x * M_PI)) : 0;
}

static double bicubic_filter(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static double lanczos_filter(double x) {
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct {
    double (*weight)(double x);
    double support;
} filters[] = {
    [VLP_RESIZE_BOX] = {box_filter, 0.5},       [VLP_RESIZE_BILINEAR] = {bilinear_filter, 1},
    [VLP_RESIZE_HAMMING] = {hamming_filter, 1}, [VLP_RESIZE_BICUBIC] = {bicubic_filter, 2},
    [VLP_RESIZE_LANCZOS] = {lanczos_filter, 3},
};

/* One axis: source pixels [start, end) of `source` become `result` pixels, of which `kept` from
 * `skipped` on are wanted. */
typedef struct {
    int source, result, skipped, kept;
    double start, end;
} axis_range;

static bool is_identity(const axis_range *r) {
    return r->start == 0 && r->end == r->source && r->source == r->result;
}

static double kernel_scale(const axis_range *r) {
    double scale = (r->end - r->start) / r->result;
    return scale < 1 ? 1 : scale; /* enlarging keeps the kernel one pixel wide */
}

static int axis_taps(const axis_range *r, vlp_resize_filter filter) {
    int taps = (int)ceil(filters[filter].support * kernel_scale(r)) * 2 + 1;
    return taps < r->source ? taps : r->source;
}

/* Memory is handed out from the front of the scratch; `at` NULL only counts. */
typedef struct {
    uint8_t *at;
    size_t used;
} layout;

static void *take(layout *l, size_t bytes) {
    void *p = l->at ? l->at + l->used : NULL;
    l->used += (bytes + 63) / 64 * 64;
    return p;
}

static vlp_resample_axis place_axis(layout *l, const axis_range *r, vlp_resize_filter filter,
                                    double **weights) {
    vlp_resample_axis axis = {.count_max = axis_taps(r, filter)};
    axis.stride = (axis.count_max + 3) / 4 * 4;
    size_t kept = (size_t)r->kept, all = kept * (size_t)axis.stride;
    axis.first = take(l, kept * sizeof *axis.first);
    axis.count = take(l, kept * sizeof *axis.count);
    axis.low = take(l, all * sizeof *axis.low);
    axis.high = take(l, all * sizeof *axis.high);
    *weights = take(l, (size_t)axis.count_max * sizeof **weights);
    return axis;
}

static void store_weight(double weight, int16_t *low, int16_t *high) {
    double scaled = weight * (1 << VLP_RESAMPLE_BITS);
    int fixed = (int)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    int upper = (fixed + (1 << (VLP_RESAMPLE_SPLIT - 1))) >> VLP_RESAMPLE_SPLIT;
    *high = (int16_t)upper;
    *low = (int16_t)(fixed - upper * (1 << VLP_RESAMPLE_SPLIT));
}

/* The order of the double operations is PIL's: a different one moves the last bit of a weight. */
static void fill_axis(vlp_resample_axis *axis, const axis_range *r, vlp_resize_filter filter,
                      double *weights) {
    double scale = (r->end - r->start) / r->result, widened = kernel_scale(r);
    double support = filters[filter].support * widened, shrink = 1.0 / widened;
    for (int i = 0; i < r->kept; i++) {
        double centre = r->start + (r->skipped + i + 0.5) * scale;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        if (first < 0) first = 0;
        if (end > r->source) end = r->source;
        VLP_ASSERT(end - first <= axis->count_max, "%d taps, room for %d", end - first,
                   axis->count_max);
        double sum = 0;
        for (int t = 0; t < end - first; t++) {
            weights[t] = filters[filter].weight((t + first - centre + 0.5) * shrink);
            sum += weights[t];
        }
        int16_t *low = axis->low + (size_t)i * (size_t)axis->stride;
        int16_t *high = axis->high + (size_t)i * (size_t)axis->stride;
        for (int t = 0; t < end - first; t++)
            store_weight(sum != 0 ? weights[t] / sum : weights[t], low + t, high + t);
        for (int t = end - first; t < axis->stride; t++) low[t] = high[t] = 0;
        axis->first[i] = first;
        axis->count[i] = end - first;
    }
}

vlp_status vlp_resize_scratch_reserve(vlp_resize_scratch *scratch, size_t bytes) {
    if (bytes <= scratch->capacity) return VLP_OK;
    vlp_resize_scratch_free(scratch);
    scratch->memory = vlp_alloc(bytes);
    if (!scratch->memory) return VLP_ERR_MEMORY;
    scratch->capacity = bytes;
    return VLP_OK;
}

void vlp_resize_scratch_free(vlp_resize_scratch *scratch) {
    vlp_free(scratch->memory);
    *scratch = (vlp_resize_scratch){0};
}

/* Source rows that the kept rows of the result need: [*first, *end). */
static void needed_rows(const axis_range *y, vlp_resize_filter filter, int *first, int *end) {
    double scale = (y->end - y->start) / y->result;
    double support = is_identity(y) ? 0.5 : filters[filter].support * kernel_scale(y);
    double top = y->start + (y->skipped + 0.5) * scale;
    double bottom = y->start + (y->skipped + y->kept - 1 + 0.5) * scale;
    *first = (int)(top - support + 0.5);
    *end = (int)(bottom + support + 0.5);
    if (*first < 0) *first = 0;
    if (*end > y->source) *end = y->source;
}

/* Everything that one call works with. `between` holds the rows between the two passes. */
typedef struct {
    const vlp_resample_kernels *kernels;
    axis_range x, y;
    vlp_resample_axis columns, rows;
    double *column_weights, *row_weights;
    uint8_t *between;
    int first_row, end_row;
} resize_plan;

static void place_plan(resize_plan *p, layout *l, vlp_resize_filter filter) {
    if (!is_identity(&p->x)) {
        p->columns = place_axis(l, &p->x, filter, &p->column_weights);
        if (!is_identity(&p->y))
            p->between = take(l, (size_t)(p->end_row - p->first_row) * (size_t)p->x.kept * 3);
    }
    if (!is_identity(&p->y)) p->rows = place_axis(l, &p->y, filter, &p->row_weights);
}

/* Along x: rows [first_row, end_row) of the source, `kept` pixels each. */
static void resample_columns(const resize_plan *p, uint8_t *to, const vlp_image_view *source) {
    const vlp_resample_source needed = {source->pixels + (size_t)p->first_row * source->stride,
                                        source->width, p->end_row - p->first_row, source->stride};
    p->kernels->columns(to, p->x.kept, &needed, &p->columns);
}

/* Along y. `rows` is where source row `first` begins. */
static void resample_rows(const resize_plan *p, uint8_t *to, const uint8_t *rows, size_t stride,
                          int first) {
    const vlp_resample_axis *a = &p->rows;
    size_t bytes = (size_t)p->x.kept * 3;
    for (int i = 0; i < p->y.kept; i++, to += bytes) {
        size_t weights = (size_t)i * (size_t)a->stride;
        p->kernels->rows(to, bytes, rows + (size_t)(a->first[i] - first) * stride, stride,
                         a->count[i], a->low + weights, a->high + weights);
    }
}

static void copy_rows(const resize_plan *p, uint8_t *to, const vlp_image_view *source) {
    size_t bytes = (size_t)p->x.kept * 3;
    for (int i = 0; i < p->y.kept; i++, to += bytes)
        memcpy(to,
               source->pixels + (size_t)(p->y.skipped + i) * source->stride +
                   (size_t)p->x.skipped * 3,
               bytes);
}

static vlp_status resize_exact(vlp_image *out, const vlp_image_view *source, resize_plan *p,
                               vlp_resize_filter filter, vlp_resize_scratch *scratch) {
    needed_rows(&p->y, filter, &p->first_row, &p->end_row);
    layout count = {0};
    place_plan(p, &count, filter);
    VLP_TRY(vlp_resize_scratch_reserve(scratch, count.used));
    layout placed = {.at = scratch->memory};
    place_plan(p, &placed, filter);

    bool resample_x = !is_identity(&p->x), resample_y = !is_identity(&p->y);
    if (resample_x) fill_axis(&p->columns, &p->x, filter, p->column_weights);
    if (resample_y) fill_axis(&p->rows, &p->y, filter, p->row_weights);
    if (!resample_x && !resample_y) {
        copy_rows(p, out->pixels, source);
    } else if (!resample_y) {
        resample_columns(p, out->pixels, source);
    } else if (!resample_x) {
        resample_rows(p, out->pixels, source->pixels + (size_t)p->x.skipped * 3, source->stride, 0);
    } else {
        resample_columns(p, p->between, source);
        resample_rows(p, out->pixels, p->between, (size_t)p->x.kept * 3, p->first_row);
    }
    return VLP_OK;
}

/* The part of the source that the window shows. */
static vlp_box window_in_source(const resize_plan *p) {
    double sx = (p->x.end - p->x.start) / p->x.result, sy = (p->y.end - p->y.start) / p->y.result;
    return (vlp_box){p->x.start + p->x.skipped * sx, p->y.start + p->y.skipped * sy,
                     p->x.start + (p->x.skipped + p->x.kept) * sx,
                     p->y.start + (p->y.skipped + p->y.kept) * sy};
}

static void check_range(const axis_range *r) {
    VLP_ASSERT(r->source > 0 && r->result > 0, "resize of %d to %d pixels", r->source, r->result);
    VLP_ASSERT(r->kept > 0 && r->skipped >= 0 && r->skipped <= r->result - r->kept,
               "window %d + %d of %d pixels", r->skipped, r->kept, r->result);
    VLP_ASSERT(r->start >= 0 && r->start < r->end && r->end <= r->source, "box %g..%g of %d pixels",
               r->start, r->end, r->source);
}

vlp_status vlp_resize(vlp_image *out, const vlp_image_view *source,
                      const vlp_resize_options *options, vlp_resize_scratch *scratch) {
    const vlp_box whole = {0, 0, source->width, source->height};
    const vlp_window all = {0, 0, options->width, options->height};
    const vlp_box *box = options->box ? options->box : &whole;
    const vlp_window *window = options->window ? options->window : &all;
    resize_plan plan = {
        .kernels = vlp_resample_kernels_get(),
        .x = {source->width, options->width, window->left, window->width, box->left, box->right},
        .y = {source->height, options->height, window->top, window->height, box->top, box->bottom},
    };
    check_range(&plan.x);
    check_range(&plan.y);
    VLP_TRY(vlp_image_resize_memory(out, window->width, window->height));
    if (options->filter != VLP_RESIZE_STB)
        return resize_exact(out, source, &plan, options->filter, scratch);
    vlp_box region = window_in_source(&plan);
    return vlp_resize_stb(out, source, &region, scratch);
}
