/* Normalisation over the last axis. LayerNorm and RMSNorm may add a residual first, in the same
 * pass:  h = x + residual,  y = norm(h) weight + bias,  outputs y and, if asked for, h.
 *
 *     inputs  x, residual [..., D] (residual or NULL)   weight, bias [D] (or NULL)
 *     keeps   mean, rstd [rows]; h [rows, D] where it is neither x nor an output
 *     dh      = d(sum) + norm'(h) dy, and flows into x and residual alike */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <string.h>

enum { X, RESIDUAL, WEIGHT, BIAS };
enum { MEAN, RSTD, SUM }; /* saved */
enum { ROW_GRAIN = 8, BLOCK_ROWS = 4, PAD = 16 };

typedef struct {
    double eps;
    bool rms;
    vlp_dtype dtype; /* of y */
} norm_attr;

typedef struct {
    const norm_attr *attr;
    int64_t cols, padded;
    const vlp_tensor *x, *y;
    const vlp_real *residual, *weight, *bias;
    vlp_real *sum, *mean, *rstd;
    vlp_real *wide; /* for each part BLOCK_ROWS of x and of y, where those are bfloat16 */
} norm_pass;

static vlp_real *data_or_null(const vlp_tensor *tensor) {
    return tensor ? vlp_real_data(tensor) : NULL;
}

static vlp_real *row(vlp_real *base, int64_t at) {
    return base ? base + at : NULL;
}

static void norm_block(const norm_pass *p, int64_t r, int64_t rows, const vlp_real *x,
                       vlp_real *y) {
    const vlp_kernels *k = vlp_kernels_get();
    int64_t at = r * p->cols;
    const vlp_real *residual = p->residual ? p->residual + at : NULL;
    if (p->attr->rms)
        k->rms_norm(rows, p->cols, x, residual, p->weight, p->attr->eps, row(p->sum, at), y,
                    row(p->rstd, r));
    else
        k->layer_norm(rows, p->cols, x, residual, p->weight, p->bias, p->attr->eps, row(p->sum, at),
                      y, row(p->mean, r), row(p->rstd, r));
}

static void norm_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const norm_pass *p = ctx;
    bool narrow_x = p->x->dtype == VLP_BF16, narrow_y = p->y->dtype == VLP_BF16;
    int64_t block = narrow_x || narrow_y ? BLOCK_ROWS : end - begin;
    vlp_real *wide_x = p->wide + 2 * BLOCK_ROWS * p->padded * thread;
    vlp_real *wide_y = wide_x + BLOCK_ROWS * p->padded;
    for (int64_t r = begin; r < end; r += block) {
        int64_t rows = end - r < block ? end - r : block, at = r * p->cols, n = rows * p->cols;
        if (narrow_x) vlp_widen(n, vlp_bf16_data(p->x) + at, wide_x);
        norm_block(p, r, rows, narrow_x ? wide_x : vlp_real_data(p->x) + at,
                   narrow_y ? wide_y : vlp_real_data(p->y) + at);
        if (narrow_y) vlp_narrow(n, wide_y, vlp_bf16_data(p->y) + at);
    }
}

static int64_t padded_cols(const vlp_tensor *x) {
    return (vlp_col_count(x) + PAD - 1) / PAD * PAD;
}

static void norm_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[X];
    norm_pass pass = {.attr = node->attr,
                      .cols = vlp_col_count(x),
                      .padded = padded_cols(x),
                      .x = x,
                      .y = node->out[0],
                      .residual = data_or_null(node->in[RESIDUAL]),
                      .weight = data_or_null(node->in[WEIGHT]),
                      .bias = data_or_null(node->in[BIAS]),
                      .sum = node->n_out > 1 ? vlp_real_data(node->out[1]) : node->saved[SUM],
                      .mean = node->saved[MEAN],
                      .rstd = node->saved[RSTD],
                      .wide = node->work};
    vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, norm_rows, &pass);
}

/* Each part of the rows has its own slice of the workspace: the gradient dh of ROW_GRAIN rows, and
 * its sums of dweight and dbias. */
typedef struct {
    const norm_attr *attr;
    int64_t cols, padded;
    const vlp_real *h, *weight, *mean, *rstd, *dy, *dsum;
    vlp_real *dx, *dresidual, *work;
    bool x_fresh, residual_fresh, want_input, want_weight, want_bias;
} norm_gradient;

static int64_t slice_elements(int64_t padded) {
    return (ROW_GRAIN + 2) * padded;
}

static void norm_kernel(const norm_gradient *g, int64_t at, int64_t rows, vlp_real *dh,
                        vlp_real *dweight, vlp_real *dbias) {
    const vlp_kernels *k = vlp_kernels_get();
    const vlp_real *h = g->h + at * g->cols, *dy = g->dy + at * g->cols;
    if (g->attr->rms)
        k->rms_norm_backward(rows, g->cols, h, g->weight, g->rstd + at, dy, dh, dweight);
    else
        k->layer_norm_backward(rows, g->cols, h, g->weight, g->mean + at, g->rstd + at, dy, dh,
                               dweight, dbias);
}

