/* Losses: scalars, accumulated in double. A loss over rows writes each row's part into scratch and
 * adds them up in order, so that the value does not depend on the number of threads. */
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

enum { ROW_GRAIN = 4, CHUNK = 512 };

/* What the loops over rows share; each loss fills in what it uses. */
typedef struct {
    int64_t cols;
    const vlp_real *x, *target;
    const int32_t *label;
    vlp_real *lse;
    double *part;  /* forward: the rows' parts of the loss */
    double smooth; /* label smoothing */
    double scale;  /* backward: dloss / rows */
    vlp_real *dx, *scratch;
    bool fresh; /* dx holds nothing yet */
    vlp_regression kind;
} row_loop;

static double add_parts(const row_loop *loop, int64_t rows) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += loop->part[r];
    return sum;
}

static void set_scalar(const vlp_node *node, double value) {
    vlp_real_data(node->out[0])[0] = (vlp_real)value;
}

static double scalar_gradient(const vlp_node *node) {
    return (double)node->out[0]->grad[0];
}

static size_t parts_bytes(const vlp_node *node) {
    return (size_t)vlp_row_count(node->in[0]) * sizeof(double);
}

/* The gradient of a row, zero where nothing has been added yet. */
static vlp_real *gradient_row(const row_loop *loop, int64_t row) {
    vlp_real *dx = loop->dx + row * loop->cols;
    if (loop->fresh) memset(dx, 0, (size_t)loop->cols * sizeof *dx);
    return dx;
}

/* Cross-entropy -------------------------------------------------------------------------------- */

typedef struct {
    const int32_t *target;
    double label_smoothing;
} cross_entropy_attr;

static int64_t count_valid(const int32_t *target, int64_t rows, int64_t classes) {
    int64_t valid = 0;
    for (int64_t r = 0; r < rows; r++) {
        VLP_ASSERT(target[r] < classes, "cross_entropy: target[%lld] is %d of %lld classes",
                   (long long)r, target[r], (long long)classes);
        valid += target[r] >= 0;
    }
    return valid;
}

/* lse - (1 - s) x[target] - s mean(x) */
static void cross_entropy_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const row_loop *loop = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t r = begin; r < end; r++) {
        loop->part[r] = 0;
        if (loop->label[r] < 0) continue;
        const vlp_real *x = loop->x + r * loop->cols;
        k->log_sum_exp(1, loop->cols, loop->cols, x, loop->lse + r);
        double right = (double)x[loop->label[r]];
        if (loop->smooth > 0)
            right = (1 - loop->smooth) * right +
                    loop->smooth * k->sum(loop->cols, x) / (double)loop->cols;
        loop->part[r] = (double)loop->lse[r] - right;
    }
}

static void cross_entropy_forward(vlp_node *node) {
    const cross_entropy_attr *attr = node->attr;
    const vlp_tensor *x = node->in[0];
    int64_t rows = vlp_row_count(x), valid = count_valid(attr->target, rows, vlp_col_count(x));
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .label = attr->target,
                     .lse = node->saved[0],
                     .part = node->work,
                     .smooth = attr->label_smoothing};
    vlp_parallel_for(rows, ROW_GRAIN, cross_entropy_rows, &loop);
    *(int64_t *)node->saved[1] = valid;
    set_scalar(node, valid ? add_parts(&loop, rows) / (double)valid : 0);
}

/* scale (p - onehot) + scale s (onehot - 1 / V) */
static void cross_entropy_gradient_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const row_loop *loop = ctx;
    for (int64_t r = begin; r < end; r++) {
        vlp_real *dx = gradient_row(loop, r);
        int32_t label = loop->label[r];
        if (label < 0) continue;
        vlp_kernels_get()->cross_entropy_backward(loop->cols, loop->x + r * loop->cols,
                                                  loop->lse[r], label, (vlp_real)loop->scale, dx);
        if (!(loop->smooth > 0)) continue;
        vlp_real uniform = (vlp_real)(loop->scale * loop->smooth / (double)loop->cols);
        for (int64_t i = 0; i < loop->cols; i++) dx[i] -= uniform;
        dx[label] += (vlp_real)(loop->scale * loop->smooth);
    }
}

