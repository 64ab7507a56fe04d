/* A model in ALBEF's layout: its pre-training's, with the momentum twin as a copy, as a new run of
 * ALBEF begins; or, without a head of masked language modelling, its retrieval's. */
#include "fusion/albef.h"
#include "fusion/layout.h"
#include "fusion/official.h"

#include <math.h>
#include <stdio.h>

enum { SEGMENTS = 2 }; /* BERT's */
static const char *const twins[] = {"", "_m"};

vlp_json *vlp_bert_json(const vlp_bert_config *c) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "model_type", "bert");
    vlp_json_set_int(json, "vocab_size", c->vocab);
    vlp_json_set_int(json, "max_position_embeddings", c->positions);
    vlp_json_set_int(json, "type_vocab_size", c->types > 0 ? c->types : SEGMENTS);
    vlp_json_set_int(json, "hidden_size", c->width);
    vlp_json_set_int(json, "num_hidden_layers", c->depth);
    vlp_json_set_int(json, "num_attention_heads", c->heads);
    vlp_json_set_int(json, "intermediate_size", c->mlp_width);
    vlp_json_set_string(json, "hidden_act", "gelu");
    vlp_json_set_double(json, "layer_norm_eps", c->eps);
    vlp_json_set_double(json, "hidden_dropout_prob", 0.1);
    vlp_json_set_double(json, "attention_probs_dropout_prob", 0.1);
    vlp_json_set_int(json, "pad_token_id", 0);
    return json;
}

/* The reference multiplies and cuts off, so that a quotient may have to be the next number. */
static double mlp_ratio(const vlp_vit_config *v) {
    double ratio = (double)v->mlp_width / (double)v->width;
    while ((int64_t)((double)v->width * ratio) < v->mlp_width) ratio = nextafter(ratio, INFINITY);
    return ratio;
}

void vlp_official_vision_json(vlp_json *json, const vlp_vit_config *v, const char *size_key) {
    vlp_json_set_int(json, size_key, v->image_height);
    vlp_json_set_int(json, "patch_size", v->patch);
    vlp_json_set_int(json, "vision_width", v->width);
    vlp_json_set_int(json, "vision_depth", v->depth);
    vlp_json_set_int(json, "vision_heads", v->heads);
    vlp_json_set_double(json, "mlp_ratio", mlp_ratio(v));
}

const char *vlp_official_vision_misfit(const vlp_model_config *c) {
    const vlp_vit_config *v = &c->vision;
    if (c->clip_text.width > 0) return "its text tower is CLIP's; --to hf or openclip can hold it";
    if (c->pool.kind != VLP_POOL_FIRST)
        return "images are read by their class token there, here by the mean or a map";
    if (c->logit_bias) return "there is no place for the bias of similarities (sigmoid loss)";
    if (v->input_norm || !v->patch_bias || !v->output_norm || v->no_class_token ||
        v->distillation_token || v->layer_scale || v->no_qkv_bias || v->act != VLP_ACT_GELU ||
        v->image_height != v->image_width || v->channels != 3)
        return "its image tower is not a plain ViT";
    if (c->text.width > 0 && c->text.act != VLP_ACT_GELU) return "its text tower is not a BERT";
    return NULL;
}

static const char *misfit(const vlp_model_config *c) {
    const vlp_fusion_config *f = &c->fusion;
    const vlp_bert_config *t = &c->text;
    const char *why = vlp_official_vision_misfit(c);
    if (why) return why;
    if (t->width == 0 || t->context_width > 0 || c->decoder.width > 0)
        return "ALBEF has no such decoder, its first text layers see no image; --to blip or hf "
               "can hold it";
    if (c->embedding == 0) return "it has no shared space";
    if (fabs(c->vision.eps / 1e-6 - 1) > 1e-6)
        return "its image tower's layer_norm_eps is not 1e-6";
    if (f->depth > 0 && (f->heads != t->heads || f->mlp_width != t->mlp_width || f->act != t->act ||
                         f->eps < t->eps || f->eps > t->eps))
        return "ALBEF's fusion layers are like its text layers";
    return NULL;
}

static vlp_status write_config(vlp_json **out, const vlp_model_config *c) {
    vlp_json *json = vlp_json_new_object();
    vlp_bert_config all = c->text;
    all.depth += c->fusion.depth;
    vlp_json *bert = vlp_bert_json(&all);
    vlp_json_set_int(bert, "fusion_layer", c->text.depth);
    vlp_json_set_int(bert, "encoder_width", c->vision.width);
    vlp_official_vision_json(json, &c->vision, "image_res");
    vlp_json_set_int(json, "embed_dim", c->embedding);
    vlp_json_set_double(json, "temp", exp(-c->logit_scale_init));
    vlp_json_set(json, "bert_config", bert);
    vlp_layout_add_own(json, c);
    *out = json;
    return VLP_OK;
}

static void fill_copy(vlp_layout_plan *out, const vlp_layout_source *s, const char *m) {
    const vlp_model_config *c = s->config;
    const vlp_filler bias = {.ndim = 1, .shape = {c->embedding}};
    char text[64];
    snprintf(text, sizeof text, "text_encoder%s.%s", m, s->words_head ? "bert." : "");
    vlp_layout_fill(
        out, (vlp_filler){.ndim = 2, .shape = {1, c->text.positions}, .fill = VLP_FILL_COUNT}, text,
        "embeddings.position_ids");
    if (c->text.types == 0)
        vlp_layout_fill(out, (vlp_filler){.ndim = 2, .shape = {SEGMENTS, c->text.width}}, text,
                        "embeddings.token_type_embeddings.weight");
    if (c->projection_bias) return;
    snprintf(text, sizeof text, "_proj%s.bias", m);
    vlp_layout_fill(out, bias, "vision", text);
    vlp_layout_fill(out, bias, "text", text);
}

static void plan(vlp_layout_plan *out, const vlp_layout_source *s) {
    for (int copy = 0; copy < 2; copy++) {
        fill_copy(out, s, twins[copy]);
        vlp_albef_tables(vlp_layout_map(out), s->config, s->words_head, copy == 1);
        if (s->words_head) vlp_albef_tied(vlp_layout_map(out), copy == 1);
    }
    if (!s->config->plain_temperature)
        vlp_layout_fill(out, (vlp_filler){.value = s->temperature}, "", "temp");
}

static bool is_for(const vlp_model_config *c) {
    (void)c;
    return true;
}

const vlp_layout vlp_layout_albef = {.format = "albef",
                                     .weights = "model.safetensors",
                                     .config_file = "config.json",
                                     .is_for = is_for,
                                     .misfit = misfit,
                                     .config = write_config,
                                     .plan = plan,
                                     .words_head = true};

vlp_json *vlp_hf_vision_json(const vlp_vit_config *v, const char *type) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "model_type", type);
    vlp_json_set_int(json, "image_size", v->image_height);
    vlp_json_set_int(json, "num_channels", v->channels);
    vlp_json_set_int(json, "patch_size", v->patch);
    vlp_json_set_int(json, "hidden_size", v->width);
    vlp_json_set_int(json, "num_hidden_layers", v->depth);
    vlp_json_set_int(json, "num_attention_heads", v->heads);
    vlp_json_set_int(json, "intermediate_size", v->mlp_width);
    vlp_json_set_string(json, "hidden_act", "gelu");
    vlp_json_set_double(json, "layer_norm_eps", v->eps);
    return json;
}
