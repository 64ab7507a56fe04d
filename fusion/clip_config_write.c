/* CLIP's configuration files, written. */
#include "core/act_names.h"
#include "fusion/clip.h"

#include <math.h>

static vlp_json *hf_tower(int64_t width, int64_t depth, int64_t heads, int64_t mlp, vlp_act act,
                          double eps) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "hidden_size", width);
    vlp_json_set_int(json, "num_hidden_layers", depth);
    vlp_json_set_int(json, "num_attention_heads", heads);
    vlp_json_set_int(json, "intermediate_size", mlp);
    vlp_json_set_string(json, "hidden_act", vlp_act_name(act));
    vlp_json_set_double(json, "layer_norm_eps", eps);
    return json;
}

static vlp_json *write_hf(const vlp_model_config *c) {
    const vlp_vit_config *v = &c->vision;
    const vlp_clip_text_config *t = &c->clip_text;
    bool siglip = c->no_image_projection;
    vlp_json *json = vlp_json_new_object(), *classes = vlp_json_new_array();
    vlp_json *vision = hf_tower(v->width, v->depth, v->heads, v->mlp_width, v->act, v->eps);
    vlp_json *text = hf_tower(t->width, t->depth, t->heads, t->mlp_width, t->act, t->eps);
    vlp_json_append(classes, vlp_json_new_string(siglip ? "SiglipModel" : "CLIPModel"));
    vlp_json_set(json, "architectures", classes);
    vlp_json_set_string(json, "model_type", siglip ? "siglip" : "clip");
    vlp_json_set_int(vision, "image_size", v->image_height);
    vlp_json_set_int(vision, "patch_size", v->patch);
    vlp_json_set_int(vision, "num_channels", v->channels);
    vlp_json_set_string(vision, "model_type", siglip ? "siglip_vision_model" : "clip_vision_model");
    vlp_json_set_int(text, "vocab_size", t->vocab);
    vlp_json_set_int(text, "max_position_embeddings", t->positions);
    vlp_json_set_string(text, "model_type", siglip ? "siglip_text_model" : "clip_text_model");
    if (!siglip) {
        vlp_json_set_int(json, "projection_dim", c->embedding);
        vlp_json_set_int(vision, "projection_dim", c->embedding);
        vlp_json_set_int(text, "projection_dim", c->embedding);
        vlp_json_set_double(json, "logit_scale_init_value", c->logit_scale_init);
    }
    vlp_json_set(json, "vision_config", vision);
    vlp_json_set(json, "text_config", text);
    return json;
}

static vlp_json *write_openai(const vlp_model_config *c) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "embed_dim", c->embedding);
    vlp_json_set_int(json, "image_resolution", c->vision.image_height);
    vlp_json_set_int(json, "vision_layers", c->vision.depth);
    vlp_json_set_int(json, "vision_width", c->vision.width);
    vlp_json_set_int(json, "vision_patch_size", c->vision.patch);
    vlp_json_set_int(json, "vision_heads", c->vision.heads);
    vlp_json_set_int(json, "context_length", c->clip_text.positions);
    vlp_json_set_int(json, "vocab_size", c->clip_text.vocab);
    vlp_json_set_int(json, "transformer_width", c->clip_text.width);
    vlp_json_set_int(json, "transformer_heads", c->clip_text.heads);
    vlp_json_set_int(json, "transformer_layers", c->clip_text.depth);
    return json;
}

static vlp_json *open_clip_vision(const vlp_model_config *c) {
    const vlp_vit_config *v = &c->vision;
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "image_size", v->image_height);
    vlp_json_set_int(json, "layers", v->depth);
    vlp_json_set_int(json, "width", v->width);
    vlp_json_set_int(json, "head_width", v->width / v->heads);
    vlp_json_set_int(json, "patch_size", v->patch);
    vlp_json_set_double(json, "mlp_ratio", (double)v->mlp_width / (double)v->width);
    if (!v->input_norm) vlp_json_set_bool(json, "no_ln_pre", true);
    if (v->layer_scale) vlp_json_set_double(json, "ls_init_value", 1e-5);
    if (c->pool.kind == VLP_POOL_MEAN) vlp_json_set_string(json, "pool_type", "avg");
    if (c->pool.kind == VLP_POOL_QUERIES) {
        vlp_json_set_bool(json, "attentional_pool", true);
        vlp_json_set_int(json, "attn_pooler_queries", c->pool.queries);
        vlp_json_set_int(json, "attn_pooler_heads", c->pool.heads);
    }
    return json;
}

