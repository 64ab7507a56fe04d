/* What BLIP's checkpoints call the parameters. */
#include "fusion/blip.h"
#include "text/bert_names.h"
#include "vision/vit_names.h"

static const vlp_name_row hf_vision[] = {
    {.theirs = "embeddings.class_embedding", .ours = "class_token"},
    {.theirs = "embeddings.position_embedding", .ours = "positions"},
    VLP_NAME_LAYER("embeddings.patch_embedding", "patch_embed"),
    VLP_NAME_LAYER("encoder.layers.{}.layer_norm1", "blocks.{}.norm1"),
    VLP_NAME_LAYER("encoder.layers.{}.self_attn.qkv", "blocks.{}.attn.qkv"),
    VLP_NAME_LAYER("encoder.layers.{}.self_attn.projection", "blocks.{}.attn.proj"),
    VLP_NAME_LAYER("encoder.layers.{}.layer_norm2", "blocks.{}.norm2"),
    VLP_NAME_LAYER("encoder.layers.{}.mlp.fc1", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("encoder.layers.{}.mlp.fc2", "blocks.{}.mlp.fc2"),
    VLP_NAME_LAYER("post_layernorm", "norm"),
};

static const vlp_name_row heads[] = {
    VLP_NAME_LAYER("vision_proj", "image_projection"),
    VLP_NAME_LAYER("text_proj", "text_projection"),
    VLP_NAME_LAYER("itm_head", "match_head"), /* from here on without a twin */
    {.theirs = "temp", .ours = "temperature"},
    {.theirs = "image_queue"},
    {.theirs = "text_queue"},
    {.theirs = "queue_ptr"},
    {.theirs = "ptr_queue"},
    {.theirs = "idx_queue"},
};

static const vlp_name_row twin_heads[] = {
    VLP_NAME_LAYER("vision_proj_m", "image_projection"),
    VLP_NAME_LAYER("text_proj_m", "text_projection"),
};

static const struct {
    const char *vision, *text;
    const vlp_name_row *heads;
    size_t head_count;
} theirs[] = {
    {"visual_encoder.", "text_encoder.", heads, VLP_COUNT(heads)},
    {"visual_encoder_m.", "text_encoder_m.", twin_heads, VLP_COUNT(twin_heads)},
};

static const struct {
    const char *vision, *text, *decoder, *lm, *heads;
} ours[] = {
    {"vision.", "text.", "decoder.", "lm.", ""},
    {"objective.momentum.vision.", "objective.momentum.text.", "objective.momentum.decoder.",
     "objective.momentum.lm.", "objective.momentum."},
};

static void add_decoder(vlp_name_map *map, const vlp_model_config *c, int to) {
    const char *rest = c->decoder_shared ? ours[to].text : ours[to].decoder;
    if (c->decoder_shared) vlp_bert_names_attention(map, "text_decoder.bert.", ours[to].decoder);
    vlp_bert_names_layers(map, "text_decoder.bert.", rest, 0, INT64_MAX);
    vlp_bert_names_writer(map, "text_decoder.", ours[to].lm,
                          c->decoder_untied ? ours[to].lm : rest);
}

void vlp_blip_names(vlp_name_map *map, const vlp_model_config *c, const vlp_safetensors *file,
                    bool momentum) {
    (void)file;
    vlp_name_map_add(map, hf_vision, VLP_COUNT(hf_vision), "vision_model.", "vision.");
    for (int copy = 0; copy < 2; copy++) {
        int to = copy ^ (int)momentum;
        vlp_vit_names_timm(map, theirs[copy].vision, ours[to].vision);
        vlp_bert_names_layers(map, theirs[copy].text, ours[to].text, 0, INT64_MAX);
        vlp_name_map_add(map, theirs[copy].heads, theirs[copy].head_count, "", ours[to].heads);
    }
    add_decoder(map, c, momentum);
}
