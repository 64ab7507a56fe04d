#include "core/nn.h"

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

vlp_tensor *vlp_first_tokens(vlp_tape *tape, vlp_tensor *x) {
    if (!x) return NULL;
    int64_t batch = x->shape[0], length = x->shape[1];
    int32_t *rows = vlp_tape_alloc(tape, (size_t)batch * sizeof *rows);
    if (!rows) return NULL;
    if (!vlp_tape_planning(tape))
        for (int64_t b = 0; b < batch; b++) rows[b] = (int32_t)(b * length);
    return vlp_gather_rows(tape, x, rows, batch);
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

/* A pass through one stack. */
typedef struct {
    vlp_tape *tape;
    const vlp_block_config *c;
    const vlp_stack_input *in;
} pass;

/* One new token a sequence: its key and value join the cache, and it sees all that are there. */
static vlp_tensor *cached_attention(const pass *p, vlp_tensor *qkv, int64_t layer) {
    const vlp_stack_cache *cache = p->in->cache;
    int64_t width = p->c->width, row = 2 * width;
    vlp_real *kv = cache->kv[layer];
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

static vlp_tensor *self_attention(const pass *p, const vlp_block *block, vlp_tensor *x,
                                  int64_t layer) {
    vlp_tensor *qkv = vlp_dense_forward(p->tape, &block->qkv, x, VLP_ACT_NONE);
    vlp_tensor *y = p->in->cache ? cached_attention(p, qkv, layer) : full_attention(p, qkv);
    y = vlp_dense_forward(p->tape, &block->proj, y, VLP_ACT_NONE);
    return vlp_dropout(p->tape, y, p->c->dropout);
}

static vlp_tensor *cross_attention(const pass *p, const vlp_block *block, vlp_tensor *x,
                                   vlp_tensor *kv) {
    vlp_tensor *q = vlp_dense_forward(p->tape, &block->cross_q, x, VLP_ACT_NONE);
    vlp_tensor *y =
        vlp_attention(p->tape, &(vlp_attention_args){.q = q,
                                                     .k = kv,
                                                     .v = kv,
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
    vlp_tensor *y = vlp_dense_forward(p->tape, &block->fc1, x, p->c->act);
    y = vlp_dense_forward(p->tape, &block->fc2, y, VLP_ACT_NONE);
    return vlp_dropout(p->tape, y, p->c->dropout);
}

static void keep_hidden(const pass *p, int64_t i, vlp_tensor *x) {
    if (p->in->hidden) p->in->hidden[i] = x;
}

static bool has_context(const pass *p) {
    return p->c->context_width > 0 && p->in->context;
}

static vlp_tensor *post_norm(const pass *p, const vlp_stack *stack, vlp_tensor *x) {
    size_t mark = vlp_tape_mark(p->tape);
    for (int64_t i = 0; i < stack->depth; i++) {
        const vlp_block *block = &stack->blocks[i];
        keep_hidden(p, i, x);
        x = vlp_norm_add(p->tape, &block->norm1, self_attention(p, block, x, i), x, NULL);
        if (has_context(p))
            x = vlp_norm_add(p->tape, &block->norm_cross,
                             cross_attention(p, block, x, p->in->context[i]), x, NULL);
        x = vlp_norm_add(p->tape, &block->norm2, mlp(p, block, x), x, NULL);
        if (!p->in->hidden) x = vlp_tape_release(p->tape, mark, x);
    }
    keep_hidden(p, stack->depth, x);
    return p->in->final_norm ? vlp_norm_forward(p->tape, p->in->final_norm, x) : x;
}

/* The stream of a pre-norm stack and the branch that is still to be added to it: the next norm adds
 * them in its own pass over memory. */
typedef struct {
    vlp_tensor *x, *branch;
} stream;

static vlp_tensor *norm_stream(const pass *p, const vlp_norm *norm, stream *s) {
    vlp_tensor *branch = s->branch;
    s->branch = NULL;
    if (!branch) return vlp_norm_branch(p->tape, norm, s->x, NULL, NULL);
    return vlp_norm_branch(p->tape, norm, branch, s->x, &s->x);
}

/* The stack's last norm, which anybody may read */
static vlp_tensor *norm_end(const pass *p, const vlp_norm *norm, stream *s) {
    if (!s->branch) return vlp_norm_forward(p->tape, norm, s->x);
    return vlp_norm_add(p->tape, norm, s->branch, s->x, &s->x);
}

static void pre_norm_block(const pass *p, const vlp_block *block, stream *s, int64_t i) {
    vlp_tensor *n = norm_stream(p, &block->norm1, s);
    keep_hidden(p, i, s->x);
    s->branch = vlp_drop_path(p->tape, self_attention(p, block, n, i), block->drop_path);
    if (has_context(p)) {
        n = norm_stream(p, &block->norm_cross, s);
        s->branch = vlp_drop_path(p->tape, cross_attention(p, block, n, p->in->context[i]),
                                  block->drop_path);
    }
    n = norm_stream(p, &block->norm2, s);
    s->branch = vlp_drop_path(p->tape, mlp(p, block, n), block->drop_path);
}

static vlp_tensor *pre_norm(const pass *p, const vlp_stack *stack, vlp_tensor *x) {
    stream s = {.x = x};
    size_t mark = vlp_tape_mark(p->tape);
    for (int64_t i = 0; i < stack->depth; i++) {
        pre_norm_block(p, &stack->blocks[i], &s, i);
        if (vlp_tape_grad(p->tape) || p->in->hidden) continue;
        s.x = vlp_tape_release(p->tape, mark, vlp_add(p->tape, s.branch, s.x));
        s.branch = NULL;
    }
    if (p->in->final_norm) {
        vlp_tensor *y = norm_end(p, p->in->final_norm, &s);
        keep_hidden(p, stack->depth, s.x);
        return y;
    }
    if (s.branch) s.x = vlp_add(p->tape, s.branch, s.x);
    keep_hidden(p, stack->depth, s.x);
    return s.x;
}

vlp_tensor *vlp_stack_forward(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                              const vlp_stack_input *input) {
    pass p = {tape, &stack->config, input};
    return stack->config.pre_norm ? pre_norm(&p, stack, x) : post_norm(&p, stack, x);
}
