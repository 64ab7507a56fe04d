#include "parity/report.h"

#include "core/memory.h"
#include "core/op_flow.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

struct parity_report {
    const parity_case *c;
    FILE *stream;
    bool *compared; /* [expected tensors] */
    double largest_grad;
    int passed, failed, missing;
    double worst;    /* largest error / limit so far */
    double relative; /* largest |x - e| / |e| so far */
};

typedef struct {
    double scale, floor; /* limit = scale x max(floor, max|e|) + extra */
    double extra;
} limit_rule;

/* Where computed values come from: a block of reals or of integers. NULL, NULL reads as zeros. */
typedef struct {
    const vlp_real *reals;
    const int32_t *integers;
} source;

static double source_at(source from, int64_t i) {
    return from.reals ? (double)from.reals[i] : from.integers ? (double)from.integers[i] : 0;
}

static bool is_grad(const char *name) {
    return strncmp(name, "grad", 4) == 0 && strncmp(name, "grad_norm", 9) != 0;
}

static double largest_gradient(const vlp_safetensors *expected) {
    double largest = 0;
    for (size_t k = 0; k < vlp_safetensors_count(expected); k++) {
        const vlp_safetensor *t = vlp_safetensors_at(expected, k);
        if (strncmp(t->name, "grad/", 5) != 0) continue;
        for (int64_t i = 0; i < t->numel; i++)
            largest = fmax(largest, fabs(vlp_safetensor_value(t, i)));
    }
    return largest;
}

vlp_status parity_report_new(parity_report **out, const parity_case *c, FILE *stream) {
    parity_report *r = *out = vlp_alloc_zero(1, sizeof *r);
    if (!r) return VLP_ERR_MEMORY;
    r->c = c;
    r->stream = stream;
    if (!c->expected) return VLP_OK;
    r->compared = vlp_alloc_zero(vlp_safetensors_count(c->expected), sizeof *r->compared);
    r->largest_grad = largest_gradient(c->expected);
    return r->compared ? VLP_OK : VLP_ERR_MEMORY;
}

void parity_report_free(parity_report *report) {
    if (!report) return;
    vlp_free(report->compared);
    vlp_free(report);
}

static bool *compared(const parity_report *r, const vlp_safetensor *t) {
    return &r->compared[t - vlp_safetensors_at(r->c->expected, 0)];
}

static const vlp_safetensor *expected(const parity_report *r, const char *name) {
    return r->c->expected ? vlp_safetensors_find(r->c->expected, name) : NULL;
}

bool parity_wants(const parity_report *report, const char *name) {
    const vlp_safetensor *t = expected(report, name);
    return t && !*compared(report, t);
}

static bool is_pixel_values(const char *name) {
    static const char end[] = "pixel_values";
    size_t len = strlen(name);
    return len >= sizeof end - 1 && strcmp(name + len - (sizeof end - 1), end) == 0;
}

static bool any_in(const char *name, const char *const *words, size_t count) {
    bool found = false;
    for (size_t i = 0; i < count; i++) found |= strstr(name, words[i]) != NULL;
    return found;
}

/* What a pass in bfloat16 is not asked for. */
static bool only_in_full(const vlp_safetensor *t) {
    static const char *const words[] = {"grad_norm", "after/", "metric/", "retrieval/",
                                        "score_matrix"};
    return is_grad(t->name) || !vlp_st_is_float(t->dtype) ||
           any_in(t->name, words, VLP_COUNT(words));
}

static limit_rule rule_for(const parity_report *r, const vlp_safetensor *t) {
    const vlp_json *tolerance = vlp_json_key(r->c->json, "tolerance");
    const vlp_json *forward = vlp_json_key(tolerance, "forward");
    if (vlp_st_is_float(t->dtype) && !forward && is_pixel_values(t->name))
        return (limit_rule){.extra = 1e-5};
    if (!vlp_st_is_float(t->dtype) || !forward) return (limit_rule){0};
    bool grad = is_grad(t->name);
    if (vlp_json_is_number(forward)) {
        double tol = vlp_json_as_double(forward);
        return grad ? (limit_rule){vlp_json_double(tolerance, "grad", tol), 0.01 * r->largest_grad,
                                   0}
                    : (limit_rule){tol, 1, 0};
    }
    const vlp_json *row = vlp_json_key(tolerance, grad           ? "grad"
                                                  : t->ndim == 0 ? "scalar"
                                                                 : "forward");
    return (limit_rule){vlp_json_double(row, "rel", 0), 0, vlp_json_double(row, "abs", 0)};
}

