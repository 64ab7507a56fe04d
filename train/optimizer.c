#include "train/optimizer.h"

#include "core/memory.h"
#include "core/threads.h"
#include "train/optimizer_internal.h"

#include <math.h>

enum { SEGMENT = 16384, GRAIN = 4 }; /* elements; segments that are worth a thread */

typedef enum { TRUST_NONE, TRUST_ALL, TRUST_DECAYED } trust_rule;

typedef struct {
    bool correct_bias;
    bool eps_first; /* eps is added to sqrt(v) before the bias correction */
    bool decay_last;
    bool common_steps; /* t counts every step, also those without a gradient */
    trust_rule trust;
    double trust_cap; /* |p| counts at most this much; 0 = no cap */
    double clip_eps;  /* scale = max_grad_norm / (norm + clip_eps) */
} optimizer_row;

static const optimizer_row rows[] = {
    {.correct_bias = true, .clip_eps = 1e-6},
    {.correct_bias = true, .eps_first = true, .decay_last = true, .clip_eps = 1e-6},
    {.decay_last = true, .clip_eps = 1e-6},
    {.trust = TRUST_ALL, .trust_cap = 10, .clip_eps = 1e-6},
    {.correct_bias = true, .common_steps = true, .trust = TRUST_DECAYED},
};

const char *const vlp_optimizer_kinds[] = {"adamw", "adamw-hf", "adamw-hf-nobias",
                                           "lamb",  "lamb-nv",  NULL};

_Static_assert(VLP_COUNT(rows) + 1 == VLP_COUNT(vlp_optimizer_kinds), "a name for every row");

vlp_optimizer_options vlp_optimizer_defaults(void) {
    return (vlp_optimizer_options){
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .max_grad_norm = 1};
}

static vlp_status check_options(const vlp_optimizer_options *o) {
    VLP_ASSERT(o->kind >= 0 && o->kind < (int)VLP_COUNT(rows), "optimizer kind %d", o->kind);
    if (!(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        return VLP_FAIL(VLP_ERR_USAGE, "optimizer betas %g, %g: both must lie in [0, 1)", o->beta1,
                        o->beta2);
    if (!(o->eps > 0)) return VLP_FAIL(VLP_ERR_USAGE, "optimizer eps %g must be positive", o->eps);
    if (!(o->weight_decay >= 0 && o->max_grad_norm >= 0))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "weight_decay %g and max_grad_norm %g must not be negative; 0 turns them "
                        "off",
                        o->weight_decay, o->max_grad_norm);
    return VLP_OK;
}

static int64_t count_segments(const vlp_params *params) {
    int64_t count = 0;
    for (int i = 0; i < params->count; i++)
        count += (vlp_numel(&params->items[i]->tensor) + SEGMENT - 1) / SEGMENT;
    return count;
}

static void cut_segments(vlp_optimizer *o) {
    vlp_segment *next = o->segments;
    for (int i = 0; i < o->params->count; i++) {
        const vlp_param *p = o->params->items[i];
        int64_t left = vlp_numel(&p->tensor);
        for (int64_t at = p->offset; left > 0; at += SEGMENT, left -= SEGMENT)
            *next++ = (vlp_segment){i, at, left < SEGMENT ? left : SEGMENT};
    }
}

vlp_status vlp_optimizer_new(vlp_optimizer **out, vlp_params *params,
                             const vlp_optimizer_options *options) {
    *out = NULL;
    VLP_TRY(check_options(options));
    VLP_ASSERT(params->values && params->grads, "parameters without gradients");
    vlp_optimizer *o = vlp_alloc_zero(1, sizeof *o);
    if (!o) return VLP_ERR_MEMORY;
    size_t total = (size_t)params->total, count = (size_t)params->count;
    o->options = *options;
    o->params = params;
    o->segment_count = count_segments(params);
    o->exp_avg = vlp_alloc_zero(total, sizeof *o->exp_avg);
    o->exp_avg_sq = vlp_alloc_zero(total, sizeof *o->exp_avg_sq);
    o->steps = vlp_alloc_zero(count, sizeof *o->steps);
    o->updates = vlp_alloc_zero(count, sizeof *o->updates);
    o->segments = vlp_alloc_zero((size_t)o->segment_count, sizeof *o->segments);
    o->sums = vlp_alloc_zero((size_t)o->segment_count, sizeof *o->sums);
    if (!o->exp_avg || !o->exp_avg_sq || !o->steps || !o->updates || !o->segments || !o->sums) {
        vlp_optimizer_free(o);
        return VLP_ERR_MEMORY;
    }
    cut_segments(o);
    *out = o;
    return VLP_OK;
}

void vlp_optimizer_free(vlp_optimizer *o) {
    if (!o) return;
    vlp_free(o->exp_avg);
    vlp_free(o->exp_avg_sq);
    vlp_free(o->steps);
    vlp_free(o->updates);
    vlp_free(o->segments);
    vlp_free(o->sums);
    vlp_free(o);
}

int64_t vlp_optimizer_bytes(const vlp_params *params) {
    return 2 * params->total * (int64_t)sizeof(vlp_real) +
           count_segments(params) * (int64_t)(sizeof(vlp_segment) + sizeof(double[2])) +
           params->count * (int64_t)(sizeof(vlp_update) + sizeof(int64_t));
}

/* AdamW reads p, g, m, v and writes p, m, v; LAMB reads them twice and writes p once more. */
double vlp_optimizer_traffic(const vlp_optimizer *o) {
    double blocks = rows[o->options.kind].trust == TRUST_NONE ? 7 : 10;
    return (blocks + 1) * (double)o->params->total * (double)sizeof(vlp_real);
}

static void squares_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    vlp_optimizer *o = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t s = begin; s < end; s++) {
        const vlp_segment *seg = &o->segments[s];
        bool active = o->updates[seg->param].active;
        o->sums[s][0] = active ? k->sum_squares(seg->n, o->params->grads + seg->offset) : 0;
    }
}

