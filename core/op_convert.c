/* Between the number types of activations. */
#include "core/kernels.h"
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

enum { GRAIN = 4096 };

typedef struct {
    const uint16_t *from;
    vlp_real *to;
} conversion;

static void widen_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const conversion *c = ctx;
    vlp_widen(end - begin, c->from + begin, c->to + begin);
}

static void to_real_forward(vlp_node *node) {
    conversion c = {vlp_bf16_data(node->in[0]), vlp_real_data(node->out[0])};
    vlp_parallel_for(vlp_numel(node->in[0]), GRAIN, widen_range, &c);
}

typedef struct {
    const vlp_real *from;
    vlp_gradient to;
    bool fresh;
} passing;

static void pass_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const passing *p = ctx;
    vlp_put_gradient(p->fresh, end - begin, p->from + begin, p->to, begin);
}

static void to_real_backward(vlp_node *node) {
    passing p = {.from = node->out[0]->grad};
    p.to = vlp_grad_store(node->in[0], &p.fresh);
    if (p.to.data) vlp_parallel_for(vlp_numel(node->in[0]), GRAIN, pass_range, &p);
}

const vlp_op vlp_op_to_real = {.name = "to_real",
                               .forward = to_real_forward,
                               .backward = to_real_backward,
                               .again = to_real_forward,
                               .takes_bf16 = 1,
                               .again_reads = 1,
                               .gradient_only = true};

vlp_tensor *vlp_to_real(vlp_tape *tape, vlp_tensor *x) {
    if (!x || x->dtype != VLP_BF16) return x;
    vlp_node *node = vlp_tape_node(tape, &vlp_op_to_real, (vlp_tensor *[]){x}, 1, 1, NULL, 0);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    node->light = true;
    return vlp_tape_run(tape, node);
}
