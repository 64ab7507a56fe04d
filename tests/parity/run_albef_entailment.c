/* "ALBEF visual entailment": a classifier on the fused class token, whose targets the momentum twin
 * softens. */
#include "core/memory.h"
#include "objectives/mlm.h"
#include "objectives/momentum.h"
#include "parity/albef.h"
#include "parity/runners.h"

#include <string.h>

/* Encoders and classifier: the model or its twin. */
typedef struct {
    vlp_model *model;
    vlp_dense fc1, fc2;
} classifier;

typedef struct {
    classifier own, twin;
    vlp_tokens tokens;
    const vlp_real *pixels;
    const int32_t *targets;
    double alpha, decay;
} entailment_run;

static vlp_status declare_classifier(const parity_model *m, classifier *c) {
    const vlp_safetensor *t = parity_checkpoint_find(m, "classifier.fc2.weight");
    if (!t || t->ndim != 2)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: no classifier in the checkpoint", m->c->folder);
    int64_t width = c->model->config.text.width;
    vlp_dense_declare(&c->fc1, c->model->params, "classifier.fc1", width, t->shape[1], true, 0.02);
    vlp_dense_declare(&c->fc2, c->model->params, "classifier.fc2", t->shape[1], t->shape[0], true,
                      0.02);
    return VLP_OK;
}

static vlp_status declare(parity_model *m, entailment_run *r) {
    VLP_TRY(parity_albef_declare(m, &r->own.model));
    VLP_TRY(declare_classifier(m, &r->own));
    VLP_TRY(vlp_model_new_parts(&r->twin.model, &r->own.model->config, 0));
    VLP_TRY(declare_classifier(m, &r->twin));
    return vlp_params_allocate(r->twin.model->params, false);
}

static vlp_status read_inputs(parity_model *m, entailment_run *r) {
    const vlp_json *config = m->c->config;
    r->alpha = vlp_json_bool(config, "distill", true) ? vlp_json_double(config, "alpha", 0.4) : 0;
    r->decay = vlp_json_double(config, "momentum", 0.995);
    VLP_TRY(parity_model_reals(m, "image", &r->pixels));
    VLP_TRY(parity_model_ids(m, "targets", false, &r->targets));
    return parity_albef_tokens(m, &r->tokens);
}

static vlp_tensor *classify(parity_model *m, const entailment_run *r, const classifier *c,
                            vlp_tensor *pixels) {
    vlp_tensor *keys[VLP_MAX_DEPTH];
    vlp_fusion_keys(m->tape, &c->model->fusion, vlp_model_image_tokens(m->tape, c->model, pixels),
                    keys);
    vlp_tensor *x = vlp_mlm_states(m->tape, c->model, &r->tokens, keys, NULL);
    x = vlp_dense_forward(m->tape, &c->fc1, vlp_first_tokens(m->tape, x), VLP_ACT_RELU);
    return vlp_dense_readout(m->tape, &c->fc2, x);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    entailment_run *r = ctx;
    vlp_tensor *pixels = parity_graph_input(m, "image", r->pixels);
    vlp_tensor *logits = classify(m, r, &r->own, pixels);
    parity_output(m, logits, "logits");
    vlp_tensor *hard = vlp_cross_entropy(m->tape, logits, r->targets, 0);
    if (r->alpha == 0) return hard;
    vlp_tape_set_grad(m->tape, false);
    vlp_tensor *soft = classify(m, r, &r->twin, pixels);
    vlp_tape_set_grad(m->tape, true);
    if (!soft) return NULL;
    if (!vlp_tape_planning(m->tape))
        vlp_kernels_get()->softmax(vlp_row_count(soft), vlp_col_count(soft), vlp_col_count(soft),
                                   vlp_real_data(soft), NULL, 1, NULL);
    vlp_tensor *terms[] = {hard, vlp_soft_cross_entropy(m->tape, logits, vlp_real_data(soft))};
    return vlp_weighted_sum(m->tape, terms, (double[]){1 - r->alpha, r->alpha}, 2);
}

static vlp_status run(parity_model *m, entailment_run *r) {
    vlp_name_map map = {0};
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_load(m, parity_albef_twin));
    vlp_params *twin = r->twin.model->params;
    vlp_model_names(&map, &r->twin.model->config, m->c->model, true);
    if (r->alpha > 0) {
        VLP_TRY(vlp_params_load(twin, m->c->model, map, parity_albef_twin));
        vlp_momentum_follow(twin, m->params, r->decay);
    }
    VLP_TRY(parity_model_compute(m, build, r));
    return parity_expect_params(m, "after/", &map, twin, twin->values);
}

vlp_status parity_run_albef_entailment(const parity_case *c, parity_report *report) {
    parity_model m;
    entailment_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_model_free(r.twin.model);
    parity_model_close(&m);
    vlp_model_free(r.own.model);
    return status;
}
