/* Cross-modal fusion: text tokens attend to image patches in every layer (ALBEF, Li et al., 2021):
 * post-norm blocks of self-attention, cross-attention and MLP. */
#ifndef VLP_FUSION_FUSION_H
#define VLP_FUSION_FUSION_H

#include "core/nn.h"

typedef struct {
    int64_t width, depth, heads, mlp_width;
    int64_t image_width; /* of the rows attended to */
    vlp_act act;
    double eps;
    double dropout, attention_dropout;
} vlp_fusion_config;

typedef struct {
    vlp_fusion_config config;
    vlp_stack stack;
} vlp_fusion;

vlp_status vlp_fusion_declare(vlp_fusion *fusion, vlp_params *params,
                              const vlp_fusion_config *config);
void vlp_fusion_free(vlp_fusion *fusion);

/* The keys and values of images [Bi, 1 + P, image_width] for every layer, projected once and shared
 * by all passes of a step: keys[depth]. */
void vlp_fusion_keys(vlp_tape *tape, const vlp_fusion *fusion, vlp_tensor *images,
                     vlp_tensor **keys);

/* text [B, L, D], mask [B, L]; sample b attends to image image_index[b] (NULL = b) -> [B, L, D] */
vlp_tensor *vlp_fusion_forward(vlp_tape *tape, const vlp_fusion *fusion, vlp_tensor *text,
                               const uint8_t *mask, vlp_tensor *const *keys,
                               const int32_t *image_index);

#endif
