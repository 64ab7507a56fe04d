#include "core/tape_internal.h"

#include "core/memory.h"
#include "core/ops.h"
#include "core/rng.h"

#include <stdio.h>
#include <string.h>

enum { GRAPH_BYTES = 64 << 20, MAX_NODES = 1 << 16 };

vlp_status vlp_tape_new(vlp_tape **out) {
    *out = NULL;
    vlp_tape *tape = vlp_alloc_zero(1, sizeof *tape);
    if (!tape) return VLP_ERR_MEMORY;
    tape->grad = true;
    vlp_status status = vlp_arena_open(&tape->graph, GRAPH_BYTES);
    if (status == VLP_OK) status = vlp_pool_open(&tape->pool, &tape->data);
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
    vlp_pool_close(&tape->pool);
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
    tape->planned = tape->planning ? tape->data.peak + tape->work_peak : 0;
    vlp_arena_close(&tape->data);
    vlp_arena_close(&tape->work);
    tape->planning = false;
    VLP_TRY(vlp_arena_open(&tape->data, data));
    VLP_TRY(vlp_arena_open(&tape->work, work));
    vlp_tape_begin(tape, 0, 0);
    return VLP_OK;
}

size_t vlp_tape_bytes(const vlp_tape *tape) {
    if (tape->planning) return tape->data.peak + tape->work_peak;
    return tape->planned ? tape->planned : tape->data.size + tape->work.size;
}

size_t vlp_tape_used(const vlp_tape *tape) {
    return tape->data.peak + tape->work_peak;
}

