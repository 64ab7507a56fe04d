/* Vision Transformer (Dosovitskiy et al., 2021): pixels to patches to [B, 1 + P, D].
 * Pre-norm blocks, a class token first, learned positions, final LayerNorm. CLIP's variant has no
 * patch bias and a LayerNorm before the blocks. */
#ifndef VLP_VISION_VIT_H
#define VLP_VISION_VIT_H

#include "core/nn.h"

typedef struct {
    int64_t image_height, image_width, channels, patch;
    int64_t width, depth, heads, mlp_width;
    vlp_act act;
    double eps;
    bool no_class_token;       /* SigLIP */
    bool distillation_token;   /* DeiT: a second token, which a second head reads */
    bool patch_bias;           /* false: CLIP */
    bool layer_scale;          /* see vlp_block_config */
    bool no_qkv_bias;          /* see vlp_block_config */
    bool input_norm;           /* a LayerNorm on the embeddings: CLIP's pre_layrnorm */
    bool output_norm;          /* false: the caller normalises what it reads */
    bool mean_pool;            /* a classifier reads the mean of the patches and normalises that */
    bool mask_token;           /* declares the token that stands for masked patches (MIM) */
    double interpolate_offset; /* see vlp_position_weights; for images of another size */
    double dropout, attention_dropout, drop_path;
} vlp_vit_config;

typedef struct {
    vlp_vit_config config;
    vlp_dense patch_embed;          /* weight [D, C p p] */
    vlp_tensor *class_token;        /* [1, D] or NULL */
    vlp_tensor *distillation_token; /* [1, D] or NULL */
    vlp_tensor *positions;          /* [tokens before + P, D] */
    vlp_tensor *mask_token;         /* [D] or NULL */
    vlp_norm input_norm, norm;
    vlp_stack stack;
} vlp_vit;

/* Declares the parameters; VLP_ERR_USAGE names sizes that do not fit. */
vlp_status vlp_vit_declare(vlp_vit *vit, vlp_params *params, const vlp_vit_config *config);
void vlp_vit_free(vlp_vit *vit);

int64_t vlp_vit_patches(const vlp_vit_config *config); /* P */
/* Tokens before the patches: 1, or 0 without a class token, or 2 with a distillation token. Where
 * the comments of this folder say 1 + P, that many + P. */
int64_t vlp_vit_prefix(const vlp_vit_config *config);

/* The positions [1 + P', D] for images of height x width: interpolated where that is not the
 * configured size. */
vlp_tensor *vlp_vit_positions(vlp_tape *tape, const vlp_vit *vit, int64_t height, int64_t width);

/* pixels [B, C, H, W] (normalised) -> [B, 1 + P, D]. H and W may differ from the configured size;
 * they are multiples of the patch.
 * mask [B, P] (host, 1 = replaced by the mask token before positions are added; SimMIM) or NULL.
 * hidden [depth + 1] or NULL: see vlp_stack_input. */
vlp_tensor *vlp_vit_forward(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *pixels,
                            const uint8_t *mask, vlp_tensor **hidden);

/* The same for a part of the patches of each image (MAE): visible [B, n] (host) are their numbers,
 * which have the positions that they have in the whole -> [B, 1 + n, D], in that order. */
vlp_tensor *vlp_vit_forward_visible(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *pixels,
                                    const int32_t *visible, int64_t n, vlp_tensor **hidden);

#endif