static void cross_entropy_backward(vlp_node *node) {
    const cross_entropy_attr *attr = node->attr;
    vlp_tensor *x = node->in[0];
    int64_t valid = *(const int64_t *)node->saved[1];
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .label = attr->target,
                     .lse = node->saved[0],
                     .smooth = attr->label_smoothing};
    loop.scale = valid ? scalar_gradient(node) / (double)valid : 0;
    loop.dx = vlp_grad_write(x, &loop.fresh);
    if (loop.dx) vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, cross_entropy_gradient_rows, &loop);
}

const vlp_op vlp_op_cross_entropy = {.name = "cross_entropy",
                                     .forward = cross_entropy_forward,
                                     .backward = cross_entropy_backward,
                                     .workspace = parts_bytes};

vlp_tensor *vlp_cross_entropy(vlp_tape *tape, vlp_tensor *logits, const int32_t *target,
                              double label_smoothing) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(logits && logits->ndim >= 1, "cross_entropy: no logits");
    VLP_ASSERT(target || vlp_row_count(logits) == 0, "cross_entropy: no targets");
    VLP_ASSERT(label_smoothing >= 0 && label_smoothing <= 1, "cross_entropy: label smoothing %g",
               label_smoothing);
    cross_entropy_attr attr = {target, label_smoothing};
    vlp_node *node = vlp_tape_node(tape, &vlp_op_cross_entropy, &logits, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    vlp_node_save(tape, node, 0, (size_t)vlp_row_count(logits) * sizeof(vlp_real));
    vlp_node_save(tape, node, 1, sizeof(int64_t));
    return vlp_tape_run(tape, node);
}

/* Cross-entropy against distributions ---------------------------------------------------------- */

typedef struct {
    const vlp_real *target;
} target_attr;

/* sum(target) lse - target . x: right also for targets that do not add up to 1 */
static void soft_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const row_loop *loop = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t r = begin; r < end; r++) {
        const vlp_real *x = loop->x + r * loop->cols, *target = loop->target + r * loop->cols;
        k->log_sum_exp(1, loop->cols, loop->cols, x, loop->lse + r);
        loop->part[r] =
            k->sum(loop->cols, target) * (double)loop->lse[r] - k->dot(loop->cols, target, x);
    }
}

static void soft_forward(vlp_node *node) {
    const target_attr *attr = node->attr;
    const vlp_tensor *x = node->in[0];
    int64_t rows = vlp_row_count(x);
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .target = attr->target,
                     .lse = node->saved[0],
                     .part = node->work};
    vlp_parallel_for(rows, ROW_GRAIN, soft_rows, &loop);
    set_scalar(node, rows ? add_parts(&loop, rows) / (double)rows : 0);
}

/* scale (sum(target) p - target) */
static void soft_gradient_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const row_loop *loop = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    vlp_real *p = loop->scratch + thread * loop->cols;
    for (int64_t r = begin; r < end; r++) {
        const vlp_real *target = loop->target + r * loop->cols;
        vlp_real *dx = gradient_row(loop, r);
        memcpy(p, loop->x + r * loop->cols, (size_t)loop->cols * sizeof *p);
        k->exp_lse(1, loop->cols, loop->cols, p, 1, loop->lse + r, NULL);
        k->axpy(loop->cols, (vlp_real)(loop->scale * k->sum(loop->cols, target)), p, dx);
        k->axpy(loop->cols, (vlp_real)-loop->scale, target, dx);
    }
}

static void soft_backward(vlp_node *node) {
    const target_attr *attr = node->attr;
    vlp_tensor *x = node->in[0];
    int64_t rows = vlp_row_count(x);
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .target = attr->target,
                     .lse = node->saved[0],
                     .scratch = node->work};
    loop.scale = rows ? scalar_gradient(node) / (double)rows : 0;
    loop.dx = vlp_grad_write(x, &loop.fresh);
    if (loop.dx) vlp_parallel_for(rows, ROW_GRAIN, soft_gradient_rows, &loop);
}

