/* CLIP's sizes from the configuration files that its users have. */
#include "core/act_names.h"
#include "core/options.h"
#include "fusion/clip.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WIDTH = 65536, MOST_PIXELS = 65536 };

/* What the tables fill: the config, and what it follows from. */
typedef struct {
    vlp_model_config c;
    double vision_ratio, text_ratio, logit_bias;
    int64_t head_width, queries, pool_heads;
    bool quick_gelu, no_ln_pre, pool, class_token, no_causal_mask, projection_bias;
} raw;

#define INT(key, member, least, most, fallback)                                                    \
    { (key), VLP_OPTION_INT, offsetof(raw, member), (least), (most), (fallback), "", NULL }
#define REAL(key, member, least, most, fallback)                                                   \
    { (key), VLP_OPTION_DOUBLE, offsetof(raw, member), (least), (most), (fallback), "", NULL }
#define BOOL(key, member)                                                                          \
    { (key), VLP_OPTION_BOOL, offsetof(raw, member), 0, 0, "false", "", NULL }

static const vlp_option hf_rows[] = {
    INT("vision_config.image_size", c.vision.image_height, 1, MOST_PIXELS, "224"),
    INT("vision_config.num_channels", c.vision.channels, 1, 64, "3"),
    INT("vision_config.patch_size", c.vision.patch, 1, MOST_PIXELS, "32"),
    INT("vision_config.hidden_size", c.vision.width, 1, MOST_WIDTH, "768"),
    INT("vision_config.num_hidden_layers", c.vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_config.num_attention_heads", c.vision.heads, 1, 1024, "12"),
    INT("vision_config.intermediate_size", c.vision.mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("vision_config.layer_norm_eps", c.vision.eps, 0, 1, "1e-5"),
    REAL("vision_config.attention_dropout", c.vision.attention_dropout, 0, 0.99, "0"),
    INT("text_config.vocab_size", c.clip_text.vocab, 1, 10000000, "49408"),
    INT("text_config.max_position_embeddings", c.clip_text.positions, 1, 1000000, "77"),
    INT("text_config.hidden_size", c.clip_text.width, 1, MOST_WIDTH, "512"),
    INT("text_config.num_hidden_layers", c.clip_text.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("text_config.num_attention_heads", c.clip_text.heads, 1, 1024, "8"),
    INT("text_config.intermediate_size", c.clip_text.mlp_width, 1, 4 * MOST_WIDTH, "2048"),
    REAL("text_config.layer_norm_eps", c.clip_text.eps, 0, 1, "1e-5"),
    REAL("text_config.attention_dropout", c.clip_text.attention_dropout, 0, 0.99, "0"),
    INT("projection_dim", c.embedding, 1, MOST_WIDTH, "512"),
    REAL("logit_scale_init_value", c.logit_scale_init, -20, 20, "2.6592"),
};

static const vlp_option openai_rows[] = {
    INT("embed_dim", c.embedding, 1, MOST_WIDTH, "512"),
    INT("image_resolution", c.vision.image_height, 1, MOST_PIXELS, "224"),
    INT("vision_layers", c.vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_width", c.vision.width, 1, MOST_WIDTH, "768"),
    INT("vision_patch_size", c.vision.patch, 1, MOST_PIXELS, "32"),
    INT("vision_heads", c.vision.heads, 0, 1024, "0"),
    INT("context_length", c.clip_text.positions, 1, 1000000, "77"),
    INT("vocab_size", c.clip_text.vocab, 1, 10000000, "49408"),
    INT("transformer_width", c.clip_text.width, 1, MOST_WIDTH, "512"),
    INT("transformer_heads", c.clip_text.heads, 0, 1024, "0"),
    INT("transformer_layers", c.clip_text.depth, 0, VLP_MAX_DEPTH, "12"),
};

static const vlp_option open_clip_rows[] = {
    INT("embed_dim", c.embedding, 1, MOST_WIDTH, "512"),
    BOOL("quick_gelu", quick_gelu),
    REAL("init_logit_bias", logit_bias, -1000, 1000, "0"),
    INT("vision_cfg.layers", c.vision.depth, 0, VLP_MAX_DEPTH, "12"),
    INT("vision_cfg.width", c.vision.width, 1, MOST_WIDTH, "768"),
    INT("vision_cfg.head_width", head_width, 1, MOST_WIDTH, "64"),
    REAL("vision_cfg.mlp_ratio", vision_ratio, 0.01, 1000, "4"),
    INT("vision_cfg.patch_size", c.vision.patch, 1, MOST_PIXELS, "16"),
    BOOL("vision_cfg.no_ln_pre", no_ln_pre),
    BOOL("vision_cfg.attentional_pool", pool),
    INT("vision_cfg.attn_pooler_queries", queries, 1, 65536, "256"),
    INT("vision_cfg.attn_pooler_heads", pool_heads, 1, 1024, "8"),
    INT("text_cfg.context_length", c.clip_text.positions, 1, 1000000, "77"),
    INT("text_cfg.vocab_size", c.clip_text.vocab, 1, 10000000, "49408"),
    INT("text_cfg.width", c.clip_text.width, 1, MOST_WIDTH, "512"),
    INT("text_cfg.heads", c.clip_text.heads, 1, 1024, "8"),
    INT("text_cfg.layers", c.clip_text.depth, 0, VLP_MAX_DEPTH, "12"),
    REAL("text_cfg.mlp_ratio", text_ratio, 0.01, 1000, "4"),
    BOOL("text_cfg.embed_cls", class_token),
    BOOL("text_cfg.no_causal_mask", no_causal_mask),
    BOOL("text_cfg.proj_bias", projection_bias),
};

#define TABLE(rows)                                                                                \
    (vlp_options) {                                                                                \
        (rows), VLP_COUNT(rows)                                                                    \
    }

bool vlp_clip_is_config(const vlp_json *json) {
    const char *type = vlp_json_string(json, "model_type", "");
    return strcmp(type, "clip") == 0 || strcmp(type, "siglip") == 0 ||
           vlp_json_key(json, "vision_cfg") || vlp_json_key(json, "model_cfg") ||
           (vlp_json_key(json, "embed_dim") && vlp_json_key(json, "transformer_width"));
}

static vlp_status read_clip_hf(raw *r, const vlp_json *json, const char *where) {
    vlp_model_config *c = &r->c;
    vlp_options_defaults(TABLE(hf_rows), r);
    VLP_TRY(vlp_options_pick(TABLE(hf_rows), r, json, where));
    VLP_TRY(
        vlp_act_read(&c->vision.act, json, "vision_config.hidden_act", VLP_ACT_QUICK_GELU, where));
    c->vision.input_norm = true;
    return vlp_act_read(&c->clip_text.act, json, "text_config.hidden_act", VLP_ACT_QUICK_GELU,
                        where);
}

/* Where SiglipConfig's defaults differ from CLIPConfig's. */
static void siglip_defaults(raw *r) {
    vlp_model_config *c = &r->c;
    vlp_options_defaults(TABLE(hf_rows), r);
    c->vision.patch = 16;
    c->vision.eps = c->clip_text.eps = 1e-6;
    c->clip_text.vocab = 32000;
    c->clip_text.positions = 64;
    c->clip_text.width = 768;
    c->clip_text.heads = 12;
    c->clip_text.mlp_width = 3072;
    c->logit_scale_init = log(10);
    c->logit_bias_init = -10;
}

static vlp_status read_siglip_hf(raw *r, const vlp_json *json, const char *where) {
    vlp_model_config *c = &r->c;
    vlp_act usual = VLP_ACT_GELU_TANH;
    siglip_defaults(r);
    VLP_TRY(vlp_options_pick(TABLE(hf_rows), r, json, where));
    VLP_TRY(vlp_act_read(&c->vision.act, json, "vision_config.hidden_act", usual, where));
    VLP_TRY(vlp_act_read(&c->clip_text.act, json, "text_config.hidden_act", usual, where));
    c->vision.no_class_token = c->vision.patch_bias = true;
    c->pool = (vlp_vit_pool_config){.kind = VLP_POOL_MAP, .heads = c->vision.heads};
    c->clip_text.two_way = c->clip_text.reads_padding = true;
    c->clip_text.pool = VLP_TEXT_LAST;
    c->text_projection_bias = c->no_image_projection = c->logit_bias = true;
    c->embedding = vlp_json_int(json, "text_config.projection_size", c->clip_text.width);
    if (c->embedding == c->vision.width) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: texts have %lld dimensions, images %lld; they must agree",
                    where, (long long)c->embedding, (long long)c->vision.width);
}

/* Heads are 64 wide unless the file says how many there are. */
static int64_t heads_of(int64_t heads, int64_t width) {
    return heads > 0 ? heads : width < 64 ? 1 : width / 64;
}

static vlp_status read_openai(raw *r, const vlp_json *json, const char *where) {
    vlp_model_config *c = &r->c;
    vlp_options_defaults(TABLE(openai_rows), r);
    VLP_TRY(vlp_options_pick(TABLE(openai_rows), r, json, where));
    c->vision.channels = 3;
    c->vision.input_norm = true;
    c->vision.heads = heads_of(c->vision.heads, c->vision.width);
    c->clip_text.heads = heads_of(c->clip_text.heads, c->clip_text.width);
    c->vision.mlp_width = 4 * c->vision.width;
    c->clip_text.mlp_width = 4 * c->clip_text.width;
    c->vision.act = c->clip_text.act = VLP_ACT_QUICK_GELU;
    c->vision.eps = c->clip_text.eps = 1e-5;
    c->logit_scale_init = log(1 / 0.07);
    return VLP_OK;
}

/* A side, or [height, width]. */
static vlp_status read_image_size(vlp_vit_config *c, const vlp_json *size, const char *where) {
    const vlp_json *h = size, *w = size;
    c->image_height = c->image_width = 224;
    if (!size || vlp_json_is_null(size)) return VLP_OK;
    if (vlp_json_len(size) == 2) {
        h = vlp_json_at(size, 0);
        w = vlp_json_at(size, 1);
    }
    c->image_height = vlp_json_is_integer(h) ? vlp_json_as_int(h) : 0;
    c->image_width = vlp_json_is_integer(w) ? vlp_json_as_int(w) : 0;
    if (c->image_height >= 1 && c->image_width >= 1 && c->image_height <= MOST_PIXELS &&
        c->image_width <= MOST_PIXELS)
        return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: \"image_size\" must be a whole number or [height, width], 1 to %d pixels",
                    where, MOST_PIXELS);
}

/* A key whose value is one of some words; the first stands for an absent key. */
static vlp_status read_word(const vlp_json *json, const char *key, const char *const *words,
                            int *out, const char *where) {
    const char *value = vlp_json_string(json, key, words[0]);
    for (*out = 0; words[*out]; ++*out)
        if (strcmp(value, words[*out]) == 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: %s is \"%s\", which cannot be computed", where, key,
                    value);
}

static vlp_status refuse_other_towers(const vlp_json *json, const char *where) {
    static const char *const keys[] = {"vision_cfg.timm_model_name", "text_cfg.hf_model_name",
                                       "vision_cfg.final_ln_after_pool",
                                       "text_cfg.final_ln_after_pool"};
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        const vlp_json *value = vlp_json_get(json, keys[i]);
        if (vlp_json_is_string(value) || (vlp_json_is_bool(value) && vlp_json_as_bool(value)))
            return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: %s is set; such a tower cannot be computed",
                            where, keys[i]);
    }
    return VLP_OK;
}

