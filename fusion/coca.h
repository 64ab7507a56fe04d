/* CoCa (Yu et al., 2022), open_clip's: beside its two towers, which are a vlp_model, a decoder of
 * captions. Every layer is a causal block over the text and a block of cross-attention to the
 * image's rows, each with an MLP of its own. Its parameters begin with "objective.captions.". */
#ifndef VLP_FUSION_COCA_H
#define VLP_FUSION_COCA_H

#include "fusion/clip.h"

typedef struct {
    int64_t width, depth, heads, mlp_width, vocab;
    vlp_act act;
    double eps;
} vlp_coca_config;

typedef struct {
    vlp_stack text; /* of one block */
    vlp_norm norm1, norm_kv, norm2;
    vlp_attend attend;
    vlp_dense fc1, fc2;
} vlp_coca_layer;

typedef struct {
    vlp_coca_config config;
    vlp_coca_layer *layers; /* [depth], owned */
    vlp_norm norm;
    vlp_dense head; /* [V, D], no bias */
} vlp_coca;

/* open_clip's "multimodal_cfg"; width 0 where there is none. */
vlp_status vlp_coca_config_read(vlp_coca_config *out, const vlp_json *json, const char *where);
vlp_status vlp_coca_declare(vlp_coca *coca, vlp_params *params, const vlp_coca_config *config);
void vlp_coca_free(vlp_coca *coca);
/* Adds the decoder's table: vlp_clip_names does for files that have one. */
void vlp_coca_names(vlp_name_map *map);

/* image [B, n, D], text [B, L, D] (the text tower's stream before its last norm, without the class
 * token) -> logits [B, L, V] */
vlp_tensor *vlp_coca_logits(vlp_tape *tape, const vlp_coca *coca, vlp_tensor *image,
                            vlp_tensor *text);

#endif
