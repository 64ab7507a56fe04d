/* Cross-entropy of a linear layer's logits, a block of the classes at a time: with a vocabulary the
 * logits are the largest tensor of a step, and here only a block of them is ever in memory.
 *
 *     logits = x w^T + bias                          x [R, D]   w [V, D]   bias [V] or NULL
 *     loss   = mean over rows of lse - (1 - s) logits[target] - s mean(logits)
 *     keeps lse [R]; backward computes the logits again, block by block:
 *     dlogits = (softmax - (1 - s) onehot - s / V) dloss / rows;  dx, dw, dbias as of any product
 */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/product.h"
#include "core/threads.h"

#include <math.h>

enum { X, W, BIAS };
enum { LSE, VALID }; /* saved */
enum { ROW_GRAIN = 4, BLOCK_ELEMENTS = 1 << 20, CLASS_ALIGN = 64 };

typedef struct {
    const int32_t *target;
    double smooth;
    int64_t block; /* most classes at a time */
    bool bf16;
} loss_attr;

typedef struct {
    const vlp_node *node;
    const loss_attr *attr;
    int64_t rows, classes, width;
    int64_t first, count; /* of this block's classes */
    vlp_real *logits;     /* [rows, count] */
    vlp_real *lse;
    double *right; /* forward: the part of the loss that is subtracted from lse */
    double scale;  /* backward: dloss / rows */
} class_block;

static class_block describe(const vlp_node *node) {
    const loss_attr *attr = node->attr;
    int64_t rows = vlp_row_count(node->in[X]);
    vlp_real *logits = (vlp_real *)((double *)node->work + rows);
    return (class_block){.node = node,
                         .attr = attr,
                         .rows = rows,
                         .classes = node->in[W]->shape[0],
                         .width = vlp_col_count(node->in[X]),
                         .logits = logits,
                         .lse = node->saved[LSE],
                         .right = node->work};
}

static bool next_block(class_block *b) {
    b->first += b->count;
    int64_t left = b->classes - b->first;
    b->count = left < b->attr->block ? left : b->attr->block;
    return b->count > 0;
}

static vlp_operand input_rows(const class_block *b) {
    const vlp_tensor *x = b->node->in[X];
    return (vlp_operand){.data = x->data, .dtype = x->dtype, .ld = b->width};
}

static vlp_operand class_rows(const class_block *b) {
    const vlp_real *w = vlp_real_data(b->node->in[W]) + b->first * b->width;
    return (vlp_operand){.data = w, .dtype = VLP_REAL, .ld = b->width};
}

static void compute_logits(const class_block *b) {
    const vlp_tensor *bias = b->node->in[BIAS];
    vlp_operand w = class_rows(b);
    w.transposed = true;
    vlp_multiply(&(vlp_product){.m = b->rows,
                                .n = b->count,
                                .k = b->width,
                                .a = input_rows(b),
                                .b = w,
                                .c = {b->logits, VLP_REAL, b->count},
                                .bias = bias ? vlp_real_data(bias) + b->first : NULL,
                                .bf16 = b->attr->bf16});
}

static double log_add(double a, double b) {
    double most = fmax(a, b);
    return isinf(most) ? most : most + log1p(exp(-fabs(a - b)));
}

static bool has_target(const class_block *b, int64_t r) {
    int64_t at = b->attr->target[r] - b->first;
    return at >= 0 && at < b->count;
}

static void forward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const class_block *b = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    double smooth = b->attr->smooth;
    for (int64_t r = begin; r < end; r++) {
        const vlp_real *row = b->logits + r * b->count;
        vlp_real lse;
        if (b->attr->target[r] < 0) continue;
        k->log_sum_exp(1, b->count, b->count, row, &lse);
        b->lse[r] = b->first ? (vlp_real)log_add((double)b->lse[r], (double)lse) : lse;
        if (b->first == 0) b->right[r] = 0;
        if (has_target(b, r))
            b->right[r] += (1 - smooth) * (double)row[b->attr->target[r] - b->first];
        if (smooth > 0) b->right[r] += smooth * k->sum(b->count, row) / (double)b->classes;
    }
}

static int64_t count_valid(const class_block *b) {
    int64_t valid = 0;
    for (int64_t r = 0; r < b->rows; r++) {
        VLP_ASSERT(b->attr->target[r] < b->classes,
                   "linear_cross_entropy: target[%lld] is %d of %lld classes", (long long)r,
                   b->attr->target[r], (long long)b->classes);
        valid += b->attr->target[r] >= 0;
    }
    return valid;
}

static void forward(vlp_node *node) {
    class_block b = describe(node);
    int64_t valid = count_valid(&b);
    double sum = 0;
    while (next_block(&b)) {
        compute_logits(&b);
        vlp_parallel_for(b.rows, ROW_GRAIN, forward_rows, &b);
    }
    for (int64_t r = 0; r < b.rows; r++)
        if (b.attr->target[r] >= 0) sum += (double)b.lse[r] - b.right[r];
    *(int64_t *)node->saved[VALID] = valid;
    vlp_real_data(node->out[0])[0] = valid ? (vlp_real)(sum / (double)valid) : 0;
}

