/* Moving rows about: selection and its transpose, means, other shapes. */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

enum { BLOCK = 32 };

/* gather: y[r] = x[rows[r]];  scatter is its transpose, so each is the other's backward ----------
 */

typedef struct {
    const int32_t *rows;
    int64_t count; /* R */
} rows_attr;

static void gather_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    const rows_attr *attr = node->attr;
    vlp_rows_take(attr->count, vlp_col_count(x), vlp_row_count(x), attr->rows, true,
                  vlp_real_data(x), vlp_real_data(node->out[0]));
}

static void gather_backward(vlp_node *node) {
    vlp_tensor *x = node->in[0];
    const rows_attr *attr = node->attr;
    vlp_real *dx = vlp_grad_add(x);
    if (dx)
        vlp_rows_spread(attr->count, vlp_col_count(x), vlp_row_count(x), attr->rows, -1,
                        node->out[0]->grad, dx);
}

const vlp_op vlp_op_gather_rows = {.name = "gather_rows",
                                   .forward = gather_forward,
                                   .backward = gather_backward,
                                   .gradient_only = true,
                                   .picks = 1};

vlp_tensor *vlp_gather_rows(vlp_tape *tape, vlp_tensor *x, const int32_t *rows, int64_t count) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && count >= 0, "gather_rows: %lld rows", (long long)count);
    rows_attr attr = {rows, count};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_gather_rows, (vlp_tensor *[]){x}, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2, (int64_t[]){count, vlp_col_count(x)});
    return vlp_tape_run(tape, node);
}

static void zero_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    vlp_real *y = ctx;
    vlp_kernels_get()->fill(end - begin, 0, y + begin);
}

static void scatter_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0], *y = node->out[0];
    const rows_attr *attr = node->attr;
    vlp_parallel_for(vlp_numel(y), 4096, zero_range, vlp_real_data(y));
    vlp_rows_spread(attr->count, vlp_col_count(x), vlp_row_count(y), attr->rows, -1,
                    vlp_real_data(x), vlp_real_data(y));
}

static void scatter_backward(vlp_node *node) {
    vlp_tensor *x = node->in[0], *y = node->out[0];
    const rows_attr *attr = node->attr;
    bool fresh = false;
    vlp_real *dx = vlp_grad_write(x, &fresh);
    if (dx)
        vlp_rows_take(attr->count, vlp_col_count(x), vlp_row_count(y), attr->rows, fresh, y->grad,
                      dx);
}

const vlp_op vlp_op_scatter_rows = {.name = "scatter_rows",
                                    .forward = scatter_forward,
                                    .backward = scatter_backward,
                                    .gradient_only = true};

vlp_tensor *vlp_scatter_rows(vlp_tape *tape, vlp_tensor *x, const int32_t *rows, int64_t total) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && total >= 0, "scatter_rows: %lld rows", (long long)total);
    rows_attr attr = {rows, vlp_row_count(x)};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_scatter_rows, (vlp_tensor *[]){x}, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2, (int64_t[]){total, vlp_col_count(x)});
    return vlp_tape_run(tape, node);
}

/* y[b] = sum_l mask[b, l] x[b, l] / sum_l mask[b, l], or 0 where the mask is empty ---------------
 */

typedef struct {
    int64_t length, cols;
    const uint8_t *mask; /* or NULL: all */
    const vlp_real *x, *dy;
    vlp_real *y, *dx;
    bool fresh;
} averaging;

static averaging mean_pass(const vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    return (averaging){
        .length = x->shape[1], .cols = x->shape[2], .mask = *(const uint8_t *const *)node->attr};
}

static bool selected(const averaging *a, int64_t b, int64_t l) {
    return !a->mask || a->mask[b * a->length + l];
}

static vlp_real mean_weight(const averaging *a, int64_t b) {
    int64_t count = 0;
    for (int64_t l = 0; l < a->length; l++) count += selected(a, b, l);
    return count ? (vlp_real)(1.0 / (double)count) : 0;
}

static void mean_samples(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const averaging *a = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t b = begin; b < end; b++) {
        vlp_real *y = a->y + b * a->cols;
        k->fill(a->cols, 0, y);
        for (int64_t l = 0; l < a->length; l++)
            if (selected(a, b, l)) k->add(a->cols, a->x + (b * a->length + l) * a->cols, y);
        k->scale(a->cols, mean_weight(a, b), y);
    }
}

static void mean_forward(vlp_node *node) {
    averaging pass = mean_pass(node);
    pass.x = vlp_real_data(node->in[0]);
    pass.y = vlp_real_data(node->out[0]);
    vlp_parallel_for(node->in[0]->shape[0], 1, mean_samples, &pass);
}

static void mean_backward_samples(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const averaging *a = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t b = begin; b < end; b++) {
        vlp_real weight = mean_weight(a, b);
        for (int64_t l = 0; l < a->length; l++) {
            vlp_real *dx = a->dx + (b * a->length + l) * a->cols;
            if (a->fresh) k->fill(a->cols, 0, dx);
            if (selected(a, b, l)) k->axpy(a->cols, weight, a->dy + b * a->cols, dx);
        }
    }
}

static void mean_backward(vlp_node *node) {
    averaging pass = mean_pass(node);
    pass.dy = node->out[0]->grad;
    pass.dx = vlp_grad_write(node->in[0], &pass.fresh);
    if (pass.dx) vlp_parallel_for(node->in[0]->shape[0], 1, mean_backward_samples, &pass);
}

