#include "core/op_profile.h"

#include "core/tape.h"

#include <string.h>
#include <time.h>

vlp_op_row *vlp_op_profile_row(vlp_op_profile *profile, const char *op) {
    for (int i = 0; i < profile->count; i++)
        if (profile->rows[i].op == op || strcmp(profile->rows[i].op, op) == 0)
            return &profile->rows[i];
    if (profile->count == VLP_OP_PROFILE_ROWS) return &profile->rows[VLP_OP_PROFILE_ROWS - 1];
    profile->rows[profile->count] = (vlp_op_row){.op = op};
    return &profile->rows[profile->count++];
}

static double value_bytes(const vlp_tensor *x) {
    return (double)vlp_numel(x) * (double)vlp_dtype_size(x->dtype);
}

/* Of a fresh gradient only the writing counts. */
static double gradient_bytes(const vlp_tensor *x) {
    vlp_gradient grad = vlp_grad_read(x);
    if (!grad.data) return 0;
    return (x->grad_fresh ? 1 : 2) * (double)vlp_numel(x) * (double)vlp_dtype_size(grad.dtype);
}

static double outputs_bytes(const vlp_node *node, double (*bytes)(const vlp_tensor *)) {
    double sum = 0;
    for (int i = 0; i < node->n_out; i++) sum += bytes(node->out[i]);
    return sum;
}

/* Rows that an op picks from a table are as large as what it makes of them. */
static double inputs_bytes(const vlp_node *node, double (*bytes)(const vlp_tensor *)) {
    double sum = 0, made = outputs_bytes(node, value_bytes);
    for (int i = 0; i < node->n_in; i++) {
        const vlp_tensor *x = node->in[i];
        bool seen = !x;
        for (int j = 0; j < i; j++) seen |= node->in[j] == x;
        if (seen) continue;
        double all = bytes(x), share = value_bytes(x) > made ? made / value_bytes(x) : 1;
        sum += node->op->picks >> i & 1 ? all * share : all;
    }
    return sum;
}

static bool is_view(const vlp_node *node) {
    return node->n_in > 0 && node->n_out == 1 && node->in[0] &&
           node->out[0]->data == node->in[0]->data;
}

static double output_gradient(const vlp_tensor *x) {
    vlp_gradient grad = vlp_grad_read(x);
    return grad.data ? (double)vlp_numel(x) * (double)vlp_dtype_size(grad.dtype) : 0;
}

static double saved_bytes(const vlp_node *node) {
    double sum = 0;
    for (int i = 0; i < VLP_NODE_SAVED; i++) sum += (double)node->saved_bytes[i];
    return sum;
}

double vlp_op_profile_bytes(const vlp_node *node, bool backward) {
    double kept = saved_bytes(node);
    if (!backward)
        return is_view(node)
                   ? 0
                   : inputs_bytes(node, value_bytes) + outputs_bytes(node, value_bytes) + kept;
    double moved = outputs_bytes(node, output_gradient) + inputs_bytes(node, gradient_bytes);
    return node->op->gradient_only ? moved : moved + kept + inputs_bytes(node, value_bytes);
}

void vlp_op_profile_run(vlp_op_profile *profile, vlp_node *node, bool backward, double flops,
                        void (*pass)(vlp_node *node)) {
    if (!profile) {
        pass(node);
        return;
    }
    double bytes = vlp_op_profile_bytes(node, backward); /* before gradients cease to be fresh */
    double begin = vlp_op_profile_clock();
    pass(node);
    vlp_op_row *row = vlp_op_profile_row(profile, node->op->name);
    vlp_op_cost *cost = backward ? &row->backward : &row->forward;
    cost->seconds += vlp_op_profile_clock() - begin;
    cost->flops += flops;
    cost->bytes += bytes;
    cost->calls++;
}

double vlp_op_profile_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
