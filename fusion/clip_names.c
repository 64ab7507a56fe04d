/* What other implementations call CLIP's parameters. */
#include "fusion/clip.h"

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

static const vlp_name_row hf[] = {
    {.theirs = "vision_model.embeddings.position_ids"},
    {.theirs = "vision_model.embeddings.class_embedding", .ours = "vision.class_token"},
    {.theirs = "vision_model.embeddings.position_embedding.weight", .ours = "vision.positions"},
    VLP_NAME_LAYER("vision_model.embeddings.patch_embedding", "vision.patch_embed"),
    VLP_NAME_LAYER("vision_model.pre_layrnorm", "vision.input_norm"), /* so it is spelt */
    VLP_NAME_LAYER("vision_model.post_layernorm", "vision.norm"),
    {.theirs = "text_model.embeddings.position_ids"},
    {.theirs = "text_model.embeddings.token_embedding.weight", .ours = "text.words"},
    {.theirs = "text_model.embeddings.position_embedding.weight", .ours = "text.positions"},
    VLP_NAME_LAYER("text_model.final_layer_norm", "text.norm"),
    {.theirs = "visual_projection.weight", .ours = "image_projection.weight"},
    {.theirs = "text_projection.weight", .ours = "text_projection.weight"},
    {.theirs = "logit_scale", .ours = "logit_scale"},
};

static const vlp_name_row openai_blocks[] = {
    VLP_NAME_LAYER("transformer.resblocks.{}.ln_1", "blocks.{}.norm1"),
    {.theirs = "transformer.resblocks.{}.attn.in_proj_weight", .ours = "blocks.{}.attn.qkv.weight"},
    {.theirs = "transformer.resblocks.{}.attn.in_proj_bias", .ours = "blocks.{}.attn.qkv.bias"},
    VLP_NAME_LAYER("transformer.resblocks.{}.attn.out_proj", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("transformer.resblocks.{}.ln_2", "blocks.{}.norm2"),
    VLP_NAME_LAYER("transformer.resblocks.{}.mlp.c_fc", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("transformer.resblocks.{}.mlp.c_proj", "blocks.{}.mlp.fc2"),
};

static const vlp_name_row openai[] = {
    {.theirs = "visual.class_embedding", .ours = "vision.class_token"},
    {.theirs = "visual.positional_embedding", .ours = "vision.positions"},
    VLP_NAME_LAYER("visual.conv1", "vision.patch_embed"),
    VLP_NAME_LAYER("visual.ln_pre", "vision.input_norm"),
    VLP_NAME_LAYER("visual.ln_post", "vision.norm"),
    {.theirs = "visual.proj", .ours = "image_projection.weight", .transpose = true},
    {.theirs = "token_embedding.weight", .ours = "text.words"},
    {.theirs = "positional_embedding", .ours = "text.positions"},
    VLP_NAME_LAYER("ln_final", "text.norm"),
    {.theirs = "text_projection", .ours = "text_projection.weight", .transpose = true},
    {.theirs = "logit_scale", .ours = "logit_scale"},
    {.theirs = "input_resolution"}, /* the released archives say their sizes */
    {.theirs = "context_length"},
    {.theirs = "vocab_size"},
};

/* The first whose mark is in the file. */
static const struct {
    const char *mark;
    const vlp_name_row *rows, *blocks;
    size_t row_count, block_count;
    const char *vision, *text; /* what stands before the blocks of either tower */
} variants[] = {
    {"vision_model.embeddings.class_embedding", hf, hf_blocks, VLP_COUNT(hf), VLP_COUNT(hf_blocks),
     "vision_model.", "text_model."},
    {"visual.class_embedding", openai, openai_blocks, VLP_COUNT(openai), VLP_COUNT(openai_blocks),
     "visual.", ""},
};

vlp_status vlp_clip_names(vlp_name_map *map, const vlp_safetensors *file) {
    for (size_t i = 0; i < VLP_COUNT(variants); i++) {
        if (!vlp_safetensors_find(file, variants[i].mark)) continue;
        vlp_name_map_add(map, variants[i].rows, variants[i].row_count, "", "");
        vlp_name_map_add(map, variants[i].blocks, variants[i].block_count, variants[i].vision,
                         "vision.");
        vlp_name_map_add(map, variants[i].blocks, variants[i].block_count, variants[i].text,
                         "text.");
        return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: neither \"%s\" (Hugging Face) nor \"%s\" (OpenAI): not a CLIP whose "
                    "names are known",
                    vlp_safetensors_count(file) ? vlp_safetensors_at(file, 0)->file : "checkpoint",
                    variants[0].mark, variants[1].mark);
}
