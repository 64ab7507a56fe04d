/* A model in BLIP's layouts. The official one has the momentum twin as a copy, as a new run of BLIP
 * begins, where there is a shared space. Hugging Face's holds what several of its classes expect:
 * BlipForImageTextRetrieval, BlipForConditionalGeneration, BlipForQuestionAnswering. */
#include "fusion/blip.h"
#include "fusion/layout.h"
#include "fusion/official.h"

#include <math.h>

static bool is_blip(const vlp_model_config *c) {
    return c->text.context_width > 0 || c->decoder.width > 0;
}

static bool any_model(const vlp_model_config *c) {
    (void)c;
    return true;
}

static const char *misfit(const vlp_model_config *c) {
    const char *why = vlp_official_vision_misfit(c);
    if (why) return why;
    if (!is_blip(c) || c->fusion.depth > 0)
        return "BLIP's text layers see the image themselves (fusion_in_text); --to albef can hold "
               "a fusion stack";
    if (c->text.types > 0) return "BLIP has no segment embeddings (text_types)";
    if (c->embedding > 0 && (!c->projection_bias || !c->plain_temperature))
        return "BLIP has projection_bias and plain_temperature";
    return NULL;
}

static const char *misfit_official(const vlp_model_config *c) {
    const char *why = misfit(c);
    if (why || fabs(c->vision.eps / 1e-6 - 1) < 1e-6) return why;
    return "its image tower's layer_norm_eps is not 1e-6; --to hf can hold it";
}

/* Of the text tower; of a model for captions alone, of its decoder. */
static vlp_bert_config text_of(const vlp_model_config *c) {
    return c->text.width > 0 ? c->text : c->decoder;
}

static vlp_status official_config(vlp_json **out, const vlp_model_config *c) {
    vlp_json *json = vlp_json_new_object(), *tokenizer = vlp_json_new_object();
    vlp_bert_config text = text_of(c);
    vlp_json *bert = vlp_bert_json(&text);
    vlp_json_set_int(bert, "encoder_width", c->vision.width);
    vlp_json_set_bool(bert, "add_cross_attention", true);
    vlp_official_vision_json(json, &c->vision, "image_size");
    if (c->embedding > 0) vlp_json_set_int(json, "embed_dim", c->embedding);
    if (c->prompt[0]) vlp_json_set_string(json, "prompt", c->prompt);
    vlp_json_set_int(tokenizer, "bos_token_id", c->bos_id);
    vlp_json_set_int(tokenizer, "enc_token_id", c->enc_id);
    vlp_json_set_int(tokenizer, "sep_token_id", c->eos_id);
    vlp_json_set(json, "bert_config", bert);
    vlp_json_set(json, "tokenizer", tokenizer);
    vlp_layout_add_own(json, c);
    *out = json;
    return VLP_OK;
}

static vlp_json *hf_text(const vlp_model_config *c) {
    vlp_bert_config text = text_of(c);
    vlp_json *json = vlp_bert_json(&text);
    vlp_json_remove(json, "type_vocab_size");
    vlp_json_set_string(json, "model_type", "blip_text_model");
    vlp_json_set_int(json, "encoder_hidden_size", c->vision.width);
    vlp_json_set_bool(json, "is_decoder", true);
    vlp_json_set_int(json, "bos_token_id", c->bos_id);
    vlp_json_set_int(json, "eos_token_id", c->eos_id);
    vlp_json_set_int(json, "sep_token_id", c->eos_id);
    return json;
}

static vlp_status hf_config(vlp_json **out, const vlp_model_config *c) {
    vlp_json *json = vlp_json_new_object(), *classes = vlp_json_new_array();
    const struct {
        const char *name;
        bool there;
    } all[] = {{"BlipForImageTextRetrieval", c->embedding > 0},
               {"BlipForQuestionAnswering", c->decoder_reads_text},
               {"BlipForConditionalGeneration",
                c->decoder_shared || (c->decoder.width > 0 && !c->decoder_reads_text)}};
    for (size_t i = 0; i < VLP_COUNT(all); i++)
        if (all[i].there) vlp_json_append(classes, vlp_json_new_string(all[i].name));
    vlp_json_set_string(json, "model_type", "blip");
    vlp_json_set(json, "architectures", classes);
    if (c->embedding > 0) vlp_json_set_int(json, "image_text_hidden_size", c->embedding);
    vlp_json_set(json, "vision_config", vlp_hf_vision_json(&c->vision, "blip_vision_model"));
    vlp_json_set(json, "text_config", hf_text(c));
    vlp_layout_add_own(json, c);
    *out = json;
    return VLP_OK;
}

static void fill_positions(vlp_layout_plan *out, int64_t positions, const char *text) {
    vlp_layout_fill(out, (vlp_filler){.ndim = 2, .shape = {1, positions}, .fill = VLP_FILL_COUNT},
                    text, "embeddings.position_ids");
}

static void plan_any(vlp_layout_plan *out, const vlp_layout_source *s, bool hf) {
    const vlp_model_config *c = s->config;
    bool writes = c->decoder_shared || c->decoder.width > 0;
    vlp_blip_tables(vlp_layout_map(out), c, hf);
    if (c->text.width > 0) fill_positions(out, c->text.positions, "text_encoder.");
    if (writes) fill_positions(out, text_of(c).positions, "text_decoder.bert.");
    if (writes) vlp_blip_tied(vlp_layout_map(out), c);
    if (c->decoder_shared) vlp_blip_shared(vlp_layout_map(out));
    if (hf || c->text.width == 0 || c->embedding == 0) return;
    fill_positions(out, c->text.positions, "text_encoder_m.");
    vlp_blip_twin(vlp_layout_map(out));
}

static void plan_official(vlp_layout_plan *out, const vlp_layout_source *s) {
    plan_any(out, s, false);
}

static void plan_hf(vlp_layout_plan *out, const vlp_layout_source *s) {
    plan_any(out, s, true);
}

const vlp_layout vlp_layout_blip = {.format = "blip",
                                    .weights = "model.safetensors",
                                    .config_file = "config.json",
                                    .is_for = any_model,
                                    .misfit = misfit_official,
                                    .config = official_config,
                                    .plan = plan_official};
const vlp_layout vlp_layout_blip_hf = {.format = "hf",
                                       .weights = "model.safetensors",
                                       .config_file = "config.json",
                                       .is_for = is_blip,
                                       .misfit = misfit,
                                       .config = hf_config,
                                       .plan = plan_hf};