static size_t soft_workspace(const vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    size_t rows = (size_t)vlp_parallel_parts(vlp_row_count(x), ROW_GRAIN);
    size_t scratch = rows * (size_t)vlp_col_count(x) * sizeof(vlp_real);
    return scratch > parts_bytes(node) ? scratch : parts_bytes(node);
}

const vlp_op vlp_op_soft_cross_entropy = {.name = "soft_cross_entropy",
                                          .forward = soft_forward,
                                          .backward = soft_backward,
                                          .workspace = soft_workspace};

vlp_tensor *vlp_soft_cross_entropy(vlp_tape *tape, vlp_tensor *logits, const vlp_real *target) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(logits && logits->ndim >= 1, "soft_cross_entropy: no logits");
    VLP_ASSERT(target || vlp_numel(logits) == 0, "soft_cross_entropy: no targets");
    target_attr attr = {target};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_soft_cross_entropy, &logits, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    vlp_node_save(tape, node, 0, (size_t)vlp_row_count(logits) * sizeof(vlp_real));
    return vlp_tape_run(tape, node);
}

/* Regression ----------------------------------------------------------------------------------- */

typedef struct {
    const vlp_real *target;
    vlp_regression kind;
} regression_attr;

/* -y log s(x) - (1 - y) log(1 - s(x)), s the sigmoid, without overflow for any x. */
static double binary_chunk(int64_t n, const vlp_real *x, const vlp_real *target) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double logit = (double)x[i];
        sum += fmax(logit, 0) - logit * (double)target[i] + log1p(exp(-fabs(logit)));
    }
    return sum;
}

static double regression_chunk(const row_loop *loop, int64_t n, int64_t at) {
    vlp_real difference[CHUNK];
    const vlp_real *x = loop->x + at, *target = loop->target + at;
    const vlp_kernels *k = vlp_kernels_get();
    if (loop->kind == VLP_LOSS_BINARY) return binary_chunk(n, x, target);
    for (int64_t i = 0; i < n; i++) difference[i] = x[i] - target[i];
    if (loop->kind == VLP_LOSS_MSE) return k->sum_squares(n, difference);
    for (int64_t i = 0; i < n; i++)
        difference[i] = difference[i] < 0 ? -difference[i] : difference[i];
    return k->sum(n, difference);
}

static void regression_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const row_loop *loop = ctx;
    for (int64_t r = begin; r < end; r++) {
        loop->part[r] = 0;
        for (int64_t i = 0; i < loop->cols; i += CHUNK) {
            int64_t n = loop->cols - i < CHUNK ? loop->cols - i : CHUNK;
            loop->part[r] += regression_chunk(loop, n, r * loop->cols + i);
        }
    }
}

static void regression_forward(vlp_node *node) {
    const regression_attr *attr = node->attr;
    const vlp_tensor *x = node->in[0];
    int64_t rows = vlp_row_count(x), n = vlp_numel(x);
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .target = attr->target,
                     .part = node->work,
                     .kind = attr->kind};
    vlp_parallel_for(rows, ROW_GRAIN, regression_rows, &loop);
    set_scalar(node, n ? add_parts(&loop, rows) / (double)n : 0);
}

static void regression_gradient_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const row_loop *loop = ctx;
    vlp_real scale = (vlp_real)loop->scale;
    for (int64_t r = begin; r < end; r++) {
        vlp_real *dx = gradient_row(loop, r);
        const vlp_real *x = loop->x + r * loop->cols, *target = loop->target + r * loop->cols;
        if (loop->kind == VLP_LOSS_MSE) {
            for (int64_t i = 0; i < loop->cols; i++) dx[i] += 2 * scale * (x[i] - target[i]);
        } else if (loop->kind == VLP_LOSS_BINARY) {
            for (int64_t i = 0; i < loop->cols; i++)
                dx[i] += scale * ((vlp_real)(1 / (1 + exp(-(double)x[i]))) - target[i]);
        } else {
            for (int64_t i = 0; i < loop->cols; i++)
                dx[i] += scale * (vlp_real)((x[i] > target[i]) - (x[i] < target[i]));
        }
    }
}