static void norm_backward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const norm_gradient *g = ctx;
    vlp_real *dh = g->work + thread * slice_elements(g->padded);
    vlp_real *dweight = dh + ROW_GRAIN * g->padded, *dbias = dweight + g->padded;
    memset(dweight, 0, 2 * (size_t)g->padded * sizeof(vlp_real));
    for (int64_t r = begin; r < end; r += ROW_GRAIN) {
        int64_t rows = end - r < ROW_GRAIN ? end - r : ROW_GRAIN;
        int64_t at = r * g->cols, n = rows * g->cols;
        if (g->dsum)
            memcpy(dh, g->dsum + at, (size_t)n * sizeof(vlp_real));
        else
            memset(dh, 0, (size_t)n * sizeof(vlp_real));
        if (g->dy)
            norm_kernel(g, r, rows, g->want_input ? dh : NULL, g->want_weight ? dweight : NULL,
                        g->want_bias ? dbias : NULL);
        if (g->dx) vlp_put(g->x_fresh, n, dh, g->dx + at);
        if (g->dresidual) vlp_put(g->residual_fresh, n, dh, g->dresidual + at);
    }
}

/* Adds the parts' sums in the order of the parts. */
static void reduce_parts(const norm_gradient *g, int parts, vlp_real *dweight, vlp_real *dbias) {
    const vlp_kernels *k = vlp_kernels_get();
    for (int i = 0; i < parts; i++) {
        const vlp_real *sums = g->work + i * slice_elements(g->padded) + ROW_GRAIN * g->padded;
        if (dweight) k->add(g->cols, sums, dweight);
        if (dbias) k->add(g->cols, sums + g->padded, dbias);
    }
}

static const vlp_real *normalised_input(const vlp_node *node) {
    if (!node->in[RESIDUAL]) return vlp_real_data(node->in[X]);
    return node->n_out > 1 ? vlp_real_data(node->out[1]) : node->saved[SUM];
}

static void norm_backward(vlp_node *node) {
    vlp_tensor *x = node->in[X], *residual = node->in[RESIDUAL];
    vlp_tensor *weight = node->in[WEIGHT], *bias = node->in[BIAS];
    norm_gradient g = {.attr = node->attr,
                       .cols = vlp_col_count(x),
                       .padded = padded_cols(x),
                       .h = normalised_input(node),
                       .weight = data_or_null(weight),
                       .mean = node->saved[MEAN],
                       .rstd = node->saved[RSTD],
                       .dy = node->out[0]->grad,
                       .dsum = node->n_out > 1 ? node->out[1]->grad : NULL,
                       .work = node->work};
    g.dx = vlp_grad_write(x, &g.x_fresh);
    if (residual) g.dresidual = vlp_grad_write(residual, &g.residual_fresh);
    vlp_real *dweight = weight ? vlp_grad_add(weight) : NULL;
    vlp_real *dbias = bias ? vlp_grad_add(bias) : NULL;
    g.want_input = g.dx || g.dresidual;
    g.want_weight = dweight != NULL;
    g.want_bias = dbias != NULL;
    int64_t rows = vlp_row_count(x);
    vlp_parallel_for(rows, ROW_GRAIN, norm_backward_rows, &g);
    reduce_parts(&g, vlp_parallel_parts(rows, ROW_GRAIN), dweight, dbias);
}

/* Backward's slices are larger than the two blocks that forward needs for bfloat16. */
static size_t norm_workspace(const vlp_node *node) {
    const vlp_tensor *x = node->in[X];
    if (!node->recorded && !node->bf16) return 0;
    int64_t parts = vlp_parallel_parts(vlp_row_count(x), ROW_GRAIN);
    return (size_t)(parts * slice_elements(padded_cols(x))) * sizeof(vlp_real);
}

const vlp_op vlp_op_layer_norm = {.name = "layer_norm",
                                  .forward = norm_forward,
                                  .backward = norm_backward,
                                  .workspace = norm_workspace,
                                  .takes_bf16 = 1 << X};
const vlp_op vlp_op_rms_norm = {.name = "rms_norm",
                                .forward = norm_forward,
                                .backward = norm_backward,
                                .workspace = norm_workspace,
                                .takes_bf16 = 1 << X};

static void save_state(vlp_tape *tape, vlp_node *node, bool rms) {
    const vlp_tensor *x = node->in[X];
    size_t rows = (size_t)vlp_row_count(x) * sizeof(vlp_real);
    if (!node->recorded) return;
    if (!rms) vlp_node_save(tape, node, MEAN, rows);
    vlp_node_save(tape, node, RSTD, rows);
    if (node->in[RESIDUAL] && node->n_out < 2)
        vlp_node_save(tape, node, SUM, (size_t)vlp_numel(x) * sizeof(vlp_real));
}

