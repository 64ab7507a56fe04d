/* ALBEF's and BLIP's pre-training and retrieval fine-tuning: a step with the momentum twin and its
 * queues, by the objectives that people train with. */
#include "core/memory.h"
#include "fusion/albef.h"
#include "objectives/mlm.h"
#include "objectives/objective.h"
#include "parity/albef.h"
#include "parity/runners.h"

#include <math.h>
#include <string.h>

/* Where the references differ: whether the temperature is clamped; negatives are drawn by the
 * similarities to the twin's features or to the model's own; what is added to each probability. */
typedef struct {
    const char *system;
    bool clamps, own_features;
    double margin;
} rule;

static const rule rules[] = {
    {"ALBEF pre-training", true, false, 0},
    {"ALBEF retrieval fine-tuning", false, false, 0},
    {"BLIP pre-training", true, false, 1e-4},
    {"BLIP retrieval fine-tuning", true, true, 0},
};

typedef struct {
    vlp_model *model;
    vlp_objectives objectives;
    vlp_objective_options options;
    vlp_pairs pairs;
    vlp_given given;
    int64_t *image_groups, *caption_groups;
    const int32_t *ids; /* of the pictures; NULL = all are different */
    const rule *rule;
    vlp_encodings e;               /* of the last pass */
    vlp_tensor *own_i2t, *own_t2i; /* [B, B]: of the model's features alone */
} albef_run;

/* What the objectives are called here. */
static const struct {
    const char *ours, *theirs;
} losses[] = {{"itc", "loss_ita"}, {"itm", "loss_itm"}, {"mlm", "loss_mlm"}, {"lm", "loss_lm"}};

static vlp_objective_options options_of(const vlp_json *config, bool mlm, bool lm) {
    double alpha = vlp_json_double(config, "alpha", 0.4);
    bool distill = vlp_json_bool(config, "distill", true);
    return (vlp_objective_options){.itc_weight = 1,
                                   .itm_weight = 1,
                                   .mlm_weight = mlm,
                                   .lm_weight = lm,
                                   .lm_share = 1,
                                   .lm_label_smoothing = 0.1,
                                   .itm_share = 1,
                                   .mlm_share = 1,
                                   .mlm_probability = 1,
                                   .itc_alpha = distill ? alpha : 0,
                                   .mlm_alpha = distill ? alpha : 0,
                                   .momentum_decay = vlp_json_double(config, "momentum", 0.995),
                                   .momentum_queue = vlp_json_int(config, "queue_size", 0)};
}

static vlp_status declare(parity_model *m, albef_run *r) {
    VLP_TRY(parity_albef_declare(m, &r->model));
    r->options = options_of(m->c->config, parity_checkpoint_find(m, "objective.mlm.bias"),
                            vlp_model_can_write(r->model));
    vlp_objective_setup setup = {.model = r->model, .options = &r->options};
    return vlp_objectives_create(&r->objectives, &setup);
}

static vlp_status read_groups(parity_model *m, albef_run *r) {
    size_t n = (size_t)r->pairs.batch;
    VLP_TRY(parity_model_ids(m, "idx", true, &r->ids));
    r->image_groups = vlp_alloc(n * sizeof *r->image_groups);
    r->caption_groups = vlp_alloc(n * sizeof *r->caption_groups);
    if (!r->image_groups || !r->caption_groups) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        r->image_groups[i] = r->ids ? r->ids[i] : (int64_t)i;
        r->caption_groups[i] = (int64_t)i;
    }
    r->pairs.image_groups = r->image_groups;
    r->pairs.caption_groups = r->caption_groups;
    return VLP_OK;
}

static vlp_status read_inputs(parity_model *m, albef_run *r) {
    VLP_TRY(parity_model_dim(m, "image", 0, &r->pairs.batch));
    VLP_TRY(parity_model_reals(m, "image", &r->pairs.pixels));
    VLP_TRY(parity_albef_tokens(m, &r->pairs.tokens));
    VLP_TRY(parity_model_ids(m, "masked_input_ids", true, &r->given.masked_ids));
    VLP_TRY(parity_model_ids(m, "mlm_labels", true, &r->given.mlm_targets));
    VLP_TRY(parity_model_ids(m, "neg_image_idx", false, &r->given.negative_images));
    VLP_TRY(parity_model_ids(m, "neg_text_idx", false, &r->given.negative_texts));
    r->pairs.given = &r->given;
    return read_groups(m, r);
}

