/* Normalisation over the last axis. LayerNorm and RMSNorm may add a residual first, in the same
 * pass:  h = x + residual,  y = n weight + bias,  n = norm(h),  outputs y and, if asked for, h.
 *
 *     inputs  x, residual [..., D] (residual or NULL)   weight, bias [D] (or NULL)
 *     keeps   mean, rstd [rows]; h [rows, D] where it is neither x nor an output
 *             with precision VLP_BF16, LayerNorm keeps n [rows, D] in bfloat16 and no h
 *     dh      = d(sum) + norm'(h) dy, and flows into x and residual alike */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <string.h>

enum { X, RESIDUAL, WEIGHT, BIAS };
enum { MEAN, RSTD, KEPT }; /* saved */
enum { ROW_GRAIN = 8, BLOCK_ROWS = 4, PAD = 16 };

typedef struct {
    double eps;
    bool rms;
    bool compact;    /* n is rounded to bfloat16 for backward, and for y where that is bfloat16 */
    vlp_dtype dtype; /* of y */
} norm_attr;

typedef struct {
    const norm_attr *attr;
    int64_t cols, padded;
    const vlp_tensor *x, *y;
    const vlp_real *residual, *weight, *bias;
    vlp_real *sum, *mean, *rstd;
    uint16_t *n;    /* kept */
    vlp_real *wide; /* for each part BLOCK_ROWS of x and of y, where those are bfloat16 */
} norm_pass;

static vlp_real *data_or_null(const vlp_tensor *tensor) {
    return tensor ? vlp_real_data(tensor) : NULL;
}

static vlp_real *row(vlp_real *base, int64_t at) {
    return base ? base + at : NULL;
}

/* y = n weight + bias in place */
static void affine(const norm_pass *p, int64_t rows, vlp_real *y) {
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t i = 0; i < rows; i++, y += p->cols) {
        if (p->weight) k->mul(p->cols, y, p->weight, y);
        if (p->bias) k->add(p->cols, p->bias, y);
    }
}

static void norm_block(const norm_pass *p, int64_t r, int64_t rows, const vlp_real *x,
                       vlp_real *y) {
    const vlp_kernels *k = vlp_kernels_get();
    int64_t at = r * p->cols;
    const vlp_real *residual = p->residual ? p->residual + at : NULL;
    bool compact = p->attr->compact;
    if (p->attr->rms)
        k->rms_norm(rows, p->cols, x, residual, p->weight, p->attr->eps, row(p->sum, at), y,
                    row(p->rstd, r));
    else
        k->layer_norm(rows, p->cols, x, residual, compact ? NULL : p->weight,
                      compact ? NULL : p->bias, p->attr->eps, row(p->sum, at), y, row(p->mean, r),
                      row(p->rstd, r));
}

/* y of a block where it lies in the pass's output: from n in y, rounded first where y will be */
static void finish_block(const norm_pass *p, int64_t r, int64_t rows, vlp_real *y) {
    int64_t at = r * p->cols, n = rows * p->cols;
    if (!p->attr->compact) return;
    bool half = p->attr->dtype == VLP_BF16;
    uint16_t *rounded = p->n ? p->n + at : half ? vlp_bf16_data(p->y) + at : NULL;
    if (rounded) vlp_narrow(n, y, rounded);
    if (half) vlp_widen(n, rounded, y);
    affine(p, rows, y);
}

static void norm_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const norm_pass *p = ctx;
    bool narrow_x = p->x->dtype == VLP_BF16, narrow_y = p->attr->dtype == VLP_BF16;
    vlp_real *wide_x = p->wide + 2 * BLOCK_ROWS * p->padded * thread;
    vlp_real *wide_y = wide_x + BLOCK_ROWS * p->padded;
    for (int64_t r = begin; r < end; r += BLOCK_ROWS) {
        int64_t rows = end - r < BLOCK_ROWS ? end - r : BLOCK_ROWS;
        int64_t at = r * p->cols, n = rows * p->cols;
        vlp_real *y = narrow_y ? wide_y : vlp_real_data(p->y) + at;
        if (narrow_x) vlp_widen(n, vlp_bf16_data(p->x) + at, wide_x);
        norm_block(p, r, rows, narrow_x ? wide_x : vlp_real_data(p->x) + at, y);
        finish_block(p, r, rows, y);
        if (narrow_y) vlp_narrow(n, y, vlp_bf16_data(p->y) + at);
    }
}