static double gradient_norm(vlp_optimizer *o) {
    vlp_parallel_for(o->segment_count, GRAIN, squares_body, o);
    double total = 0;
    for (int64_t s = 0; s < o->segment_count; s++) total += o->sums[s][0];
    return sqrt(total);
}

static vlp_status not_finite(const vlp_optimizer *o) {
    for (int64_t s = 0; s < o->segment_count; s++)
        if (!isfinite(o->sums[s][0]))
            return VLP_FAIL(VLP_ERR_NUMERIC, "the gradient of %s is not finite",
                            o->params->items[o->segments[s].param]->name);
    return VLP_FAIL(VLP_ERR_NUMERIC, "the gradient is not finite");
}

/* Advances the parameter's t and works out its coefficients. */
static void plan_update(vlp_optimizer *o, int i, double lr, double grad_scale) {
    const vlp_optimizer_options *options = &o->options;
    const optimizer_row *row = &rows[options->kind];
    vlp_update *u = &o->updates[i];
    if (u->active || row->common_steps) o->steps[i]++;
    if (!u->active) return;
    double t = (double)o->steps[i];
    double bias1 = row->correct_bias ? -expm1(t * log(options->beta1)) : 1;
    double bias2 = row->correct_bias ? -expm1(t * log(options->beta2)) : 1;
    bool decays = o->params->items[i]->decay == VLP_DECAY && options->weight_decay != 0;
    u->step = (vlp_adamw){.lr = lr,
                          .beta1 = options->beta1,
                          .beta2 = options->beta2,
                          .eps = row->eps_first ? options->eps / sqrt(bias2) : options->eps,
                          .weight_decay = decays ? options->weight_decay : 0,
                          .bias1 = bias1,
                          .bias2 = bias2,
                          .grad_scale = grad_scale,
                          .decay_last = row->decay_last};
    u->adapt = row->trust == TRUST_ALL ||
               (row->trust == TRUST_DECAYED && (decays || options->always_adapt));
}

static void adam_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    vlp_optimizer *o = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t s = begin; s < end; s++) {
        const vlp_segment *seg = &o->segments[s];
        const vlp_update *u = &o->updates[seg->param];
        if (!u->active) continue;
        k->adamw(seg->n, &u->step, o->params->values + seg->offset, o->params->grads + seg->offset,
                 o->exp_avg + seg->offset, o->exp_avg_sq + seg->offset);
    }
}

/* LAMB's direction u = (m / bias1) / (sqrt(v / bias2) + eps) + wd p. */
typedef struct {
    vlp_real first, root, eps, decay;
} direction;

static direction direction_of(const vlp_adamw *step) {
    return (direction){(vlp_real)(1 / step->bias1), (vlp_real)(1 / sqrt(step->bias2)),
                       (vlp_real)step->eps, (vlp_real)step->weight_decay};
}

static inline vlp_real toward(const direction *d, vlp_real m, vlp_real v, vlp_real p) {
    return m * d->first / ((vlp_real)sqrt(v) * d->root + d->eps) + d->decay * p;
}

