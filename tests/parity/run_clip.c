/* CLIP in its layouts, LiT and CoCa: both towers, the logits, the contrastive or sigmoid loss, and
 * the loss of captions. */
#include "fusion/coca.h"
#include "fusion/lock.h"
#include "parity/model.h"
#include "parity/runners.h"

#include <string.h>

typedef struct {
    vlp_model *model;
    vlp_coca coca;
    const char *image; /* the case's name for the pixels */
    const vlp_real *pixels;
    bool unit;               /* the case's "image_features" are normalised */
    const int32_t *captions; /* [B, caption_length], what the text is cut from (CoCa) */
    int64_t caption_length;
    vlp_tokens tokens;
    vlp_tensor *logits, *image_rows; /* of the last pass */
    vlp_tensor *image_stream[VLP_MAX_DEPTH + 1], *text_stream[VLP_MAX_DEPTH + 1];
} clip_run;

static const double norm_eps = 1e-12;

static vlp_status declare(parity_model *m, clip_run *r) {
    vlp_model_config config;
    vlp_coca_config coca;
    VLP_TRY(vlp_model_config_any(&config, m->c->config, "config.json"));
    VLP_TRY(vlp_coca_config_read(&coca, m->c->config, "config.json"));
    vlp_model_config_complete(&config, m->c->model);
    VLP_TRY(vlp_model_new_parts(&r->model, &config, vlp_model_parts(m->c->model)));
    vlp_model_names(&m->map, &config, m->c->model, false);
    parity_model_borrow(m, r->model->params);
    return coca.width > 0 ? vlp_coca_declare(&r->coca, m->params, &coca) : VLP_OK;
}

static vlp_status read_inputs(parity_model *m, clip_run *r) {
    bool hf = parity_has_input(m->c, "input_ids");
    const char *ids = hf ? "input_ids" : "text";
    r->image = hf ? "pixel_values" : "image";
    VLP_TRY(parity_model_reals(m, r->image, &r->pixels));
    VLP_TRY(parity_model_dim(m, ids, 0, &r->tokens.batch));
    VLP_TRY(parity_model_dim(m, ids, 1, &r->tokens.length));
    VLP_TRY(parity_model_ids(m, ids, false, &r->tokens.ids));
    return parity_model_mask(m, "attention_mask", true, &r->tokens.attention_mask);
}

/* A caption longer than the tower reads is fed without its last token. */
static void cut_captions(parity_model *m, clip_run *r) {
    int64_t most = r->model->config.clip_text.positions, length = r->tokens.length;
    r->captions = r->tokens.ids;
    r->caption_length = length;
    if (length <= most) return;
    int32_t *ids = parity_model_room(m, (size_t)(r->tokens.batch * most) * sizeof *ids);
    for (int64_t i = 0; ids && i < r->tokens.batch * most; i++)
        ids[i] = r->captions[i / most * length + i % most];
    r->tokens.ids = ids;
    r->tokens.length = most;
}

/* Into the shared space, under the case's names. */
static vlp_tensor *unit_features(parity_model *m, const clip_run *r, vlp_tensor *x,
                                 const char *what) {
    if (!r->unit) parity_output(m, x, "%s_features", what);
    x = vlp_l2_normalize(m->tape, x, norm_eps);
    parity_output(m, x, "%s_%s", what, r->unit ? "features" : "embeds");
    return x;
}

static vlp_tensor *build_image(parity_model *m, clip_run *r) {
    vlp_model *model = r->model;
    int64_t depth = model->config.vision.depth;
    vlp_tensor *pixels = parity_graph_input(m, r->image, r->pixels);
    vlp_tensor *x = vlp_vit_forward(m->tape, &model->vision, pixels, NULL, r->image_stream);
    x = vlp_vit_pool_forward(m->tape, &model->pool, x, &r->image_rows);
    parity_hidden(m, r->image_stream, depth, 0, "vision_hidden_states/%d");
    parity_output(m, r->image_stream[depth], "vision_model/last_hidden_state");
    parity_output(m, x, "vision_model/pooler_output");
    return unit_features(m, r, vlp_model_image_features(m->tape, model, x), "image");
}

static vlp_tensor *build_text(parity_model *m, clip_run *r) {
    vlp_model *model = r->model;
    vlp_tensor *x = vlp_clip_text_forward(m->tape, &model->clip_text, &r->tokens, r->text_stream);
    vlp_tensor *pooled = vlp_clip_text_end(m->tape, &model->clip_text, x, &r->tokens);
    parity_hidden(m, r->text_stream, model->config.clip_text.depth, 0, "text_hidden_states/%d");
    parity_output(m, x, "text_model/last_hidden_state");
    parity_output(m, pooled, "text_model/pooler_output");
    return unit_features(m, r, vlp_model_text_features(m->tape, model, pooled), "text");
}

