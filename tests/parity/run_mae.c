/* "MAE (official)" and "MAE (HF)": a pre-training step with given noise. */
#include "core/memory.h"
#include "objectives/mae.h"
#include "parity/model.h"
#include "parity/runners.h"
#include "vision/vit_config.h"
#include "vision/vit_names.h"
#include "vision/vit_positions.h"

#include <math.h>
#include <string.h>

typedef struct {
    vlp_vit vit;
    vlp_mae mae;
    int64_t batch, patches, kept;
    const vlp_real *pixels, *noise;
    int32_t *order;    /* [B, P]: patches by their noise */
    int32_t *visible;  /* [B, kept]: the first of each */
    vlp_real *targets; /* [B P, p p C] */
    bool standardised, hf;
    vlp_tensor *predicted; /* [B P, p p C], of the last pass */
} mae_run;

static const vlp_name_row official[] = {
    {.theirs = "decoder_pos_embed", .ours = NULL},
    {.theirs = "mask_token", .ours = "decoder.mask_token"},
    VLP_NAME_LAYER("decoder_embed", "decoder.embed"),
    VLP_NAME_LAYER("decoder_blocks.{}.norm1", "decoder.blocks.{}.norm1"),
    VLP_NAME_LAYER("decoder_blocks.{}.attn.qkv", "decoder.blocks.{}.attn.qkv"),
    VLP_NAME_LAYER("decoder_blocks.{}.attn.proj", "decoder.blocks.{}.attn.proj"),
    VLP_NAME_LAYER("decoder_blocks.{}.norm2", "decoder.blocks.{}.norm2"),
    VLP_NAME_LAYER("decoder_blocks.{}.mlp.fc1", "decoder.blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("decoder_blocks.{}.mlp.fc2", "decoder.blocks.{}.mlp.fc2"),
    VLP_NAME_LAYER("decoder_norm", "decoder.norm"),
    VLP_NAME_LAYER("decoder_pred", "decoder.head"),
};

static const vlp_name_row hf[] = {
    {.theirs = "decoder_pos_embed", .ours = NULL},
    {.theirs = "mask_token", .ours = "mask_token"},
    VLP_NAME_LAYER("decoder_embed", "embed"),
    VLP_NAME_LAYER("decoder_layers.{}.layernorm_before", "blocks.{}.norm1"),
    VLP_NAME_PART("decoder_layers.{}.attention.attention.query", "blocks.{}.attn.qkv", 0, 3),
    VLP_NAME_PART("decoder_layers.{}.attention.attention.key", "blocks.{}.attn.qkv", 1, 3),
    VLP_NAME_PART("decoder_layers.{}.attention.attention.value", "blocks.{}.attn.qkv", 2, 3),
    VLP_NAME_LAYER("decoder_layers.{}.attention.output.dense", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("decoder_layers.{}.layernorm_after", "blocks.{}.norm2"),
    VLP_NAME_LAYER("decoder_layers.{}.intermediate.dense", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("decoder_layers.{}.output.dense", "blocks.{}.mlp.fc2"),
    VLP_NAME_LAYER("decoder_norm", "norm"),
    VLP_NAME_LAYER("decoder_pred", "head"),
};

static vlp_mae_config decoder_of(const vlp_json *json, const mae_run *r) {
    if (r->hf)
        return (vlp_mae_config){.width = vlp_json_int(json, "decoder_hidden_size", 0),
                                .depth = vlp_json_int(json, "decoder_num_hidden_layers", 0),
                                .heads = vlp_json_int(json, "decoder_num_attention_heads", 1),
                                .mlp_width = vlp_json_int(json, "decoder_intermediate_size", 0)};
    int64_t width = vlp_json_int(json, "decoder_embed_dim", 0);
    double ratio = vlp_json_double(json, "mlp_ratio", 4);
    return (vlp_mae_config){.width = width,
                            .depth = vlp_json_int(json, "decoder_depth", 0),
                            .heads = vlp_json_int(json, "decoder_num_heads", 1),
                            .mlp_width = (int64_t)(ratio * (double)width)};
}

static vlp_status declare(parity_model *m, mae_run *r) {
    vlp_vit_config config;
    VLP_TRY(vlp_vit_config_read(&config, m->c->config, "config.json"));
    vlp_mae_config decoder = decoder_of(m->c->config, r);
    if (r->hf)
        vlp_name_map_add(&m->map, hf, VLP_COUNT(hf), "decoder.", "decoder.");
    else
        vlp_name_map_add(&m->map, official, VLP_COUNT(official), "", "");
    VLP_TRY(vlp_vit_names(&m->map, m->c->model, ""));
    VLP_TRY(vlp_vit_declare(&r->vit, m->params, &config));
    vlp_params_push(m->params, "decoder");
    vlp_status status = vlp_mae_declare(&r->mae, m->params, &config, &decoder);
    vlp_params_pop(m->params);
    return status;
}

/* An insertion sort: equal noise keeps its order. */
static void sort_by(const vlp_real *noise, int64_t n, int32_t *order) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0 && noise[order[at - 1]] > noise[i]; at--) order[at] = order[at - 1];
        order[at] = (int32_t)i;
    }
}

