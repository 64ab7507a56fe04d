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

vlp_status vlp_clip_names(vlp_name_map *map, const vlp_safetensors *file) {
    if (!vlp_safetensors_find(file, "vision_model.embeddings.class_embedding"))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: no \"vision_model.embeddings.class_embedding\": not a CLIP whose "
                        "names are known",
                        vlp_safetensors_count(file) ? vlp_safetensors_at(file, 0)->file
                                                    : "checkpoint");
    vlp_name_map_add(map, hf, VLP_COUNT(hf), "", "");
    vlp_name_map_add(map, hf_blocks, VLP_COUNT(hf_blocks), "vision_model.", "vision.");
    vlp_name_map_add(map, hf_blocks, VLP_COUNT(hf_blocks), "text_model.", "text.");
    return VLP_OK;
}
