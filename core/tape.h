/* The tape: define-by-run reverse-mode differentiation over coarse ops.
 *
 *     vlp_tape_new(&tape);
 *     vlp_tape_plan(tape);                     rehearse: ops check shapes and count memory only
 *       loss = build(tape); vlp_tape_backward(tape, loss);
 *     vlp_tape_open(tape);                     reserves exactly what the rehearsal needed
 *     for each step:
 *       vlp_tape_begin(tape, seed, step);      forgets the last step's tensors
 *       loss = build(tape);                    ops run forward as they are called
 *       vlp_tape_backward(tape, loss);         adds into the parameters' gradients
 *
 * Status is sticky: after a failure ops return NULL and do nothing, so model code is written
 * without checks and vlp_tape_status (or vlp_tape_backward) is asked once. A warm step never calls
 * malloc.
 *
 * Memory: tensors of the step live until the next begin, or, with vlp_tape_set_reuse, until
 * backward has passed them. Gradients of intermediate tensors go as soon as their op has run
 * backward. */
#ifndef VLP_CORE_TAPE_H
#define VLP_CORE_TAPE_H

#include "core/op_profile.h"
#include "core/tensor.h"

typedef struct vlp_tape vlp_tape;
typedef struct vlp_node vlp_node;

enum { VLP_NODE_INPUTS = 8, VLP_NODE_OUTPUTS = 2, VLP_NODE_SAVED = 3 };

/* An op: what a node does. forward fills out[].data; backward reads out[].grad (NULL for an output
 * that no loss reaches) and adds into in[].grad through vlp_grad_add or vlp_grad_write. workspace
 * gives the bytes of scratch that node->work points to during any call (NULL = none). None is
 * called while rehearsing. Bit i of takes_bf16 says that input i may be VLP_BF16; other inputs of
 * that type reach the op as VLP_REAL copies.
 *
 * What backward does not read need not be kept: bit i of idle says so of input i, bit i of spent of
 * output i; constructors may set more such bits of the node. A node with `light` set can fill the
 * data of out[0] anew by `again`, from what backward keeps and the inputs in again_reads.
 * gradient_only: backward reads no values, only the outputs' gradients. */
typedef struct {
    const char *name;
    void (*forward)(vlp_node *node);
    void (*backward)(vlp_node *node);
    size_t (*workspace)(const vlp_node *node);
    void (*again)(vlp_node *node);
    unsigned takes_bf16, idle, spent, again_reads;
    bool random; /* it draws from node->seed */
    bool gradient_only;
    unsigned picks; /* for profiles, bit i: of input i it reads as many elements as it makes */
} vlp_op;

struct vlp_node {
    const vlp_op *op;
    vlp_tensor *in[VLP_NODE_INPUTS];
    vlp_tensor *out[VLP_NODE_OUTPUTS];
    int n_in, n_out;
    void *attr;                  /* the op's own options, copied into the step */
    void *saved[VLP_NODE_SAVED]; /* what forward keeps for backward (step memory) */
    size_t saved_bytes[VLP_NODE_SAVED];
    void *work;           /* scratch of this call */
    uint64_t seed;        /* key of the node's random numbers */
    bool recorded;        /* backward will visit it */
    bool light;           /* op->again can be called */
    bool refills;         /* and makes what is saved again too, which then goes as well */
    unsigned idle, spent; /* those of the op, and more */
    bool bf16;            /* the step's precision: products and branches in bfloat16 */
    double flops; /* of forward; backward is counted once more for each input with a gradient */
};

vlp_status vlp_tape_new(vlp_tape **out);
void vlp_tape_free(vlp_tape *tape);

/* Starts a rehearsal; every op called until vlp_tape_open only counts. */
vlp_status vlp_tape_plan(vlp_tape *tape);
/* Ends the rehearsal and reserves its peak plus `extra` bytes. Without a rehearsal, reserves
 * `extra` bytes for each kind of memory (tests and small tools). */
vlp_status vlp_tape_open(vlp_tape *tape, size_t extra);
/* Bytes that a step needs, known after the rehearsal: tensors and gradients, workspace. */
size_t vlp_tape_bytes(const vlp_tape *tape);
/* The most that was in use since the tape was opened. */
size_t vlp_tape_used(const vlp_tape *tape);

/* Forgets the tensors of the step before. (seed, step) key the random numbers of dropout and the
 * like. */
void vlp_tape_begin(vlp_tape *tape, uint64_t seed, uint64_t step);
/* With false, ops run forward only and nothing is recorded: inference. */
void vlp_tape_set_grad(vlp_tape *tape, bool enabled);
bool vlp_tape_grad(const vlp_tape *tape);
/* Dropout and drop path act only in training mode (off by default). */
void vlp_tape_set_training(vlp_tape *tape, bool training);
bool vlp_tape_training(const vlp_tape *tape);
/* VLP_REAL (the default) or VLP_BF16: linear layers then multiply in bfloat16 with sums in float
 * and give bfloat16, as do attention and the norms that feed only linear layers; norms keep what
 * they normalised in bfloat16 for backward. The gradient of a bfloat16 tensor is bfloat16 where one
 * op reads it. The residual stream, parameters and the gradients of both, statistics and losses
 * stay vlp_real. VLP_REAL in the double build. */
