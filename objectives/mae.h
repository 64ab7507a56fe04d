/* The light decoder of a masked autoencoder (He et al., 2022): of the encoder's states of the
 * visible patches and a token for each hidden one it makes the states that pixels are read from.
 *
 *     latent = vlp_vit_forward_visible(tape, vit, pixels, visible, n, NULL);
 *     states = vlp_mae_decode(tape, &decoder, latent, visible, n);
 *     pixels = vlp_dense_readout(tape, &decoder.head, vlp_gather_rows(tape, states, rows, count));
 */
#ifndef VLP_OBJECTIVES_MAE_H
#define VLP_OBJECTIVES_MAE_H

#include "vision/vit.h"

typedef struct {
    int64_t width, depth, heads, mlp_width; /* heads divides width, which is a multiple of 4 */
} vlp_mae_config;

typedef struct {
    vlp_mae_config config;
    int64_t prefix, patches;
    vlp_dense embed;        /* [Dd, D] */
    vlp_tensor *mask_token; /* [1, Dd] */
    vlp_stack stack;
    vlp_norm norm;
    vlp_dense head;      /* [p p C, Dd] */
    vlp_real *positions; /* [1 + P, Dd], owned: waves, not learned */
} vlp_mae;

/* Declares "embed", "mask_token", "blocks.N...", "norm" and "head" for an encoder. free is legal
 * after a failure. VLP_ERR_USAGE where the sizes do not fit. */
vlp_status vlp_mae_declare(vlp_mae *mae, vlp_params *params, const vlp_vit_config *encoder,
                           const vlp_mae_config *config);
void vlp_mae_free(vlp_mae *mae);

/* latent [B, 1 + n, D] of the patches visible [B, n] (host) -> [B (1 + P), Dd], normalised. */
vlp_tensor *vlp_mae_decode(vlp_tape *tape, const vlp_mae *mae, vlp_tensor *latent,
                           const int32_t *visible, int64_t n);

/* The pixels of patch p of an image [C, H, W], in the order y, x, c; standardised: less their mean,
 * over the root of their variance (n - 1) + 1e-6. */
void vlp_mae_patch(const vlp_vit_config *encoder, const vlp_real *image, int64_t p,
                   bool standardised, vlp_real *out);

#endif