const vlp_op vlp_op_mean_rows = {
    .name = "mean_rows", .forward = mean_forward, .backward = mean_backward, .gradient_only = true};

vlp_tensor *vlp_mean_rows(vlp_tape *tape, vlp_tensor *x, const uint8_t *mask) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim == 3, "mean_rows: x is not [B, L, D]");
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_mean_rows, (vlp_tensor *[]){x}, 1, 1, &mask, sizeof mask);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2, (int64_t[]){x->shape[0], x->shape[2]});
    return vlp_tape_run(tape, node);
}

/* The same numbers in another shape --------------------------------------------------------------
 */

static void reshape_forward(vlp_node *node) {
    (void)node;
}

static void reshape_backward(vlp_node *node) {
    vlp_flow(node->in[0], node->out[0]->grad);
}

const vlp_op vlp_op_reshape = {.name = "reshape",
                               .forward = reshape_forward,
                               .backward = reshape_backward,
                               .gradient_only = true};

vlp_tensor *vlp_reshape(vlp_tape *tape, vlp_tensor *x, int ndim, const int64_t *shape) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x, "reshape: x is missing");
    vlp_node *node = vlp_tape_node(tape, &vlp_op_reshape, (vlp_tensor *[]){x}, 1, 1, NULL, 0);
    if (!node) return NULL;
    node->in[0]->shared = true;
    vlp_tensor *y = vlp_node_view(tape, node, ndim, shape, node->in[0]->data);
    VLP_ASSERT(!y || vlp_numel(y) == vlp_numel(x), "reshape: %lld elements into %lld",
               (long long)vlp_numel(x), (long long)vlp_numel(y));
    return vlp_tape_run(tape, node);
}

/* y[n, m] = x[m, n] ------------------------------------------------------------------------------
 */

typedef struct {
    int64_t rows, cols; /* of the source */
    const vlp_real *from;
    vlp_real *to;
    bool fresh;
} transposing;

static void transpose_block(const transposing *t, int64_t r, int64_t c0, int64_t c1) {
    int64_t r1 = r + BLOCK < t->rows ? r + BLOCK : t->rows;
    for (int64_t c = c0; c < c1; c++)
        for (int64_t m = r; m < r1; m++) {
            vlp_real value = t->from[m * t->cols + c], *to = t->to + c * t->rows + m;
            *to = t->fresh ? value : *to + value;
        }
}

static void transpose_columns(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const transposing *t = ctx;
    for (int64_t c = begin; c < end; c += BLOCK)
        for (int64_t r = 0; r < t->rows; r += BLOCK)
            transpose_block(t, r, c, c + BLOCK < end ? c + BLOCK : end);
}

static void transpose_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    transposing t = {.rows = x->shape[0],
                     .cols = x->shape[1],
                     .from = vlp_real_data(x),
                     .to = vlp_real_data(node->out[0]),
                     .fresh = true};
    vlp_parallel_for(t.cols, BLOCK, transpose_columns, &t);
}

static void transpose_backward(vlp_node *node) {
    const vlp_tensor *y = node->out[0];
    transposing t = {.rows = y->shape[0], .cols = y->shape[1], .from = y->grad};
    t.to = vlp_grad_write(node->in[0], &t.fresh);
    if (t.to) vlp_parallel_for(t.cols, BLOCK, transpose_columns, &t);
}

const vlp_op vlp_op_transpose = {.name = "transpose",
                                 .forward = transpose_forward,
                                 .backward = transpose_backward,
                                 .gradient_only = true};

vlp_tensor *vlp_transpose(vlp_tape *tape, vlp_tensor *x) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim == 2, "transpose: x is not a matrix");
    vlp_node *node = vlp_tape_node(tape, &vlp_op_transpose, (vlp_tensor *[]){x}, 1, 1, NULL, 0);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2, (int64_t[]){x->shape[1], x->shape[0]});
    return vlp_tape_run(tape, node);
}

/* y = [a; b] -------------------------------------------------------------------------------------
 */

typedef struct {
    const vlp_real *from;
    vlp_real *to;
} copying;

static void copy_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const copying *c = ctx;
    vlp_put(true, end - begin, c->from + begin, c->to + begin);
}

static void concat_forward(vlp_node *node) {
    vlp_real *y = vlp_real_data(node->out[0]);
    for (int i = 0; i < 2; i++) {
        int64_t n = vlp_numel(node->in[i]);
        copying pass = {vlp_real_data(node->in[i]), y};
        vlp_parallel_for(n, 4096, copy_range, &pass);
        y += n;
    }
}

static void concat_backward(vlp_node *node) {
    const vlp_real *dy = node->out[0]->grad;
    vlp_flow(node->in[0], dy);
    vlp_flow(node->in[1], dy + vlp_numel(node->in[0]));
}

const vlp_op vlp_op_concat_rows = {.name = "concat_rows",
                                   .forward = concat_forward,
                                   .backward = concat_backward,
                                   .gradient_only = true};

vlp_tensor *vlp_concat_rows(vlp_tape *tape, vlp_tensor *a, vlp_tensor *b) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(a && b && vlp_col_count(a) == vlp_col_count(b), "concat_rows: %lld and %lld columns",
               a ? (long long)vlp_col_count(a) : -1, b ? (long long)vlp_col_count(b) : -1);
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_concat_rows, (vlp_tensor *[]){a, b}, 2, 2, NULL, 0);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2,
                    (int64_t[]){vlp_row_count(a) + vlp_row_count(b), vlp_col_count(a)});
    return vlp_tape_run(tape, node);
}
