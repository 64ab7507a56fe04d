#include "core/nn.h"

#include "core/attend.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

double vlp_init_std(int64_t width) {
    return 0.02 * sqrt(768.0 / (double)width);
}

void vlp_dense_declare(vlp_dense *dense, vlp_params *params, const char *name, int64_t in,
                       int64_t out, bool bias, double std) {
    vlp_params_push(params, "%s", name);
    dense->weight = vlp_params_add(params, "weight", VLP_INIT_TRUNCATED(std), VLP_DECAY, 2,
                                   (int64_t[]){out, in});
    dense->bias = bias ? vlp_params_add(params, "bias", VLP_INIT_CONSTANT(0), VLP_NO_DECAY, 1,
                                        (int64_t[]){out})
                       : NULL;
    vlp_params_pop(params);
}

vlp_tensor *vlp_dense_forward(vlp_tape *tape, const vlp_dense *dense, vlp_tensor *x, vlp_act act) {
    return vlp_linear(tape, x, dense->weight, dense->bias, act);
}

vlp_tensor *vlp_dense_readout(vlp_tape *tape, const vlp_dense *dense, vlp_tensor *x) {
    return vlp_readout(tape, x, dense->weight, dense->bias);
}

vlp_tensor *vlp_forgetting(vlp_tape *tape, vlp_tensor *old, vlp_tensor *next) {
    if (next != old) vlp_tape_forget(tape, old);
    return next;
}

vlp_tensor *vlp_first_tokens(vlp_tape *tape, vlp_tensor *x) {
    if (!x) return NULL;
    int64_t batch = x->shape[0], length = x->shape[1];
    int32_t *rows = vlp_tape_alloc(tape, (size_t)batch * sizeof *rows);
    if (!rows) return NULL;
    if (!vlp_tape_planning(tape))
        for (int64_t b = 0; b < batch; b++) rows[b] = (int32_t)(b * length);
    return vlp_gather_rows(tape, x, rows, batch);
}

vlp_tensor *vlp_gather_samples(vlp_tape *tape, vlp_tensor *x, const int32_t *order, int64_t n) {
    if (!x) return NULL;
    int64_t length = x->shape[1], width = x->shape[2];
    x = vlp_reshape(tape, x, 2, (int64_t[]){x->shape[0], length * width});
    x = vlp_gather_rows(tape, x, order, n);
    return vlp_reshape(tape, x, 3, (int64_t[]){n, length, width});
}

vlp_tensor *vlp_pooler_forward(vlp_tape *tape, const vlp_dense *pooler, vlp_tensor *x) {
    return vlp_dense_forward(tape, pooler, vlp_first_tokens(tape, x), VLP_ACT_TANH);
}

void vlp_norm_declare(vlp_norm *norm, vlp_params *params, const char *name, int64_t width,
                      double eps) {
    vlp_params_push(params, "%s", name);
    norm->weight = vlp_params_add(params, "weight", VLP_INIT_CONSTANT(1), VLP_NO_DECAY, 1, &width);
    norm->bias = vlp_params_add(params, "bias", VLP_INIT_CONSTANT(0), VLP_NO_DECAY, 1, &width);
    norm->eps = eps;
    vlp_params_pop(params);
}

vlp_tensor *vlp_norm_forward(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x) {
    return vlp_layer_norm(tape, x, norm->weight, norm->bias, norm->eps);
}

vlp_tensor *vlp_norm_add(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x, vlp_tensor *residual,
                         vlp_tensor **sum) {
    return vlp_add_layer_norm(tape, x, residual, norm->weight, norm->bias, norm->eps, sum);
}

vlp_tensor *vlp_norm_branch(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x,
                            vlp_tensor *residual, vlp_tensor **sum) {
    return vlp_branch_layer_norm(tape, x, residual, norm->weight, norm->bias, norm->eps, sum);
}

static void self_attention_declare(vlp_block *block, vlp_params *params,
                                   const vlp_block_config *c) {
    double std = vlp_init_std(c->width);
    vlp_norm_declare(&block->norm1, params, "norm1", c->width, c->eps);
    vlp_dense_declare(&block->qkv, params, "attn.qkv", c->width, 3 * c->width, !c->no_qkv_bias,
                      std);
    vlp_dense_declare(&block->proj, params, "attn.proj", c->width, c->width, true, std);
}

