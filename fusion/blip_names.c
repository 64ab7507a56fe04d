/* What BLIP's checkpoints call the parameters. */
#include "fusion/blip.h"
#include "text/bert_names.h"
#include "vision/vit_names.h"

static const vlp_name_row hf_vision[] = {
    {.theirs = "embeddings.class_embedding", .ours = "class_token", .shape = VLP_SHAPE_TOKEN},
    {.theirs = "embeddings.position_embedding", .ours = "positions", .shape = VLP_SHAPE_BATCH},
    {.theirs = "embeddings.patch_embedding.weight",
     .ours = "patch_embed.weight",
     .shape = VLP_SHAPE_PATCH},
    {.theirs = "embeddings.patch_embedding.bias", .ours = "patch_embed.bias"},
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

void vlp_blip_tables(vlp_name_map *map, const vlp_model_config *c, bool hf) {
    if (hf)
        vlp_name_map_add(map, hf_vision, VLP_COUNT(hf_vision), "vision_model.", "vision.");
    else
        vlp_vit_names_timm(map, theirs[0].vision, ours[0].vision);
    vlp_bert_names_layers(map, theirs[0].text, ours[0].text, 0, INT64_MAX);
    vlp_name_map_add(map, theirs[0].heads, theirs[0].head_count, "", "");
    add_decoder(map, c, 0);
}

void vlp_blip_twin(vlp_name_map *map) {
    vlp_vit_names_timm(map, theirs[1].vision, ours[0].vision);
    vlp_bert_names_layers(map, theirs[1].text, ours[0].text, 0, INT64_MAX);
    vlp_name_map_add(map, theirs[1].heads, theirs[1].head_count, "", "");
}

/* What a head stores beside its own: words that are another's, its bias under a second name. */
static const vlp_name_row tied_words[] = {
    {.theirs = "text_decoder.cls.predictions.decoder.weight", .ours = "words"}};
static const vlp_name_row tied_bias[] = {
    {.theirs = "text_decoder.cls.predictions.decoder.bias", .ours = "lm.bias"}};

void vlp_blip_tied(vlp_name_map *map, const vlp_model_config *c) {
    const char *words = c->decoder_shared ? ours[0].text : ours[0].decoder;
    vlp_name_map_add(map, tied_bias, 1, "", "");
    if (!c->decoder_untied) vlp_name_map_add(map, tied_words, 1, "", words);
}

void vlp_blip_shared(vlp_name_map *map) {
    vlp_bert_names_others(map, "text_decoder.bert.", ours[0].text);
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
