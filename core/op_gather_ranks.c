/* Rows of all ranks, one after the other. */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"

#include <string.h>

typedef struct {
    vlp_comm *comm;
    vlp_gather_grad grad;
} gather_attr;

static void forward(vlp_node *node) {
    const gather_attr *attr = node->attr;
    const vlp_tensor *x = node->in[0];
    vlp_real *y = vlp_real_data(node->out[0]);
    if (vlp_comm_all_gather(attr->comm, vlp_real_data(x), vlp_numel(x), y) != VLP_OK)
        memset(y, 0, (size_t)vlp_numel(node->out[0]) * sizeof *y); /* the communicator says why */
}

static void backward(vlp_node *node) {
    const gather_attr *attr = node->attr;
    int64_t own = vlp_numel(node->in[0]), all = vlp_numel(node->out[0]);
    const vlp_real *dy = node->out[0]->grad;
    if (attr->grad == VLP_GATHER_GRAD_NONE || all == 0) return;
    if (attr->grad == VLP_GATHER_GRAD_SUM) {
        vlp_real *sum = node->work;
        if (dy)
            memcpy(sum, dy, (size_t)all * sizeof *sum);
        else
            memset(sum, 0, (size_t)all * sizeof *sum);
        vlp_comm_all_reduce(attr->comm, sum, all);
        dy = sum;
    }
    if (dy) vlp_flow(node->in[0], dy + attr->comm->rank * own);
}

static size_t workspace(const vlp_node *node) {
    return (size_t)vlp_numel(node->out[0]) * sizeof(vlp_real);
}

const vlp_op vlp_op_gather_ranks = {.name = "gather_ranks",
                                    .forward = forward,
                                    .backward = backward,
                                    .workspace = workspace,
                                    .gradient_only = true};

vlp_tensor *vlp_gather_ranks(vlp_tape *tape, vlp_tensor *x, vlp_comm *comm, vlp_gather_grad grad) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim == 2, "gather_ranks wants rows");
    gather_attr attr = {comm, grad};
    vlp_node *node = vlp_tape_node(tape, &vlp_op_gather_ranks, &x, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, 2, (int64_t[]){comm->size * x->shape[0], x->shape[1]});
    return vlp_tape_run(tape, node);
}
