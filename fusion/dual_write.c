/* A ViT and a BERT without a fusion stack as Hugging Face's VisionTextDualEncoderModel. Its towers
 * are read through poolers, tanh(W x + b), which our models do not have. With W = 2^-12 I and b = 0
 * tanh is its argument to less than a rounding error, and the factor is gone once the vectors have
 * unit length: the same cosines. */
#include "fusion/dual.h"
#include "fusion/layout.h"
#include "fusion/official.h"
#include "text/bert_names.h"
#include "vision/vit_names.h"

#include <math.h>

static const double small = 0x1p-12;
static const char image_pooler[] = "vision_model.pooler.dense.weight",
                  text_pooler[] = "text_model.pooler.dense.weight";

static const vlp_name_row heads[] = {
    {.theirs = "visual_projection.weight", .ours = "image_projection.weight"},
    {.theirs = "text_projection.weight", .ours = "text_projection.weight"},
    {.theirs = "logit_scale", .ours = "logit_scale"},
};
/* Where the model has none, as they do nothing. */
static const vlp_name_row not_ours[] = {
    {.theirs = "vision_model.pooler.dense.weight"},
    {.theirs = "vision_model.pooler.dense.bias"},
    {.theirs = "text_model.pooler.dense.weight"},
    {.theirs = "text_model.pooler.dense.bias"},
};
static const vlp_name_row no_types[] = {
    {.theirs = "text_model.embeddings.token_type_embeddings.weight"},
};

static bool is_bert(const vlp_model_config *c) {
    return c->text.width > 0;
}

static const char *misfit(const vlp_model_config *c) {
    const char *why = vlp_official_vision_misfit(c);
    if (why) return why;
    if (c->fusion.depth > 0)
        return "CLIPModel has CLIP's text tower, this is a BERT, and VisionTextDualEncoderModel "
               "has no fusion stack; --to albef can hold it";
    if (c->projection_bias || c->plain_temperature || c->embedding == 0)
        return "CLIPModel has CLIP's text tower, this is a BERT, and VisionTextDualEncoderModel "
               "has neither projection_bias nor plain_temperature; --to albef can hold it";
    return NULL;
}

static vlp_status write_config(vlp_json **out, const vlp_model_config *c) {
    vlp_json *json = vlp_json_new_object(), *classes = vlp_json_new_array();
    vlp_json_append(classes, vlp_json_new_string("VisionTextDualEncoderModel"));
    vlp_json_set(json, "architectures", classes);
    vlp_json_set_string(json, "model_type", vlp_dual_type);
    vlp_json_set_int(json, "projection_dim", c->embedding);
    vlp_json_set_double(json, "logit_scale_init_value", c->logit_scale_init);
    vlp_json_set(json, "vision_config", vlp_hf_vision_json(&c->vision, "vit"));
    vlp_json_set(json, "text_config", vlp_bert_json(&c->text));
    vlp_layout_add_own(json, c);
    *out = json;
    return VLP_OK;
}

static void fill_pooler(vlp_layout_plan *out, const char *tower, int64_t width) {
    vlp_layout_fill(
        out,
        (vlp_filler){.ndim = 2, .shape = {width, width}, .fill = VLP_FILL_DIAGONAL, .value = small},
        tower, "pooler.dense.weight");
    vlp_layout_fill(out, (vlp_filler){.ndim = 1, .shape = {width}}, tower, "pooler.dense.bias");
}

static void plan(vlp_layout_plan *out, const vlp_layout_source *s) {
    const vlp_model_config *c = s->config;
    vlp_dual_names(vlp_layout_map(out), c, NULL, false);
    fill_pooler(out, "vision_model.", c->vision.width);
    fill_pooler(out, "text_model.", c->text.width);
    if (c->text.types == 0)
        vlp_layout_fill(out, (vlp_filler){.ndim = 2, .shape = {2, c->text.width}}, "text_model.",
                        "embeddings.token_type_embeddings.weight");
}

void vlp_dual_names(vlp_name_map *map, const vlp_model_config *c, const vlp_safetensors *file,
                    bool momentum) {
    (void)file;
    (void)momentum;
    vlp_name_map_add(map, not_ours, VLP_COUNT(not_ours), "", "");
    if (c->text.types == 0) vlp_name_map_add(map, no_types, VLP_COUNT(no_types), "", "");
    vlp_vit_names_hf(map, "vision_model.", "vision.");
    vlp_bert_names_layers(map, "text_model.", "text.", 0, INT64_MAX);
    vlp_name_map_add(map, heads, VLP_COUNT(heads), "", "");
}

/* The pooler that does nothing. */
static bool passes_on(const vlp_safetensors *file, const char *name) {
    const vlp_safetensor *t = vlp_safetensors_find(file, name);
    if (!t || t->ndim != 2 || t->shape[0] != t->shape[1]) return false;
    for (int64_t i = 0; i < t->numel; i++) {
        double want = i / t->shape[0] == i % t->shape[0] ? small : 0;
        if (vlp_safetensor_value(t, i) != want) return false;
    }
    return true;
}

bool vlp_dual_is_file(const vlp_safetensors *file) {
    return passes_on(file, image_pooler) && passes_on(file, text_pooler);
}

const vlp_layout vlp_layout_dual = {.format = "hf",
                                    .weights = "model.safetensors",
                                    .config_file = "config.json",
                                    .is_for = is_bert,
                                    .misfit = misfit,
                                    .config = write_config,
                                    .plan = plan};