/* The logits become their gradient. */
static void gradient_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const class_block *b = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    double smooth = b->attr->smooth;
    vlp_real uniform = (vlp_real)(b->scale * smooth / (double)b->classes);
    for (int64_t r = begin; r < end; r++) {
        vlp_real *row = b->logits + r * b->count;
        if (b->attr->target[r] < 0) {
            k->fill(b->count, 0, row);
            continue;
        }
        k->exp_lse(1, b->count, b->count, row, 1, b->lse + r, NULL);
        k->scale(b->count, (vlp_real)b->scale, row);
        for (int64_t i = 0; i < b->count && smooth > 0; i++) row[i] -= uniform;
        if (has_target(b, r))
            row[b->attr->target[r] - b->first] -= (vlp_real)(b->scale * (1 - smooth));
    }
}

static void add_gradients(const class_block *b, vlp_real *dx, bool dx_fresh, vlp_real *dw,
                          bool dw_fresh, vlp_real *dbias) {
    vlp_operand dlogits = {.data = b->logits, .dtype = VLP_REAL, .ld = b->count};
    if (dbias) vlp_flow_columns(b->rows, b->count, b->count, b->logits, dbias + b->first);
    if (dx)
        vlp_multiply(&(vlp_product){.m = b->rows,
                                    .n = b->width,
                                    .k = b->count,
                                    .a = dlogits,
                                    .b = class_rows(b),
                                    .c = {dx, VLP_REAL, b->width},
                                    .beta = dx_fresh && b->first == 0 ? 0 : 1,
                                    .bf16 = b->attr->bf16});
    dlogits.transposed = true;
    if (dw)
        vlp_multiply(&(vlp_product){.m = b->count,
                                    .n = b->width,
                                    .k = b->rows,
                                    .a = dlogits,
                                    .b = input_rows(b),
                                    .c = {dw + b->first * b->width, VLP_REAL, b->width},
                                    .beta = dw_fresh ? 0 : 1,
                                    .bf16 = b->attr->bf16});
}

static void backward(vlp_node *node) {
    class_block b = describe(node);
    int64_t valid = *(const int64_t *)node->saved[VALID];
    b.scale = valid ? (double)node->out[0]->grad[0] / (double)valid : 0;
    bool dx_fresh = false, dw_fresh = false;
    vlp_real *dx = vlp_grad_write(node->in[X], &dx_fresh);
    vlp_real *dw = vlp_grad_write(node->in[W], &dw_fresh);
    vlp_real *dbias = node->in[BIAS] ? vlp_grad_add(node->in[BIAS]) : NULL;
    while (next_block(&b)) {
        compute_logits(&b);
        vlp_parallel_for(b.rows, ROW_GRAIN, gradient_rows, &b);
        add_gradients(&b, dx, dx_fresh, dw, dw_fresh, dbias);
    }
}

static size_t workspace(const vlp_node *node) {
    const loss_attr *attr = node->attr;
    size_t rows = (size_t)vlp_row_count(node->in[X]);
    return rows * sizeof(double) + rows * (size_t)attr->block * sizeof(vlp_real);
}

const vlp_op vlp_op_linear_cross_entropy = {.name = "linear_cross_entropy",
                                            .forward = forward,
                                            .backward = backward,
                                            .workspace = workspace,
                                            .takes_bf16 = 1 << X};

static int64_t classes_at_a_time(int64_t rows, int64_t classes) {
    int64_t block = BLOCK_ELEMENTS / (rows ? rows : 1) / CLASS_ALIGN * CLASS_ALIGN;
    if (block < CLASS_ALIGN) block = CLASS_ALIGN;
    return block < classes ? block : classes;
}

vlp_tensor *vlp_linear_cross_entropy(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias,
                                     const int32_t *target, double label_smoothing) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && w && w->ndim == 2 && vlp_col_count(x) == w->shape[1],
               "linear_cross_entropy: x has %lld columns, w has %lld", (long long)vlp_col_count(x),
               (long long)w->shape[1]);
    VLP_ASSERT(!bias || vlp_numel(bias) == w->shape[0],
               "linear_cross_entropy: bias has %lld elements", (long long)vlp_numel(bias));
    int64_t rows = vlp_row_count(x);
    loss_attr attr = {.target = target,
                      .smooth = label_smoothing,
                      .block = classes_at_a_time(rows, w->shape[0]),
                      .bf16 = vlp_tape_precision(tape) == VLP_BF16 && w->parameter};
    vlp_node *node = vlp_tape_node(tape, &vlp_op_linear_cross_entropy, (vlp_tensor *[]){x, w, bias},
                                   3, 2, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 0, NULL);
    vlp_node_save(tape, node, LSE, (size_t)rows * sizeof(vlp_real));
    vlp_node_save(tape, node, VALID, sizeof(int64_t));
    node->flops = 2.0 * (double)rows * (double)vlp_numel(w);
    return vlp_tape_run(tape, node);
}
