/* BERT-style text encoder (Devlin et al., 2019): ids to [B, L, D]. Post-norm blocks over the sum of
 * word, position and (optionally) segment embeddings. */
#ifndef VLP_TEXT_BERT_H
#define VLP_TEXT_BERT_H

#include "core/nn.h"
#include "text/tokens.h"

typedef struct {
    int64_t vocab, positions, types; /* types 0: no segment embeddings */
    int64_t width, depth, heads, mlp_width;
    int64_t context_width; /* above 0: every layer can attend to rows of that width (BLIP) */
    vlp_act act;
    double eps;
    int32_t pad_id; /* its embedding row gets no gradient from lookups; -1 = none */
    double dropout, attention_dropout;
} vlp_bert_config;

typedef struct {
    vlp_bert_config config;
    vlp_tensor *words;     /* [V, D] */
    vlp_tensor *positions; /* [Lmax, D] */
    vlp_tensor *types;     /* [T, D] or NULL */
    vlp_norm norm;
    vlp_stack stack;
} vlp_bert;

vlp_status vlp_bert_declare(vlp_bert *bert, vlp_params *params, const vlp_bert_config *config);
/* A decoder beside an encoder: its own self-attention, all else is the encoder's (BLIP). */
vlp_status vlp_bert_declare_shared(vlp_bert *bert, vlp_params *params, const vlp_bert *from);
void vlp_bert_free(vlp_bert *bert);

/* The same tokens without the columns that are padding in every row: what they give is the same,
 * for less work. ids and mask [B, L] are the caller's; out points into them. Needs an attention
 * mask that starts with the real tokens. */
void vlp_tokens_trim(const vlp_tokens *tokens, int32_t *ids, uint8_t *mask, vlp_tokens *out);

/* -> [B, L, D]. hidden [depth + 1] or NULL. */
vlp_tensor *vlp_bert_forward(vlp_tape *tape, const vlp_bert *bert, const vlp_tokens *tokens,
                             vlp_tensor **hidden);

/* The same with a context, a causal order or a cache: input's key_mask is the tokens' own. With a
 * cache the tokens are [B, 1] and stand at its place. */
vlp_tensor *vlp_bert_forward_with(vlp_tape *tape, const vlp_bert *bert, const vlp_tokens *tokens,
                                  const vlp_stack_input *input);

/* The same texts with another first token: [CLS] becomes [ENC] or [DEC]. In step memory. */
vlp_tokens vlp_tokens_begin_with(vlp_tape *tape, const vlp_tokens *tokens, int32_t id);

/* The MLM head: logits = norm(act(dense x)) words^T + bias, words tied to the encoder's table
 * unless the head has its own.  x [R, D] -> [R, V] */
typedef struct {
    vlp_dense dense;
    vlp_norm norm;
    vlp_tensor *bias;  /* [V] */
    vlp_tensor *words; /* [V, D], or NULL: tied */
} vlp_mlm_head;
void vlp_mlm_head_declare(vlp_mlm_head *head, vlp_params *params, const vlp_bert_config *config);
/* Gives the head a matrix of its own, "words". */
void vlp_mlm_head_untie(vlp_mlm_head *head, vlp_params *params, const vlp_bert_config *config);
vlp_tensor *vlp_mlm_head_forward(vlp_tape *tape, const vlp_mlm_head *head, const vlp_bert *bert,
                                 vlp_tensor *x);
/* Their cross-entropy with target [R] (host; negative = ignored) without keeping R x V logits. */
vlp_tensor *vlp_mlm_head_loss(vlp_tape *tape, const vlp_mlm_head *head, const vlp_bert *bert,
                              vlp_tensor *x, const int32_t *target, double label_smoothing);

#endif