static int64_t padded_cols(const vlp_tensor *x) {
    return (vlp_col_count(x) + PAD - 1) / PAD * PAD;
}

static norm_pass describe(const vlp_node *node) {
    const norm_attr *attr = node->attr;
    const vlp_tensor *x = node->in[X];
    return (norm_pass){.attr = attr,
                       .cols = vlp_col_count(x),
                       .padded = padded_cols(x),
                       .x = x,
                       .y = node->out[0],
                       .weight = data_or_null(node->in[WEIGHT]),
                       .bias = data_or_null(node->in[BIAS]),
                       .n = attr->compact ? node->saved[KEPT] : NULL,
                       .wide = node->work};
}

static void norm_forward(vlp_node *node) {
    norm_pass pass = describe(node);
    pass.residual = data_or_null(node->in[RESIDUAL]);
    pass.mean = node->saved[MEAN];
    pass.rstd = node->saved[RSTD];
    if (node->n_out > 1)
        pass.sum = vlp_real_data(node->out[1]);
    else if (!pass.attr->compact)
        pass.sum = node->saved[KEPT];
    vlp_parallel_for(vlp_row_count(pass.x), ROW_GRAIN, norm_rows, &pass);
}

static const vlp_real *normalised_input(const vlp_node *node) {
    if (!node->in[RESIDUAL]) return vlp_real_data(node->in[X]);
    return node->n_out > 1 ? vlp_real_data(node->out[1]) : node->saved[KEPT];
}

/* y from n */
static void again_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const norm_pass *p = ctx;
    vlp_real *wide = p->wide + 2 * BLOCK_ROWS * p->padded * thread;
    for (int64_t r = begin; r < end; r += BLOCK_ROWS) {
        int64_t rows = end - r < BLOCK_ROWS ? end - r : BLOCK_ROWS;
        int64_t at = r * p->cols, n = rows * p->cols;
        vlp_real *y = p->attr->dtype == VLP_BF16 ? wide : vlp_real_data(p->y) + at;
        vlp_widen(n, p->n + at, y);
        affine(p, rows, y);
        if (y == wide) vlp_narrow(n, wide, vlp_bf16_data(p->y) + at);
    }
}

/* From h the same bits as the first time come out. */
static void norm_again(vlp_node *node) {
    norm_pass pass = describe(node);
    vlp_tensor h = *node->in[X];
    if (pass.attr->compact) {
        vlp_parallel_for(vlp_row_count(pass.x), ROW_GRAIN, again_rows, &pass);
        return;
    }
    h.dtype = VLP_REAL;
    h.data = (void *)(uintptr_t)normalised_input(node);
    pass.x = &h;
    vlp_parallel_for(vlp_row_count(pass.x), ROW_GRAIN, norm_rows, &pass);
}

/* Each part of the rows has its own slice of the workspace: ROW_GRAIN rows of the gradient dh, of
 * n and of dy, and its sums of dweight and dbias. */
typedef struct {
    const norm_attr *attr;
    int64_t cols, padded;
    const vlp_real *h, *weight, *mean, *rstd, *dsum;
    const uint16_t *n; /* instead of h and mean, or NULL */
    vlp_gradient dy, dx;
    vlp_real *dresidual, *work;
    bool x_fresh, residual_fresh, want_input, want_weight, want_bias;
} norm_gradient;