static void block_declare(vlp_block *block, vlp_params *params, const vlp_block_config *c) {
    double std = vlp_init_std(c->width);
    self_attention_declare(block, params, c);
    if (c->context_width > 0) {
        vlp_norm_declare(&block->norm_cross, params, "norm_cross", c->width, c->eps);
        vlp_dense_declare(&block->cross_q, params, "cross.q", c->width, c->width, true, std);
        vlp_dense_declare(&block->cross_kv, params, "cross.kv", c->context_width, 2 * c->width,
                          true, std);
        vlp_dense_declare(&block->cross_proj, params, "cross.proj", c->width, c->width, true, std);
    }
    vlp_norm_declare(&block->norm2, params, "norm2", c->width, c->eps);
    vlp_dense_declare(&block->fc1, params, "mlp.fc1", c->width, c->mlp_width, true, std);
    vlp_dense_declare(&block->fc2, params, "mlp.fc2", c->mlp_width, c->width, true, std);
    if (!c->layer_scale) return;
    vlp_init small = VLP_INIT_CONSTANT(1e-5);
    block->scale1 = vlp_params_add(params, "scale1", small, VLP_NO_DECAY, 1, &c->width);
    block->scale2 = vlp_params_add(params, "scale2", small, VLP_NO_DECAY, 1, &c->width);
}

vlp_status vlp_stack_declare(vlp_stack *stack, vlp_params *params, const vlp_block_config *config,
                             int64_t depth) {
    *stack = (vlp_stack){.config = *config, .depth = depth};
    if (depth < 0 || depth > VLP_MAX_DEPTH)
        return VLP_FAIL(VLP_ERR_USAGE, "%lld layers; 0 to %d are possible", (long long)depth,
                        VLP_MAX_DEPTH);
    if (config->heads < 1 || config->width % config->heads != 0)
        return VLP_FAIL(VLP_ERR_USAGE, "width %lld does not divide into %lld heads",
                        (long long)config->width, (long long)config->heads);
    stack->blocks = vlp_alloc_zero((size_t)depth, sizeof *stack->blocks);
    if (!stack->blocks) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < depth; i++) {
        vlp_params_push(params, "blocks.%lld", (long long)i);
        block_declare(&stack->blocks[i], params, config);
        vlp_params_pop(params);
        stack->blocks[i].drop_path =
            depth > 1 ? config->drop_path * (double)i / (double)(depth - 1) : 0;
    }
    return VLP_OK;
}

vlp_status vlp_stack_declare_shared(vlp_stack *stack, vlp_params *params, const vlp_stack *from) {
    *stack = (vlp_stack){.config = from->config, .depth = from->depth};
    stack->blocks = vlp_alloc_zero((size_t)from->depth, sizeof *stack->blocks);
    if (!stack->blocks) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < from->depth; i++) {
        stack->blocks[i] = from->blocks[i];
        vlp_params_push(params, "blocks.%lld", (long long)i);
        self_attention_declare(&stack->blocks[i], params, &from->config);
        vlp_params_pop(params);
    }
    return VLP_OK;
}

void vlp_stack_free(vlp_stack *stack) {
    vlp_free(stack->blocks);
    *stack = (vlp_stack){0};
}

void vlp_stack_context(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *context,
                       vlp_tensor **out) {
    for (int64_t i = 0; i < stack->depth; i++)
        out[i] = vlp_dense_forward(tape, &stack->blocks[i].cross_kv, context, VLP_ACT_NONE);
}

/* A pass through one stack, at one of its layers. */
typedef struct {
    vlp_tape *tape;
    const vlp_stack *stack;
    const vlp_block_config *c;
    const vlp_stack_input *in;
    int64_t layer;
    vlp_tensor *context; /* keys and values for this layer's cross-attention, or NULL */
} pass;

static pass pass_at(vlp_tape *tape, const vlp_stack *stack, const vlp_stack_input *in,
                    int64_t layer) {
    bool crosses = stack->config.context_width > 0 && in->context;
    return (pass){.tape = tape,
                  .stack = stack,
                  .c = &stack->config,
                  .in = in,
                  .layer = layer,
                  .context = crosses ? in->context[layer] : NULL};
}

/* One new token a sequence: its key and value join the cache, and it sees all that are there. */
static vlp_tensor *cached_attention(const pass *p, vlp_tensor *qkv) {
    const vlp_stack_cache *cache = p->in->cache;
    int64_t width = p->c->width, row = 2 * width;
    vlp_real *kv = cache->kv[p->layer];
    qkv = vlp_to_real(p->tape, qkv);
    if (!qkv) return NULL;
    for (int64_t b = 0; !vlp_tape_planning(p->tape) && b < cache->batch; b++)
        memcpy(kv + (b * cache->length + cache->at) * row,
               vlp_real_data(qkv) + b * 3 * width + width, (size_t)row * sizeof *kv);
    vlp_tensor *keys = vlp_tape_input(p->tape, VLP_REAL, 3,
                                      (int64_t[]){cache->batch, cache->length, row}, kv, false);
    return vlp_attention(p->tape, &(vlp_attention_args){.q = qkv,
                                                        .k = keys,
                                                        .v = keys,
                                                        .v_offset = width,
                                                        .heads = p->c->heads,
                                                        .head_width = width / p->c->heads,
                                                        .key_mask = cache->mask});
}

