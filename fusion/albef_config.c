/* A model's sizes from ALBEF's options. */
#include "core/options.h"
#include "fusion/albef.h"
#include "text/bert_config.h"
#include "vision/vit_config.h"

#include <math.h>

enum { CAPTION = 30 }; /* tokens of a caption in ALBEF's data sets */
static const double temperature_least = 0.001, temperature_most = 0.5;

/* What is not in the towers' own readers. */
typedef struct {
    int64_t embedding, fusion_layer, encoder_width, decoder_layers, cls, sep;
    double temperature;
} raw;

#define INT(key, member, most, fallback)                                                           \
    { (key), VLP_OPTION_INT, offsetof(raw, member), 0, (most), (fallback), "", NULL }

static const vlp_option rows[] = {
    INT("embed_dim", embedding, 65536, "0"),
    INT("bert_config.fusion_layer", fusion_layer, VLP_MAX_DEPTH, "6"),
    INT("decoder_layers", decoder_layers, VLP_MAX_DEPTH, "6"),
    INT("tokenizer.cls_token_id", cls, 10000000, "101"),
    INT("tokenizer.sep_token_id", sep, 10000000, "102"),
    INT("bert_config.encoder_width", encoder_width, 65536, "0"),
    {"temp", VLP_OPTION_DOUBLE, offsetof(raw, temperature), 1e-6, 100, "0.07", "", NULL},
};

static const vlp_options table = {rows, VLP_COUNT(rows)};

bool vlp_albef_is_config(const vlp_json *json) {
    return vlp_json_key(vlp_json_key(json, "bert_config"), "fusion_layer");
}

/* The options of its ViT; "embed_dim" means another thing there. */
static vlp_status read_vision(vlp_model_config *c, const vlp_json *json, const char *where) {
    vlp_json *own = vlp_json_copy(json);
    if (!own) return VLP_ERR_MEMORY;
    vlp_json_remove(own, "embed_dim");
    vlp_status status = vlp_vit_config_read(&c->vision, own, where);
    vlp_json_free(own);
    return status;
}

static vlp_status split_layers(vlp_model_config *c, const raw *r, const char *where) {
    if (r->fusion_layer > c->text.depth)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: fusion_layer %lld, but num_hidden_layers is %lld",
                        where, (long long)r->fusion_layer, (long long)c->text.depth);
    if (r->encoder_width > 0 && r->encoder_width != c->vision.width)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: encoder_width %lld, but the images' is %lld", where,
                        (long long)r->encoder_width, (long long)c->vision.width);
    c->fusion = (vlp_fusion_config){.width = c->text.width,
                                    .depth = c->text.depth - r->fusion_layer,
                                    .heads = c->text.heads,
                                    .mlp_width = c->text.mlp_width,
                                    .image_width = c->vision.width,
                                    .act = c->text.act,
                                    .eps = c->text.eps,
                                    .dropout = c->text.dropout,
                                    .attention_dropout = c->text.attention_dropout};
    c->text.depth = r->fusion_layer;
    return VLP_OK;
}

/* The decoder of answers, all of whose layers look at the fused question. */
static void add_decoder(vlp_model_config *c, const raw *r) {
    c->decoder = c->text;
    c->decoder.depth = r->decoder_layers;
    c->decoder.context_width = c->text.width;
    c->decoder_reads_text = true;
    c->bos_id = r->cls;
    c->eos_id = r->sep;
}

/* The tensor, or its deeper name, has a value that is not 0. */
static const vlp_safetensor *find_learnt(const vlp_safetensors *file, const char *name,
                                         const char *other) {
    const vlp_safetensor *t = vlp_safetensors_find(file, name);
    if (!t) t = vlp_safetensors_find(file, other);
    for (int64_t i = 0; t && i < t->numel; i++)
        if (vlp_safetensor_value(t, i) != 0) return t;
    return NULL;
}

/* `temp` is what logit_scale says. */
static bool same_temperature(const vlp_model_config *c, const vlp_safetensors *file) {
    const vlp_safetensor *plain = vlp_safetensors_find(file, "temp");
    const vlp_safetensor *scale = vlp_safetensors_find(file, "logit_scale");
    return plain && scale && plain->numel == 1 && scale->numel == 1 &&
           vlp_safetensor_value(plain, 0) ==
               vlp_albef_temperature(c, vlp_safetensor_value(scale, 0));
}

double vlp_albef_temperature(const vlp_model_config *c, double logit_scale) {
    return (double)(float)exp(-fmin(logit_scale, c->logit_scale_max));
}

static void complete_additions(vlp_model_config *c, const vlp_safetensors *file) {
    const vlp_safetensor *types =
        find_learnt(file, "text_encoder.embeddings.token_type_embeddings.weight",
                    "text_encoder.bert.embeddings.token_type_embeddings.weight");
    if (types && c->text.types == 0) c->text.types = types->shape[0];
    c->projection_bias |= find_learnt(file, "vision_proj.bias", "") != NULL;
    c->projection_bias |= find_learnt(file, "text_proj.bias", "") != NULL;
    c->plain_temperature |= !same_temperature(c, file);
    c->vision.mask_token = vlp_safetensors_find(file, "visual_encoder.mask_token") != NULL;
}

void vlp_albef_complete(vlp_model_config *c, const vlp_safetensors *file) {
    complete_additions(c, file);
    if (vlp_safetensors_find(file, "text_decoder.bert.embeddings.word_embeddings.weight")) return;
    c->decoder = (vlp_bert_config){0};
    c->decoder_reads_text = false;
}

vlp_status vlp_albef_config_read(vlp_model_config *out, const vlp_json *json, const char *where) {
    *out = (vlp_model_config){0};
    raw r = {0};
    vlp_options_defaults(table, &r);
    VLP_TRY(vlp_options_pick(table, &r, json, where));
    VLP_TRY(read_vision(out, json, where));
    VLP_TRY(vlp_bert_config_read(&out->text, vlp_json_key(json, "bert_config"), where));
    VLP_TRY(split_layers(out, &r, where));
    add_decoder(out, &r);
    out->embedding = r.embedding;
    out->projection_bias = out->plain_temperature = true;
    out->logit_scale_init = -log(r.temperature);
    out->logit_scale_max = -log(temperature_least);
    out->temperature_most = temperature_most;
    out->text_length = out->text.positions < CAPTION ? out->text.positions : CAPTION;
    return VLP_OK;
}
