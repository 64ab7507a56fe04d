/* One vector an image from a ViT's tokens: the class token, the mean of the patches, SigLIP's head
 * (Zhai et al., 2023), or CoCa's attentional pooler (Yu et al., 2022). */
#ifndef VLP_VISION_VIT_POOL_H
#define VLP_VISION_VIT_POOL_H

#include "core/attend.h"
#include "vision/vit.h"

typedef enum {
    VLP_POOL_FIRST,
    VLP_POOL_MEAN,    /* of the patches */
    VLP_POOL_MAP,     /* h = attention of a learned row; h + mlp(norm h) */
    VLP_POOL_QUERIES, /* attention of learned rows, of which the first is the image's */
} vlp_pool_kind;

typedef struct {
    vlp_pool_kind kind;
    int64_t queries, heads, width; /* QUERIES: how many rows, and their width; MAP: heads */
} vlp_vit_pool_config;

typedef struct {
    vlp_vit_pool_config config;
    int64_t prefix; /* tokens before the patches */
    vlp_act act;
    vlp_tensor *queries; /* [n, width] */
    vlp_attend attend;
    vlp_norm query_norm, token_norm; /* QUERIES: before attention */
    vlp_norm norm;                   /* MAP: before the MLP; QUERIES: of the result */
    vlp_dense fc1, fc2;              /* MAP */
} vlp_vit_pool;

/* Declares "queries", "attend" and so on; nothing for FIRST and MEAN. */
void vlp_vit_pool_declare(vlp_vit_pool *pool, vlp_params *params, const vlp_vit_pool_config *config,
                          const vlp_vit_config *vit);
int64_t vlp_vit_pool_width(const vlp_vit_pool_config *config, const vlp_vit_config *vit);

/* tokens [B, 1 + P, D] -> [B, width]. *rest, if asked for, receives the other rows of QUERIES
 * [B, n - 1, width]. */
vlp_tensor *vlp_vit_pool_forward(vlp_tape *tape, const vlp_vit_pool *pool, vlp_tensor *tokens,
                                 vlp_tensor **rest);

#endif
