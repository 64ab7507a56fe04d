#include "objectives/mae.h"

#include "core/memory.h"
#include "vision/vit_positions.h"

#include <math.h>

vlp_status vlp_mae_declare(vlp_mae *mae, vlp_params *params, const vlp_vit_config *encoder,
                           const vlp_mae_config *config) {
    int64_t width = config->width;
    vlp_grid grid = {encoder->image_height / encoder->patch, encoder->image_width / encoder->patch};
    *mae = (vlp_mae){
        .config = *config, .prefix = vlp_vit_prefix(encoder), .patches = vlp_vit_patches(encoder)};
    if (width < 4 || width % 4 != 0 || width % config->heads != 0)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "a decoder of width %lld does not divide into %lld heads and fours",
                        (long long)width, (long long)config->heads);
    mae->positions =
        vlp_alloc((size_t)((mae->prefix + mae->patches) * width) * sizeof *mae->positions);
    if (!mae->positions) return VLP_ERR_MEMORY;
    vlp_position_waves(grid, mae->prefix, width, mae->positions);
    double std = vlp_init_std(width);
    vlp_dense_declare(&mae->embed, params, "embed", encoder->width, width, true,
                      vlp_init_std(encoder->width));
    mae->mask_token = vlp_params_add(params, "mask_token", VLP_INIT_TRUNCATED(std), VLP_NO_DECAY, 2,
                                     (int64_t[]){1, width});
    vlp_block_config block = {.width = width,
                              .heads = config->heads,
                              .mlp_width = config->mlp_width,
                              .act = encoder->act,
                              .pre_norm = true,
                              .eps = encoder->eps};
    VLP_TRY(vlp_stack_declare(&mae->stack, params, &block, config->depth));
    vlp_norm_declare(&mae->norm, params, "norm", width, encoder->eps);
    vlp_dense_declare(&mae->head, params, "head", width,
                      encoder->channels * encoder->patch * encoder->patch, true, std);
    return VLP_OK;
}

void vlp_mae_free(vlp_mae *mae) {
    vlp_stack_free(&mae->stack);
    vlp_free(mae->positions);
}

/* Which row each token of the whole is: of the embedded states, or `masked`, the one after them. */
static void unshuffle(const vlp_mae *mae, const int32_t *visible, int64_t batch, int64_t n,
                      int32_t *rows) {
    int64_t kept = mae->prefix + n, all = mae->prefix + mae->patches, masked = batch * kept;
    for (int64_t i = 0; i < batch * all; i++)
        rows[i] = (int32_t)(i % all < mae->prefix ? i / all * kept + i % all : masked);
    for (int64_t i = 0; i < batch * n; i++)
        rows[i / n * all + mae->prefix + visible[i]] =
            (int32_t)(i / n * kept + mae->prefix + i % n);
}

vlp_tensor *vlp_mae_decode(vlp_tape *tape, const vlp_mae *mae, vlp_tensor *latent,
                           const int32_t *visible, int64_t n) {
    if (!latent) return NULL;
    int64_t batch = latent->shape[0], all = mae->prefix + mae->patches, width = mae->config.width;
    int32_t *rows = vlp_tape_alloc(tape, (size_t)(batch * all) * sizeof *rows);
    if (!rows) return NULL;
    if (!vlp_tape_planning(tape)) unshuffle(mae, visible, batch, n, rows);
    vlp_tensor *x = vlp_dense_readout(tape, &mae->embed, latent);
    x = vlp_concat_rows(tape, x, mae->mask_token);
    x = vlp_gather_rows(tape, x, rows, batch * all);
    x = vlp_reshape(tape, x, 3, (int64_t[]){batch, all, width});
    vlp_tensor *positions =
        vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){all, width}, mae->positions, false);
    x = vlp_add_positions(tape, x, positions, 0);
    x = vlp_stack_forward(tape, &mae->stack, x, &(vlp_stack_input){.final_norm = &mae->norm});
    return x ? vlp_reshape(tape, x, 2, (int64_t[]){batch * all, width}) : NULL;
}

static void standardise(vlp_real *x, int64_t n) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    double root = sqrt(squares / (double)(n > 1 ? n - 1 : 1) + 1e-6);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)(((double)x[i] - mean) / root);
}

void vlp_mae_patch(const vlp_vit_config *c, const vlp_real *image, int64_t p, bool standardised,
                   vlp_real *out) {
    int64_t across = c->image_width / c->patch, plane = c->image_height * c->image_width, n = 0;
    int64_t top = p / across * c->patch, left = p % across * c->patch;
    for (int64_t y = top; y < top + c->patch; y++)
        for (int64_t x = left; x < left + c->patch; x++)
            for (int64_t ch = 0; ch < c->channels; ch++)
                out[n++] = image[ch * plane + y * c->image_width + x];
    if (standardised) standardise(out, n);
}
