/* BLIP's sizes from the configuration files that its users have. */
#include "core/act_names.h"
#include "core/options.h"
#include "fusion/blip.h"
#include "text/bert_config.h"
#include "vision/vit_config.h"

#include <math.h>
#include <string.h>

#define INT(key, member, least, most, fallback)                                                    \
    {                                                                                              \
        (key), VLP_OPTION_INT, offsetof(vlp_model_config, member), (least), (most), (fallback),    \
            "", NULL                                                                               \
    }
#define REAL(key, member, least, most, fallback)                                                   \
    {                                                                                              \
        (key), VLP_OPTION_DOUBLE, offsetof(vlp_model_config, member), (least), (most), (fallback), \
            "", NULL                                                                               \
    }

enum { MOST_WIDTH = 65536, CAPTION = 35 /* tokens of a caption in BLIP's data sets */ };
static const double temperature_least = 0.001, temperature_most = 0.5;
static const char reader_words[] = "text_encoder.embeddings.word_embeddings.weight",
                  writer_words[] = "text_decoder.bert.embeddings.word_embeddings.weight",
                  space_mark[] = "text_proj.weight";

static const vlp_option hf_rows[] = {
    INT("vision_config.image_size", vision.image_height, 1, 65536, "384"),
    INT("vision_config.num_channels", vision.channels, 1, 64, "3"),
    INT("vision_config.patch_size", vision.patch, 1, 65536, "16"),
    INT("vision_config.hidden_size", vision.width, 1, MOST_WIDTH, "768"),
    INT("vision_config.num_hidden_layers", vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_config.num_attention_heads", vision.heads, 1, 1024, "12"),
    INT("vision_config.intermediate_size", vision.mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("vision_config.layer_norm_eps", vision.eps, 0, 1, "1e-5"),
    REAL("vision_config.attention_dropout", vision.attention_dropout, 0, 0.99, "0"),
    INT("text_config.vocab_size", text.vocab, 1, 10000000, "30524"),
    INT("text_config.max_position_embeddings", text.positions, 1, 1000000, "512"),
    INT("text_config.hidden_size", text.width, 1, MOST_WIDTH, "768"),
    INT("text_config.num_hidden_layers", text.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("text_config.num_attention_heads", text.heads, 1, 1024, "8"),
    INT("text_config.intermediate_size", text.mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("text_config.layer_norm_eps", text.eps, 0, 1, "1e-12"),
    REAL("text_config.hidden_dropout_prob", text.dropout, 0, 0.99, "0"),
    REAL("text_config.attention_probs_dropout_prob", text.attention_dropout, 0, 0.99, "0"),
    INT("text_config.bos_token_id", bos_id, 0, 10000000, "30522"),
    INT("text_config.sep_token_id", eos_id, 0, 10000000, "102"),
    INT("image_text_hidden_size", embedding, 1, MOST_WIDTH, "256"),
};

/* BERT's own [SEP], and two tokens after its vocabulary. */
static const vlp_option official_rows[] = {
    INT("tokenizer.bos_token_id", bos_id, 0, 10000000, "30522"),
    INT("tokenizer.enc_token_id", enc_id, 0, 10000000, "30523"),
    INT("tokenizer.sep_token_id", eos_id, 0, 10000000, "102"),
    INT("embed_dim", embedding, 1, MOST_WIDTH, "256"),
    {"prompt", VLP_OPTION_TEXT, offsetof(vlp_model_config, prompt), 0, 0, "", "", NULL},
};

static const vlp_options hf = {hf_rows, VLP_COUNT(hf_rows)};
static const vlp_options official = {official_rows, VLP_COUNT(official_rows)};

bool vlp_blip_is_config(const vlp_json *json) {
    return strcmp(vlp_json_string(json, "model_type", ""), "blip") == 0 ||
           vlp_json_key(json, "bert_config");
}

static vlp_status read_hf(vlp_model_config *c, const vlp_json *json, const char *where) {
    vlp_options_defaults(hf, c);
    VLP_TRY(vlp_options_pick(hf, c, json, where));
    c->vision.image_width = c->vision.image_height;
    c->vision.patch_bias = c->vision.output_norm = true;
    VLP_TRY(vlp_act_read(&c->vision.act, json, "vision_config.hidden_act", VLP_ACT_GELU, where));
    return vlp_act_read(&c->text.act, json, "text_config.hidden_act", VLP_ACT_GELU, where);
}

static vlp_status read_official(vlp_model_config *c, const vlp_json *json, const char *where) {
    vlp_options_defaults(official, c);
    VLP_TRY(vlp_options_pick(official, c, json, where));
    VLP_TRY(vlp_vit_config_read(&c->vision, json, where));
    VLP_TRY(vlp_bert_config_read(&c->text, vlp_json_key(json, "bert_config"), where));
    c->text.types = 0;
    return VLP_OK;
}

vlp_status vlp_blip_config_read(vlp_model_config *out, const vlp_json *json, const char *where) {
    *out = (vlp_model_config){.projection_bias = true,
                              .plain_temperature = true,
                              .logit_scale_init = -log(0.07),
                              .logit_scale_max = -log(temperature_least),
                              .temperature_most = temperature_most};
    VLP_TRY((vlp_json_key(json, "bert_config") ? read_official : read_hf)(out, json, where));
    out->text.context_width = out->vision.width;
    out->decoder = out->text;
    out->text_length = out->text.positions < CAPTION ? out->text.positions : CAPTION;
    return VLP_OK;
}

static bool equal_bytes(const vlp_safetensor *a, const vlp_safetensor *b) {
    return a && b && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

void vlp_blip_complete(vlp_model_config *c, const vlp_safetensors *file) {
    const vlp_safetensor *reader = vlp_safetensors_find(file, reader_words);
    const vlp_safetensor *writer = vlp_safetensors_find(file, writer_words);
    const vlp_safetensor *written =
        vlp_safetensors_find(file, "text_decoder.cls.predictions.decoder.weight");
    bool space = vlp_safetensors_find(file, space_mark);
    c->decoder_shared = reader && writer && space;
    c->decoder_reads_text = reader && writer && !space;
    c->decoder_untied = written && !equal_bytes(written, writer);
    if (c->decoder_reads_text) c->decoder.context_width = c->text.width;
    if (!writer || c->decoder_shared) c->decoder = (vlp_bert_config){0};
    if (!reader) c->text = (vlp_bert_config){0};
    if (!space) c->embedding = 0;
}

unsigned vlp_blip_parts(const vlp_safetensors *file) {
    return (vlp_safetensors_find(file, space_mark) ? VLP_MODEL_SPACE : 0u) |
           (vlp_safetensors_find(file, "temp") ? VLP_MODEL_SCALE : 0u) |
           (vlp_safetensors_find(file, "itm_head.weight") ? VLP_MODEL_MATCH : 0u);
}

bool vlp_blip_is_file(const vlp_safetensors *file) {
    bool image = vlp_safetensors_find(file, "visual_encoder.cls_token") ||
                 vlp_safetensors_find(file, "vision_model.embeddings.class_embedding");
    return image &&
           (vlp_safetensors_find(file, writer_words) || vlp_safetensors_find(file, reader_words));
}
