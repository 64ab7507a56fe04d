/* CLIP's text encoder (Radford et al., 2021): ids to [B, L, D]. A causal pre-norm stack over word
 * and position embeddings with a final LayerNorm; a text is read at its end-of-text token. */
#ifndef VLP_TEXT_CLIP_TEXT_H
#define VLP_TEXT_CLIP_TEXT_H

#include "core/nn.h"
#include "text/tokens.h"

typedef struct {
    int64_t vocab, positions;
    int64_t width, depth, heads, mlp_width;
    vlp_act act;
    double eps;
    double attention_dropout;
} vlp_clip_text_config;

typedef struct {
    vlp_clip_text_config config;
    vlp_tensor *words;     /* [V, D] */
    vlp_tensor *positions; /* [Lmax, D] */
    vlp_stack stack;
    vlp_norm norm;
} vlp_clip_text;

vlp_status vlp_clip_text_declare(vlp_clip_text *text, vlp_params *params,
                                 const vlp_clip_text_config *config);
void vlp_clip_text_free(vlp_clip_text *text);

/* -> [B, L, D], normalised. An attention mask, if given, acts on top of the causal one; types are
 * not read. hidden [depth + 1] or NULL: see vlp_stack_input. */
vlp_tensor *vlp_clip_text_forward(vlp_tape *tape, const vlp_clip_text *text,
                                  const vlp_tokens *tokens, vlp_tensor **hidden);

/* The row of each text's end: the first position of its largest id, which is the end-of-text token
 * in CLIP's vocabulary.  x [B, L, D] -> [B, D] */
vlp_tensor *vlp_clip_text_end(vlp_tape *tape, vlp_tensor *x, const vlp_tokens *tokens);

#endif