static vlp_status read_open_clip_pools(raw *r, const vlp_json *json, const char *where) {
    static const char *const image[] = {"tok", "avg", NULL};
    static const char *const text[] = {"argmax", "last", "first", NULL};
    vlp_model_config *c = &r->c;
    int word;
    VLP_TRY(read_word(json, "vision_cfg.pool_type", image, &word, where));
    c->pool.kind = word == 0 ? VLP_POOL_FIRST : VLP_POOL_MEAN;
    if (r->pool)
        c->pool = (vlp_vit_pool_config){VLP_POOL_QUERIES, r->queries, r->pool_heads, c->embedding};
    VLP_TRY(read_word(json, "text_cfg.pool_type", text, &word, where));
    c->clip_text.pool = (vlp_text_pool)word;
    return VLP_OK;
}

static bool is_number(const vlp_json *json, const char *key) {
    return vlp_json_is_number(vlp_json_get(json, key));
}

static vlp_status read_open_clip(raw *r, const vlp_json *json, const char *where) {
    vlp_model_config *c = &r->c;
    VLP_TRY(refuse_other_towers(json, where));
    vlp_options_defaults(TABLE(open_clip_rows), r);
    VLP_TRY(vlp_options_pick(TABLE(open_clip_rows), r, json, where));
    VLP_TRY(read_image_size(&c->vision, vlp_json_get(json, "vision_cfg.image_size"), where));
    VLP_TRY(read_open_clip_pools(r, json, where));
    c->vision.channels = 3;
    c->vision.heads = c->vision.width / r->head_width;
    c->vision.mlp_width = (int64_t)((double)c->vision.width * r->vision_ratio);
    c->vision.input_norm = !r->no_ln_pre;
    c->vision.layer_scale = is_number(json, "vision_cfg.ls_init_value");
    c->clip_text.mlp_width = (int64_t)((double)c->clip_text.width * r->text_ratio);
    c->clip_text.layer_scale = is_number(json, "text_cfg.ls_init_value");
    c->clip_text.two_way = r->no_causal_mask;
    c->clip_text.reads_padding = !r->class_token;
    c->clip_text.class_token = r->class_token;
    c->clip_text.pad_id = (int32_t)vlp_json_int(json, "text_cfg.pad_id", 0);
    c->text_projection_bias = r->projection_bias;
    c->logit_bias = is_number(json, "init_logit_bias");
    c->logit_bias_init = r->logit_bias;
    c->vision.act = c->clip_text.act = r->quick_gelu ? VLP_ACT_QUICK_GELU : VLP_ACT_GELU;
    c->vision.eps = c->clip_text.eps = 1e-5;
    c->logit_scale_init = log(1 / 0.07);
    return VLP_OK;
}

