/* CLIP (Radford et al., 2021): an image tower and a text tower without fusion, projected into one
 * space, compared by cosine.
 *
 *     vlp_clip_config_hf(&config, json, where);   sizes from the users' config.json
 *     vlp_clip_declare(&clip, params, &config);
 *     vlp_params_allocate(params, true);
 *     vlp_clip_names(&map, file);                 and the users' tensor names
 *     vlp_params_load(params, file, map, NULL);
 *       x = vlp_clip_image_tokens(tape, &clip, pixels, NULL);
 *       x = vlp_clip_project_image(tape, &clip, vlp_clip_image_pooled(tape, &clip, x));
 *     vlp_clip_free(&clip);                       the parameters remain the caller's */
#ifndef VLP_FUSION_CLIP_H
#define VLP_FUSION_CLIP_H

#include "core/checkpoint.h"
#include "core/json.h"
#include "text/clip_text.h"
#include "vision/vit.h"

typedef struct {
    vlp_vit_config vision;
    vlp_clip_text_config text;
    int64_t embedding;       /* E, of the shared space */
    double logit_scale_init; /* log of the initial inverse temperature */
} vlp_clip_config;

typedef struct {
    vlp_clip_config config;
    vlp_vit vision;       /* tokens are not normalised at the end ... */
    vlp_norm vision_norm; /* ... the class token is, when it is read */
    vlp_clip_text text;
    vlp_dense image_projection, text_projection; /* [E, D], no bias */
    vlp_tensor *logit_scale;                     /* scalar */
} vlp_clip;

/* config.json of Hugging Face's CLIPModel: text_config, vision_config, projection_dim. `where` is
 * the file. VLP_ERR_UNSUPPORTED for an unknown activation; the message lists the known ones. */
vlp_status vlp_clip_config_hf(vlp_clip_config *out, const vlp_json *json, const char *where);

/* Adds the tables that read `file` into a CLIP declared without a prefix. Known are Hugging Face's
 * names; otherwise VLP_ERR_UNSUPPORTED. */
vlp_status vlp_clip_names(vlp_name_map *map, const vlp_safetensors *file);

vlp_status vlp_clip_declare(vlp_clip *clip, vlp_params *params, const vlp_clip_config *config);
void vlp_clip_free(vlp_clip *clip);

/* pixels [B, C, H, W] -> [B, 1 + P, D]; hidden [vision depth + 1] or NULL */
vlp_tensor *vlp_clip_image_tokens(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pixels,
                                  vlp_tensor **hidden);
/* The normalised class token: [B, 1 + P, D] -> [B, D] */
vlp_tensor *vlp_clip_image_pooled(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *tokens);
/* -> [B, L, D]; hidden [text depth + 1] or NULL. Its pooling is vlp_clip_text_end. */
vlp_tensor *vlp_clip_text_tokens(vlp_tape *tape, const vlp_clip *clip, const vlp_tokens *tokens,
                                 vlp_tensor **hidden);

/* Into the shared space: pooled [B, D] -> [B, E], not normalised */
vlp_tensor *vlp_clip_project_image(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pooled);
vlp_tensor *vlp_clip_project_text(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *pooled);

/* exp(logit_scale) image text^T of normalised rows [Bi, E], [Bt, E] -> [Bi, Bt]. The scale is not
 * clamped here: trainers do that. */
vlp_tensor *vlp_clip_logits(vlp_tape *tape, const vlp_clip *clip, vlp_tensor *image,
                            vlp_tensor *text);
/* Half of the cross-entropies over rows and over columns; pairs lie on the diagonal.
 * logits [B, B] -> scalar */
vlp_tensor *vlp_clip_loss(vlp_tape *tape, vlp_tensor *logits);

#endif