static vlp_tensor *norm(vlp_tape *tape, const vlp_op *op, vlp_tensor *const in[4], norm_attr attr,
                        vlp_tensor **sum) {
    if (sum) *sum = NULL;
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    vlp_tensor *x = in[X];
    VLP_ASSERT(x, "%s: x is missing", op->name);
    VLP_ASSERT(!in[RESIDUAL] || vlp_same_shape(x, in[RESIDUAL]),
               "%s: x and residual differ in shape", op->name);
    for (int i = WEIGHT; i <= BIAS; i++)
        VLP_ASSERT(!in[i] || vlp_numel(in[i]) == vlp_col_count(x),
                   "%s: x has %lld columns, weight or bias %lld", op->name,
                   (long long)vlp_col_count(x), (long long)vlp_numel(in[i]));
    if (!in[RESIDUAL]) x = vlp_to_real(tape, x);
    if (!x) return NULL;
    vlp_node *node =
        vlp_tape_node(tape, op, (vlp_tensor *[]){x, in[RESIDUAL], in[WEIGHT], in[BIAS]}, 4, 1,
                      &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, attr.dtype, x->ndim, x->shape);
    vlp_tensor *h = x;
    if (sum && in[RESIDUAL]) h = vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    save_state(tape, node, attr.rms);
    vlp_tensor *y = vlp_tape_run(tape, node);
    if (sum && y) *sum = h;
    return y;
}

vlp_tensor *vlp_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *weight, vlp_tensor *bias,
                           double eps) {
    return vlp_add_layer_norm(tape, x, NULL, weight, bias, eps, NULL);
}

vlp_tensor *vlp_add_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual,
                               vlp_tensor *weight, vlp_tensor *bias, double eps, vlp_tensor **sum) {
    return norm(tape, &vlp_op_layer_norm, (vlp_tensor *[]){x, residual, weight, bias},
                (norm_attr){eps, false, VLP_REAL}, sum);
}

vlp_tensor *vlp_branch_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual,
                                  vlp_tensor *weight, vlp_tensor *bias, double eps,
                                  vlp_tensor **sum) {
    return norm(tape, &vlp_op_layer_norm, (vlp_tensor *[]){x, residual, weight, bias},
                (norm_attr){eps, false, vlp_tape_precision(tape)}, sum);
}

vlp_tensor *vlp_rms_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual, vlp_tensor *weight,
                         double eps, vlp_tensor **sum) {
    return norm(tape, &vlp_op_rms_norm, (vlp_tensor *[]){x, residual, weight, NULL},
                (norm_attr){eps, true, VLP_REAL}, sum);
}

/* y = x / max(|x|, eps).  keeps |x| [rows] ----------------------------------------------------- */

typedef struct {
    int64_t cols;
    double eps;
    const vlp_real *x, *y_in, *dy, *norm_in;
    vlp_real *y, *norm, *dx;
    bool fresh;
} unit_pass;

static void unit_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const unit_pass *p = ctx;
    int64_t at = begin * p->cols;
    vlp_kernels_get()->l2_normalize(end - begin, p->cols, p->x + at, p->eps, p->y + at,
                                    row(p->norm, begin));
}

static void unit_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    unit_pass pass = {.cols = vlp_col_count(x),
                      .eps = *(const double *)node->attr,
                      .x = vlp_real_data(x),
                      .y = vlp_real_data(node->out[0]),
                      .norm = node->saved[0]};
    vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, unit_rows, &pass);
}

static void unit_backward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const unit_pass *p = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    int64_t at = begin * p->cols, rows = end - begin;
    if (p->fresh) k->fill(rows * p->cols, 0, p->dx + at);
    k->l2_normalize_backward(rows, p->cols, p->y_in + at, p->norm_in + begin, p->eps, p->dy + at,
                             p->dx + at);
}

static void unit_backward(vlp_node *node) {
    vlp_tensor *x = node->in[0];
    unit_pass pass = {.cols = vlp_col_count(x),
                      .eps = *(const double *)node->attr,
                      .y_in = vlp_real_data(node->out[0]),
                      .norm_in = node->saved[0],
                      .dy = node->out[0]->grad};
    pass.dx = vlp_grad_write(x, &pass.fresh);
    if (pass.dx) vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, unit_backward_rows, &pass);
}

const vlp_op vlp_op_l2_normalize = {
    .name = "l2_normalize", .forward = unit_forward, .backward = unit_backward};

vlp_tensor *vlp_l2_normalize(vlp_tape *tape, vlp_tensor *x, double eps) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_l2_normalize, (vlp_tensor *[]){x}, 1, 1, &eps, sizeof eps);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    if (node->recorded) vlp_node_save(tape, node, 0, (size_t)vlp_row_count(x) * sizeof(vlp_real));
    return vlp_tape_run(tape, node);
}
