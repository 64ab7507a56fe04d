#include "vision/vit.h"

#include "vision/vit_positions.h"

int64_t vlp_vit_patches(const vlp_vit_config *c) {
    return (c->image_height / c->patch) * (c->image_width / c->patch);
}

int64_t vlp_vit_prefix(const vlp_vit_config *c) {
    return (c->no_class_token ? 0 : 1) + (c->distillation_token ? 1 : 0);
}

static vlp_tensor *declare_token(vlp_params *params, const char *name, int64_t width) {
    return vlp_params_add(params, name, VLP_INIT_TRUNCATED(vlp_init_std(width)), VLP_NO_DECAY, 2,
                          (int64_t[]){1, width});
}

vlp_status vlp_vit_declare(vlp_vit *vit, vlp_params *params, const vlp_vit_config *c) {
    *vit = (vlp_vit){.config = *c};
    if (c->patch < 1 || c->image_height < c->patch || c->image_width < c->patch ||
        c->image_height % c->patch != 0 || c->image_width % c->patch != 0)
        return VLP_FAIL(VLP_ERR_USAGE, "an image of %lldx%lld does not divide into patches of %lld",
                        (long long)c->image_width, (long long)c->image_height, (long long)c->patch);
    vlp_dense_declare(&vit->patch_embed, params, "patch_embed", c->channels * c->patch * c->patch,
                      c->width, c->patch_bias, vlp_init_std(c->width));
    if (!c->no_class_token) vit->class_token = declare_token(params, "class_token", c->width);
    if (c->distillation_token)
        vit->distillation_token = declare_token(params, "distillation_token", c->width);
    vit->positions = vlp_params_add(params, "positions", VLP_INIT_TRUNCATED(vlp_init_std(c->width)),
                                    VLP_NO_DECAY, 2,
                                    (int64_t[]){vlp_vit_prefix(c) + vlp_vit_patches(c), c->width});
    if (c->mask_token)
        vit->mask_token =
            vlp_params_add(params, "mask_token", VLP_INIT_TRUNCATED(vlp_init_std(c->width)),
                           VLP_NO_DECAY, 1, &c->width);
    if (c->input_norm) vlp_norm_declare(&vit->input_norm, params, "input_norm", c->width, c->eps);
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .act = c->act,
                              .pre_norm = true,
                              .no_qkv_bias = c->no_qkv_bias,
                              .layer_scale = c->layer_scale,
                              .eps = c->eps,
                              .dropout = c->dropout,
                              .attention_dropout = c->attention_dropout,
                              .drop_path = c->drop_path};
    VLP_TRY(vlp_stack_declare(&vit->stack, params, &block, c->depth));
    if (c->output_norm) vlp_norm_declare(&vit->norm, params, "norm", c->width, c->eps);
    return VLP_OK;
}

void vlp_vit_free(vlp_vit *vit) {
    vlp_stack_free(&vit->stack);
}

vlp_tensor *vlp_vit_positions(vlp_tape *tape, const vlp_vit *vit, int64_t height, int64_t width) {
    const vlp_vit_config *c = &vit->config;
    if (height == c->image_height && width == c->image_width) return vit->positions;
    vlp_grid from = {c->image_height / c->patch, c->image_width / c->patch};
    vlp_grid to = {height / c->patch, width / c->patch};
    int64_t prefix = vlp_vit_prefix(c);
    int64_t shape[] = {prefix + to.rows * to.columns, prefix + from.rows * from.columns};
    vlp_real *matrix = vlp_tape_alloc(tape, (size_t)(shape[0] * shape[1]) * sizeof *matrix);
    if (!matrix) return NULL;
    if (!vlp_tape_planning(tape))
        vlp_position_weights(from, to, prefix, c->interpolate_offset, matrix);
    vlp_tensor *weights = vlp_tape_input(tape, VLP_REAL, 2, shape, matrix, false);
    return vlp_linear(tape, weights, vlp_transpose(tape, vit->positions), NULL, VLP_ACT_NONE);
}

static vlp_tensor *embed(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *pixels,
                         const uint8_t *mask) {
    vlp_tensor *positions = vlp_vit_positions(tape, vit, pixels->shape[2], pixels->shape[3]);
    vlp_tensor *x = vlp_patch_embed(tape, pixels, vit->patch_embed.weight, vit->patch_embed.bias,
                                    vit->config.patch);
    if (mask) x = vlp_forgetting(tape, x, vlp_mask_rows(tape, x, vit->mask_token, mask));
    if (vit->distillation_token)
        x = vlp_forgetting(tape, x, vlp_prepend_tokens(tape, vit->distillation_token, x));
    if (vit->class_token)
        x = vlp_forgetting(tape, x, vlp_prepend_tokens(tape, vit->class_token, x));
    return vlp_forgetting(tape, x, vlp_add_positions(tape, x, positions, 0));
}

static vlp_tensor *encode(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *x, vlp_tensor **hidden) {
    const vlp_vit_config *c = &vit->config;
    x = vlp_forgetting(tape, x, vlp_dropout(tape, x, c->dropout));
    if (c->input_norm) x = vlp_forgetting(tape, x, vlp_norm_forward(tape, &vit->input_norm, x));
    vlp_tensor *y = vlp_stack_forward(
        tape, &vit->stack, x,
        &(vlp_stack_input){.final_norm = c->output_norm ? &vit->norm : NULL, .hidden = hidden});
    return hidden ? y : vlp_forgetting(tape, x, y);
}

vlp_tensor *vlp_vit_forward(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *pixels,
                            const uint8_t *mask, vlp_tensor **hidden) {
    if (!pixels) return NULL;
    return encode(tape, vit, embed(tape, vit, pixels, mask), hidden);
}

vlp_tensor *vlp_vit_forward_visible(vlp_tape *tape, const vlp_vit *vit, vlp_tensor *pixels,
                                    const int32_t *visible, int64_t n, vlp_tensor **hidden) {
    vlp_tensor *x = pixels ? embed(tape, vit, pixels, NULL) : NULL;
    if (!x) return NULL;
    int64_t batch = x->shape[0], all = x->shape[1], width = x->shape[2];
    int64_t prefix = vlp_vit_prefix(&vit->config), kept = prefix + n;
    int32_t *rows = vlp_tape_alloc(tape, (size_t)(batch * kept) * sizeof *rows);
    if (!rows) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < batch * kept; i++) {
        int64_t b = i / kept, at = i % kept;
        rows[i] = (int32_t)(b * all + (at < prefix ? at : prefix + visible[b * n + at - prefix]));
    }
    x = vlp_forgetting(tape, x, vlp_gather_rows(tape, x, rows, batch * kept));
    x = vlp_reshape(tape, x, 3, (int64_t[]){batch, kept, width});
    return encode(tape, vit, x, hidden);
}