static vlp_json *open_clip_text(const vlp_model_config *c) {
    static const char *const pools[] = {"argmax", "last", "first"};
    const vlp_clip_text_config *t = &c->clip_text;
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "context_length", t->positions);
    vlp_json_set_int(json, "vocab_size", t->vocab);
    vlp_json_set_int(json, "width", t->width);
    vlp_json_set_int(json, "heads", t->heads);
    vlp_json_set_int(json, "layers", t->depth);
    vlp_json_set_double(json, "mlp_ratio", (double)t->mlp_width / (double)t->width);
    if (t->pool != VLP_TEXT_END) vlp_json_set_string(json, "pool_type", pools[t->pool]);
    if (t->two_way) vlp_json_set_bool(json, "no_causal_mask", true);
    if (t->class_token) vlp_json_set_bool(json, "embed_cls", true);
    if (t->class_token) vlp_json_set_int(json, "pad_id", t->pad_id);
    if (t->layer_scale) vlp_json_set_double(json, "ls_init_value", 1e-5);
    if (c->text_projection_bias) vlp_json_set_bool(json, "proj_bias", true);
    return json;
}

static vlp_json *write_open_clip(const vlp_model_config *c, bool custom) {
    vlp_json *json = vlp_json_new_object(), *model = vlp_json_new_object();
    vlp_json_set_int(model, "embed_dim", c->embedding);
    if (custom) vlp_json_set_bool(model, "custom_text", true);
    if (c->vision.act == VLP_ACT_QUICK_GELU) vlp_json_set_bool(model, "quick_gelu", true);
    if (c->logit_bias) vlp_json_set_double(model, "init_logit_bias", c->logit_bias_init);
    vlp_json_set(model, "vision_cfg", open_clip_vision(c));
    vlp_json_set(model, "text_cfg", open_clip_text(c));
    vlp_json_set(json, "model_cfg", model);
    return json;
}

const char *vlp_clip_misfit(const vlp_model_config *c, vlp_clip_layout layout, bool openai) {
    const vlp_vit_config *v = &c->vision;
    const vlp_clip_text_config *t = &c->clip_text;
    bool siglip = c->no_image_projection;
    if (t->width == 0)
        return "its text tower is a BERT, not CLIP's, as Hugging Face's VisionTextDualEncoderModel "
               "and ALBEF have one";
    if (v->image_height != v->image_width && (layout == VLP_CLIP_HF || openai))
        return "its images are not square";
    if (layout == VLP_CLIP_HF && !siglip &&
        (v->layer_scale || t->layer_scale || !v->input_norm || v->patch_bias ||
         c->pool.kind != VLP_POOL_FIRST || t->two_way || t->pool != VLP_TEXT_END ||
         t->class_token || c->text_projection_bias || c->logit_bias))
        return "CLIPModel has no such towers; --to openclip can hold them";
    if (layout != VLP_CLIP_HF && (siglip || v->patch_bias || v->no_class_token ||
                                  (v->eps > 0 && fabs(v->eps / 1e-5 - 1) > 1e-6)))
        return "open_clip has no such image tower; --to hf can hold it";
    if (layout != VLP_CLIP_HF &&
        (v->act != t->act || (v->act != VLP_ACT_QUICK_GELU && v->act != VLP_ACT_GELU)))
        return "open_clip has no such activation";
    if (openai && (v->act != VLP_ACT_QUICK_GELU || v->mlp_width != 4 * v->width ||
                   t->mlp_width != 4 * t->width || v->layer_scale || !v->input_norm ||
                   c->pool.kind != VLP_POOL_FIRST || t->two_way))
        return "OpenAI's CLIP has no such towers; --to openclip can hold them";
    return NULL;
}

vlp_json *vlp_clip_config_write(const vlp_model_config *c, vlp_clip_layout layout, bool openai) {
    return layout == VLP_CLIP_HF ? write_hf(c)
           : openai              ? write_openai(c)
                                 : write_open_clip(c, layout == VLP_CLIP_CUSTOM);
}
