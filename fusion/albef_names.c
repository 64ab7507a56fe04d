/* What ALBEF calls the parameters of a vlp_model. */
#include "fusion/albef.h"
#include "text/bert_names.h"
#include "vision/vit_names.h"

static const vlp_name_row heads[] = {
    VLP_NAME_LAYER("vision_proj", "image_projection"),
    VLP_NAME_LAYER("text_proj", "text_projection"),
    VLP_NAME_LAYER("cls_head.0", "classifier.fc1"),
    VLP_NAME_LAYER("cls_head.2", "classifier.fc2"),
    {.theirs = "text_encoder.cls.predictions.decoder.weight", .ours = "text.words"},
    {.theirs = "temp", .ours = "temperature"}, /* these two have no twin */
    VLP_NAME_LAYER("itm_head", "match_head"),
    {.theirs = "image_queue"},
    {.theirs = "text_queue"},
    {.theirs = "queue_ptr"},
    {.theirs = "idx_queue"},
};

static const vlp_name_row twin_heads[] = {
    VLP_NAME_LAYER("vision_proj_m", "image_projection"),
    VLP_NAME_LAYER("text_proj_m", "text_projection"),
    VLP_NAME_LAYER("cls_head_m.0", "classifier.fc1"),
    VLP_NAME_LAYER("cls_head_m.2", "classifier.fc2"),
    {.theirs = "text_encoder_m.cls.predictions.decoder.weight", .ours = "text.words"},
};

static const vlp_name_row mlm[] = {
    VLP_NAME_LAYER("transform.dense", "dense"),
    VLP_NAME_LAYER("transform.LayerNorm", "norm"),
    {.theirs = "bias", .ours = "bias"},
    {.theirs = "decoder.bias", .ours = "bias"},
};

/* What ALBEF has and a model of ours may lack: there it does nothing (vlp_albef_complete). */
static const vlp_name_row no_types[] = {
    {.theirs = "text_encoder.embeddings.token_type_embeddings.weight"},
    {.theirs = "text_encoder.bert.embeddings.token_type_embeddings.weight"},
    {.theirs = "text_encoder_m.embeddings.token_type_embeddings.weight"},
    {.theirs = "text_encoder_m.bert.embeddings.token_type_embeddings.weight"},
};
static const vlp_name_row no_biases[] = {
    {.theirs = "vision_proj.bias"},
    {.theirs = "text_proj.bias"},
    {.theirs = "vision_proj_m.bias"},
    {.theirs = "text_proj_m.bias"},
};
/* The other way to keep a temperature; `temp` is written from it. */
static const vlp_name_row scale[] = {
    {.theirs = "temp"},
    {.theirs = "logit_scale", .ours = "logit_scale"},
};
/* Kept when a temperature was trained further, but not read. */
static const vlp_name_row old_scale[] = {{.theirs = "logit_scale"}};

/* Tied weights that are stored twice. */
static const vlp_name_row tied[] = {
    {.theirs = "text_encoder.cls.predictions.decoder.weight", .ours = "text.words"},
    {.theirs = "text_encoder.cls.predictions.decoder.bias", .ours = "objective.mlm.bias"},
};
static const vlp_name_row twin_tied[] = {
    {.theirs = "text_encoder_m.cls.predictions.decoder.weight", .ours = "text.words"},
    {.theirs = "text_encoder_m.cls.predictions.decoder.bias", .ours = "objective.mlm.bias"},
};

/* The two copies of the encoders in a file. With a masked language head the text encoder is one
 * level deeper. */
static const struct {
    const char *vision, *text, *deep_text, *mlm, *decoder, *writer;
    const vlp_name_row *heads;
    size_t head_count;
} theirs[] = {
    {"visual_encoder.", "text_encoder.", "text_encoder.bert.", "text_encoder.cls.predictions.",
     "text_decoder.bert.", "text_decoder.", heads, VLP_COUNT(heads)},
    {"visual_encoder_m.", "text_encoder_m.", "text_encoder_m.bert.",
     "text_encoder_m.cls.predictions.", "text_decoder_m.bert.", "text_decoder_m.", twin_heads,
     VLP_COUNT(twin_heads)},
};