/* The masked language head of either copy, as the objectives declare it. */
static vlp_mlm_head mlm_head(const vlp_params *params, double eps) {
    static const char *const names[] = {"dense.weight", "dense.bias", "norm.weight", "norm.bias",
                                        "bias"};
    vlp_tensor *t[VLP_COUNT(names)];
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "objective.mlm.%s", names[i]);
        t[i] = &vlp_params_find(params, name)->tensor;
    }
    return (vlp_mlm_head){.dense = {t[0], t[1]}, .norm = {t[2], t[3], eps}, .bias = t[4]};
}

/* Logits of all tokens; the loss looks at the masked ones only. */
static vlp_tensor *all_logits(parity_model *m, albef_run *r, const vlp_model *model,
                              vlp_tensor *const *keys) {
    vlp_tokens tokens = r->pairs.tokens;
    tokens.ids = r->given.masked_ids;
    vlp_mlm_head head = mlm_head(model->params, model->config.text.eps);
    return vlp_mlm_head_forward(m->tape, &head, &model->text,
                                vlp_mlm_states(m->tape, model, &tokens, keys, NULL));
}

/* Logits of all tokens; the loss looks at those that predict one. */
static void name_lm(parity_model *m, albef_run *r) {
    vlp_tokens text =
        vlp_tokens_begin_with(m->tape, &r->pairs.tokens, (int32_t)r->model->config.bos_id);
    parity_output(m,
                  vlp_model_decode(m->tape, r->model, &text,
                                   &(vlp_stack_input){.context = vlp_encodings_image_keys(&r->e)}),
                  "lm_logits");
}

static void name_outputs(parity_model *m, albef_run *r, vlp_tensor *const *terms) {
    vlp_encodings *e = &r->e;
    for (int i = 0; i < r->objectives.count; i++)
        for (size_t k = 0; k < VLP_COUNT(losses); k++)
            if (strcmp(r->objectives.items[i].kind->name, losses[k].ours) == 0)
                parity_output(m, terms[i], "%s", losses[k].theirs);
    parity_output(m, vlp_encodings_image_tokens(e), "image_embeds");
    parity_output(m, vlp_encodings_text_tokens(e), "text_embeds");
    parity_output(m, vlp_encodings_image_embedding(e), "image_feat");
    parity_output(m, vlp_encodings_text_embedding(e), "text_feat");
    parity_output(m, vlp_encodings_i2t(e), "sim_i2t");
    parity_output(m, vlp_encodings_t2i(e), "sim_t2i");
    parity_output(m, vlp_encodings_twin_i2t(e), "sim_i2t_m");
    parity_output(m, vlp_encodings_twin_t2i(e), "sim_t2i_m");
    parity_output(m, e->twin.image_embedding, "image_feat_m");
    parity_output(m, e->twin.text_embedding, "text_feat_m");
    parity_output(m, e->match_logits, "itm_logits");
    r->own_i2t = vlp_model_similarity(m->tape, r->model, e->image_embedding, e->text_embedding);
    r->own_t2i = vlp_transpose(m->tape, r->own_i2t);
    if (vlp_model_can_write(r->model)) name_lm(m, r);
    if (!r->given.masked_ids) return;
    parity_output(m, all_logits(m, r, r->model, vlp_encodings_image_keys(e)), "mlm_logits");
    parity_output(m, all_logits(m, r, r->objectives.momentum->twin, vlp_encodings_twin_keys(e)),
                  "mlm_logits_m");
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    albef_run *r = ctx;
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_encodings_begin(&r->e, m->tape, r->model, &r->pairs);
    vlp_tensor *loss = vlp_objectives_loss(&r->objectives, &r->e, terms);
    if (loss) name_outputs(m, r, terms);
    return loss;
}

