/* Elementwise ops. Each is one function from a stretch of elements to a stretch of results; the
 * same driver runs it forward (into y) and backward (into a gradient, overwritten or added to). */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 4096, CHUNK = 1024 };

typedef struct stretch stretch;
struct stretch {
    void (*f)(const stretch *s, int64_t at, int64_t n, vlp_real *to);
    const vlp_real *a, *b;
    vlp_real *to;
    bool fresh; /* to is overwritten, not added to */
    vlp_real factor;
    vlp_act act;
    double rate;
    vlp_rng rng;
    double *sums; /* a sum for each part */
};

static void run_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const stretch *s = ctx;
    vlp_real scratch[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK) {
        int64_t n = end - at < CHUNK ? end - at : CHUNK;
        s->f(s, at, n, s->fresh ? s->to + at : scratch);
        if (!s->fresh) vlp_kernels_get()->add(n, scratch, s->to + at);
    }
}

static void run_forward(vlp_node *node, stretch s) {
    s.to = vlp_real_data(node->out[0]);
    s.fresh = true;
    vlp_parallel_for(vlp_numel(node->out[0]), GRAIN, run_range, &s);
}

static void run_backward(vlp_tensor *input, stretch s) {
    s.to = vlp_grad_write(input, &s.fresh);
    if (s.to) vlp_parallel_for(vlp_numel(input), GRAIN, run_range, &s);
}

/* A node of one output shaped like its first input. */
static vlp_tensor *same_shape_op(vlp_tape *tape, const vlp_op *op, vlp_tensor *a, vlp_tensor *b,
                                 const void *attr, size_t attr_bytes) {
    int n = b ? 2 : 1;
    vlp_node *node = vlp_tape_node(tape, op, (vlp_tensor *[]){a, b}, n, n, attr, attr_bytes);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, a->ndim, a->shape);
    return vlp_tape_run(tape, node);
}

/* The op's option where it is one number. */
static double number(const vlp_node *node) {
    return *(const double *)node->attr;
}

/* y = a + b --------------------------------------------------------------------------------------
 */

static void sum_of(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    memcpy(to, s->a + at, (size_t)n * sizeof(vlp_real));
    vlp_kernels_get()->add(n, s->b + at, to);
}

static void add_forward(vlp_node *node) {
    run_forward(
        node,
        (stretch){.f = sum_of, .a = vlp_real_data(node->in[0]), .b = vlp_real_data(node->in[1])});
}

static void add_backward(vlp_node *node) {
    vlp_flow(node->in[0], node->out[0]->grad);
    vlp_flow(node->in[1], node->out[0]->grad);
}

const vlp_op vlp_op_add = {
    .name = "add", .forward = add_forward, .backward = add_backward, .gradient_only = true};

vlp_tensor *vlp_add(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(a && b && vlp_same_shape(a, b), "add: shapes differ");
    return same_shape_op(tape, &vlp_op_add, a, b, NULL, 0);
}

/* y = a b ----------------------------------------------------------------------------------------
 */

static void product_of(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    vlp_kernels_get()->mul(n, s->a + at, s->b + at, to);
}

static void mul_forward(vlp_node *node) {
    run_forward(node, (stretch){.f = product_of,
                                .a = vlp_real_data(node->in[0]),
                                .b = vlp_real_data(node->in[1])});
}

static void mul_backward(vlp_node *node) {
    for (int i = 0; i < 2; i++)
        run_backward(node->in[i], (stretch){.f = product_of,
                                            .a = node->out[0]->grad,
                                            .b = vlp_real_data(node->in[1 - i])});
}

const vlp_op vlp_op_mul = {
    .name = "mul", .forward = mul_forward, .backward = mul_backward, .spent = 1};

vlp_tensor *vlp_mul(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(a && b && vlp_same_shape(a, b), "mul: shapes differ");
    return same_shape_op(tape, &vlp_op_mul, a, b, NULL, 0);
}

/* y = factor x -----------------------------------------------------------------------------------
 */

static void multiple_of(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    memcpy(to, s->a + at, (size_t)n * sizeof(vlp_real));
    vlp_kernels_get()->scale(n, s->factor, to);
}

static void scale_forward(vlp_node *node) {
    run_forward(node, (stretch){.f = multiple_of,
                                .a = vlp_real_data(node->in[0]),
                                .factor = (vlp_real)number(node)});
}

static void scale_backward(vlp_node *node) {
    run_backward(
        node->in[0],
        (stretch){.f = multiple_of, .a = node->out[0]->grad, .factor = (vlp_real)number(node)});
}

