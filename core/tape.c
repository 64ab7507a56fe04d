#include "core/tape.h"

#include "core/arena.h"
#include "core/memory.h"
#include "core/ops.h"
#include "core/rng.h"

#include <stdio.h>
#include <string.h>

/* A gradient buffer that was used and is free again. */
typedef struct pool_block {
    struct pool_block *next;
    void *data;
    size_t bytes;
} pool_block;

struct vlp_tape {
    vlp_arena graph; /* nodes, tensors, attributes */
    vlp_arena data;  /* values, saved state, gradients */
    vlp_arena work;  /* one scratch block, reused by every op */
    vlp_node **nodes;
    int64_t n_nodes, max_nodes;
    int64_t random_number; /* of the next random op */
    pool_block *pool;
    uint64_t seed, step;
    size_t work_peak;
    double flops;
    vlp_op_profile *profile; /* NULL = off */
    bool planning, grad, training, bf16, recompute, poison;
    vlp_status status;
    char message[512];
};

/* Marks the node of a stretch; the tape itself does its backward. */
static const vlp_op stretch_op = {.name = "recompute", .takes_bf16 = ~0u};

enum { GRAPH_BYTES = 64 << 20, MAX_NODES = 1 << 16 };

vlp_status vlp_tape_new(vlp_tape **out) {
    *out = NULL;
    vlp_tape *tape = vlp_alloc_zero(1, sizeof *tape);
    if (!tape) return VLP_ERR_MEMORY;
    tape->grad = true;
    vlp_status status = vlp_arena_open(&tape->graph, GRAPH_BYTES);
    if (status == VLP_OK) {
        tape->max_nodes = MAX_NODES;
        tape->nodes = vlp_alloc((size_t)MAX_NODES * sizeof *tape->nodes);
        if (!tape->nodes) status = VLP_ERR_MEMORY;
    }
    if (status != VLP_OK) {
        vlp_tape_free(tape);
        return status;
    }
    *out = tape;
    return VLP_OK;
}

void vlp_tape_free(vlp_tape *tape) {
    if (!tape) return;
    vlp_arena_close(&tape->graph);
    vlp_arena_close(&tape->data);
    vlp_arena_close(&tape->work);
    vlp_free(tape->nodes);
    vlp_free(tape);
}

vlp_status vlp_tape_plan(vlp_tape *tape) {
    vlp_arena_close(&tape->data);
    vlp_arena_close(&tape->work);
    VLP_TRY(vlp_arena_plan(&tape->data));
    tape->planning = true;
    tape->work_peak = 0;
    vlp_tape_begin(tape, 0, 0);
    return VLP_OK;
}

vlp_status vlp_tape_open(vlp_tape *tape, size_t extra) {
    VLP_TRY(tape->status);
    size_t data = tape->data.peak + extra, work = tape->work_peak + extra;
    vlp_arena_close(&tape->data);
    vlp_arena_close(&tape->work);
    tape->planning = false;
    VLP_TRY(vlp_arena_open(&tape->data, data));
    VLP_TRY(vlp_arena_open(&tape->work, work));
    vlp_tape_begin(tape, 0, 0);
    return VLP_OK;
}

size_t vlp_tape_bytes(const vlp_tape *tape) {
    size_t work = tape->planning ? tape->work_peak : tape->work.size;
    return (tape->planning ? tape->data.peak : tape->data.size) + work;
}

void vlp_tape_begin(vlp_tape *tape, uint64_t seed, uint64_t step) {
    vlp_arena_reset(&tape->graph, 0);
    vlp_arena_reset(&tape->data, 0);
    tape->n_nodes = 0;
    tape->random_number = 0;
    tape->pool = NULL;
    tape->flops = 0;
    tape->seed = seed;
    tape->step = step;
    tape->status = VLP_OK;
}

void vlp_tape_set_grad(vlp_tape *tape, bool enabled) {
    tape->grad = enabled;
}

bool vlp_tape_grad(const vlp_tape *tape) {
    return tape->grad;
}

void vlp_tape_set_training(vlp_tape *tape, bool training) {
    tape->training = training;
}

bool vlp_tape_training(const vlp_tape *tape) {
    return tape->training;
}

