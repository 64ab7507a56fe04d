/* y = act(x w^T + bias): one product with its epilogue forward, two products backward. */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/product.h"
#include "core/threads.h"

#include <string.h>

typedef struct {
    vlp_act act;
    bool bf16; /* product in bfloat16 */
} linear_attr;

enum { X, W, BIAS };
enum { GRAIN = 16, BLOCK_ROWS = 4, PAD = 16 };

static vlp_operand operand(const vlp_tensor *x) {
    return (vlp_operand){.data = x->data, .dtype = x->dtype, .ld = vlp_col_count(x)};
}

static vlp_operand weight(const vlp_tensor *w) {
    vlp_operand operand_of_w = operand(w);
    operand_of_w.packed = w->packed;
    return operand_of_w;
}

static vlp_operand transposed(vlp_operand x) {
    x.transposed = true;
    return x;
}

static void forward(vlp_node *node) {
    const vlp_tensor *x = node->in[X], *w = node->in[W], *bias = node->in[BIAS];
    const vlp_tensor *y = node->out[0];
    const linear_attr *attr = node->attr;
    int64_t out = w->shape[0];
    vlp_multiply(&(vlp_product){.m = vlp_row_count(x),
                                .n = out,
                                .k = vlp_col_count(x),
                                .a = operand(x),
                                .b = transposed(weight(w)),
                                .c = {y->data, y->dtype, out},
                                .pre = {node->saved[0], y->dtype, out},
                                .bias = bias ? vlp_real_data(bias) : NULL,
                                .act = attr->act,
                                .bf16 = attr->bf16});
}

/* y = act(pre) in bfloat16, elements [begin, end) */
static void again_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    enum { CHUNK = 1024 };
    (void)thread;
    const vlp_node *node = ctx;
    const linear_attr *attr = node->attr;
    const vlp_tensor *y = node->out[0];
    const vlp_kernels *k = vlp_kernels_get();
    vlp_real wide[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK) {
        int64_t n = end - at < CHUNK ? end - at : CHUNK;
        vlp_widen(n, (const uint16_t *)node->saved[0] + at, wide);
        k->act_half(n, attr->act, wide, wide);
        vlp_narrow(n, wide, vlp_bf16_data(y) + at);
    }
}

/* In float pre is not kept either: there the product costs less than the memory. */
static void again(vlp_node *node) {
    enum { ELEMENT_GRAIN = 4096 };
    if (node->refills)
        forward(node);
    else
        vlp_parallel_for(vlp_numel(node->out[0]), ELEMENT_GRAIN, again_rows, node);
}

/* The gradient of the pre-activation, dy act'(pre), in the type of pre: it takes the place of dy
 * where that has the same type, else of the workspace, which also holds its sums over rows, the
 * bias gradient, for each part. */
typedef struct {
    int64_t cols, padded;
    vlp_act act;
    vlp_dtype dtype;
    const void *pre;
    vlp_gradient dy;
    void *dpre;
    vlp_real *parts; /* for each part: sums [padded], rows of pre and of dy [2, BLOCK_ROWS, padded]
                      */
} act_gradient;

static int64_t part_elements(int64_t padded) {
    return (1 + 2 * BLOCK_ROWS) * padded;
}

static int64_t padded_cols(int64_t cols) {
    return (cols + PAD - 1) / PAD * PAD;
}

static void act_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    const act_gradient *g = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    vlp_real *sums = g->parts + thread * part_elements(g->padded);
    vlp_real *wide = sums + g->padded, *gradient = wide + BLOCK_ROWS * g->padded;
    const vlp_gradient pre = {(void *)(uintptr_t)g->pre, g->dtype};
    k->fill(g->cols, 0, sums);
    for (int64_t r = begin; r < end; r += BLOCK_ROWS) {
        int64_t rows = end - r < BLOCK_ROWS ? end - r : BLOCK_ROWS;
        int64_t at = r * g->cols, n = rows * g->cols;
        bool half = g->dtype == VLP_BF16;
        void (*act_backward)(int64_t, vlp_act, const vlp_real *, const vlp_real *, vlp_real *) =
            half ? k->act_half_backward : k->act_backward;
        vlp_real *to = half ? gradient : (vlp_real *)g->dpre + at;
        act_backward(n, g->act, vlp_real_gradient(pre, at, n, wide),
                     vlp_real_gradient(g->dy, at, n, gradient), to);
        k->column_sum(rows, g->cols, to, g->cols, sums);
        if (half) vlp_narrow(n, to, (uint16_t *)g->dpre + at);
    }
}

/* What dpre takes of the workspace where it cannot take the place of dy */
static size_t dpre_bytes(const vlp_node *node) {
    const vlp_tensor *y = node->out[0];
    bool same = vlp_grad_read(y).dtype == y->dtype;
    return same ? 0 : (vlp_tensor_bytes(y) + 63) / 64 * 64;
}