/* First half: the moments, and the squares of p and u for the norms. */
static void lamb_moments_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    vlp_optimizer *o = ctx;
    for (int64_t s = begin; s < end; s++) {
        const vlp_segment *seg = &o->segments[s];
        const vlp_update *update = &o->updates[seg->param];
        if (!update->active) continue;
        const vlp_adamw *step = &update->step;
        const direction d = direction_of(step);
        const vlp_real b1 = (vlp_real)step->beta1, c1 = (vlp_real)(1 - step->beta1);
        const vlp_real b2 = (vlp_real)step->beta2, c2 = (vlp_real)(1 - step->beta2);
        const vlp_real scale = (vlp_real)step->grad_scale;
        const vlp_real *p = o->params->values + seg->offset, *g = o->params->grads + seg->offset;
        vlp_real *m = o->exp_avg + seg->offset, *v = o->exp_avg_sq + seg->offset;
        double parameter = 0, movement = 0;
        for (int64_t i = 0; i < seg->n; i++) {
            vlp_real gradient = g[i] * scale;
            m[i] = b1 * m[i] + c1 * gradient;
            v[i] = b2 * v[i] + c2 * gradient * gradient;
            double u = (double)toward(&d, m[i], v[i], p[i]);
            parameter += (double)p[i] * (double)p[i];
            movement += u * u;
        }
        o->sums[s][0] = parameter;
        o->sums[s][1] = movement;
    }
}

static double trust_ratio(const vlp_optimizer *o, double parameter, double movement) {
    const optimizer_row *row = &rows[o->options.kind];
    double norm = sqrt(parameter);
    if (row->trust_cap > 0 && norm > row->trust_cap) norm = row->trust_cap;
    if (norm == 0 || movement == 0) return 1;
    double ratio = norm / sqrt(movement);
    return o->options.trust_clip && ratio > 1 ? 1 : ratio;
}

static void find_rates(vlp_optimizer *o) {
    for (int64_t s = 0; s < o->segment_count;) {
        int param = o->segments[s].param;
        double parameter = 0, movement = 0;
        for (; s < o->segment_count && o->segments[s].param == param; s++) {
            parameter += o->sums[s][0];
            movement += o->sums[s][1];
        }
        vlp_update *u = &o->updates[param];
        u->rate = u->step.lr * (u->adapt ? trust_ratio(o, parameter, movement) : 1);
    }
}

/* Second half: p = p - rate u. */
static void lamb_apply_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    vlp_optimizer *o = ctx;
    for (int64_t s = begin; s < end; s++) {
        const vlp_segment *seg = &o->segments[s];
        const vlp_update *update = &o->updates[seg->param];
        if (!update->active) continue;
        const direction d = direction_of(&update->step);
        const vlp_real rate = (vlp_real)update->rate;
        const vlp_real *m = o->exp_avg + seg->offset, *v = o->exp_avg_sq + seg->offset;
        vlp_real *p = o->params->values + seg->offset;
        for (int64_t i = 0; i < seg->n; i++) p[i] -= rate * toward(&d, m[i], v[i], p[i]);
    }
}

vlp_status vlp_optimizer_step(vlp_optimizer *o, double lr, double grad_scale, const bool *has_grad,
                              double *grad_norm) {
    const optimizer_row *row = &rows[o->options.kind];
    for (int i = 0; i < o->params->count; i++)
        o->updates[i].active = has_grad ? has_grad[i] : o->params->items[i]->tensor.needs_grad;
    double norm = gradient_norm(o) * fabs(grad_scale), most = o->options.max_grad_norm;
    if (grad_norm) *grad_norm = norm;
    if (!isfinite(norm)) return not_finite(o);
    double clip = most > 0 ? most / (norm + row->clip_eps) : 1;
    for (int i = 0; i < o->params->count; i++)
        plan_update(o, i, lr, clip < 1 ? grad_scale * clip : grad_scale);
    if (row->trust == TRUST_NONE) {
        vlp_parallel_for(o->segment_count, GRAIN, adam_body, o);
        return VLP_OK;
    }
    vlp_parallel_for(o->segment_count, GRAIN, lamb_moments_body, o);
    find_rates(o);
    vlp_parallel_for(o->segment_count, GRAIN, lamb_apply_body, o);
    return VLP_OK;
}

const vlp_real *vlp_optimizer_exp_avg(const vlp_optimizer *o) {
    return o->exp_avg;
}

const vlp_real *vlp_optimizer_exp_avg_sq(const vlp_optimizer *o) {
    return o->exp_avg_sq;
}

int64_t vlp_optimizer_steps(const vlp_optimizer *o, int i) {
    return o->steps[i];
}