const vlp_op vlp_op_scale = {
    .name = "scale", .forward = scale_forward, .backward = scale_backward, .gradient_only = true};

vlp_tensor *vlp_scale(vlp_tape *tape, vlp_tensor *x, double factor) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    return same_shape_op(tape, &vlp_op_scale, x, NULL, &factor, sizeof factor);
}

/* y = act(x);  dx = dy act'(x) -------------------------------------------------------------------
 */

static void act_of(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    vlp_kernels_get()->act(n, s->act, s->a + at, to);
}

static void act_slope_of(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    vlp_kernels_get()->act_backward(n, s->act, s->a + at, s->b + at, to);
}

static void activation_forward(vlp_node *node) {
    run_forward(node, (stretch){.f = act_of,
                                .a = vlp_real_data(node->in[0]),
                                .act = *(const vlp_act *)node->attr});
}

static void activation_backward(vlp_node *node) {
    run_backward(node->in[0], (stretch){.f = act_slope_of,
                                        .a = vlp_real_data(node->in[0]),
                                        .b = node->out[0]->grad,
                                        .act = *(const vlp_act *)node->attr});
}

const vlp_op vlp_op_activation = {.name = "activation",
                                  .forward = activation_forward,
                                  .backward = activation_backward,
                                  .spent = 1};

vlp_tensor *vlp_activation(vlp_tape *tape, vlp_tensor *x, vlp_act act) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    if (act == VLP_ACT_NONE) return x;
    return same_shape_op(tape, &vlp_op_activation, x, NULL, &act, sizeof act);
}

/* y = f(s) x, s a scalar;  dx = f(s) dy,  ds = f'(s) sum(dy x) -----------------------------------
 */

typedef struct {
    double value, slope; /* f(s), f'(s) */
} scalar_factor;

static void dot_range(int64_t begin, int64_t end, int thread, void *ctx) {
    const stretch *s = ctx;
    s->sums[thread] = vlp_kernels_get()->dot(end - begin, s->a + begin, s->b + begin);
}

/* The parts' sums are added in the order of the parts. */
static void scalar_gradient(vlp_node *node, double slope) {
    vlp_real *ds = vlp_grad_add(node->in[1]);
    if (!ds) return;
    int64_t n = vlp_numel(node->in[0]);
    stretch s = {.a = vlp_real_data(node->in[0]), .b = node->out[0]->grad, .sums = node->work};
    vlp_parallel_for(n, GRAIN, dot_range, &s);
    double total = 0;
    for (int i = 0; i < vlp_parallel_parts(n, GRAIN); i++) total += s.sums[i];
    ds[0] += (vlp_real)(slope * total);
}

static void factor_forward(vlp_node *node, scalar_factor f) {
    run_forward(
        node,
        (stretch){.f = multiple_of, .a = vlp_real_data(node->in[0]), .factor = (vlp_real)f.value});
}

static void factor_backward(vlp_node *node, scalar_factor f) {
    run_backward(node->in[0],
                 (stretch){.f = multiple_of, .a = node->out[0]->grad, .factor = (vlp_real)f.value});
    scalar_gradient(node, f.slope);
}

static size_t factor_workspace(const vlp_node *node) {
    return (size_t)vlp_parallel_parts(vlp_numel(node->in[0]), GRAIN) * sizeof(double);
}

static vlp_tensor *factor_op(vlp_tape *tape, const vlp_op *op, vlp_tensor *x, vlp_tensor *s,
                             double most) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && s && vlp_numel(s) == 1, "%s: the factor is not a scalar", op->name);
    return same_shape_op(tape, op, x, s, &most, sizeof most);
}

static scalar_factor exp_factor(const vlp_node *node) {
    double s = (double)vlp_real_data(node->in[1])[0], most = number(node);
    double value = exp(s > most ? most : s);
    return (scalar_factor){value, s > most ? 0 : value};
}

static void scale_exp_forward(vlp_node *node) {
    factor_forward(node, exp_factor(node));
}

static void scale_exp_backward(vlp_node *node) {
    factor_backward(node, exp_factor(node));
}

const vlp_op vlp_op_scale_exp = {.name = "scale_exp",
                                 .forward = scale_exp_forward,
                                 .backward = scale_exp_backward,
                                 .workspace = factor_workspace};

vlp_tensor *vlp_scale_exp(vlp_tape *tape, vlp_tensor *x, vlp_tensor *s, double most) {
    return factor_op(tape, &vlp_op_scale_exp, x, s, most);
}