static act_gradient describe(const vlp_node *node) {
    const linear_attr *attr = node->attr;
    const vlp_tensor *y = node->out[0];
    int64_t cols = vlp_col_count(y);
    size_t apart = dpre_bytes(node);
    vlp_gradient dy = vlp_grad_read(y);
    return (act_gradient){.cols = cols,
                          .padded = padded_cols(cols),
                          .act = attr->act,
                          .dtype = y->dtype,
                          .pre = node->saved[0],
                          .dy = dy,
                          .dpre = apart ? node->work : dy.data,
                          .parts = (vlp_real *)((uint8_t *)node->work + apart)};
}

/* dbias += the gradient's sum over rows; returns the gradient of the pre-activation. */
static vlp_operand pre_gradient(vlp_node *node, vlp_real *dbias) {
    const linear_attr *attr = node->attr;
    const vlp_tensor *y = node->out[0];
    int64_t rows = vlp_row_count(y), cols = vlp_col_count(y);
    if (attr->act == VLP_ACT_NONE) {
        vlp_gradient dy = vlp_grad_read(y);
        if (dbias) vlp_gradient_columns(rows, cols, dy, dbias);
        return (vlp_operand){.data = dy.data, .dtype = dy.dtype, .ld = cols};
    }
    act_gradient g = describe(node);
    vlp_parallel_for(rows, GRAIN, act_rows, &g);
    for (int i = 0; dbias && i < vlp_parallel_parts(rows, GRAIN); i++)
        vlp_kernels_get()->add(cols, g.parts + i * part_elements(g.padded), dbias);
    return (vlp_operand){.data = g.dpre, .dtype = g.dtype, .ld = cols};
}

static void backward(vlp_node *node) {
    vlp_tensor *x = node->in[X], *w = node->in[W], *bias = node->in[BIAS];
    const linear_attr *attr = node->attr;
    int64_t rows = vlp_row_count(x), in = vlp_col_count(x), out = w->shape[0];
    vlp_operand dpre = pre_gradient(node, bias ? vlp_grad_add(bias) : NULL);
    bool fresh = false;
    vlp_gradient dx = vlp_grad_store(x, &fresh);
    if (dx.data)
        vlp_multiply(&(vlp_product){.m = rows,
                                    .n = in,
                                    .k = out,
                                    .a = dpre,
                                    .b = weight(w),
                                    .c = {dx.data, dx.dtype, in},
                                    .beta = fresh ? 0 : 1,
                                    .bf16 = attr->bf16});
    vlp_real *dw = vlp_grad_write(w, &fresh);
    if (dw)
        vlp_multiply(&(vlp_product){.m = out,
                                    .n = in,
                                    .k = rows,
                                    .a = transposed(dpre),
                                    .b = operand(x),
                                    .c = {dw, VLP_REAL, in},
                                    .beta = fresh ? 0 : 1,
                                    .bf16 = attr->bf16});
}

static size_t workspace(const vlp_node *node) {
    const linear_attr *attr = node->attr;
    const vlp_tensor *y = node->out[0];
    if (attr->act == VLP_ACT_NONE || !vlp_grad_read(y).data) return 0; /* forward needs none */
    int64_t parts = vlp_parallel_parts(vlp_row_count(y), GRAIN);
    size_t sums = (size_t)(parts * part_elements(padded_cols(vlp_col_count(y)))) * sizeof(vlp_real);
    return dpre_bytes(node) + sums;
}

const vlp_op vlp_op_linear = {.name = "linear",
                              .forward = forward,
                              .backward = backward,
                              .workspace = workspace,
                              .again = again,
                              .takes_bf16 = 1 << X,
                              .spent = 1};

static vlp_tensor *linear(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias,
                          vlp_act act, bool readout) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && w && w->ndim == 2 && vlp_col_count(x) == w->shape[1],
               "linear: x has %lld columns, w has %lld", (long long)vlp_col_count(x),
               (long long)w->shape[1]);
    VLP_ASSERT(!bias || vlp_numel(bias) == w->shape[0], "linear: bias has %lld elements",
               (long long)vlp_numel(bias));
    linear_attr attr = {act, vlp_tape_precision(tape) == VLP_BF16 && w->parameter};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_linear, (vlp_tensor *[]){x, w, bias}, 3, 2, &attr, sizeof attr);
    if (!node) return NULL;
    int64_t shape[VLP_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) shape[i] = x->shape[i];
    shape[x->ndim - 1] = w->shape[0];
    vlp_tensor *y =
        vlp_node_output(tape, node, attr.bf16 && !readout ? VLP_BF16 : VLP_REAL, x->ndim, shape);
    node->flops = 2.0 * (double)vlp_row_count(x) * (double)vlp_numel(w);
    node->light = act != VLP_ACT_NONE && node->recorded;
    node->refills = node->light && y && y->dtype == VLP_REAL;
    if (y && node->light)
        vlp_node_save(tape, node, 0, (size_t)vlp_numel(y) * vlp_dtype_size(y->dtype));
    return vlp_tape_run(tape, node);
}

vlp_tensor *vlp_linear(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias,
                       vlp_act act) {
    return linear(tape, x, w, bias, act, false);
}

vlp_tensor *vlp_readout(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias) {
    return linear(tape, x, w, bias, VLP_ACT_NONE, true);
}