static void shape_text(int ndim, const int64_t *shape, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < ndim && at < size; d++)
        at += (size_t)snprintf(out + at, size - at, d ? ",%lld" : "%lld", (long long)shape[d]);
    if (at < size) snprintf(out + at, size - at, "]");
}

static void line(parity_report *r, const char *name, const char *shape, bool pass,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void line(parity_report *r, const char *name, const char *shape, bool pass,
                 const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(r->stream, "%-60s %-16s ", name, shape);
    vfprintf(r->stream, format, args);
    fprintf(r->stream, "  %s\n", pass ? "PASS" : "FAIL");
    va_end(args);
    *(pass ? &r->passed : &r->failed) += 1;
}

/* The mask [B,S] whose axes begin t's shape, or NULL: every row counts. */
static const vlp_safetensor *mask_for(const parity_report *r, const vlp_safetensor *t,
                                      const char *name) {
    const vlp_safetensor *mask =
        name && r->c->inputs ? vlp_safetensors_find(r->c->inputs, name) : NULL;
    if (!mask || t->ndim < 2 || mask->ndim != 2) return NULL;
    return mask->shape[0] == t->shape[0] && mask->shape[1] == t->shape[1] ? mask : NULL;
}

typedef struct {
    double error, largest; /* max|x - e|, max|e| */
    double squares, of;    /* |x - e|^2, |e|^2 */
    int64_t rows, differ;  /* rows that were compared, elements that are not equal */
    bool finite;
} differences;

static differences differences_of(const vlp_safetensor *t, source from,
                                  const vlp_safetensor *mask) {
    differences d = {.finite = true};
    int64_t row = mask && mask->numel ? t->numel / mask->numel : 1;
    for (int64_t i = 0; i < t->numel; i++) {
        if (mask && vlp_safetensor_value(mask, i / row) != 1) continue;
        double e = vlp_safetensor_value(t, i), x = source_at(from, i);
        d.rows += i % row == 0;
        if (isfinite(e)) d.largest = fmax(d.largest, fabs(e));
        if (isfinite(e)) d.of += e * e;
        if (x == e) continue; /* equal infinities too */
        d.differ++;
        d.finite = d.finite && isfinite(x) && isfinite(e);
        d.error = fmax(d.error, fabs(x - e));
        d.squares += (x - e) * (x - e);
    }
    return d;
}

static void compare_bf16(parity_report *r, const vlp_safetensor *t, const differences *d,
                         const char *shape) {
    double relative = d->squares > 0 ? sqrt(d->squares / d->of) : 0;
    r->relative = fmax(r->relative, relative);
    line(r, t->name, shape, d->finite && relative <= 1e-2, "difference %.2e  limit 1.00e-02",
         relative);
}

static void compare(parity_report *r, const vlp_safetensor *t, source from,
                    const vlp_safetensor *mask, const char *shape) {
    differences d = differences_of(t, from, mask);
    if (r->c->precision == VLP_BF16 && t->numel > 0 && d.rows > 0) {
        compare_bf16(r, t, &d, shape);
        return;
    }
    limit_rule rule = rule_for(r, t);
    double limit = rule.scale * fmax(rule.floor, d.largest) + rule.extra;
    bool pass = d.differ == 0 || (d.finite && d.error <= limit);
    if (limit > 0) r->worst = fmax(r->worst, d.error / limit);
    if (t->numel > 0 && d.rows == 0)
        line(r, t->name, shape, false, "no attended row to compare");
    else if (!vlp_st_is_float(t->dtype))
        line(r, t->name, shape, pass, "%lld of %lld differ", (long long)d.differ,
             (long long)t->numel);
    else if (!d.finite)
        line(r, t->name, shape, pass, "not finite");
    else
        line(r, t->name, shape, pass, "error %.2e  limit %.2e%s", d.error, limit,
             mask ? "  (attended rows)" : "");
}

static void expect(parity_report *r, const char *name, int ndim, const int64_t *shape, source from,
                   const char *mask) {
    const vlp_safetensor *t = expected(r, name);
    if (!t) return;
    char ours[96], theirs[96];
    shape_text(ndim, shape, ours, sizeof ours);
    shape_text(t->ndim, t->shape, theirs, sizeof theirs);
    *compared(r, t) = true;
    if (r->c->precision == VLP_BF16 && only_in_full(t)) return;
    if (strcmp(ours, theirs) != 0)
        line(r, name, ours, false, "the expected shape is %s", theirs);
    else
        compare(r, t, from, mask_for(r, t, mask), ours);
}

/* Gradients belong to parameters, never to tokens, whatever their shape. */
static const char *usual_mask(const parity_report *r, const char *name) {
    bool by_rows = vlp_json_key(r->c->json, "compare_rows") && strncmp(name, "grad", 4) != 0 &&
                   strncmp(name, "after/", 6) != 0;
    return by_rows ? "attention_mask" : NULL;
}

void parity_expect(parity_report *r, const char *name, int ndim, const int64_t *shape,
                   const vlp_real *values) {
    expect(r, name, ndim, shape, (source){.reals = values}, usual_mask(r, name));
}

void parity_expect_rows(parity_report *r, const char *name, int ndim, const int64_t *shape,
                        const vlp_real *values, const char *mask) {
    expect(r, name, ndim, shape, (source){.reals = values}, mask);
}

void parity_expect_i32(parity_report *r, const char *name, int ndim, const int64_t *shape,
                       const int32_t *values) {
    expect(r, name, ndim, shape, (source){.integers = values}, usual_mask(r, name));
}

void parity_expect_scalar(parity_report *r, const char *name, double value) {
    vlp_real real = (vlp_real)value;
    expect(r, name, 0, NULL, (source){.reals = &real}, NULL);
}

void parity_expect_tensor(parity_report *r, const char *name, const vlp_tensor *t, bool grad) {
    source from = {0};
    vlp_real *wide = NULL;
    if (grad) {
        from.reals = t->grad;
    } else if (t->dtype == VLP_I32) {
        from.integers = vlp_i32_data(t);
    } else if (t->dtype == VLP_BF16) {
        from.reals = wide = vlp_alloc((size_t)vlp_numel(t) * sizeof *wide);
        if (wide) vlp_widen(vlp_numel(t), vlp_bf16_data(t), wide);
    } else {
        from.reals = vlp_real_data(t);
    }
    expect(r, name, t->ndim, t->shape, from, usual_mask(r, name));
    vlp_free(wide);
}

void parity_check(parity_report *r, const char *name, bool pass, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    line(r, name, "", pass, "%s", text);
}

void parity_pass_over(parity_report *r, const char *name, const char *why) {
    const vlp_safetensor *t = expected(r, name);
    if (!t) return;
    *compared(r, t) = true;
    fprintf(r->stream, "%-60s %-16s not computed: %s\n", name, "", why);
}

static void list_missing(parity_report *r) {
    size_t count = r->c->expected ? vlp_safetensors_count(r->c->expected) : 0;
    for (size_t i = 0; i < count; i++) {
        const vlp_safetensor *t = vlp_safetensors_at(r->c->expected, i);
        if (r->compared[i] || (r->c->precision == VLP_BF16 && only_in_full(t))) continue;
        char shape[96];
        shape_text(t->ndim, t->shape, shape, sizeof shape);
        line(r, t->name, shape, false, "not computed");
        r->missing++;
    }
}

bool parity_verdict(parity_report *r, const char *failure) {
    list_missing(r);
    if (failure) fprintf(r->stream, "%s: %s\n", r->c->folder, failure);
    bool pass = !failure && r->failed == 0 && r->passed > 0;
    if (r->c->precision == VLP_BF16) {
        fprintf(r->stream, "%s: %s, bf16, %d of %d within the limit; largest difference %.2e\n",
                r->c->folder, pass ? "PASS" : "FAIL", r->passed, r->passed + r->failed,
                r->relative);
        return pass;
    }
    fprintf(r->stream,
            "%s: %s, %d of %d within the limit, %d not computed; largest error %.1f%% of "
            "its limit\n",
            r->c->folder, pass ? "PASS" : "FAIL", r->passed, r->passed + r->failed, r->missing,
            100 * r->worst);
    return pass;
}
