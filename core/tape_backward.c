/* The second half of the tape: walking back, whose memory goes as it is passed. */
#include "core/tape_internal.h"

#include <string.h>

/* Marks the node of a stretch; the tape itself does its backward. */
static const vlp_op stretch_op = {.name = "recompute", .takes_bf16 = ~0u, .spent = 1};

static bool has_grad(const vlp_tensor *tensor) {
    return vlp_grad_read(tensor).data != NULL;
}

static size_t grad_bytes(const vlp_tensor *tensor) {
    return (size_t)vlp_numel(tensor) * vlp_dtype_size(vlp_grad_read(tensor).dtype);
}

static void need_real_grad(vlp_tape *tape, vlp_tensor *tensor) {
    if (has_grad(tensor)) return;
    tensor->grad = vlp_tape_alloc(tape, (size_t)vlp_numel(tensor) * sizeof(vlp_real));
    tensor->grad_fresh = true;
}

/* What only one op reads gets its gradient in one piece: nothing is ever added to a rounded one. */
static void need_grad(vlp_tape *tape, vlp_tensor *tensor) {
    if (!tensor || !tensor->needs_grad || has_grad(tensor)) return;
    bool half = tensor->dtype == VLP_BF16 && tensor->readers == 1 && tensor->maker;
    if (!half) {
        need_real_grad(tape, tensor);
        return;
    }
    tensor->half_grad = vlp_tape_alloc(tape, vlp_tensor_bytes(tensor));
    tensor->grad_fresh = true;
}

/* An op that had nothing to add leaves its input's gradient unwritten: it is zero then. */
static void run_backward(vlp_node *node) {
    node->op->backward(node);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->grad_fresh) vlp_grad_settle(node->in[i]);
}

/* A product of two factors costs the same again for the gradient of each; attention's three inputs
 * share one tape node and cost twice its forward. */
static double backward_flops(const vlp_node *node) {
    int wanted = 0;
    for (int i = 0; i < node->n_in && i < 2; i++) wanted += node->in[i] && node->in[i]->needs_grad;
    return node->flops * wanted;
}

static void stretch_backward(vlp_tape *tape, vlp_node *node);

/* Also where what arrives is zero: it is the loss that depends on the parameter. */
static void mark_reached(const vlp_node *node) {
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->parameter && node->in[i]->needs_grad)
            node->in[i]->reached = true;
}

/* Everything that came after this node has run backward, and what came before does not know its
 * results. Scalars stay, for those who report losses. */
static void free_node(vlp_tape *tape, vlp_node *node) {
    if (!tape->reuse && tape->stretches == 0) return;
    for (int i = 0; i < node->n_out; i++) {
        vlp_tensor *out = node->out[i];
        if (out->maker != node || !out->data || vlp_numel(out) == 1) continue;
        vlp_tape_give(tape, out->data, vlp_tensor_bytes(out));
        out->data = NULL;
    }
    vlp_tape_give_saved(tape, node);
}

static void give_grads(vlp_tape *tape, vlp_node *node) {
    for (int i = 0; i < node->n_out; i++) {
        vlp_tensor *out = node->out[i];
        if (has_grad(out)) vlp_tape_give(tape, vlp_grad_read(out).data, grad_bytes(out));
        out->grad = NULL;
        out->half_grad = NULL;
    }
}

/* Data of a forgotten tensor, from its maker */
static void remember(vlp_tape *tape, vlp_tensor *x) {
    if (!x || !x->forgotten || !x->maker->light) return;
    vlp_node *maker = x->maker;
    for (int i = 0; i < maker->n_in; i++)
        if (~maker->idle >> i & 1 || maker->op->again_reads >> i & 1) remember(tape, maker->in[i]);
    x->data = vlp_tape_alloc(tape, vlp_tensor_bytes(x));
    x->forgotten = false;
    for (int i = 0; maker->refills && i < VLP_NODE_SAVED; i++)
        if (maker->saved_bytes[i]) maker->saved[i] = vlp_tape_alloc(tape, maker->saved_bytes[i]);
    if (vlp_tape_prepare_work(tape, maker) && !tape->planning && tape->status == VLP_OK)
        vlp_op_profile_run(tape->profile, maker, false, 0, maker->op->again);
}

static void op_backward(vlp_tape *tape, vlp_node *node) {
    for (int i = 0; i < node->n_in; i++)
        if (~node->idle >> i & 1) remember(tape, node->in[i]);
    if (node->refills) remember(tape, node->out[0]);
    if (!vlp_tape_prepare_work(tape, node) || tape->status != VLP_OK) return;
    double flops = backward_flops(node);
    if (!tape->planning) vlp_op_profile_run(tape->profile, node, true, flops, run_backward);
    if (!tape->planning) mark_reached(node);
    tape->flops += flops;
    give_grads(tape, node);
}