/* Rows of each sample: x [B, L, D] -> [B, n, D], its first n. */
static vlp_tensor *first_rows(vlp_tape *tape, vlp_tensor *x, int64_t n) {
    if (!x) return NULL;
    int64_t batch = x->shape[0], length = x->shape[1];
    int32_t *rows = vlp_tape_alloc(tape, (size_t)(batch * n) * sizeof *rows);
    if (!rows) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < batch * n; i++)
        rows[i] = (int32_t)(i / n * length + i % n);
    return vlp_reshape(tape, vlp_gather_rows(tape, x, rows, batch * n), 3,
                       (int64_t[]){batch, n, x->shape[2]});
}

/* What follows each token; padding is not asked for. */
static vlp_tensor *caption_loss(parity_model *m, clip_run *r) {
    const vlp_clip_text_config *c = &r->model->config.clip_text;
    vlp_tensor *text = first_rows(m->tape, r->text_stream[c->depth], r->tokens.length);
    vlp_tensor *logits = vlp_coca_logits(m->tape, &r->coca, r->image_rows, text);
    int64_t n = r->caption_length - 1, batch = r->tokens.batch;
    logits = first_rows(m->tape, logits, n);
    parity_output(m, logits, "logits");
    int32_t *targets = vlp_tape_alloc(m->tape, (size_t)(batch * n) * sizeof *targets);
    if (!targets) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(m->tape) && i < batch * n; i++) {
        int32_t id = r->captions[i / n * r->caption_length + i % n + 1];
        targets[i] = id == c->pad_id ? -1 : id;
    }
    return vlp_scale(m->tape, vlp_cross_entropy(m->tape, logits, targets, 0),
                     vlp_json_double(m->c->config, "caption_loss_weight", 2));
}

static vlp_tensor *total_loss(parity_model *m, clip_run *r) {
    bool siglip = strcmp(vlp_json_string(m->c->config, "loss", ""), "siglip") == 0;
    vlp_tensor *loss =
        siglip ? vlp_siglip_loss(m->tape, r->logits, 0) : vlp_clip_loss(m->tape, r->logits);
    if (r->coca.config.width == 0) return loss;
    double weight = vlp_json_double(m->c->config, "clip_loss_weight", 1);
    vlp_tensor *terms[] = {vlp_scale(m->tape, loss, weight), caption_loss(m, r)};
    parity_output(m, terms[0], "contrastive_loss");
    parity_output(m, terms[1], "caption_loss");
    return vlp_weighted_sum(m->tape, terms, (double[]){1, 1}, 2);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    clip_run *r = ctx;
    if (vlp_json_bool(m->c->config, "lock_image", false))
        vlp_model_lock_images(r->model,
                              vlp_json_int(m->c->config, "lock_image_unlocked_groups", 0));
    vlp_tensor *image = build_image(m, r), *text = build_text(m, r);
    r->logits = vlp_model_similarity(m->tape, r->model, image, text);
    parity_output(m, r->logits, "logits_per_image");
    parity_output(m, vlp_transpose(m->tape, r->logits), "logits_per_text");
    return total_loss(m, r);
}

/* Parameters whose gradients the case does not have are locked, and others are not. */
static void expect_locks(parity_model *m) {
    char ours[VLP_NAME_BYTES], grad[VLP_NAME_BYTES + 8];
    int wrong = 0;
    for (size_t i = 0; i < vlp_safetensors_count(m->c->model); i++) {
        const char *name = vlp_safetensors_at(m->c->model, i)->name;
        const vlp_name_row *row = vlp_name_find(&m->map, name, ours);
        const vlp_param *p = row && row->ours ? vlp_params_find(m->params, ours) : NULL;
        snprintf(grad, sizeof grad, "grad/%s", name);
        bool trained = vlp_safetensors_find(m->c->expected, grad) != NULL;
        wrong += p && p->tensor.needs_grad != trained;
    }
    parity_check(m->report, "locked parameters", wrong == 0, "%d locked wrongly", wrong);
}

static vlp_status run(parity_model *m, clip_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    cut_captions(m, r);
    if (!r->tokens.ids) return VLP_ERR_MEMORY;
    VLP_TRY(parity_model_run(m, build, r));
    if (vlp_json_key(m->c->config, "lock_image")) expect_locks(m);
    return parity_expect_softmax(m, "probs", r->logits);
}

vlp_status parity_run_clip(const parity_case *c, parity_report *report) {
    static const char *const not_unit[] = {"CLIP (HF)", "CLIP (openai names)"};
    parity_model m;
    clip_run r = {.unit = true};
    for (size_t i = 0; i < VLP_COUNT(not_unit); i++)
        if (strcmp(c->system, not_unit[i]) == 0) r.unit = false;
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_coca_free(&r.coca);
    parity_model_close(&m);
    vlp_model_free(r.model);
    return status;
}