static vlp_tensor *full_attention(const pass *p, vlp_tensor *qkv) {
    return vlp_attention(p->tape, &(vlp_attention_args){.q = qkv,
                                                        .k = qkv,
                                                        .v = qkv,
                                                        .k_offset = p->c->width,
                                                        .v_offset = 2 * p->c->width,
                                                        .heads = p->c->heads,
                                                        .head_width = p->c->width / p->c->heads,
                                                        .key_mask = p->in->key_mask,
                                                        .causal = p->in->causal,
                                                        .dropout = p->c->attention_dropout});
}

static vlp_tensor *self_attention(const pass *p, const vlp_block *block, vlp_tensor *x) {
    vlp_tensor *qkv = vlp_dense_forward(p->tape, &block->qkv, x, VLP_ACT_NONE);
    vlp_tensor *y = p->in->cache ? cached_attention(p, qkv) : full_attention(p, qkv);
    y = vlp_dense_forward(p->tape, &block->proj, y, VLP_ACT_NONE);
    return vlp_dropout(p->tape, y, p->c->dropout);
}

static vlp_tensor *cross_attention(const pass *p, const vlp_block *block, vlp_tensor *x) {
    vlp_tensor *q = vlp_dense_forward(p->tape, &block->cross_q, x, VLP_ACT_NONE);
    vlp_tensor *y =
        vlp_attention(p->tape, &(vlp_attention_args){.q = q,
                                                     .k = p->context,
                                                     .v = p->context,
                                                     .v_offset = p->c->width,
                                                     .heads = p->c->heads,
                                                     .head_width = p->c->width / p->c->heads,
                                                     .key_mask = p->in->context_mask,
                                                     .kv_index = p->in->context_index,
                                                     .dropout = p->c->attention_dropout});
    y = vlp_dense_forward(p->tape, &block->cross_proj, y, VLP_ACT_NONE);
    return vlp_dropout(p->tape, y, p->c->dropout);
}

static vlp_tensor *mlp(const pass *p, const vlp_block *block, vlp_tensor *x) {
    vlp_tensor *h = vlp_dense_forward(p->tape, &block->fc1, x, p->c->act);
    vlp_tensor *y = vlp_dense_forward(p->tape, &block->fc2, h, VLP_ACT_NONE);
    return vlp_dropout(p->tape, vlp_forgetting(p->tape, h, y), p->c->dropout);
}

/* The last norm of a stack, if it has one there */
static vlp_tensor *finished(const pass *p, vlp_tensor *x) {
    return p->in->final_norm ? vlp_norm_forward(p->tape, p->in->final_norm, x) : x;
}

/* norm(x + branch); x too is done with where it is the stack's own. */
static vlp_tensor *norm_sum(const pass *p, const vlp_norm *norm, vlp_tensor *branch, vlp_tensor *x,
                            bool own) {
    vlp_tensor *y = vlp_norm_add(p->tape, norm, branch, x, NULL);
    if (own) vlp_tape_forget(p->tape, x);
    return vlp_forgetting(p->tape, branch, y);
}

static vlp_tensor *post_norm_block(const pass *p, vlp_tensor *x) {
    const vlp_block *block = &p->stack->blocks[p->layer];
    bool own = p->layer > 0 && !p->in->hidden;
    x = norm_sum(p, &block->norm1, self_attention(p, block, x), x, own);
    if (p->context) x = norm_sum(p, &block->norm_cross, cross_attention(p, block, x), x, true);
    return norm_sum(p, &block->norm2, mlp(p, block, x), x, true);
}

/* The stream of a pre-norm stack and the branch that is still to be added to it: the next norm adds
 * them in its own pass over memory. */
typedef struct {
    vlp_tensor *x, *branch;
    bool own; /* x belongs to the stack and is read by nobody else */
} stream;

static vlp_tensor *norm_stream(const pass *p, const vlp_norm *norm, stream *s) {
    vlp_tensor *branch = s->branch, *x = s->x;
    s->branch = NULL;
    if (!branch) return vlp_norm_branch(p->tape, norm, x, NULL, NULL);
    vlp_tensor *y = vlp_norm_branch(p->tape, norm, branch, x, &s->x);
    if (s->own) vlp_tape_forget(p->tape, x);
    s->own = !p->in->hidden;
    return vlp_forgetting(p->tape, branch, y);
}

