#include "vision/vit_config.h"

#include "core/act_names.h"
#include "core/options.h"

#include <string.h>

#define INT(key, member, least, most, fallback)                                                    \
    { (key), VLP_OPTION_INT, offsetof(raw, member), (least), (most), (fallback), "", NULL }
#define REAL(key, member, least, most, fallback)                                                   \
    { (key), VLP_OPTION_DOUBLE, offsetof(raw, member), (least), (most), (fallback), "", NULL }
#define BOOL(key, member, fallback)                                                                \
    { (key), VLP_OPTION_BOOL, offsetof(raw, member), 0, 0, (fallback), "", NULL }

enum { MOST_PIXELS = 65536, MOST_WIDTH = 65536 };

/* What the tables fill: the config, and what it follows from. */
typedef struct {
    vlp_vit_config vit;
    double mlp_ratio;
    bool qkv_bias;
} raw;

static const vlp_option hf_rows[] = {
    INT("num_channels", vit.channels, 1, 64, "3"),
    INT("hidden_size", vit.width, 1, MOST_WIDTH, "768"),
    INT("num_hidden_layers", vit.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("num_attention_heads", vit.heads, 1, 1024, "12"),
    INT("intermediate_size", vit.mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("layer_norm_eps", vit.eps, 0, 1, "1e-12"),
    REAL("hidden_dropout_prob", vit.dropout, 0, 0.99, "0"),
    REAL("attention_probs_dropout_prob", vit.attention_dropout, 0, 0.99, "0"),
    BOOL("qkv_bias", qkv_bias, "true"),
};

static const vlp_option timm_rows[] = {
    INT("in_chans", vit.channels, 1, 64, "3"),
    INT("embed_dim", vit.width, 1, MOST_WIDTH, "768"),
    INT("vision_width", vit.width, 1, MOST_WIDTH, "768"),
    INT("depth", vit.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_depth", vit.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("num_heads", vit.heads, 1, 1024, "12"),
    INT("vision_heads", vit.heads, 1, 1024, "12"),
    REAL("mlp_ratio", mlp_ratio, 0.01, 1000, "4"),
    REAL("drop_rate", vit.dropout, 0, 0.99, "0"),
    REAL("attn_drop_rate", vit.attention_dropout, 0, 0.99, "0"),
    REAL("drop_path_rate", vit.drop_path, 0, 0.99, "0"),
    BOOL("qkv_bias", qkv_bias, "true"),
    BOOL("global_pool", vit.mean_pool, "false"),
};

static const vlp_options hf = {hf_rows, VLP_COUNT(hf_rows)};
static const vlp_options timm = {timm_rows, VLP_COUNT(timm_rows)};

/* A side, or [height, width]. */
static vlp_status read_size(const vlp_json *json, const char *key, int64_t *height, int64_t *width,
                            const char *where) {
    const vlp_json *value = vlp_json_key(json, key);
    if (!value || vlp_json_is_null(value)) return VLP_OK;
    const vlp_json *h = value, *w = value;
    if (vlp_json_len(value) == 2) {
        h = vlp_json_at(value, 0);
        w = vlp_json_at(value, 1);
    }
    *height = vlp_json_is_integer(h) ? vlp_json_as_int(h) : 0;
    *width = vlp_json_is_integer(w) ? vlp_json_as_int(w) : 0;
    if (*height >= 1 && *width >= 1 && *height <= MOST_PIXELS && *width <= MOST_PIXELS)
        return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: \"%s\" must be a whole number or [height, width], 1 to %d pixels", where,
                    key, MOST_PIXELS);
}

static vlp_status read_sizes(vlp_vit_config *c, const vlp_json *json, const char *where) {
    static const char *const keys[] = {"image_size", "img_size", "image_res"};
    c->image_height = c->image_width = 224;
    for (size_t i = 0; i < VLP_COUNT(keys); i++)
        VLP_TRY(read_size(json, keys[i], &c->image_height, &c->image_width, where));
    int64_t across = c->patch = 16;
    VLP_TRY(read_size(json, "patch_size", &c->patch, &across, where));
    if (c->patch == across) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: patch_size [%lld, %lld]; patches must be square",
                    where, (long long)c->patch, (long long)across);
}

vlp_status vlp_vit_config_read(vlp_vit_config *out, const vlp_json *json, const char *where) {
    bool is_hf = vlp_json_key(json, "hidden_size") || vlp_json_key(json, "model_type");
    vlp_options table = is_hf ? hf : timm;
    raw r = {0};
    vlp_options_defaults(table, &r);
    VLP_TRY(vlp_options_pick(table, &r, json, where));
    VLP_TRY(read_sizes(&r.vit, json, where));
    VLP_TRY(
        vlp_act_read(&r.vit.act, json, is_hf ? "hidden_act" : "act_layer", VLP_ACT_GELU, where));
    if (is_hf) {
        r.vit.interpolate_offset = 0.1;
        r.vit.distillation_token = strcmp(vlp_json_string(json, "model_type", ""), "deit") == 0;
    } else {
        r.vit.mlp_width = (int64_t)((double)r.vit.width * r.mlp_ratio);
        r.vit.eps = 1e-6;
    }
    r.vit.patch_bias = true;
    r.vit.output_norm = !r.vit.mean_pool;
    r.vit.no_qkv_bias = !r.qkv_bias;
    *out = r.vit;
    return VLP_OK;
}