static void regression_backward(vlp_node *node) {
    const regression_attr *attr = node->attr;
    vlp_tensor *x = node->in[0];
    int64_t n = vlp_numel(x);
    row_loop loop = {.cols = vlp_col_count(x),
                     .x = vlp_real_data(x),
                     .target = attr->target,
                     .kind = attr->kind};
    loop.scale = n ? scalar_gradient(node) / (double)n : 0;
    loop.dx = vlp_grad_write(x, &loop.fresh);
    if (loop.dx) vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, regression_gradient_rows, &loop);
}

const vlp_op vlp_op_regression_loss = {.name = "regression_loss",
                                       .forward = regression_forward,
                                       .backward = regression_backward,
                                       .workspace = parts_bytes};

vlp_tensor *vlp_regression_loss(vlp_tape *tape, vlp_tensor *x, const vlp_real *target,
                                vlp_regression kind) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && (target || vlp_numel(x) == 0), "regression_loss: no input or no target");
    regression_attr attr = {target, kind};
    vlp_node *node = vlp_tape_node(tape, &vlp_op_regression_loss, &x, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    return vlp_tape_run(tape, node);
}

/* Sums ----------------------------------------------------------------------------------------- */

typedef struct {
    double weights[VLP_NODE_INPUTS];
} weighted_sum_attr;

static void weighted_sum_forward(vlp_node *node) {
    const weighted_sum_attr *attr = node->attr;
    double sum = 0;
    for (int i = 0; i < node->n_in; i++)
        sum += attr->weights[i] * (double)vlp_real_data(node->in[i])[0];
    set_scalar(node, sum);
}

static void weighted_sum_backward(vlp_node *node) {
    const weighted_sum_attr *attr = node->attr;
    for (int i = 0; i < node->n_in; i++) {
        vlp_real *dx = vlp_grad_add(node->in[i]);
        if (dx) dx[0] += (vlp_real)(attr->weights[i] * scalar_gradient(node));
    }
}

const vlp_op vlp_op_weighted_sum = {.name = "weighted_sum",
                                    .forward = weighted_sum_forward,
                                    .backward = weighted_sum_backward,
                                    .gradient_only = true};

vlp_tensor *vlp_weighted_sum(vlp_tape *tape, vlp_tensor *const *terms, const double *weights,
                             int n) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(n >= 0 && n <= VLP_NODE_INPUTS, "weighted_sum: %d terms", n);
    weighted_sum_attr attr = {{0}};
    for (int i = 0; i < n; i++) {
        VLP_ASSERT(terms[i] && vlp_numel(terms[i]) == 1, "weighted_sum: term %d is no scalar", i);
        attr.weights[i] = weights[i];
    }
    vlp_node *node = vlp_tape_node(tape, &vlp_op_weighted_sum, terms, n, n, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    return vlp_tape_run(tape, node);
}

static void dot_constant_forward(vlp_node *node) {
    const target_attr *attr = node->attr;
    const vlp_tensor *x = node->in[0];
    set_scalar(node, vlp_kernels_get()->dot(vlp_numel(x), vlp_real_data(x), attr->target));
}

static void dot_constant_backward(vlp_node *node) {
    const target_attr *attr = node->attr;
    vlp_real *dx = vlp_grad_add(node->in[0]);
    if (dx)
        vlp_kernels_get()->axpy(vlp_numel(node->in[0]), node->out[0]->grad[0], attr->target, dx);
}

const vlp_op vlp_op_dot_constant = {.name = "dot_constant",
                                    .forward = dot_constant_forward,
                                    .backward = dot_constant_backward,
                                    .gradient_only = true};

vlp_tensor *vlp_dot_constant(vlp_tape *tape, vlp_tensor *x, const vlp_real *c) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && (c || vlp_numel(x) == 0), "dot_constant: no input or no constant");
    target_attr attr = {c};
    vlp_node *node = vlp_tape_node(tape, &vlp_op_dot_constant, &x, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    return vlp_tape_run(tape, node);
}