void vlp_tape_set_precision(vlp_tape *tape, vlp_dtype precision) {
    tape->bf16 = precision == VLP_BF16 && sizeof(vlp_real) == sizeof(float);
}

vlp_dtype vlp_tape_precision(const vlp_tape *tape) {
    return tape->bf16 ? VLP_BF16 : VLP_REAL;
}

void vlp_tape_set_poison(vlp_tape *tape, bool poison) {
    tape->poison = poison;
}

bool vlp_tape_planning(const vlp_tape *tape) {
    return tape->planning;
}

double vlp_tape_flops(const vlp_tape *tape) {
    return tape->flops;
}

void vlp_tape_set_profile(vlp_tape *tape, vlp_op_profile *profile) {
    tape->profile = profile;
}

vlp_status vlp_tape_status(const vlp_tape *tape) {
    return tape->status == VLP_OK ? VLP_OK : VLP_FAIL(tape->status, "%s", tape->message);
}

void vlp_tape_fail(vlp_tape *tape, vlp_status status) {
    if (tape->status != VLP_OK) return;
    tape->status = status;
    snprintf(tape->message, sizeof tape->message, "%s", vlp_error());
}

static vlp_status no_room(const vlp_arena *arena) {
    return VLP_FAIL(VLP_ERR_MEMORY, "a step needs more than the %.1f MiB reserved for it",
                    (double)arena->size / 1048576);
}

static void *take(vlp_tape *tape, vlp_arena *arena, size_t bytes) {
    if (tape->status != VLP_OK) return NULL;
    void *pointer = vlp_arena_alloc(arena, bytes);
    if (!pointer) vlp_tape_fail(tape, no_room(arena));
    return pointer;
}