static const struct {
    const char *vision, *text, *fusion, *mlm, *decoder, *lm, *heads;
} ours[] = {
    {"vision.", "text.", "fusion.", "objective.mlm.", "decoder.", "lm.", ""},
    {"objective.momentum.vision.", "objective.momentum.text.", "objective.momentum.fusion.",
     "objective.momentum.objective.mlm.", "objective.momentum.decoder.", "objective.momentum.lm.",
     "objective.momentum."},
};

static const char words[] = "text_encoder.embeddings.word_embeddings.weight",
                  deep_words[] = "text_encoder.bert.embeddings.word_embeddings.weight",
                  mark[] = "visual_encoder.cls_token";

/* BLIP's text encoder, of the same names, has cross-attention in every layer. */
bool vlp_albef_is_file(const vlp_safetensors *file) {
    static const char first[] = "encoder.layer.0.crossattention.self.query.weight";
    static const char *const text[] = {"text_encoder.bert.", "text_encoder.", NULL};
    bool text_there = vlp_safetensors_find(file, words) || vlp_safetensors_find(file, deep_words);
    return vlp_safetensors_find(file, mark) && text_there && !vlp_name_prefix(file, text, first);
}

unsigned vlp_albef_parts(const vlp_safetensors *file) {
    unsigned parts = 0;
    if (vlp_safetensors_find(file, "vision_proj.weight")) parts |= VLP_MODEL_SPACE;
    if (vlp_safetensors_find(file, "temp")) parts |= VLP_MODEL_SCALE;
    if (vlp_safetensors_find(file, "itm_head.weight")) parts |= VLP_MODEL_MATCH;
    return parts;
}

void vlp_albef_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                     bool momentum) {
    vlp_albef_tables(map, config, vlp_safetensors_find(file, deep_words), momentum);
}

void vlp_albef_tables(vlp_name_map *map, const vlp_model_config *config, bool deep, bool momentum) {
    int64_t middle = config->text.depth, end = middle + config->fusion.depth;
    if (config->text.types == 0) vlp_name_map_add(map, no_types, VLP_COUNT(no_types), "", "");
    if (!config->projection_bias) vlp_name_map_add(map, no_biases, VLP_COUNT(no_biases), "", "");
    if (!config->plain_temperature && !momentum)
        vlp_name_map_add(map, scale, VLP_COUNT(scale), "", "");
    else
        vlp_name_map_add(map, old_scale, VLP_COUNT(old_scale), "", "");
    for (int copy = 0; copy < 2; copy++) {
        int to = copy ^ (int)momentum;
        const char *text = deep ? theirs[copy].deep_text : theirs[copy].text;
        vlp_vit_names_timm(map, theirs[copy].vision, ours[to].vision);
        vlp_bert_names_layers(map, text, ours[to].text, 0, middle);
        vlp_bert_names_layers(map, text, ours[to].fusion, middle, end);
        vlp_name_map_add(map, mlm, VLP_COUNT(mlm), theirs[copy].mlm, ours[to].mlm);
        vlp_bert_names_layers(map, theirs[copy].decoder, ours[to].decoder, 0, INT64_MAX);
        vlp_bert_names_writer(map, theirs[copy].writer, ours[to].lm, ours[to].decoder);
        vlp_name_map_add(map, theirs[copy].heads, theirs[copy].head_count, "", ours[to].heads);
    }
}

void vlp_albef_tied(vlp_name_map *map, bool momentum) {
    if (momentum)
        vlp_name_map_add(map, twin_tied, VLP_COUNT(twin_tied), "", "");
    else
        vlp_name_map_add(map, tied, VLP_COUNT(tied), "", "");
}