void vlp_tape_set_precision(vlp_tape *tape, vlp_dtype precision);
vlp_dtype vlp_tape_precision(const vlp_tape *tape);
/* With true, backward gives the memory of tensors that it has passed to gradients, and
 * vlp_tape_forget that of others: then only scalars and the gradients of leaves may be read after
 * backward. Off by default. Costs a second pass of cheap ops. */
void vlp_tape_set_reuse(vlp_tape *tape, bool reuse);
/* Says that no op to come reads x (NULL is legal). If backward does not need it either, or its op
 * can compute it again, its memory serves others from now on; else nothing happens. */
void vlp_tape_forget(vlp_tape *tape, vlp_tensor *x);
/* For tests: memory that is given back is all NaN, and scratch is before every call of an op, so
 * that what it forgets to set shows. It ends at a page that cannot be touched in any case. */
void vlp_tape_set_poison(vlp_tape *tape, bool poison);
/* True while rehearsing: data of tensors must not be looked at. */
bool vlp_tape_planning(const vlp_tape *tape);

/* Floating-point operations of the products of the step so far, recomputation not counted. */
double vlp_tape_flops(const vlp_tape *tape);
/* From now on adds every op's time to `profile` (borrowed); NULL = off, the default. */
void vlp_tape_set_profile(vlp_tape *tape, vlp_op_profile *profile);

vlp_status vlp_tape_status(const vlp_tape *tape);
void vlp_tape_fail(vlp_tape *tape, vlp_status status); /* keeps the first failure and its message */

/* Walks the recorded nodes backwards from a scalar loss, whose gradient is `scale`. */
vlp_status vlp_tape_backward_scaled(vlp_tape *tape, vlp_tensor *loss, double scale);
vlp_status vlp_tape_backward(vlp_tape *tape, vlp_tensor *loss);
/* From several outputs at once, with given gradients (vector-Jacobian products): set with
 * vlp_tape_seed, then walk with loss = NULL. */
void vlp_tape_seed(vlp_tape *tape, vlp_tensor *output, const vlp_real *grad);

/* Wraps memory of the caller as a leaf tensor; it must outlive the step. Input gradients are kept
 * in step memory when needs_grad. */
vlp_tensor *vlp_tape_input(vlp_tape *tape, vlp_dtype dtype, int ndim, const int64_t *shape,
                           const void *data, bool needs_grad);
/* Step memory for values that host code fills in (masks, targets, row lists). While rehearsing it
 * is readable as zeros and must not be written. NULL on failure. */
void *vlp_tape_alloc(vlp_tape *tape, size_t bytes);

/* A stretch of forward-only work whose intermediate tensors are dropped: keep moves to the front
 * if it is one of them. With gradients on, both do nothing. */
size_t vlp_tape_mark(const vlp_tape *tape);
vlp_tensor *vlp_tape_release(vlp_tape *tape, size_t mark, vlp_tensor *keep);

/* Runs y = body(tape, in, ctx), keeps y alone, and computes the inside again when backward comes to
 * it (Chen et al., 2016: memory of one stretch at a time for one more forward pass). Activations
 * that get gradients must come in through in[] (up to VLP_NODE_INPUTS, entries may be NULL), never
 * through ctx, which is copied. Random ops draw the same numbers again. */
typedef vlp_tensor *(*vlp_tape_body)(vlp_tape *tape, vlp_tensor *const *in, const void *ctx);
vlp_tensor *vlp_tape_recompute(vlp_tape *tape, vlp_tape_body body, vlp_tensor *const *in, int n_in,
                               const void *ctx, size_t ctx_bytes);
/* Whether stacks of layers do so, block by block (off by default). */
void vlp_tape_set_recompute(vlp_tape *tape, bool recompute);
bool vlp_tape_recomputes(const vlp_tape *tape);

/* For ops ------------------------------------------------------------------------------------- */

/* A node with its inputs and a copy of attr; NULL when the tape has failed or an input is NULL.
 * Optional inputs may be NULL when listed after `required` ones. */
vlp_node *vlp_tape_node(vlp_tape *tape, const vlp_op *op, vlp_tensor *const *inputs, int n_inputs,
                        int required, const void *attr, size_t attr_bytes);
/* Adds an output of the given shape in step memory. */
vlp_tensor *vlp_node_output(vlp_tape *tape, vlp_node *node, vlp_dtype dtype, int ndim,
                            const int64_t *shape);
/* Adds an output that shares the memory of `data` (reshapes). */
vlp_tensor *vlp_node_view(vlp_tape *tape, vlp_node *node, int ndim, const int64_t *shape,
                          void *data);
/* Reserves saved[slot] in step memory. */
void vlp_node_save(vlp_tape *tape, vlp_node *node, int slot, size_t bytes);
/* Runs forward and records the node; returns out[0], or NULL after a failure. */
vlp_tensor *vlp_tape_run(vlp_tape *tape, vlp_node *node);

#endif