static void *take_zero(vlp_tape *tape, size_t bytes) {
    void *pointer = take(tape, &tape->graph, bytes);
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

void *vlp_tape_alloc(vlp_tape *tape, size_t bytes) {
    return take(tape, &tape->data, bytes);
}

static vlp_tensor *new_tensor(vlp_tape *tape, vlp_dtype dtype, int ndim, const int64_t *shape) {
    VLP_ASSERT(ndim >= 0 && ndim <= VLP_MAX_DIMS, "%d dimensions", ndim);
    vlp_tensor *tensor = take_zero(tape, sizeof *tensor);
    if (!tensor) return NULL;
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    for (int i = 0; i < ndim; i++) tensor->shape[i] = shape[i];
    return tensor;
}

vlp_tensor *vlp_tape_input(vlp_tape *tape, vlp_dtype dtype, int ndim, const int64_t *shape,
                           const void *data, bool needs_grad) {
    vlp_tensor *tensor = new_tensor(tape, dtype, ndim, shape);
    if (!tensor) return NULL;
    tensor->data = (void *)(uintptr_t)data;
    tensor->needs_grad = needs_grad && tape->grad;
    return tensor;
}

size_t vlp_tape_mark(const vlp_tape *tape) {
    return tape->data.used;
}

vlp_tensor *vlp_tape_release(vlp_tape *tape, size_t mark, vlp_tensor *keep) {
    if (tape->grad || !keep) return keep;
    const uint8_t *data_at = keep->data, *base = tape->data.base;
    bool dropped = data_at >= base + mark && data_at < base + tape->data.used;
    size_t bytes = (size_t)vlp_numel(keep) * vlp_dtype_size(keep->dtype);
    vlp_arena_reset(&tape->data, mark);
    if (!dropped) return keep; /* older than the mark, or a parameter */
    void *data = vlp_tape_alloc(tape, bytes);
    if (!data) return NULL;
    if (!tape->planning) memmove(data, keep->data, bytes);
    keep->data = data;
    return keep;
}

/* Counts random ops alone: the same model draws the same numbers whether it runs in bfloat16, for
 * inference only, or a second time. */
static uint64_t random_seed(vlp_tape *tape) {
    uint64_t number = (uint64_t)tape->random_number++;
    vlp_rng key = vlp_rng_at(tape->seed, VLP_RNG_DROPOUT, tape->step, number);
    return vlp_rng_u64(&key);
}

vlp_node *vlp_tape_node(vlp_tape *tape, const vlp_op *op, vlp_tensor *const *inputs, int n_inputs,
                        int required, const void *attr, size_t attr_bytes) {
    VLP_ASSERT(n_inputs <= VLP_NODE_INPUTS, "op %s has %d inputs", op->name, n_inputs);
    if (tape->status != VLP_OK) return NULL;
    for (int i = 0; i < required; i++)
        VLP_ASSERT(inputs[i], "op %s: input %d is missing", op->name, i);
    vlp_node *node = take_zero(tape, sizeof *node);
    if (!node) return NULL;
    node->op = op;
    node->bf16 = tape->bf16;
    node->n_in = n_inputs;
    for (int i = 0; i < n_inputs; i++) {
        node->in[i] = op->takes_bf16 >> i & 1 ? inputs[i] : vlp_to_real(tape, inputs[i]);
        if (inputs[i] && inputs[i]->needs_grad && tape->grad) node->recorded = true;
    }
    if (op->random) node->seed = random_seed(tape);
    if (attr_bytes) {
        node->attr = take(tape, &tape->graph, attr_bytes);
        if (node->attr) memcpy(node->attr, attr, attr_bytes);
    }
    return tape->status == VLP_OK ? node : NULL;
}

vlp_tensor *vlp_node_view(vlp_tape *tape, vlp_node *node, int ndim, const int64_t *shape,
                          void *data) {
    VLP_ASSERT(node->n_out < VLP_NODE_OUTPUTS, "op %s: too many outputs", node->op->name);
    vlp_tensor *tensor = new_tensor(tape, VLP_REAL, ndim, shape);
    if (!tensor) return NULL;
    tensor->data = data;
    tensor->needs_grad = node->recorded;
    node->out[node->n_out++] = tensor;
    return tensor;
}

vlp_tensor *vlp_node_output(vlp_tape *tape, vlp_node *node, vlp_dtype dtype, int ndim,
                            const int64_t *shape) {
    vlp_tensor *tensor = vlp_node_view(tape, node, ndim, shape, NULL);
    if (!tensor) return NULL;
    tensor->dtype = dtype;
    tensor->data = vlp_tape_alloc(tape, (size_t)vlp_numel(tensor) * vlp_dtype_size(dtype));
    return tensor;
}

void vlp_node_save(vlp_tape *tape, vlp_node *node, int slot, size_t bytes) {
    node->saved[slot] = vlp_tape_alloc(tape, bytes);
    node->saved_bytes += bytes;
}

static bool prepare_work(vlp_tape *tape, vlp_node *node) {
    size_t bytes = node->op->workspace ? node->op->workspace(node) : 0;
    if (bytes > tape->work_peak) tape->work_peak = bytes;
    if (tape->planning || bytes == 0) return true;
    node->work = vlp_arena_end(&tape->work, bytes);
    if (!node->work) vlp_tape_fail(tape, no_room(&tape->work));
    if (node->work && tape->poison) memset(node->work, 0xFF, bytes);
    return node->work != NULL;
}

static void record(vlp_tape *tape, vlp_node *node) {
    VLP_ASSERT(tape->n_nodes < tape->max_nodes, "more than %d ops in a step", MAX_NODES);
    tape->nodes[tape->n_nodes++] = node;
}

vlp_tensor *vlp_tape_run(vlp_tape *tape, vlp_node *node) {
    if (tape->status != VLP_OK || !prepare_work(tape, node)) return NULL;
    if (!tape->planning)
        vlp_op_profile_run(tape->profile, node, false, node->flops, node->op->forward);
    tape->flops += node->flops;
    if (node->recorded) record(tape, node);
    return node->out[0];
}

/* The smallest free block that fits without wasting half of itself. */
static void *pool_take(vlp_tape *tape, size_t bytes) {
    pool_block **best = NULL;
    for (pool_block **link = &tape->pool; *link; link = &(*link)->next)
        if ((*link)->bytes >= bytes && (*link)->bytes <= 2 * bytes &&
            (!best || (*link)->bytes < (*best)->bytes))
            best = link;
    if (!best) return vlp_tape_alloc(tape, bytes);
    void *data = (*best)->data;
    *best = (*best)->next;
    return data;
}

static void pool_give(vlp_tape *tape, void *data, size_t bytes) {
    pool_block *block = take(tape, &tape->graph, sizeof *block);
    if (!block) return;
    *block = (pool_block){tape->pool, data, bytes};
    tape->pool = block;
}

static size_t grad_bytes(const vlp_tensor *tensor) {
    return (size_t)vlp_numel(tensor) * sizeof(vlp_real);
}

static void need_grad(vlp_tape *tape, vlp_tensor *tensor) {
    if (!tensor || !tensor->needs_grad || tensor->grad) return;
    tensor->grad = pool_take(tape, grad_bytes(tensor));
    tensor->grad_fresh = true;
}

/* An op that had nothing to add leaves its input's gradient unwritten: it is zero then. */
static void run_backward(vlp_node *node) {
    node->op->backward(node);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->grad_fresh) vlp_grad_add(node->in[i]);
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

static void node_backward(vlp_tape *tape, vlp_node *node) {
    bool reached = false;
    for (int i = 0; i < node->n_out; i++) reached |= node->out[i]->grad != NULL;
    if (!reached) return;
    for (int i = 0; i < node->n_in; i++) need_grad(tape, node->in[i]);
    if (node->op == &stretch_op) {
        stretch_backward(tape, node);
        return;
    }
    if (!prepare_work(tape, node) || tape->status != VLP_OK) return;
    double flops = backward_flops(node);
    if (!tape->planning) vlp_op_profile_run(tape->profile, node, true, flops, run_backward);
    if (!tape->planning) mark_reached(node);
    tape->flops += flops;
    for (int i = 0; i < node->n_out; i++) {
        vlp_tensor *out = node->out[i];
        if (out->grad) pool_give(tape, out->grad, grad_bytes(out));
        out->grad = NULL;
    }
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
    stretch *s = node ? take(tape, &tape->graph, sizeof *s + ctx_bytes) : NULL;
    if (!s) return NULL;
    *s = (stretch){.body = body, .random_number = tape->random_number};
    memcpy(s->ctx, ctx, ctx_bytes);
    node->attr = s;
    size_t mark = vlp_tape_mark(tape);
    tape->grad = false;
    vlp_tensor *y = vlp_tape_release(tape, mark, run_stretch(tape, node));
    tape->grad = true;
    if (!y) return NULL;
    y->needs_grad = true;
    node->out[node->n_out++] = y;
    record(tape, node);
    return y;
}

void vlp_tape_set_recompute(vlp_tape *tape, bool recompute) {
    tape->recompute = recompute;
}

bool vlp_tape_recomputes(const vlp_tape *tape) {
    return tape->recompute;
}

/* Gradient buffers above the mark are about to be forgotten. */
static void pool_drop_above(vlp_tape *tape, size_t mark) {
    const uint8_t *limit = tape->data.base + mark;
    pool_block **link = &tape->pool;
    while (*link) {
        if ((const uint8_t *)(*link)->data >= limit)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
}

/* Forward again, now recorded, and backward through that; then its memory is given back. The
 * gradients of the stretch's inputs are older than the mark and stay. */
static void stretch_backward(vlp_tape *tape, vlp_node *node) {
    const stretch *s = node->attr;
    vlp_tensor *out = node->out[0];
    int64_t first = tape->n_nodes, random_number = tape->random_number;
    double flops = tape->flops;
    size_t mark = vlp_tape_mark(tape);
    tape->random_number = s->random_number;
    vlp_tensor *y = run_stretch(tape, node);
    tape->random_number = random_number;
    tape->flops = flops;
    if (!y) return;
    y->grad = out->grad;
    out->grad = NULL;
    for (int64_t i = tape->n_nodes - 1; i >= first && tape->status == VLP_OK; i--)
        node_backward(tape, tape->nodes[i]);
    tape->n_nodes = first;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->grad_fresh && !tape->planning) vlp_grad_add(node->in[i]);
    pool_drop_above(tape, mark);
    vlp_arena_reset(&tape->data, mark);
}

void vlp_tape_seed(vlp_tape *tape, vlp_tensor *output, const vlp_real *grad) {
    if (!output || tape->status != VLP_OK) return;
    VLP_ASSERT(output->needs_grad, "no gradient flows into the seeded tensor");
    need_grad(tape, output);
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
