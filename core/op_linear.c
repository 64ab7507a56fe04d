/* y = act(x w^T + bias): one product and one epilogue pass forward, two products backward. */
#include "core/gemm.h"
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

typedef struct {
    vlp_act act;
} linear_attr;

enum { EPILOGUE_GRAIN = 16 };

typedef struct {
    const vlp_real *bias, *pre_in, *dy;
    vlp_real *pre, *out;
    int64_t cols;
    vlp_act act;
} epilogue;

static void bias_act_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    epilogue *e = ctx;
    vlp_kernels_get()->bias_act(end - begin, e->cols, e->bias, e->act, e->pre + begin * e->cols,
                                e->out + begin * e->cols);
}

static void forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0], *w = node->in[1], *bias = node->in[2];
    const linear_attr *attr = node->attr;
    int64_t rows = vlp_row_count(x), in = vlp_col_count(x), out = w->shape[0];
    vlp_real *y = vlp_real_data(node->out[0]);
    vlp_real *pre = node->saved[0] ? node->saved[0] : y;
    vlp_gemm(false, true, rows, out, in, 1, vlp_real_data(x), in, vlp_real_data(w), in, 0, pre,
             out);
    if (!bias && attr->act == VLP_ACT_NONE) return;
    epilogue e = {.bias = bias ? vlp_real_data(bias) : NULL,
                  .pre = pre,
                  .out = y,
                  .cols = out,
                  .act = attr->act};
    vlp_parallel_for(rows, EPILOGUE_GRAIN, bias_act_rows, &e);
}

static void act_backward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    epilogue *e = ctx;
    int64_t at = begin * e->cols;
    vlp_kernels_get()->act_backward((end - begin) * e->cols, e->act, e->pre_in + at, e->dy + at,
                                    e->out + at);
}

/* The gradient of the pre-activation: dy itself, or dy act'(pre) in the workspace. */
static const vlp_real *pre_gradient(vlp_node *node, int64_t rows, int64_t cols) {
    const linear_attr *attr = node->attr;
    if (attr->act == VLP_ACT_NONE) return node->out[0]->grad;
    epilogue e = {.pre_in = node->saved[0],
                  .dy = node->out[0]->grad,
                  .out = node->work,
                  .cols = cols,
                  .act = attr->act};
    vlp_parallel_for(rows, EPILOGUE_GRAIN, act_backward_rows, &e);
    return node->work;
}

static void backward(vlp_node *node) {
    vlp_tensor *x = node->in[0], *w = node->in[1], *bias = node->in[2];
    int64_t rows = vlp_row_count(x), in = vlp_col_count(x), out = w->shape[0];
    const vlp_real *dpre = pre_gradient(node, rows, out);
    bool fresh = false;
    vlp_real *dx = vlp_grad_write(x, &fresh);
    if (dx)
        vlp_gemm(false, false, rows, in, out, 1, dpre, out, vlp_real_data(w), in, fresh ? 0 : 1, dx,
                 in);
    vlp_real *dw = vlp_grad_write(w, &fresh);
    if (dw)
        vlp_gemm(true, false, out, in, rows, 1, dpre, out, vlp_real_data(x), in, fresh ? 0 : 1, dw,
                 in);
    vlp_real *db = bias ? vlp_grad_add(bias) : NULL;
    if (db) vlp_flow_columns(rows, out, out, dpre, db);
}

static size_t workspace(const vlp_node *node) {
    const linear_attr *attr = node->attr;
    if (attr->act == VLP_ACT_NONE || !node->recorded) return 0;
    return (size_t)(vlp_row_count(node->in[0]) * node->in[1]->shape[0]) * sizeof(vlp_real);
}

const vlp_op vlp_op_linear = {"linear", forward, backward, workspace};

vlp_tensor *vlp_linear(vlp_tape *tape, vlp_tensor *x, vlp_tensor *w, vlp_tensor *bias,
                       vlp_act act) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && w && w->ndim == 2 && vlp_col_count(x) == w->shape[1],
               "linear: x has %lld columns, w has %lld", (long long)vlp_col_count(x),
               (long long)w->shape[1]);
    VLP_ASSERT(!bias || vlp_numel(bias) == w->shape[0], "linear: bias has %lld elements",
               (long long)vlp_numel(bias));
    linear_attr attr = {act};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_linear, (vlp_tensor *[]){x, w, bias}, 3, 2, &attr, sizeof attr);
    if (!node) return NULL;
    int64_t shape[VLP_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) shape[i] = x->shape[i];
    shape[x->ndim - 1] = w->shape[0];
    vlp_tensor *y = vlp_node_output(tape, node, VLP_REAL, x->ndim, shape);
    node->flops = 2.0 * (double)vlp_row_count(x) * (double)vlp_numel(w);
    if (y && act != VLP_ACT_NONE && node->recorded)
        vlp_node_save(tape, node, 0, (size_t)vlp_numel(y) * sizeof(vlp_real));
    return vlp_tape_run(tape, node);
}