static void node_backward(vlp_tape *tape, vlp_node *node) {
    bool reached = false;
    for (int i = 0; i < node->n_out; i++) reached |= has_grad(node->out[i]);
    for (int i = 0; reached && i < node->n_in; i++) need_grad(tape, node->in[i]);
    if (reached && node->op == &stretch_op)
        stretch_backward(tape, node);
    else if (reached)
        op_backward(tape, node);
    free_node(tape, node);
}

/* A stretch that is computed again ------------------------------------------------------------- */

typedef struct {
    vlp_tape_body body;
    int64_t random_number; /* of its first random op */
    max_align_t ctx[];
} stretch;

static vlp_tensor *run_stretch(vlp_tape *tape, const vlp_node *node) {
    const stretch *s = node->attr;
    return s->body(tape, node->in, s->ctx);
}

vlp_tensor *vlp_tape_recompute(vlp_tape *tape, vlp_tape_body body, vlp_tensor *const *in, int n_in,
                               const void *ctx, size_t ctx_bytes) {
    if (tape->status != VLP_OK) return NULL;
    if (!tape->grad) return body(tape, in, ctx);
    vlp_node *node = vlp_tape_node(tape, &stretch_op, in, n_in, 0, NULL, 0);
    stretch *s = node ? vlp_tape_graph_alloc(tape, sizeof *s + ctx_bytes) : NULL;
    if (!s) return NULL;
    *s = (stretch){.body = body, .random_number = tape->random_number};
    memcpy(s->ctx, ctx, ctx_bytes);
    node->attr = s;
    size_t mark = vlp_tape_mark(tape);
    tape->grad = false;
    vlp_tensor *y = vlp_tape_release(tape, mark, run_stretch(tape, node));
    tape->grad = true;
    for (int i = 0; i < n_in; i++) {
        if (node->in[i]) node->in[i]->awaited = true;
        if (node->in[i]) node->in[i]->readers = 2; /* ops of the body */
        if (y == node->in[i]) return y;
    }
    y->needs_grad = true;
    y->maker = node;
    node->recorded = true;
    node->out[node->n_out++] = y;
    vlp_tape_record(tape, node);
    return y;
}

void vlp_tape_set_recompute(vlp_tape *tape, bool recompute) {
    tape->recompute = recompute;
}

bool vlp_tape_recomputes(const vlp_tape *tape) {
    return tape->recompute;
}

/* Forward again, now recorded, and backward through that, which gives its memory back. */
static void stretch_backward(vlp_tape *tape, vlp_node *node) {
    const stretch *s = node->attr;
    vlp_tensor *out = node->out[0];
    int64_t first = tape->n_nodes, random_number = tape->random_number;
    double flops = tape->flops;
    tape->random_number = s->random_number;
    vlp_tensor *y = run_stretch(tape, node);
    tape->random_number = random_number;
    tape->flops = flops;
    if (!y) return;
    y->grad = out->grad;
    y->half_grad = out->half_grad;
    out->grad = NULL;
    out->half_grad = NULL;
    tape->stretches++;
    for (int64_t i = tape->n_nodes - 1; i >= first && tape->status == VLP_OK; i--)
        node_backward(tape, tape->nodes[i]);
    tape->stretches--;
    tape->n_nodes = first;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->grad_fresh && !tape->planning) vlp_grad_settle(node->in[i]);
}

void vlp_tape_seed(vlp_tape *tape, vlp_tensor *output, const vlp_real *grad) {
    if (!output || tape->status != VLP_OK) return;
    VLP_ASSERT(output->needs_grad, "no gradient flows into the seeded tensor");
    need_real_grad(tape, output);
    if (!output->grad || tape->planning) return;
    vlp_real *to = vlp_grad_add(output);
    int64_t n = vlp_numel(output);
    for (int64_t i = 0; i < n; i++) to[i] += grad[i];
}

vlp_status vlp_tape_backward_scaled(vlp_tape *tape, vlp_tensor *loss, double scale) {
    if (tape->status == VLP_OK && loss && loss->needs_grad) {
        VLP_ASSERT(vlp_numel(loss) == 1, "the loss is not a scalar");
        vlp_real one = (vlp_real)scale;
        vlp_tape_seed(tape, loss, &one);
    }
    for (int64_t i = tape->n_nodes - 1; i >= 0 && tape->status == VLP_OK; i--)
        node_backward(tape, tape->nodes[i]);
    tape->n_nodes = 0;
    return vlp_tape_status(tape);
}

vlp_status vlp_tape_backward(vlp_tape *tape, vlp_tensor *loss) {
    return vlp_tape_backward_scaled(tape, loss, 1.0);
}