/* With what probability each partner in the batch would have been drawn as a negative. */
static vlp_status expect_weights(parity_model *m, albef_run *r, const char *name,
                                 const vlp_tensor *similarity) {
    int64_t n = r->pairs.batch, columns = similarity->shape[1];
    vlp_real *p = vlp_alloc((size_t)(n * n) * sizeof *p);
    if (!p) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const vlp_real *row = vlp_real_data(similarity) + i * columns;
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) largest = fmax(largest, (double)row[j]);
        for (int64_t j = 0; j < n; j++) sum += exp((double)row[j] - largest);
        for (int64_t j = 0; j < n; j++)
            p[i * n + j] = vlp_pairs_positive(&r->pairs, i, j)
                               ? 0
                               : (vlp_real)(exp((double)row[j] - largest) / sum + r->rule->margin);
    }
    parity_expect(m->report, name, 2, (int64_t[]){n, n}, p);
    vlp_free(p);
    return VLP_OK;
}

/* Theirs is [E, Q]. */
static vlp_status expect_queue(parity_model *m, const vlp_momentum *momentum, const char *name,
                               const vlp_real *rows) {
    int64_t queue = momentum->options.queue, width = momentum->twin->config.embedding;
    vlp_real *theirs = vlp_alloc((size_t)(queue * width) * sizeof *theirs);
    if (!theirs) return VLP_ERR_MEMORY;
    rows += momentum->room * width;
    for (int64_t r = 0; r < queue; r++)
        for (int64_t k = 0; k < width; k++) theirs[k * queue + r] = rows[r * width + k];
    parity_expect(m->report, name, 2, (int64_t[]){width, queue}, theirs);
    vlp_free(theirs);
    return VLP_OK;
}

static vlp_status expect_ids(parity_model *m, const vlp_momentum *momentum) {
    int64_t queue = momentum->options.queue;
    int32_t *ids = vlp_alloc((size_t)queue * sizeof *ids), next = (int32_t)momentum->next;
    if (!ids) return VLP_ERR_MEMORY;
    for (int64_t r = 0; r < queue; r++)
        ids[r] = (int32_t)momentum->image_groups[momentum->room + r];
    parity_expect_i32(m->report, "after/idx_queue", 2, (int64_t[]){1, queue}, ids);
    parity_expect_i32(m->report, "after/queue_ptr", 1, (int64_t[]){1}, &next);
    parity_expect_i32(m->report, "after/ptr_queue", 1, (int64_t[]){1}, &next);
    vlp_free(ids);
    return VLP_OK;
}

static vlp_status expect_after(parity_model *m, const albef_run *r, const vlp_name_map *twin_map) {
    const vlp_momentum *momentum = r->objectives.momentum;
    vlp_params *twin = momentum->twin->params;
    VLP_TRY(expect_queue(m, momentum, "after/image_queue", momentum->images));
    VLP_TRY(expect_queue(m, momentum, "after/text_queue", momentum->texts));
    VLP_TRY(expect_ids(m, momentum));
    VLP_TRY(parity_expect_params(m, "after/", twin_map, twin, twin->values));
    return parity_expect_params(m, "after/", &m->map, m->params, m->params->values);
}

static vlp_status step(parity_model *m, albef_run *r) {
    vlp_momentum *momentum = r->objectives.momentum;
    vlp_name_map twin_map = {0};
    bool found;
    vlp_objectives_start(&r->objectives, 0);
    VLP_TRY(vlp_momentum_import(momentum, m->c->model, &found));
    vlp_model_names(&twin_map, &r->model->config, m->c->model, true);
    if (r->rule->clamps) vlp_model_clamp(r->model);
    vlp_momentum_update(momentum);
    VLP_TRY(parity_model_compute(m, build, r));
    bool own = r->rule->own_features;
    VLP_TRY(expect_weights(m, r, "weights_i2t", own ? r->own_i2t : r->e.i2t));
    VLP_TRY(expect_weights(m, r, "weights_t2i", own ? r->own_t2i : r->e.t2i));
    vlp_objectives_after_batch(&r->objectives, &r->pairs);
    return expect_after(m, r, &twin_map);
}

static vlp_status run(parity_model *m, albef_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_load(m, parity_albef_twin));
    return step(m, r);
}

static const rule *rule_of(const char *system) {
    size_t i = 0;
    while (strcmp(rules[i].system, system) != 0) i++; /* main.c names no others */
    return &rules[i];
}

vlp_status parity_run_albef(const parity_case *c, parity_report *report) {
    parity_model m;
    albef_run r = {.rule = rule_of(c->system)};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_objectives_destroy(&r.objectives);
    vlp_free(r.image_groups);
    vlp_free(r.caption_groups);
    parity_model_close(&m);
    vlp_model_free(r.model);
    return status;
}