static int64_t slice_elements(int64_t padded) {
    return (3 * ROW_GRAIN + 2) * padded;
}

/* Where a part keeps what */
typedef struct {
    vlp_real *dh, *n, *dy, *dweight, *dbias;
} norm_slice;

static norm_slice slice_at(const norm_gradient *g, int part) {
    vlp_real *base = g->work + part * slice_elements(g->padded);
    int64_t rows = ROW_GRAIN * g->padded;
    vlp_real *sums = base + 3 * rows;
    return (norm_slice){base, base + rows, base + 2 * rows, sums, sums + g->padded};
}

static void norm_kernel(const norm_gradient *g, int64_t at, int64_t rows, const norm_slice *s) {
    const vlp_kernels *k = vlp_kernels_get();
    const vlp_real *h = g->h + at * g->cols;
    const vlp_real *dy = vlp_real_gradient(g->dy, at * g->cols, rows * g->cols, s->dy);
    vlp_real *dh = g->want_input ? s->dh : NULL;
    vlp_real *dweight = g->want_weight ? s->dweight : NULL;
    if (g->attr->rms)
        k->rms_norm_backward(rows, g->cols, h, g->weight, g->rstd + at, dy, dh, dweight);
    else
        k->layer_norm_backward(rows, g->cols, h, g->weight, g->mean + at, g->rstd + at, dy, dh,
                               dweight, g->want_bias ? s->dbias : NULL);
}

/* n is what it would be for mean 0 and deviation 1; dh = rstd times that gradient. */
static void compact_kernel(const norm_gradient *g, int64_t at, int64_t rows, const norm_slice *s) {
    static const vlp_real zero[ROW_GRAIN], one[ROW_GRAIN] = {1, 1, 1, 1, 1, 1, 1, 1};
    const vlp_kernels *k = vlp_kernels_get();
    vlp_widen(rows * g->cols, g->n + at * g->cols, s->n);
    const vlp_real *dy = vlp_real_gradient(g->dy, at * g->cols, rows * g->cols, s->dy);
    k->layer_norm_backward(rows, g->cols, s->n, g->weight, zero, one, dy,
                           g->want_input ? s->dh : NULL, g->want_weight ? s->dweight : NULL,
                           g->want_bias ? s->dbias : NULL);
    for (int64_t i = 0; i < rows; i++) k->scale(g->cols, g->rstd[at + i], s->dh + i * g->cols);
}

static void norm_backward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const norm_gradient *g = ctx;
    norm_slice s = slice_at(g, thread);
    memset(s.dweight, 0, 2 * (size_t)g->padded * sizeof(vlp_real));
    for (int64_t r = begin; r < end; r += ROW_GRAIN) {
        int64_t rows = end - r < ROW_GRAIN ? end - r : ROW_GRAIN;
        int64_t at = r * g->cols, n = rows * g->cols;
        memset(s.dh, 0, (size_t)n * sizeof(vlp_real));
        if (g->dy.data) (g->n ? compact_kernel : norm_kernel)(g, r, rows, &s);
        if (g->dsum) vlp_put(false, n, g->dsum + at, s.dh);
        if (g->dx.data) vlp_put_gradient(g->x_fresh, n, s.dh, g->dx, at);
        if (g->dresidual) vlp_put(g->residual_fresh, n, s.dh, g->dresidual + at);
    }
}

/* Adds the parts' sums in the order of the parts. */
static void reduce_parts(const norm_gradient *g, int parts, vlp_real *dweight, vlp_real *dbias) {
    const vlp_kernels *k = vlp_kernels_get();
    for (int i = 0; i < parts; i++) {
        norm_slice s = slice_at(g, i);
        if (dweight) k->add(g->cols, s.dweight, dweight);
        if (dbias) k->add(g->cols, s.dbias, dbias);
    }
}

