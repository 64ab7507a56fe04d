#include "fusion/coca.h"

#include "core/memory.h"
#include "core/options.h"

typedef struct {
    vlp_coca_config c;
    double mlp_ratio;
    bool quick_gelu;
} raw;

#define INT(key, member, most, fallback)                                                           \
    { (key), VLP_OPTION_INT, offsetof(raw, member), 1, (most), (fallback), "", NULL }

static const vlp_option rows[] = {
    INT("multimodal_cfg.width", c.width, 65536, "512"),
    INT("multimodal_cfg.layers", c.depth, VLP_MAX_DEPTH, "12"),
    INT("multimodal_cfg.heads", c.heads, 1024, "8"),
    INT("text_cfg.vocab_size", c.vocab, 10000000, "49408"),
    {"multimodal_cfg.mlp_ratio", VLP_OPTION_DOUBLE, offsetof(raw, mlp_ratio), 0.01, 1000, "4", "",
     NULL},
    {"quick_gelu", VLP_OPTION_BOOL, offsetof(raw, quick_gelu), 0, 0, "false", "", NULL},
};

static const vlp_options table = {rows, VLP_COUNT(rows)};

vlp_status vlp_coca_config_read(vlp_coca_config *out, const vlp_json *json, const char *where) {
    raw r = {0};
    *out = r.c;
    const vlp_json *inner = vlp_json_key(json, "model_cfg");
    if (inner) json = inner;
    if (!vlp_json_key(json, "multimodal_cfg")) return VLP_OK;
    vlp_options_defaults(table, &r);
    VLP_TRY(vlp_options_pick(table, &r, json, where));
    r.c.mlp_width = (int64_t)((double)r.c.width * r.mlp_ratio);
    r.c.act = r.quick_gelu ? VLP_ACT_QUICK_GELU : VLP_ACT_GELU;
    r.c.eps = 1e-5;
    *out = r.c;
    return VLP_OK;
}

static vlp_status declare_layer(vlp_coca_layer *layer, vlp_params *params,
                                const vlp_coca_config *c) {
    double std = vlp_init_std(c->width);
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .act = c->act,
                              .pre_norm = true,
                              .eps = c->eps};
    VLP_TRY(vlp_stack_declare(&layer->text, params, &block, 1));
    vlp_params_push(params, "cross");
    vlp_norm_declare(&layer->norm1, params, "norm1", c->width, c->eps);
    vlp_norm_declare(&layer->norm_kv, params, "norm_kv", c->width, c->eps);
    vlp_attend_declare(&layer->attend, params, "attend", c->width, c->width, c->heads);
    vlp_norm_declare(&layer->norm2, params, "norm2", c->width, c->eps);
    vlp_dense_declare(&layer->fc1, params, "mlp.fc1", c->width, c->mlp_width, true, std);
    vlp_dense_declare(&layer->fc2, params, "mlp.fc2", c->mlp_width, c->width, true, std);
    vlp_params_pop(params);
    return VLP_OK;
}

vlp_status vlp_coca_declare(vlp_coca *coca, vlp_params *params, const vlp_coca_config *c) {
    *coca = (vlp_coca){.config = *c};
    coca->layers = vlp_alloc_zero((size_t)c->depth, sizeof *coca->layers);
    if (!coca->layers) return VLP_ERR_MEMORY;
    vlp_params_push(params, "objective.captions");
    for (int64_t i = 0; i < c->depth; i++) {
        vlp_params_push(params, "layers.%lld", (long long)i);
        VLP_TRY(declare_layer(&coca->layers[i], params, c));
        vlp_params_pop(params);
    }
    vlp_norm_declare(&coca->norm, params, "norm", c->width, c->eps);
    vlp_dense_declare(&coca->head, params, "head", c->width, c->vocab, false,
                      vlp_init_std(c->width));
    vlp_params_pop(params);
    return VLP_OK;
}

void vlp_coca_free(vlp_coca *coca) {
    for (int64_t i = 0; coca->layers && i < coca->config.depth; i++)
        vlp_stack_free(&coca->layers[i].text);
    vlp_free(coca->layers);
    *coca = (vlp_coca){0};
}

#define BLOCK(theirs_, ours_)                                                                      \
    VLP_NAME_LAYER(theirs_ ".ln_1", ours_ ".norm1"),                                               \
        VLP_NAME_LAYER(theirs_ ".ln_2", ours_ ".norm2"),                                           \
        VLP_NAME_LAYER(theirs_ ".mlp.c_fc", ours_ ".mlp.fc1"),                                     \
        VLP_NAME_LAYER(theirs_ ".mlp.c_proj", ours_ ".mlp.fc2")
#define ATTENTION(theirs_, ours_, part_)                                                           \
    {.theirs = theirs_ ".attn.in_proj_weight", .ours = ours_ part_ ".qkv.weight"},                 \
        {.theirs = theirs_ ".attn.in_proj_bias", .ours = ours_ part_ ".qkv.bias"},                 \
        VLP_NAME_LAYER(theirs_ ".attn.out_proj", ours_ part_ ".proj")

static const vlp_name_row names[] = {
    BLOCK("resblocks.{}", "layers.{}.blocks.0"),
    ATTENTION("resblocks.{}", "layers.{}.blocks.0", ".attn"),
    BLOCK("cross_attn.{}", "layers.{}.cross"),
    ATTENTION("cross_attn.{}", "layers.{}.cross", ".attend"),
    VLP_NAME_LAYER("cross_attn.{}.ln_1_kv", "layers.{}.cross.norm_kv"),
    VLP_NAME_LAYER("ln_final", "norm"),
    {.theirs = "text_projection", .ours = "head.weight", .transpose = true},
};

void vlp_coca_names(vlp_name_map *map) {
    vlp_name_map_add(map, names, VLP_COUNT(names), "text_decoder.", "objective.captions.");
}

static vlp_tensor *cross(vlp_tape *tape, const vlp_coca_layer *layer, vlp_tensor *x,
                         vlp_tensor *image, vlp_act act) {
    vlp_tensor *y =
        vlp_attend_forward(tape, &layer->attend, vlp_norm_forward(tape, &layer->norm1, x),
                           vlp_norm_forward(tape, &layer->norm_kv, image));
    x = vlp_add(tape, x, vlp_to_real(tape, y));
    y = vlp_dense_forward(tape, &layer->fc1, vlp_norm_forward(tape, &layer->norm2, x), act);
    y = vlp_dense_forward(tape, &layer->fc2, y, VLP_ACT_NONE);
    return vlp_add(tape, x, vlp_to_real(tape, y));
}

vlp_tensor *vlp_coca_logits(vlp_tape *tape, const vlp_coca *coca, vlp_tensor *image,
                            vlp_tensor *text) {
    for (int64_t i = 0; i < coca->config.depth; i++) {
        text = vlp_stack_forward(tape, &coca->layers[i].text, text,
                                 &(vlp_stack_input){.causal = true});
        text = cross(tape, &coca->layers[i], text, image, coca->config.act);
    }
    return vlp_dense_readout(tape, &coca->head, vlp_norm_forward(tape, &coca->norm, text));
}
