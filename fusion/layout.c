#include "fusion/layout.h"

#include "fusion/clip.h"

#include <stdio.h>
#include <string.h>

static bool is_clip(const vlp_model_config *c) {
    return c->clip_text.width > 0;
}

static bool any_model(const vlp_model_config *c) {
    (void)c;
    return true;
}

/* open_clip puts the text tower behind "text." when it is more than CLIP's. */
static vlp_clip_layout open_clip_layout(const vlp_model_config *c) {
    const vlp_clip_text_config *t = &c->clip_text;
    bool custom = t->two_way || t->class_token || t->pool != VLP_TEXT_END ||
                  c->text_projection_bias || c->logit_bias;
    return custom ? VLP_CLIP_CUSTOM : VLP_CLIP_OPENAI;
}

static const char *misfit_hf(const vlp_model_config *c) {
    return vlp_clip_misfit(c, VLP_CLIP_HF, false);
}
static const char *misfit_open_clip(const vlp_model_config *c) {
    return vlp_clip_misfit(c, open_clip_layout(c), false);
}
static const char *misfit_openai(const vlp_model_config *c) {
    return vlp_clip_misfit(c, open_clip_layout(c), true);
}

static vlp_status config_hf(vlp_json **out, const vlp_model_config *c) {
    *out = vlp_clip_config_write(c, VLP_CLIP_HF, false);
    return VLP_OK;
}
static vlp_status config_open_clip(vlp_json **out, const vlp_model_config *c) {
    *out = vlp_clip_config_write(c, open_clip_layout(c), false);
    return VLP_OK;
}
static vlp_status config_openai(vlp_json **out, const vlp_model_config *c) {
    *out = vlp_clip_config_write(c, open_clip_layout(c), true);
    return VLP_OK;
}

static void plan_hf(vlp_layout_plan *out, const vlp_layout_source *source) {
    vlp_clip_names_of(vlp_layout_map(out), source->config, VLP_CLIP_HF);
}
static void plan_open_clip(vlp_layout_plan *out, const vlp_layout_source *source) {
    vlp_clip_names_of(vlp_layout_map(out), source->config, open_clip_layout(source->config));
}

/* Our own names need no table. */
static void plan_own(vlp_layout_plan *out, const vlp_layout_source *source) {
    (void)source;
    vlp_layout_map(out);
}

static vlp_status config_own(vlp_json **out, const vlp_model_config *c) {
    *out = vlp_model_config_write(c);
    return VLP_OK;
}

const char *vlp_layout_own_misfit(const vlp_model_config *c) {
    const vlp_vit_config *v = &c->vision;
    if (c->decoder.width > 0 || c->decoder_untied || c->prompt[0])
        return "vlp's own format has no decoder of its own; --to blip or hf can hold it";
    if (v->distillation_token || v->layer_scale || v->no_qkv_bias ||
        v->image_height != v->image_width || c->pool.kind == VLP_POOL_QUERIES ||
        c->clip_text.class_token || c->clip_text.layer_scale)
        return "vlp's own format has no such towers";
    if (c->embedding == 0 || (c->text.width == 0 && c->clip_text.width == 0))
        return "it has no shared space";
    return NULL;
}

void vlp_layout_add_own(vlp_json *json, const vlp_model_config *c) {
    if (!vlp_layout_own_misfit(c)) vlp_json_set(json, "vlp", vlp_model_config_write(c));
}

static const vlp_layout clip_hf = {.format = "hf",
                                   .weights = "model.safetensors",
                                   .config_file = "config.json",
                                   .is_for = is_clip,
                                   .misfit = misfit_hf,
                                   .config = config_hf,
                                   .plan = plan_hf};
static const vlp_layout open_clip = {.format = "openclip",
                                     .weights = "open_clip_model.safetensors",
                                     .config_file = "open_clip_config.json",
                                     .is_for = any_model,
                                     .misfit = misfit_open_clip,
                                     .config = config_open_clip,
                                     .plan = plan_open_clip};
static const vlp_layout openai = {.format = "openai",
                                  .weights = "model.safetensors",
                                  .config_file = "config.json",
                                  .is_for = any_model,
                                  .misfit = misfit_openai,
                                  .config = config_openai,
                                  .plan = plan_open_clip};
static const vlp_layout own = {.format = "vlp",
                               .weights = "model.safetensors",
                               .config_file = "config.json",
                               .is_for = any_model,
                               .misfit = vlp_layout_own_misfit,
                               .config = config_own,
                               .plan = plan_own,
                               .words_head = true};

/* The last row of a format is for all that the others are not for. */
static const vlp_layout *const rows[] = {
    &clip_hf, &vlp_layout_blip_hf, &vlp_layout_dual, &open_clip,
    &openai,  &vlp_layout_albef,   &vlp_layout_blip, &own};

vlp_status vlp_layout_find(const vlp_layout **out, const char *format, const vlp_model_config *c) {
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        if (strcmp(rows[i]->format, format) != 0 || !rows[i]->is_for(c)) continue;
        const char *why = rows[i]->misfit(c);
        if (why) return VLP_FAIL(VLP_ERR_UNSUPPORTED, "--to %s: %s", format, why);
        *out = rows[i];
        return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "--to %s cannot hold such a model", format);
}

vlp_name_map *vlp_layout_map(vlp_layout_plan *plan) {
    VLP_ASSERT(plan->copies < VLP_LAYOUT_COPIES, "a layout of more than %d maps",
               VLP_LAYOUT_COPIES);
    return &plan->names[plan->copies++];
}

void vlp_layout_fill(vlp_layout_plan *plan, vlp_filler filler, const char *prefix,
                     const char *name) {
    VLP_ASSERT(plan->filler_count < VLP_LAYOUT_FILLERS, "a layout of more than %d fillers",
               VLP_LAYOUT_FILLERS);
    snprintf(filler.name, sizeof filler.name, "%s%s", prefix, name);
    plan->fillers[plan->filler_count++] = filler;
}