static void keep_hidden(const pass *p, int64_t i, vlp_tensor *x) {
    if (p->in->hidden) p->in->hidden[i] = x;
}

static vlp_tensor *scaled(const pass *p, vlp_tensor *branch, vlp_tensor *gamma) {
    return gamma ? vlp_scale_features(p->tape, branch, gamma) : branch;
}

static void pre_norm_block(const pass *p, stream *s) {
    const vlp_block *block = &p->stack->blocks[p->layer];
    vlp_tensor *n = norm_stream(p, &block->norm1, s);
    keep_hidden(p, p->layer, s->x);
    vlp_tensor *y = vlp_forgetting(p->tape, n, self_attention(p, block, n));
    s->branch = vlp_drop_path(p->tape, scaled(p, y, block->scale1), block->drop_path);
    if (p->context) {
        n = norm_stream(p, &block->norm_cross, s);
        y = vlp_forgetting(p->tape, n, cross_attention(p, block, n));
        s->branch = vlp_drop_path(p->tape, y, block->drop_path);
    }
    n = norm_stream(p, &block->norm2, s);
    y = vlp_forgetting(p->tape, n, mlp(p, block, n));
    s->branch = vlp_drop_path(p->tape, scaled(p, y, block->scale2), block->drop_path);
}

/* One block by itself: from the stream before it to the stream after it */
static vlp_tensor *lone_block(const pass *p, vlp_tensor *x) {
    if (!p->c->pre_norm) return post_norm_block(p, x);
    stream s = {.x = x};
    pre_norm_block(p, &s);
    return vlp_add(p->tape, s.branch, s.x);
}

typedef struct {
    const vlp_stack *stack;
    vlp_stack_input in;
    int64_t layer;
} block_call;

static vlp_tensor *run_block(vlp_tape *tape, vlp_tensor *const *in, const void *ctx) {
    const block_call *call = ctx;
    pass p = {tape, call->stack, &call->stack->config, &call->in, call->layer, in[1]};
    return lone_block(&p, in[0]);
}

/* Blocks one by one, of which only the streams between them are kept. */
static vlp_tensor *recomputed(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                              const vlp_stack_input *in) {
    block_call call = {.stack = stack, .in = *in};
    for (call.layer = 0; call.layer < stack->depth && x; call.layer++) {
        vlp_tensor *inputs[] = {x, pass_at(tape, stack, in, call.layer).context};
        x = vlp_tape_recompute(tape, run_block, inputs, 2, &call, sizeof call);
    }
    pass end = {.tape = tape, .in = in};
    return finished(&end, x);
}

/* Nothing is kept for a backward pass: each block's memory serves the next. */
static vlp_tensor *inferred(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                            const vlp_stack_input *in) {
    size_t mark = vlp_tape_mark(tape);
    for (int64_t i = 0; i < stack->depth; i++) {
        pass p = pass_at(tape, stack, in, i);
        x = vlp_tape_release(tape, mark, lone_block(&p, x));
    }
    pass end = {.tape = tape, .in = in};
    return finished(&end, x);
}

static vlp_tensor *post_norm(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                             const vlp_stack_input *in) {
    pass p = {.tape = tape, .in = in};
    for (int64_t i = 0; i < stack->depth; i++) {
        p = pass_at(tape, stack, in, i);
        keep_hidden(&p, i, x);
        x = post_norm_block(&p, x);
    }
    keep_hidden(&p, stack->depth, x);
    return finished(&p, x);
}

static vlp_tensor *pre_norm(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                            const vlp_stack_input *in) {
    stream s = {.x = x};
    pass p = {.tape = tape, .in = in};
    for (int64_t i = 0; i < stack->depth; i++) {
        p = pass_at(tape, stack, in, i);
        pre_norm_block(&p, &s);
    }
    vlp_tensor *y;
    if (in->final_norm && s.branch) {
        vlp_tensor *before = s.x;
        y = vlp_norm_add(tape, in->final_norm, s.branch, before, in->hidden ? &s.x : NULL);
        if (s.own) vlp_tape_forget(tape, before);
        vlp_tape_forget(tape, s.branch);
    } else {
        if (s.branch) s.x = vlp_add(tape, s.branch, s.x);
        y = finished(&p, s.x);
    }
    keep_hidden(&p, stack->depth, s.x);
    return y;
}

vlp_tensor *vlp_stack_forward(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                              const vlp_stack_input *input) {
    if (!input->hidden && !vlp_tape_grad(tape)) return inferred(tape, stack, x, input);
    if (!input->hidden && vlp_tape_recomputes(tape)) return recomputed(tape, stack, x, input);
    return (stack->config.pre_norm ? pre_norm : post_norm)(tape, stack, x, input);
}
