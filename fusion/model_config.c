/* config.json of a model folder: Hugging Face's key names, one table. */
#include "core/options.h"
#include "fusion/model.h"

#include <string.h>

static const char *const pools[] = {"first", "mean", "map", NULL};
static const char *const text_pools[] = {"end", "last", "first", NULL};
static const char *const activations[] = {"linear", "gelu", "gelu_new", "quick_gelu", "relu",
                                          "silu",   "tanh", "sigmoid",  NULL};

#define AT(member) offsetof(vlp_model_config, member)
#define INT(key, member, least, most, fallback)                                                    \
    { (key), VLP_OPTION_INT, AT(member), (least), (most), (fallback), "", NULL }
#define REAL(key, member, least, most, fallback)                                                   \
    { (key), VLP_OPTION_DOUBLE, AT(member), (least), (most), (fallback), "", NULL }
#define ACT(key, member)                                                                           \
    { (key), VLP_OPTION_CHOICE, AT(member), 0, 0, "gelu", "", activations }
#define BOOL(key, member, fallback)                                                                \
    { (key), VLP_OPTION_BOOL, AT(member), 0, 0, (fallback), "", NULL }

static const vlp_option rows[] = {
    INT("vision_config.image_size", vision.image_height, 1, 4096, "224"),
    INT("vision_config.num_channels", vision.channels, 1, 4, "3"),
    INT("vision_config.patch_size", vision.patch, 1, 512, "16"),
    INT("vision_config.hidden_size", vision.width, 1, 16384, "768"),
    INT("vision_config.num_hidden_layers", vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_config.num_attention_heads", vision.heads, 1, 256, "12"),
    INT("vision_config.intermediate_size", vision.mlp_width, 1, 65536, "3072"),
    ACT("vision_config.hidden_act", vision.act),
    REAL("vision_config.layer_norm_eps", vision.eps, 0, 1, "1e-6"),
    BOOL("vision_config.patch_bias", vision.patch_bias, "true"),
    BOOL("vision_config.input_norm", vision.input_norm, "false"),
    BOOL("vision_config.no_class_token", vision.no_class_token, "false"),
    BOOL("vision_config.output_norm", vision.output_norm, "true"),
    BOOL("vision_config.mask_token", vision.mask_token, "false"),
    REAL("vision_config.hidden_dropout_prob", vision.dropout, 0, 0.99, "0"),
    REAL("vision_config.attention_probs_dropout_prob", vision.attention_dropout, 0, 0.99, "0"),
    REAL("vision_config.drop_path_rate", vision.drop_path, 0, 0.99, "0"),
    {"vision_config.pool", VLP_OPTION_CHOICE, AT(pool.kind), 0, 0, "first", "", pools},
    INT("vision_config.pool_heads", pool.heads, 0, 256, "0"),
    INT("text_config.encoder_hidden_size", text.context_width, 0, 16384, "0"),
    INT("text_config.bos_token_id", bos_id, 0, 10000000, "0"),
    INT("text_config.enc_token_id", enc_id, 0, 10000000, "0"),
    INT("text_config.sep_token_id", eos_id, 0, 10000000, "0"),
    INT("text_config.vocab_size", text.vocab, 1, 10000000, "30522"),
    INT("text_config.max_position_embeddings", text.positions, 1, 1000000, "512"),
    INT("text_config.type_vocab_size", text.types, 0, 1000, "0"),
    INT("text_config.hidden_size", text.width, 1, 16384, "768"),
    INT("text_config.num_hidden_layers", text.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("text_config.num_attention_heads", text.heads, 1, 256, "12"),
    INT("text_config.intermediate_size", text.mlp_width, 1, 65536, "3072"),
    ACT("text_config.hidden_act", text.act),
    REAL("text_config.layer_norm_eps", text.eps, 0, 1, "1e-12"),
    REAL("text_config.hidden_dropout_prob", text.dropout, 0, 0.99, "0"),
    REAL("text_config.attention_probs_dropout_prob", text.attention_dropout, 0, 0.99, "0"),
    INT("clip_text_config.vocab_size", clip_text.vocab, 1, 10000000, "49408"),
    INT("clip_text_config.max_position_embeddings", clip_text.positions, 1, 1000000, "77"),
    INT("clip_text_config.hidden_size", clip_text.width, 0, 16384, "0"),
    INT("clip_text_config.num_hidden_layers", clip_text.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("clip_text_config.num_attention_heads", clip_text.heads, 1, 256, "8"),
    INT("clip_text_config.intermediate_size", clip_text.mlp_width, 1, 65536, "2048"),
    ACT("clip_text_config.hidden_act", clip_text.act),
    REAL("clip_text_config.layer_norm_eps", clip_text.eps, 0, 1, "1e-5"),
    BOOL("clip_text_config.two_way", clip_text.two_way, "false"),
    BOOL("clip_text_config.reads_padding", clip_text.reads_padding, "false"),
    {"clip_text_config.pool", VLP_OPTION_CHOICE, AT(clip_text.pool), 0, 0, "end", "", text_pools},
    INT("fusion_config.num_hidden_layers", fusion.depth, 0, VLP_MAX_DEPTH, "0"),
    INT("fusion_config.num_attention_heads", fusion.heads, 1, 256, "12"),
    INT("fusion_config.intermediate_size", fusion.mlp_width, 1, 65536, "3072"),
    ACT("fusion_config.hidden_act", fusion.act),
    REAL("fusion_config.layer_norm_eps", fusion.eps, 0, 1, "1e-12"),
    REAL("fusion_config.hidden_dropout_prob", fusion.dropout, 0, 0.99, "0"),
    REAL("fusion_config.attention_probs_dropout_prob", fusion.attention_dropout, 0, 0.99, "0"),
    INT("projection_dim", embedding, 1, 65536, "512"),
    BOOL("decoder_shared", decoder_shared, "false"),
    BOOL("answers_questions", answers_questions, "false"),
    BOOL("projection_bias", projection_bias, "false"),
    BOOL("text_projection_bias", text_projection_bias, "false"),
    BOOL("no_image_projection", no_image_projection, "false"),
    BOOL("plain_temperature", plain_temperature, "false"),
    REAL("temperature_most", temperature_most, 0, 1000, "0"),
    REAL("logit_scale_init_value", logit_scale_init, -20, 20, "2.6592"),
    REAL("logit_scale_max", logit_scale_max, -20, 20, "4.6052"),
    BOOL("logit_bias", logit_bias, "false"),
    REAL("logit_bias_init_value", logit_bias_init, -1000, 1000, "0"),
    INT("text_length", text_length, 1, 1000000, "32"),
};

static const vlp_options table = {rows, VLP_COUNT(rows)};

static const char model_type[] = "vlp";
static const char *const not_sizes[] = {"model_type", "architectures", "vlp_version",
                                        "tokenizer_hash"};

/* A model has one of these. */
static const char bert[] = "text_config", clip_text[] = "clip_text_config";

/* What follows from other fields. */
static void complete(vlp_model_config *c) {
    if (c->clip_text.width > 0)
        c->text = (vlp_bert_config){0};
    else
        c->clip_text = (vlp_clip_text_config){0};
    c->vision.image_width = c->vision.image_height;
    c->text.pad_id = 0;
    c->fusion.width = c->text.width;
    c->fusion.image_width = c->vision.width;
}

vlp_status vlp_model_config_read(vlp_model_config *out, const vlp_json *json, const char *where) {
    *out = (vlp_model_config){0};
    VLP_TRY(vlp_json_expect(json, &(vlp_json_typed){"model_type", VLP_JSON_STRING}, 1, where));
    const char *type = vlp_json_string(json, "model_type", "");
    if (strcmp(type, model_type) != 0)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: model_type is \"%s\"; \"%s\" is what this program trains and reads",
                        where, type, model_type);
    vlp_json *sizes = vlp_json_copy(json);
    for (size_t i = 0; i < VLP_COUNT(not_sizes); i++) vlp_json_remove(sizes, not_sizes[i]);
    vlp_options_defaults(table, out);
    vlp_status status = vlp_options_read(table, out, sizes, where);
    vlp_json_free(sizes);
    complete(out);
    return status;
}

vlp_json *vlp_model_config_write(const vlp_model_config *config) {
    vlp_json *json = vlp_options_write(table, config);
    vlp_json_remove(json, config->clip_text.width > 0 ? bert : clip_text);
    vlp_json *architectures = vlp_json_new_array();
    vlp_json_append(architectures, vlp_json_new_string("VlpModel"));
    vlp_json_set(json, "architectures", architectures);
    vlp_json_set_string(json, "model_type", model_type);
    vlp_json_set_string(json, "vlp_version", VLP_VERSION);
    return json;
}
