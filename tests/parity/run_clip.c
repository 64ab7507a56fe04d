/* "CLIP (HF)": both towers, the logits and the contrastive loss. */
#include "fusion/clip.h"
#include "parity/model.h"
#include "parity/runners.h"

typedef struct {
    vlp_clip clip;
    const vlp_real *pixels;
    vlp_tokens tokens;
    vlp_tensor *logits; /* of the last pass */
    vlp_tensor *image_stream[VLP_MAX_DEPTH + 1], *text_stream[VLP_MAX_DEPTH + 1];
} clip_run;

static const double norm_eps = 1e-12;

static vlp_status declare(parity_model *m, clip_run *r) {
    vlp_clip_config config;
    VLP_TRY(vlp_clip_config_hf(&config, m->c->config, "config.json"));
    VLP_TRY(vlp_clip_names(&m->map, m->c->model));
    return vlp_clip_declare(&r->clip, m->params, &config);
}

static vlp_status read_inputs(parity_model *m, clip_run *r) {
    VLP_TRY(parity_model_reals(m, "pixel_values", &r->pixels));
    VLP_TRY(parity_model_dim(m, "input_ids", 0, &r->tokens.batch));
    VLP_TRY(parity_model_dim(m, "input_ids", 1, &r->tokens.length));
    VLP_TRY(parity_model_ids(m, "input_ids", false, &r->tokens.ids));
    return parity_model_mask(m, "attention_mask", true, &r->tokens.attention_mask);
}

static vlp_tensor *build_image(parity_model *m, clip_run *r) {
    vlp_tensor *pixels = parity_graph_input(m, "pixel_values", r->pixels);
    vlp_tensor *x = vlp_clip_image_tokens(m->tape, &r->clip, pixels, r->image_stream);
    vlp_tensor *pooled = vlp_clip_image_pooled(m->tape, &r->clip, x);
    parity_hidden(m, r->image_stream, r->clip.config.vision.depth, 0, "vision_hidden_states/%d");
    parity_output(m, x, "vision_model/last_hidden_state");
    parity_output(m, pooled, "vision_model/pooler_output");
    x = vlp_l2_normalize(m->tape, vlp_clip_project_image(m->tape, &r->clip, pooled), norm_eps);
    parity_output(m, x, "image_embeds");
    return x;
}

static vlp_tensor *build_text(parity_model *m, clip_run *r) {
    vlp_tensor *x = vlp_clip_text_tokens(m->tape, &r->clip, &r->tokens, r->text_stream);
    vlp_tensor *pooled = vlp_clip_text_end(m->tape, x, &r->tokens);
    parity_hidden(m, r->text_stream, r->clip.config.text.depth, 0, "text_hidden_states/%d");
    parity_output(m, x, "text_model/last_hidden_state");
    parity_output(m, pooled, "text_model/pooler_output");
    x = vlp_l2_normalize(m->tape, vlp_clip_project_text(m->tape, &r->clip, pooled), norm_eps);
    parity_output(m, x, "text_embeds");
    return x;
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    clip_run *r = ctx;
    vlp_tensor *image = build_image(m, r), *text = build_text(m, r);
    r->logits = vlp_clip_logits(m->tape, &r->clip, image, text);
    parity_output(m, r->logits, "logits_per_image");
    parity_output(m, vlp_transpose(m->tape, r->logits), "logits_per_text");
    return vlp_clip_loss(m->tape, r->logits);
}

static vlp_status run(parity_model *m, clip_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_run(m, build, r));
    return parity_expect_softmax(m, "probs", r->logits);
}

vlp_status parity_run_clip(const parity_case *c, parity_report *report) {
    parity_model m;
    clip_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_clip_free(&r.clip);
    parity_model_close(&m);
    return status;
}
