/* CLIP's text encoder (Radford et al., 2021): ids to [B, L, D]. A pre-norm stack over word and
 * position embeddings with a final LayerNorm. It is causal and read at the end-of-text token in
 * CLIP; SigLIP's sees every token, padding too, and is read at the last; CoCa's has a class token
 * of its own at the end. */
#ifndef VLP_TEXT_CLIP_TEXT_H
#define VLP_TEXT_CLIP_TEXT_H

#include "core/nn.h"
#include "text/tokens.h"

typedef enum {
    VLP_TEXT_END,   /* the first position of the largest id: end-of-text in CLIP's vocabulary */
    VLP_TEXT_LAST,  /* the last position, padding or not */
    VLP_TEXT_FIRST, /* the first */
} vlp_text_pool;

typedef struct {
    int64_t vocab, positions;
    int64_t width, depth, heads, mlp_width;
    vlp_act act;
    double eps;
    double attention_dropout;
    bool two_way;       /* not causal */
    bool reads_padding; /* attention masks are passed over: padding is seen */
    bool
        class_token; /* CoCa: behind the text; keys are hidden where the id before them is pad_id */
    bool layer_scale;
    int32_t pad_id;
    vlp_text_pool pool;
} vlp_clip_text_config;

typedef struct {
    vlp_clip_text_config config;
    vlp_tensor *words;       /* [V, D] */
    vlp_tensor *positions;   /* [Lmax, D], one more with a class token */
    vlp_tensor *class_token; /* [1, D] or NULL */
    vlp_stack stack;
    vlp_norm norm;
} vlp_clip_text;

vlp_status vlp_clip_text_declare(vlp_clip_text *text, vlp_params *params,
                                 const vlp_clip_text_config *config);
void vlp_clip_text_free(vlp_clip_text *text);

/* -> [B, L, D], normalised; with a class token [B, L + 1, D]. An attention mask, if given, acts on
 * top of the causal one; types are not read. hidden [depth + 1] or NULL: see vlp_stack_input. */
vlp_tensor *vlp_clip_text_forward(vlp_tape *tape, const vlp_clip_text *text,
                                  const vlp_tokens *tokens, vlp_tensor **hidden);

/* The row at which each text is read.  x [B, L, D] as forward gives it -> [B, D] */
vlp_tensor *vlp_clip_text_end(vlp_tape *tape, const vlp_clip_text *text, vlp_tensor *x,
                              const vlp_tokens *tokens);

#endif
