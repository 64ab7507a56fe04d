/* What other implementations call CLIP's parameters. */
#include "fusion/clip.h"
#include "fusion/coca.h"
#include "vision/vit_names.h"

/* Of either tower. */
static const vlp_name_row hf_blocks[] = {
    VLP_NAME_LAYER("encoder.layers.{}.layer_norm1", "blocks.{}.norm1"),
    VLP_NAME_PART("encoder.layers.{}.self_attn.q_proj", "blocks.{}.attn.qkv", 0, 3),
    VLP_NAME_PART("encoder.layers.{}.self_attn.k_proj", "blocks.{}.attn.qkv", 1, 3),
    VLP_NAME_PART("encoder.layers.{}.self_attn.v_proj", "blocks.{}.attn.qkv", 2, 3),
    VLP_NAME_LAYER("encoder.layers.{}.self_attn.out_proj", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("encoder.layers.{}.layer_norm2", "blocks.{}.norm2"),
    VLP_NAME_LAYER("encoder.layers.{}.mlp.fc1", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("encoder.layers.{}.mlp.fc2", "blocks.{}.mlp.fc2"),
};

static const vlp_name_row hf_vision[] = {
    {.theirs = "embeddings.position_ids"},
    {.theirs = "embeddings.class_embedding", .ours = "class_token", .shape = VLP_SHAPE_FLAT},
    {.theirs = "embeddings.position_embedding.weight", .ours = "positions"},
    {.theirs = "embeddings.patch_embedding.weight",
     .ours = "patch_embed.weight",
     .shape = VLP_SHAPE_PATCH},
    {.theirs = "embeddings.patch_embedding.bias", .ours = "patch_embed.bias"},
    VLP_NAME_LAYER("pre_layrnorm", "input_norm"), /* so it is spelt */
    VLP_NAME_LAYER("post_layernorm", "norm"),
    {.theirs = "head.probe", .ours = "pool.queries", .shape = VLP_SHAPE_BATCH},
    {.theirs = "head.attention.in_proj_weight", .ours = "pool.attend.qkv.weight"},
    {.theirs = "head.attention.in_proj_bias", .ours = "pool.attend.qkv.bias"},
    VLP_NAME_LAYER("head.attention.out_proj", "pool.attend.proj"),
    VLP_NAME_LAYER("head.layernorm", "pool.norm"),
    VLP_NAME_LAYER("head.mlp.fc1", "pool.mlp.fc1"),
    VLP_NAME_LAYER("head.mlp.fc2", "pool.mlp.fc2"),
};

static const vlp_name_row hf_text[] = {
    {.theirs = "embeddings.position_ids"},
    {.theirs = "embeddings.token_embedding.weight", .ours = "words"},
    {.theirs = "embeddings.position_embedding.weight", .ours = "positions"},
    VLP_NAME_LAYER("final_layer_norm", "norm"),
};

static const vlp_name_row hf_space[] = {
    {.theirs = "visual_projection.weight", .ours = "image_projection.weight"},
    {.theirs = "logit_scale", .ours = "logit_scale"},
    {.theirs = "logit_bias", .ours = "logit_bias", .shape = VLP_SHAPE_BATCH},
};
static const vlp_name_row hf_clip_text_head[] = {
    VLP_NAME_LAYER("text_projection", "text_projection"),
};
static const vlp_name_row siglip_text_head[] = {
    VLP_NAME_LAYER("text_model.head", "text_projection"),
};

static const vlp_name_row openai_blocks[] = {
    VLP_NAME_LAYER("transformer.resblocks.{}.ln_1", "blocks.{}.norm1"),
    {.theirs = "transformer.resblocks.{}.attn.in_proj_weight", .ours = "blocks.{}.attn.qkv.weight"},
    {.theirs = "transformer.resblocks.{}.attn.in_proj_bias", .ours = "blocks.{}.attn.qkv.bias"},
    VLP_NAME_LAYER("transformer.resblocks.{}.attn.out_proj", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("transformer.resblocks.{}.ln_2", "blocks.{}.norm2"),
    VLP_NAME_LAYER("transformer.resblocks.{}.mlp.c_fc", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("transformer.resblocks.{}.mlp.c_proj", "blocks.{}.mlp.fc2"),
    {.theirs = "transformer.resblocks.{}.ls_1.gamma", .ours = "blocks.{}.scale1"},
    {.theirs = "transformer.resblocks.{}.ls_2.gamma", .ours = "blocks.{}.scale2"},
};

static const vlp_name_row openai_vision[] = {
    {.theirs = "class_embedding", .ours = "class_token", .shape = VLP_SHAPE_FLAT},
    {.theirs = "positional_embedding", .ours = "positions", .convert = vlp_vit_resample_smooth},
    {.theirs = "conv1.weight", .ours = "patch_embed.weight", .shape = VLP_SHAPE_PATCH},
    VLP_NAME_LAYER("ln_pre", "input_norm"),
    {.theirs = "attn_pool.query", .ours = "pool.queries"},
    {.theirs = "attn_pool.attn.in_proj_weight", .ours = "pool.attend.qkv.weight"},
    {.theirs = "attn_pool.attn.in_proj_bias", .ours = "pool.attend.qkv.bias"},
    {.theirs = "attn_pool.attn.q_proj_weight", .ours = "pool.attend.q.weight"},
    {.theirs = "attn_pool.attn.k_proj_weight", .ours = "pool.attend.k.weight"},
    {.theirs = "attn_pool.attn.v_proj_weight", .ours = "pool.attend.v.weight"},
    VLP_NAME_LAYER("attn_pool.attn.out_proj", "pool.attend.proj"),
    VLP_NAME_LAYER("attn_pool.ln_q", "pool.query_norm"),
    VLP_NAME_LAYER("attn_pool.ln_k", "pool.token_norm"),
};
/* The norm at the end acts on all tokens, or on what the attentional pooler gives. */
static const vlp_name_row norm_of_tokens[] = {VLP_NAME_LAYER("ln_post", "norm")};
static const vlp_name_row norm_of_pool[] = {VLP_NAME_LAYER("ln_post", "pool.norm")};

static const vlp_name_row openai_text[] = {
    {.theirs = "token_embedding.weight", .ours = "text.words"},
    {.theirs = "positional_embedding", .ours = "text.positions"},
    {.theirs = "cls_emb", .ours = "text.class_token", .shape = VLP_SHAPE_FLAT},
    VLP_NAME_LAYER("ln_final", "text.norm"),
};
/* A matrix, or a linear layer. */
static const vlp_name_row matrix_text_head[] = {
    {.theirs = "text_projection", .ours = "text_projection.weight", .transpose = true},
};
static const vlp_name_row layer_text_head[] = {
    VLP_NAME_LAYER("text_projection", "text_projection"),
};

static const vlp_name_row openai_space[] = {
    {.theirs = "visual.proj", .ours = "image_projection.weight", .transpose = true},
    {.theirs = "logit_scale", .ours = "logit_scale"},
    {.theirs = "logit_bias", .ours = "logit_bias"},
    {.theirs = "input_resolution"}, /* the released archives say their sizes */
    {.theirs = "context_length"},
    {.theirs = "vocab_size"},
};

/* The first whose mark is in the file. */
static const char *const marks[] = {
    [VLP_CLIP_HF] = "vision_model.embeddings.position_embedding.weight",
    [VLP_CLIP_OPENAI] = "token_embedding.weight",
    [VLP_CLIP_CUSTOM] = "text.token_embedding.weight",
};

bool vlp_clip_is_file(const vlp_safetensors *file) {
    for (size_t i = 0; i < VLP_COUNT(marks); i++)
        if (vlp_safetensors_find(file, marks[i])) return true;
    return false;
}

vlp_clip_layout vlp_clip_layout_of(const vlp_safetensors *file) {
    for (size_t i = 0; i < VLP_COUNT(marks); i++)
        if (vlp_safetensors_find(file, marks[i])) return (vlp_clip_layout)i;
    return VLP_CLIP_HF;
}

unsigned vlp_clip_parts(const vlp_safetensors *file) {
    (void)file;
    return VLP_MODEL_SPACE | VLP_MODEL_SCALE;
}

#define ADD(map, rows, theirs, ours) vlp_name_map_add((map), (rows), VLP_COUNT(rows), theirs, ours)

static void add_hf(vlp_name_map *map, const vlp_model_config *c) {
    ADD(map, hf_vision, "vision_model.", "vision.");
    ADD(map, hf_blocks, "vision_model.", "vision.");
    ADD(map, hf_text, "text_model.", "text.");
    ADD(map, hf_blocks, "text_model.", "text.");
    ADD(map, hf_space, "", "");
    if (c->text_projection_bias)
        ADD(map, siglip_text_head, "", "");
    else
        ADD(map, hf_clip_text_head, "", "");
}

static void add_openai(vlp_name_map *map, const vlp_model_config *c, const char *text) {
    ADD(map, openai_vision, "visual.", "vision.");
    if (c->pool.kind == VLP_POOL_QUERIES)
        ADD(map, norm_of_pool, "visual.", "vision.");
    else
        ADD(map, norm_of_tokens, "visual.", "vision.");
    ADD(map, openai_blocks, "visual.", "vision.");
    ADD(map, openai_text, text, "");
    ADD(map, openai_blocks, text, "text.");
    if (c->text_projection_bias)
        ADD(map, layer_text_head, text, "");
    else
        ADD(map, matrix_text_head, text, "");
    ADD(map, openai_space, "", "");
}

void vlp_clip_names_of(vlp_name_map *map, const vlp_model_config *c, vlp_clip_layout layout) {
    if (layout == VLP_CLIP_HF)
        add_hf(map, c);
    else
        add_openai(map, c, layout == VLP_CLIP_CUSTOM ? "text." : "");
}

void vlp_clip_names(vlp_name_map *map, const vlp_model_config *c, const vlp_safetensors *file,
                    bool momentum) {
    (void)momentum;
    vlp_clip_names_of(map, c, vlp_clip_layout_of(file));
    if (vlp_safetensors_find(file, "text_decoder.ln_final.weight")) vlp_coca_names(map);
}

void vlp_clip_complete(vlp_model_config *c, const vlp_safetensors *file) {
    c->logit_bias = vlp_safetensors_find(file, "logit_bias") != NULL;
    c->text_projection_bias = vlp_safetensors_find(file, "text_projection.bias") ||
                              vlp_safetensors_find(file, "text.text_projection.bias") ||
                              vlp_safetensors_find(file, "text_model.head.bias");
}