static vlp_status read_inputs(parity_model *m, mae_run *r) {
    const vlp_vit_config *c = &r->vit.config;
    VLP_TRY(parity_model_dim(m, "pixel_values", 0, &r->batch));
    VLP_TRY(parity_model_reals(m, "pixel_values", &r->pixels));
    VLP_TRY(parity_model_reals(m, "noise", &r->noise));
    r->patches = vlp_vit_patches(c);
    r->kept =
        (int64_t)((double)r->patches * (1 - vlp_json_double(m->c->config, "mask_ratio", 0.75)));
    r->standardised = vlp_json_bool(m->c->config, "norm_pix_loss", false);
    int64_t n = r->batch * r->patches, each = c->channels * c->patch * c->patch;
    r->order = parity_model_room(m, (size_t)n * sizeof *r->order);
    r->visible = parity_model_room(m, (size_t)n * sizeof *r->visible);
    r->targets = parity_model_room(m, (size_t)(n * each) * sizeof *r->targets);
    if (!r->order || !r->visible || !r->targets) return VLP_ERR_MEMORY;
    for (int64_t b = 0; b < r->batch; b++) {
        int32_t *order = r->order + b * r->patches;
        sort_by(r->noise + b * r->patches, r->patches, order);
        memcpy(r->visible + b * r->kept, order, (size_t)r->kept * sizeof *order);
    }
    return VLP_OK;
}

static void fill_targets(const mae_run *r, bool standardised) {
    const vlp_vit_config *c = &r->vit.config;
    int64_t each = c->channels * c->patch * c->patch, image = each * r->patches;
    for (int64_t i = 0; i < r->batch * r->patches; i++)
        vlp_mae_patch(c, r->pixels + i / r->patches * image, i % r->patches, standardised,
                      r->targets + i * each);
}

/* The masked patches: their rows of [B P] and their targets. */
static vlp_tensor *masked_loss(parity_model *m, const mae_run *r, vlp_tensor *predicted) {
    int64_t each = vlp_col_count(predicted), hidden = r->patches - r->kept, n = r->batch * hidden;
    int32_t *rows = vlp_tape_alloc(m->tape, (size_t)n * sizeof *rows);
    vlp_real *target = vlp_tape_alloc(m->tape, (size_t)(n * each) * sizeof *target);
    if (!rows || !target) return NULL;
    if (!vlp_tape_planning(m->tape)) fill_targets(r, r->standardised);
    for (int64_t i = 0; !vlp_tape_planning(m->tape) && i < n; i++) {
        int64_t b = i / hidden;
        rows[i] = (int32_t)(b * r->patches) + r->order[b * r->patches + r->kept + i % hidden];
        memcpy(target + i * each, r->targets + rows[i] * each, (size_t)each * sizeof *target);
    }
    vlp_tensor *x = vlp_gather_rows(m->tape, predicted, rows, n);
    return vlp_regression_loss(m->tape, x, target, VLP_LOSS_MSE);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    mae_run *r = ctx;
    const vlp_vit_config *c = &r->vit.config;
    int64_t prefix = vlp_vit_prefix(c), n = r->batch * r->patches;
    vlp_tensor *pixels = parity_graph_input(m, "pixel_values", r->pixels);
    vlp_tensor *x = vlp_vit_forward_visible(m->tape, &r->vit, pixels, r->visible, r->kept, NULL);
    parity_output(m, x, "latent");
    x = vlp_mae_decode(m->tape, &r->mae, x, r->visible, r->kept);
    int32_t *rows = vlp_tape_alloc(m->tape, (size_t)n * sizeof *rows);
    if (!x || !rows) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(m->tape) && i < n; i++)
        rows[i] = (int32_t)(i / r->patches * (prefix + r->patches) + prefix + i % r->patches);
    x = vlp_dense_readout(m->tape, &r->mae.head, vlp_gather_rows(m->tape, x, rows, n));
    if (!x) return NULL;
    r->predicted = x;
    int64_t shape[] = {r->batch, r->patches, vlp_col_count(x)};
    parity_output(m, vlp_reshape(m->tape, x, 3, shape), "%s", r->hf ? "logits" : "pred");
    return masked_loss(m, r, x);
}