void vlp_tape_begin(vlp_tape *tape, uint64_t seed, uint64_t step) {
    vlp_arena_reset(&tape->graph, 0);
    vlp_arena_reset(&tape->data, 0);
    tape->n_nodes = 0;
    tape->random_number = 0;
    vlp_pool_reset(&tape->pool);
    tape->stretches = 0;
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

void vlp_tape_set_reuse(vlp_tape *tape, bool reuse) {
    tape->reuse = reuse;
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

void *vlp_tape_graph_alloc(vlp_tape *tape, size_t bytes) {
    if (tape->status != VLP_OK) return NULL;
    void *pointer = vlp_arena_alloc(&tape->graph, bytes);
    if (!pointer) vlp_tape_fail(tape, no_room(&tape->graph));
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

/* Marks count on stacked memory; so holes are filled only where gradients are on. */
void *vlp_tape_alloc(vlp_tape *tape, size_t bytes) {
    if (tape->status != VLP_OK) return NULL;
    void *pointer =
        tape->grad ? vlp_pool_take(&tape->pool, bytes) : vlp_arena_alloc(&tape->data, bytes);
    if (!pointer) vlp_tape_fail(tape, no_room(&tape->data));
    return pointer;
}

void vlp_tape_give(vlp_tape *tape, void *data, size_t bytes) {
    if (tape->poison && !tape->planning) memset(data, 0xFF, bytes);
    vlp_pool_give(&tape->pool, data, bytes);
}

void vlp_tape_give_saved(vlp_tape *tape, vlp_node *node) {
    for (int i = 0; i < VLP_NODE_SAVED; i++) {
        if (node->saved[i]) vlp_tape_give(tape, node->saved[i], node->saved_bytes[i]);
        node->saved[i] = NULL;
    }
}

static vlp_tensor *new_tensor(vlp_tape *tape, vlp_dtype dtype, int ndim, const int64_t *shape) {
    VLP_ASSERT(ndim >= 0 && ndim <= VLP_MAX_DIMS, "%d dimensions", ndim);
    vlp_tensor *tensor = vlp_tape_graph_alloc(tape, sizeof *tensor);
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
    size_t bytes = vlp_tensor_bytes(keep);
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
    vlp_node *node = vlp_tape_graph_alloc(tape, sizeof *node);
    if (!node) return NULL;
    node->op = op;
    node->bf16 = tape->bf16;
    node->idle = op->gradient_only ? ~0u : op->idle;
    node->spent = op->gradient_only ? ~0u : op->spent;
    node->n_in = n_inputs;
    for (int i = 0; i < n_inputs; i++) {
        node->in[i] = op->takes_bf16 >> i & 1 ? inputs[i] : vlp_to_real(tape, inputs[i]);
        if (node->in[i] != inputs[i] && node->in[i]) node->in[i]->copy = true;
        VLP_ASSERT(!inputs[i] || !inputs[i]->forgotten, "op %s reads a tensor that was forgotten",
                   op->name);
        if (inputs[i] && inputs[i]->needs_grad && tape->grad) node->recorded = true;
    }
    if (op->random) node->seed = random_seed(tape);
    if (attr_bytes) {
        node->attr = vlp_tape_graph_alloc(tape, attr_bytes);
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
    tensor->maker = node;
    tensor->data = vlp_tape_alloc(tape, vlp_tensor_bytes(tensor));
    return tensor;
}

void vlp_node_save(vlp_tape *tape, vlp_node *node, int slot, size_t bytes) {
    node->saved[slot] = vlp_tape_alloc(tape, bytes);
    node->saved_bytes[slot] = bytes;
}

bool vlp_tape_prepare_work(vlp_tape *tape, vlp_node *node) {
    size_t bytes = node->op->workspace ? node->op->workspace(node) : 0;
    if (bytes > tape->work_peak) tape->work_peak = bytes;
    if (tape->planning || bytes == 0) return true;
    node->work = vlp_arena_end(&tape->work, bytes);
    if (!node->work) vlp_tape_fail(tape, no_room(&tape->work));
    if (node->work && tape->poison) memset(node->work, 0xFF, bytes);
    return node->work != NULL;
}

void vlp_tape_record(vlp_tape *tape, vlp_node *node) {
    VLP_ASSERT(tape->n_nodes < tape->max_nodes, "more than %d ops in a step", MAX_NODES);
    tape->nodes[tape->n_nodes++] = node;
}

/* A copy that was made for this node alone has had its reader. */
static void note_reader(vlp_tape *tape, const vlp_node *node, int input) {
    vlp_tensor *x = node->in[input];
    if (!x) return;
    if (node->recorded && !(node->idle >> input & 1)) x->awaited = true;
    for (int i = 0; i < input; i++)
        if (node->in[i] == x) return;
    if (node->recorded && x->readers < 2) x->readers++;
    if (x->copy) vlp_tape_forget(tape, x);
}

vlp_tensor *vlp_tape_run(vlp_tape *tape, vlp_node *node) {
    if (tape->status != VLP_OK || !vlp_tape_prepare_work(tape, node)) return NULL;
    if (!tape->planning)
        vlp_op_profile_run(tape->profile, node, false, node->flops, node->op->forward);
    tape->flops += node->flops;
    if (node->recorded) vlp_tape_record(tape, node);
    for (int i = 0; i < node->n_in; i++) note_reader(tape, node, i);
    return node->out[0];
}

static int place(const vlp_tensor *x) {
    for (int i = 0; i < x->maker->n_out; i++)
        if (x->maker->out[i] == x) return i;
    return -1;
}

/* Where no backward pass comes to the maker or reader, neither reads anything again. */
void vlp_tape_forget(vlp_tape *tape, vlp_tensor *x) {
    if (!tape->reuse || !tape->grad || !x || !x->maker || !x->data || x->shared) return;
    vlp_node *maker = x->maker;
    int out = place(x);
    if (maker->recorded && !(maker->spent >> out & 1)) return;
    if (x->awaited && !(maker->light && out == 0)) return;
    for (int i = 0; x->awaited && i < maker->n_in; i++)
        if (maker->op->again_reads >> i & 1) maker->in[i]->awaited = true;
    vlp_tape_give(tape, x->data, vlp_tensor_bytes(x));
    x->data = NULL;
    x->forgotten = true;
    if (maker->refills && out == 0) vlp_tape_give_saved(tape, maker);
}
