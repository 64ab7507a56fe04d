/* CLIP's sizes from the configuration files that its users have. */
#include "core/act_names.h"
#include "core/options.h"
#include "fusion/clip.h"

#define INT(key, member, least, most, fallback)                                                    \
    {                                                                                              \
        (key), VLP_OPTION_INT, offsetof(vlp_clip_config, member), (least), (most), (fallback), "", \
            NULL                                                                                   \
    }
#define REAL(key, member, least, most, fallback)                                                   \
    {                                                                                              \
        (key), VLP_OPTION_DOUBLE, offsetof(vlp_clip_config, member), (least), (most), (fallback),  \
            "", NULL                                                                               \
    }

enum { MOST_WIDTH = 65536 };

static const vlp_option rows[] = {
    INT("vision_config.image_size", vision.image_height, 1, 65536, "224"),
    INT("vision_config.num_channels", vision.channels, 1, 64, "3"),
    INT("vision_config.patch_size", vision.patch, 1, 65536, "32"),
    INT("vision_config.hidden_size", vision.width, 1, MOST_WIDTH, "768"),
    INT("vision_config.num_hidden_layers", vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_config.num_attention_heads", vision.heads, 1, 1024, "12"),
    INT("vision_config.intermediate_size", vision.mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("vision_config.layer_norm_eps", vision.eps, 0, 1, "1e-5"),
    REAL("vision_config.attention_dropout", vision.attention_dropout, 0, 0.99, "0"),
    INT("text_config.vocab_size", text.vocab, 1, 10000000, "49408"),
    INT("text_config.max_position_embeddings", text.positions, 1, 1000000, "77"),
    INT("text_config.hidden_size", text.width, 1, MOST_WIDTH, "512"),
    INT("text_config.num_hidden_layers", text.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("text_config.num_attention_heads", text.heads, 1, 1024, "8"),
    INT("text_config.intermediate_size", text.mlp_width, 1, 4 * MOST_WIDTH, "2048"),
    REAL("text_config.layer_norm_eps", text.eps, 0, 1, "1e-5"),
    REAL("text_config.attention_dropout", text.attention_dropout, 0, 0.99, "0"),
    INT("projection_dim", embedding, 1, MOST_WIDTH, "512"),
    REAL("logit_scale_init_value", logit_scale_init, -20, 20, "2.6592"),
};

static const vlp_options table = {rows, VLP_COUNT(rows)};

vlp_status vlp_clip_config_hf(vlp_clip_config *out, const vlp_json *json, const char *where) {
    *out = (vlp_clip_config){0};
    vlp_options_defaults(table, out);
    VLP_TRY(vlp_options_pick(table, out, json, where));
    VLP_TRY(vlp_act_read(&out->vision.act, json, "vision_config.hidden_act", VLP_ACT_QUICK_GELU,
                         where));
    VLP_TRY(
        vlp_act_read(&out->text.act, json, "text_config.hidden_act", VLP_ACT_QUICK_GELU, where));
    out->vision.image_width = out->vision.image_height;
    out->vision.input_norm = true;
    return VLP_OK;
}