static vlp_status read_any(raw *r, const vlp_json *json, const char *where) {
    const vlp_json *inner = vlp_json_key(json, "model_cfg");
    if (inner) json = inner;
    if (vlp_json_key(json, "vision_cfg")) return read_open_clip(r, json, where);
    bool siglip = strcmp(vlp_json_string(json, "model_type", ""), "siglip") == 0;
    bool openai = vlp_json_key(json, "embed_dim") && !vlp_json_key(json, "vision_config");
    vlp_status status = (openai   ? read_openai
                         : siglip ? read_siglip_hf
                                  : read_clip_hf)(r, json, where);
    r->c.vision.image_width = r->c.vision.image_height;
    return status;
}

vlp_status vlp_clip_config_read(vlp_model_config *out, const vlp_json *json, const char *where) {
    raw r = {0};
    VLP_TRY(read_any(&r, json, where));
    r.c.vision.output_norm = r.c.pool.kind != VLP_POOL_QUERIES;
    r.c.logit_scale_max = INFINITY; /* trainers clamp it, these models do not */
    r.c.text_length = r.c.clip_text.positions;
    *out = r.c;
    return VLP_OK;
}

/* Layers "prefix0...", "prefix1..." that the file has. */
static int64_t count_layers(const vlp_safetensors *file, const char *prefix) {
    char name[128];
    for (int64_t n = 0; n < VLP_MAX_DEPTH; n++) {
        snprintf(name, sizeof name, "%s%d.ln_1.weight", prefix, (int)n);
        if (!vlp_safetensors_find(file, name)) return n;
    }
    return VLP_MAX_DEPTH;
}

