/* Layers: groups of parameters and the few ops that use them. A layer is a plain struct of borrowed
 * tensors of a parameter store; declare names them, forward builds on the tape.
 *
 *     vlp_stack stack;
 *     vlp_stack_declare(&stack, params, &config, depth);        // "blocks.0.attn.qkv.weight", ...
 *     y = vlp_stack_forward(tape, &stack, x, &(vlp_stack_input){.key_mask = mask});
 *     vlp_stack_free(&stack);
 */
#ifndef VLP_CORE_NN_H
#define VLP_CORE_NN_H

#include "core/ops.h"
#include "core/params.h"

/* y = x W^T + b.  weight [O, I]   bias [O] or NULL */
typedef struct {
    vlp_tensor *weight, *bias;
} vlp_dense;
void vlp_dense_declare(vlp_dense *dense, vlp_params *params, const char *name, int64_t in,
                       int64_t out, bool bias, double std);
vlp_tensor *vlp_dense_forward(vlp_tape *tape, const vlp_dense *dense, vlp_tensor *x, vlp_act act);

/* For a last layer: no activation, and vlp_real with any precision. */
vlp_tensor *vlp_dense_readout(vlp_tape *tape, const vlp_dense *dense, vlp_tensor *x);

/* next, made of old, which no op to come reads (vlp_tape_forget). */
vlp_tensor *vlp_forgetting(vlp_tape *tape, vlp_tensor *old, vlp_tensor *next);

/* The first token of each sample: x [B, L, D] -> [B, D] */
vlp_tensor *vlp_first_tokens(vlp_tape *tape, vlp_tensor *x);
/* Whole samples of x [B, L, D] in another order -> [n, L, D] */
vlp_tensor *vlp_gather_samples(vlp_tape *tape, vlp_tensor *x, const int32_t *order, int64_t n);
/* tanh(dense(first token)): the pooler of BERT and ViT.  x [B, L, D] -> [B, O] */
vlp_tensor *vlp_pooler_forward(vlp_tape *tape, const vlp_dense *pooler, vlp_tensor *x);

/* weight, bias [D] */
typedef struct {
    vlp_tensor *weight, *bias;
    double eps;
} vlp_norm;
void vlp_norm_declare(vlp_norm *norm, vlp_params *params, const char *name, int64_t width,
                      double eps);
vlp_tensor *vlp_norm_forward(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x);
/* Norm of x + residual; *sum (may be NULL) receives the sum. vlp_norm_branch is for norms that
 * only linear layers read (vlp_branch_layer_norm); residual and sum may be NULL. */
vlp_tensor *vlp_norm_branch(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x,
                            vlp_tensor *residual, vlp_tensor **sum);
vlp_tensor *vlp_norm_add(vlp_tape *tape, const vlp_norm *norm, vlp_tensor *x, vlp_tensor *residual,
                         vlp_tensor **sum);

/* Standard deviation of initial weights: 0.02 at the width of BERT-base and ViT-B (768), and the
 * same size of signal at other widths, which a fixed 0.02 lets fade in narrow models. */
double vlp_init_std(int64_t width);

/* A Transformer block.
 *   pre-norm  (ViT, GPT, CLIP):  x += attn(norm1 x);  x += mlp(norm2 x)
 *   post-norm (BERT, ALBEF):     x = norm1(x + attn x);  [x = norm_cross(x + cross(x, context));]
 *                                x = norm2(x + mlp x)
 * mlp = fc2(act(fc1 x)). Cross-attention exists when context_width > 0. */
typedef struct {
    int64_t width, heads, mlp_width, context_width;
    vlp_act act;
    bool pre_norm;
    bool no_qkv_bias; /* q, k and v are products only */
    bool layer_scale; /* pre-norm: branches times learned vectors before they are added */
    double eps;
    double dropout, attention_dropout, drop_path;
} vlp_block_config;

typedef struct {
    vlp_norm norm1, norm_cross, norm2;
    vlp_dense qkv, proj;                     /* rows of qkv: q | k | v, each H x K */
    vlp_dense cross_q, cross_kv, cross_proj; /* rows of cross_kv: k | v */
    vlp_dense fc1, fc2;
    vlp_tensor *scale1, *scale2; /* [D] or NULL: of self-attention and of the MLP */
    double drop_path;            /* grows linearly with depth up to the configured rate */
} vlp_block;

typedef struct {
    vlp_block_config config;
    int64_t depth;
    vlp_block *blocks; /* owned */
} vlp_stack;

vlp_status vlp_stack_declare(vlp_stack *stack, vlp_params *params, const vlp_block_config *config,
                             int64_t depth);
/* A second stack of the same shape that owns only its self-attention (norm1, qkv, proj): the
 * cross-attention, MLP and their norms are those of `from` (BLIP's decoder). */
vlp_status vlp_stack_declare_shared(vlp_stack *stack, vlp_params *params, const vlp_stack *from);
void vlp_stack_free(vlp_stack *stack);

enum { VLP_MAX_DEPTH = 128 };

/* Keys and values of the tokens that a causal stack has seen, so that each new token costs one row.
 * Inference only. */
typedef struct {
    int64_t batch, length; /* B sequences of at most `length` tokens */
    vlp_real *const *kv;   /* [depth] of [B, length, 2D], k | v, filled by the passes */
    const uint8_t *mask;   /* [B, length]: the tokens seen so far, the present one included */
    int64_t at;            /* the present token's place */
} vlp_stack_cache;

/* What a pass attends to. All pointers are borrowed for the step. */
typedef struct {
    const uint8_t *key_mask; /* [B, L] or NULL */
    bool causal;
    const vlp_stack_cache *cache; /* x is [B, 1, D], the token at cache->at; else NULL */
    vlp_tensor *const *context;   /* [depth] keys and values [Bc, Lc, 2D] from vlp_stack_context */
    const int32_t
        *context_index; /* [B]: which row of context each sample attends to; NULL = its own */
    const uint8_t *context_mask; /* [Bc, Lc] or NULL */
    const vlp_norm *final_norm;  /* applied to the output (pre-norm stacks) or NULL */
    vlp_tensor **hidden; /* [depth + 1] receives the stream before each block and after the last,
                            before final_norm; NULL = not wanted */
} vlp_stack_input;

/* Projects the rows that every layer's cross-attention reads, once for all passes that use them.
 * context [Bc, Lc, context_width] -> out[depth] of [Bc, Lc, 2D] */
void vlp_stack_context(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *context,
                       vlp_tensor **out);

/* x [B, L, D] -> [B, L, D] */
vlp_tensor *vlp_stack_forward(vlp_tape *tape, const vlp_stack *stack, vlp_tensor *x,
                              const vlp_stack_input *input);

#endif