static void norm_backward(vlp_node *node) {
    vlp_tensor *x = node->in[X], *residual = node->in[RESIDUAL];
    vlp_tensor *weight = node->in[WEIGHT], *bias = node->in[BIAS];
    const norm_attr *attr = node->attr;
    norm_gradient g = {.attr = attr,
                       .cols = vlp_col_count(x),
                       .padded = padded_cols(x),
                       .h = attr->compact ? NULL : normalised_input(node),
                       .n = attr->compact ? node->saved[KEPT] : NULL,
                       .weight = data_or_null(weight),
                       .mean = node->saved[MEAN],
                       .rstd = node->saved[RSTD],
                       .dy = vlp_grad_read(node->out[0]),
                       .dsum = node->n_out > 1 ? node->out[1]->grad : NULL,
                       .work = node->work};
    g.dx = vlp_grad_store(x, &g.x_fresh);
    if (residual) g.dresidual = vlp_grad_write(residual, &g.residual_fresh);
    vlp_real *dweight = weight ? vlp_grad_add(weight) : NULL;
    vlp_real *dbias = bias ? vlp_grad_add(bias) : NULL;
    g.want_input = g.dx.data || g.dresidual;
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
                                  .again = norm_again,
                                  .takes_bf16 = 1 << X,
                                  .idle = 1 << RESIDUAL,
                                  .spent = 1};
const vlp_op vlp_op_rms_norm = {.name = "rms_norm",
                                .forward = norm_forward,
                                .backward = norm_backward,
                                .workspace = norm_workspace,
                                .again = norm_again,
                                .takes_bf16 = 1 << X,
                                .idle = 1 << RESIDUAL,
                                .spent = 1};

static void save_state(vlp_tape *tape, vlp_node *node) {
    const norm_attr *attr = node->attr;
    size_t rows = (size_t)vlp_row_count(node->in[X]) * sizeof(vlp_real);
    size_t numbers = (size_t)vlp_numel(node->in[X]);
    bool residual = node->in[RESIDUAL] != NULL;
    if (!node->recorded) return;
    if (!attr->rms) vlp_node_save(tape, node, MEAN, rows);
    vlp_node_save(tape, node, RSTD, rows);
    if (attr->compact)
        vlp_node_save(tape, node, KEPT, numbers * sizeof(uint16_t));
    else if (residual && node->n_out < 2)
        vlp_node_save(tape, node, KEPT, numbers * sizeof(vlp_real));
    node->light = true;
    if (residual || attr->compact) node->idle |= 1u << X;
    if (attr->compact) node->spent |= 2;
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
    attr.compact = !attr.rms && vlp_tape_precision(tape) == VLP_BF16;
    if (!in[RESIDUAL]) x = vlp_to_real(tape, x);
    if (!x) return NULL;
    vlp_node *node =
        vlp_tape_node(tape, op, (vlp_tensor *[]){x, in[RESIDUAL], in[WEIGHT], in[BIAS]}, 4, 1,
                      &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, attr.dtype, x->ndim, x->shape);
    vlp_tensor *h = x;
    if (sum && in[RESIDUAL]) h = vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    save_state(tape, node);
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
                (norm_attr){.eps = eps, .dtype = VLP_REAL}, sum);
}

vlp_tensor *vlp_branch_layer_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual,
                                  vlp_tensor *weight, vlp_tensor *bias, double eps,
                                  vlp_tensor **sum) {
    return norm(tape, &vlp_op_layer_norm, (vlp_tensor *[]){x, residual, weight, bias},
                (norm_attr){.eps = eps, .dtype = vlp_tape_precision(tape)}, sum);
}

vlp_tensor *vlp_rms_norm(vlp_tape *tape, vlp_tensor *x, vlp_tensor *residual, vlp_tensor *weight,
                         double eps, vlp_tensor **sum) {
    return norm(tape, &vlp_op_rms_norm, (vlp_tensor *[]){x, residual, weight, NULL},
                (norm_attr){.eps = eps, .rms = true, .dtype = VLP_REAL}, sum);
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