static int64_t dimension(const vlp_safetensors *file, const char *name, int d) {
    const vlp_safetensor *t = vlp_safetensors_find(file, name);
    return t && t->ndim > d ? t->shape[d] : 0;
}

vlp_status vlp_clip_config_from_file(vlp_model_config *out, const vlp_safetensors *file) {
    const vlp_safetensor *positions;
    VLP_TRY(vlp_safetensors_get(file, "visual.positional_embedding", &positions));
    int64_t patch = dimension(file, "visual.conv1.weight", 3);
    int64_t grid = llround(sqrt(fmax(0, (double)positions->shape[0] - 1)));
    vlp_json *json = vlp_json_new_object();
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        {"embed_dim", dimension(file, "text_projection", 1)},
        {"image_resolution", patch * grid},
        {"vision_layers", count_layers(file, "visual.transformer.resblocks.")},
        {"vision_width", dimension(file, "visual.conv1.weight", 0)},
        {"vision_patch_size", patch},
        {"context_length", dimension(file, "positional_embedding", 0)},
        {"vocab_size", dimension(file, "token_embedding.weight", 0)},
        {"transformer_width", dimension(file, "ln_final.weight", 0)},
        {"transformer_layers", count_layers(file, "transformer.resblocks.")},
    };
    for (size_t i = 0; i < VLP_COUNT(sizes); i++)
        vlp_json_set_int(json, sizes[i].key, sizes[i].value);
    vlp_status status = vlp_clip_config_read(out, json, positions->file);
    vlp_json_free(json);
    return status;
}
