#include "vision/vit_names.h"

#include "core/gemm.h"
#include "core/memory.h"
#include "vision/vit_positions.h"

#include <math.h>

enum { MOST_VALUES = 1 << 28 };

static int64_t side_of_square(int64_t n) {
    int64_t side = (int64_t)llround(sqrt((double)n));
    return side > 0 && side * side == n ? side : 0;
}

/* Positions learned at another image size: both grids are square, after one class token. */
static vlp_status resample(const vlp_safetensor *theirs, const vlp_tensor *ours, vlp_real *out,
                           bool smooth) {
    int64_t width = vlp_col_count(ours), rows = vlp_row_count(ours);
    if (theirs->ndim < 2 || theirs->shape[theirs->ndim - 1] != width || theirs->numel > MOST_VALUES)
        return VLP_ERR_UNSUPPORTED;
    int64_t old = theirs->numel / width;
    int64_t from = side_of_square(old - 1), to = side_of_square(rows - 1);
    if (from == 0 || to == 0) return VLP_ERR_UNSUPPORTED;
    vlp_real *table = vlp_alloc_zero((size_t)theirs->numel, sizeof *table);
    vlp_real *matrix = vlp_alloc_zero((size_t)(rows * old), sizeof *matrix);
    vlp_status status = table && matrix ? VLP_OK : VLP_ERR_MEMORY;
    if (status == VLP_OK) status = vlp_safetensors_read_real(theirs, table, theirs->numel);
    if (status == VLP_OK) {
        vlp_grid old_grid = {from, from}, new_grid = {to, to};
        if (smooth)
            vlp_position_weights_smooth(old_grid, new_grid, 1, matrix);
        else
            vlp_position_weights(old_grid, new_grid, 1, 0, matrix);
        vlp_gemm(false, false, rows, width, old, 1, matrix, old, table, width, 0, out, width);
    }
    vlp_free(table);
    vlp_free(matrix);
    return status;
}

static vlp_status resample_positions(const vlp_safetensor *theirs, const vlp_tensor *ours,
                                     vlp_real *out) {
    return resample(theirs, ours, out, false);
}

vlp_status vlp_vit_resample_smooth(const vlp_safetensor *theirs, const vlp_tensor *ours,
                                   vlp_real *out) {
    return resample(theirs, ours, out, true);
}

static const vlp_name_row timm[] = {
    {.theirs = "cls_token", .ours = "class_token", .shape = VLP_SHAPE_TOKEN},
    {.theirs = "pos_embed",
     .ours = "positions",
     .shape = VLP_SHAPE_BATCH,
     .convert = resample_positions},
    {.theirs = "mask_token", .ours = "mask_token", .shape = VLP_SHAPE_TOKEN},
    {.theirs = "patch_embed.proj.weight", .ours = "patch_embed.weight", .shape = VLP_SHAPE_PATCH},
    {.theirs = "patch_embed.proj.bias", .ours = "patch_embed.bias"},
    VLP_NAME_LAYER("blocks.{}.norm1", "blocks.{}.norm1"),
    VLP_NAME_LAYER("blocks.{}.attn.qkv", "blocks.{}.attn.qkv"),
    VLP_NAME_LAYER("blocks.{}.attn.proj", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("blocks.{}.norm2", "blocks.{}.norm2"),
    VLP_NAME_LAYER("blocks.{}.mlp.fc1", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("blocks.{}.mlp.fc2", "blocks.{}.mlp.fc2"),
    VLP_NAME_LAYER("norm", "norm"),
    VLP_NAME_LAYER("fc_norm", "fc_norm"),
    VLP_NAME_LAYER("head", "classifier"),
};

static const vlp_name_row hf[] = {
    {.theirs = "embeddings.cls_token", .ours = "class_token", .shape = VLP_SHAPE_TOKEN},
    {.theirs = "embeddings.distillation_token",
     .ours = "distillation_token",
     .shape = VLP_SHAPE_TOKEN},
    {.theirs = "embeddings.position_embeddings", .ours = "positions", .shape = VLP_SHAPE_BATCH},
    {.theirs = "embeddings.mask_token", .ours = "mask_token", .shape = VLP_SHAPE_TOKEN},
    {.theirs = "embeddings.patch_embeddings.projection.weight",
     .ours = "patch_embed.weight",
     .shape = VLP_SHAPE_PATCH},
    {.theirs = "embeddings.patch_embeddings.projection.bias", .ours = "patch_embed.bias"},
    VLP_NAME_LAYER("encoder.layer.{}.layernorm_before", "blocks.{}.norm1"),
    VLP_NAME_PART("encoder.layer.{}.attention.attention.query", "blocks.{}.attn.qkv", 0, 3),
    VLP_NAME_PART("encoder.layer.{}.attention.attention.key", "blocks.{}.attn.qkv", 1, 3),
    VLP_NAME_PART("encoder.layer.{}.attention.attention.value", "blocks.{}.attn.qkv", 2, 3),
    VLP_NAME_LAYER("encoder.layer.{}.attention.output.dense", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("encoder.layer.{}.layernorm_after", "blocks.{}.norm2"),
    VLP_NAME_LAYER("encoder.layer.{}.intermediate.dense", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("encoder.layer.{}.output.dense", "blocks.{}.mlp.fc2"),
    VLP_NAME_LAYER("layernorm", "norm"),
    VLP_NAME_LAYER("pooler.dense", "pooler"),
};

/* What stands beside the encoder, without its prefix. */
static const vlp_name_row hf_heads[] = {
    VLP_NAME_LAYER("classifier", "classifier"),
    VLP_NAME_LAYER("decoder.0", "decoder"),
    VLP_NAME_LAYER("cls_classifier", "classifier"), /* DeiT with a teacher */
    VLP_NAME_LAYER("distillation_classifier", "distillation_classifier"),
};

void vlp_vit_names_timm(vlp_name_map *map, const char *theirs, const char *ours) {
    vlp_name_map_add(map, timm, VLP_COUNT(timm), theirs, ours);
}

void vlp_vit_names_hf(vlp_name_map *map, const char *theirs, const char *ours) {
    vlp_name_map_add(map, hf, VLP_COUNT(hf), theirs, ours);
}

static const char *const timm_prefixes[] = {"",          "visual_encoder.", "encoder.",
                                            "backbone.", "module.",         NULL};
static const char *const hf_prefixes[] = {"", "vit.", "deit.", "model.", "module.", NULL};

vlp_status vlp_vit_names(vlp_name_map *map, const vlp_safetensors *file, const char *ours) {
    const char *prefix = vlp_name_prefix(file, hf_prefixes, "embeddings.cls_token");
    if (prefix) {
        vlp_vit_names_hf(map, prefix, ours);
        vlp_name_map_add(map, hf_heads, VLP_COUNT(hf_heads), "", ours);
        return VLP_OK;
    }
    prefix = vlp_name_prefix(file, timm_prefixes, "cls_token");
    if (prefix) {
        vlp_vit_names_timm(map, prefix, ours);
        return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: neither \"cls_token\" (timm) nor \"embeddings.cls_token\" (Hugging Face) "
                    "is there: not a ViT whose names are known",
                    vlp_safetensors_count(file) ? vlp_safetensors_at(file, 0)->file : "checkpoint");
}