static scalar_factor inverse_factor(const vlp_node *node) {
    double t = (double)vlp_real_data(node->in[1])[0];
    return (scalar_factor){1 / t, -1 / (t * t)};
}

static void divide_by_forward(vlp_node *node) {
    factor_forward(node, inverse_factor(node));
}

static void divide_by_backward(vlp_node *node) {
    factor_backward(node, inverse_factor(node));
}

const vlp_op vlp_op_divide_by = {.name = "divide_by",
                                 .forward = divide_by_forward,
                                 .backward = divide_by_backward,
                                 .workspace = factor_workspace};

vlp_tensor *vlp_divide_by(vlp_tape *tape, vlp_tensor *x, vlp_tensor *t) {
    return factor_op(tape, &vlp_op_divide_by, x, t, 0);
}

/* y = x keep / (1 - rate), keep drawn for each element, again from the same stream backward ------
 */

static void dropped(const stretch *s, int64_t at, int64_t n, vlp_real *to) {
    vlp_kernels_get()->dropout(at, n, &s->rng, s->rate, s->a + at, to);
}

static stretch dropout_stretch(const vlp_node *node, const vlp_real *from) {
    return (stretch){.f = dropped,
                     .a = from,
                     .rate = number(node),
                     .rng = vlp_rng_at(node->seed, VLP_RNG_DROPOUT, 0, 0)};
}

static void dropout_forward(vlp_node *node) {
    run_forward(node, dropout_stretch(node, vlp_real_data(node->in[0])));
}

static void dropout_backward(vlp_node *node) {
    run_backward(node->in[0], dropout_stretch(node, node->out[0]->grad));
}

const vlp_op vlp_op_dropout = {.name = "dropout",
                               .forward = dropout_forward,
                               .backward = dropout_backward,
                               .random = true,
                               .gradient_only = true};

static vlp_tensor *drop_op(vlp_tape *tape, const vlp_op *op, vlp_tensor *x, double rate) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(rate >= 0 && rate < 1, "%s: the rate %g is outside [0, 1)", op->name, rate);
    if (rate == 0 || !vlp_tape_training(tape)) return x;
    return same_shape_op(tape, op, x, NULL, &rate, sizeof rate);
}

vlp_tensor *vlp_dropout(vlp_tape *tape, vlp_tensor *x, double rate) {
    return drop_op(tape, &vlp_op_dropout, x, rate);
}

/* The same with one draw for each sample ---------------------------------------------------------
 */

typedef struct {
    int64_t sample; /* elements */
    double rate;
    uint64_t seed;
    const vlp_real *from;
    vlp_real *to;
    bool fresh;
} path_pass;

static vlp_real path_factor(const path_pass *p, int64_t b) {
    vlp_rng rng = vlp_rng_at(p->seed, VLP_RNG_DROPOUT, 0, (uint64_t)b);
    return vlp_rng_double(&rng) < p->rate ? 0 : (vlp_real)(1 / (1 - p->rate));
}

static void path_samples(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const path_pass *p = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t b = begin; b < end; b++) {
        vlp_real factor = path_factor(p, b), *to = p->to + b * p->sample;
        if (p->fresh) k->fill(p->sample, 0, to);
        if (factor != 0) k->axpy(p->sample, factor, p->from + b * p->sample, to);
    }
}

static void path_run(const vlp_node *node, const vlp_real *from, vlp_real *to, bool fresh) {
    const vlp_tensor *x = node->in[0];
    if (vlp_numel(x) == 0) return;
    path_pass pass = {.sample = vlp_numel(x) / x->shape[0],
                      .rate = number(node),
                      .seed = node->seed,
                      .from = from,
                      .to = to,
                      .fresh = fresh};
    vlp_parallel_for(x->shape[0], 1, path_samples, &pass);
}

static void drop_path_forward(vlp_node *node) {
    path_run(node, vlp_real_data(node->in[0]), vlp_real_data(node->out[0]), true);
}

static void drop_path_backward(vlp_node *node) {
    bool fresh = false;
    vlp_real *dx = vlp_grad_write(node->in[0], &fresh);
    if (dx) path_run(node, node->out[0]->grad, dx, fresh);
}

const vlp_op vlp_op_drop_path = {.name = "drop_path",
                                 .forward = drop_path_forward,
                                 .backward = drop_path_backward,
                                 .random = true,
                                 .gradient_only = true};

vlp_tensor *vlp_drop_path(vlp_tape *tape, vlp_tensor *x, double rate) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim >= 1, "drop_path: x has no first axis");
    return drop_op(tape, &vlp_op_drop_path, x, rate);
}