static vlp_status expect_order(parity_model *m, const mae_run *r) {
    int64_t n = r->batch * r->patches, shape[] = {r->batch, r->patches};
    int32_t *restore = parity_model_room(m, (size_t)n * sizeof *restore);
    vlp_real *mask = parity_model_room(m, (size_t)n * sizeof *mask);
    if (!restore || !mask) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / r->patches * r->patches + r->order[i], rank = i % r->patches;
        restore[at] = (int32_t)rank;
        mask[at] = rank < r->kept ? 0 : 1;
    }
    parity_expect_i32(m->report, "ids_restore", 2, shape, restore);
    parity_expect(m->report, "mask", 2, shape, mask);
    return VLP_OK;
}

static vlp_status expect_positions(parity_model *m, const mae_run *r) {
    const vlp_vit_config *c = &r->vit.config;
    int64_t shape[] = {vlp_vit_prefix(c) + r->patches, c->width};
    vlp_real *waves = parity_model_room(m, (size_t)(shape[0] * shape[1]) * sizeof *waves);
    if (!waves) return VLP_ERR_MEMORY;
    vlp_grid grid = {c->image_height / c->patch, c->image_width / c->patch};
    vlp_position_waves(grid, vlp_vit_prefix(c), c->width, waves);
    parity_expect(m->report, "sincos_pos_embed", 2, shape, waves);
    return VLP_OK;
}

/* The predictions as images. */
static vlp_status expect_images(parity_model *m, const mae_run *r) {
    const vlp_vit_config *c = &r->vit.config;
    int64_t each = c->channels * c->patch * c->patch, across = c->image_width / c->patch;
    int64_t shape[] = {r->batch, c->channels, c->image_height, c->image_width};
    vlp_real *images = parity_model_room(m, (size_t)vlp_numel(r->predicted) * sizeof *images);
    if (!images) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < vlp_numel(r->predicted); i++) {
        int64_t row = i / each, p = row % r->patches, ch = i % each % c->channels;
        int64_t y = p / across * c->patch + i % each / c->channels / c->patch;
        int64_t x = p % across * c->patch + i % each / c->channels % c->patch;
        images[((row / r->patches * c->channels + ch) * c->image_height + y) * c->image_width + x] =
            vlp_real_data(r->predicted)[i];
    }
    parity_expect(m->report, "unpatchified", 4, shape, images);
    return VLP_OK;
}

static vlp_status run(parity_model *m, mae_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_run(m, build, r));
    VLP_TRY(expect_order(m, r));
    VLP_TRY(expect_positions(m, r));
    VLP_TRY(expect_images(m, r));
    fill_targets(r, false);
    int64_t shape[] = {r->batch, r->patches, vlp_col_count(r->predicted)};
    parity_expect(m->report, "target_patches", 3, shape, r->targets);
    return VLP_OK;
}

vlp_status parity_run_mae(const parity_case *c, parity_report *report) {
    parity_model m;
    mae_run r = {.hf = strcmp(c->system, "MAE (HF)") == 0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_mae_free(&r.mae);
    vlp_vit_free(&r.vit);
    parity_model_close(&m);
    return status;
}
