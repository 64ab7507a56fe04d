#include "objectives/objective.h"

#include "objectives/kinds.h"

const vlp_objective_kind *const vlp_objective_kinds[] = {
    &vlp_objective_itc, &vlp_objective_sigmoid, &vlp_objective_itm,
    &vlp_objective_mlm, &vlp_objective_mim,     &vlp_objective_lm,
};
const int vlp_objective_kind_count = (int)VLP_COUNT(vlp_objective_kinds);

double vlp_objective_weight(const vlp_objective_kind *kind, const vlp_objective_options *options) {
    return *(const double *)((const char *)options + kind->weight_offset);
}

static vlp_status check(const vlp_objective_kind *kind, const vlp_model *model) {
    if (kind->needs_fusion && !vlp_model_can_match(model))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "%s needs a fusion stack; set fusion_depth above 0 or %s.weight to 0",
                        kind->name, kind->name);
    return VLP_OK;
}

static vlp_status create_one(vlp_objectives *out, const vlp_objective_kind *kind,
                             const vlp_objective_setup *setup, double weight) {
    VLP_TRY(check(kind, setup->model));
    vlp_params_push(setup->model->params, "objective");
    vlp_params_push(setup->model->params, "%s", kind->name);
    void *state;
    vlp_status status = kind->create(&state, setup);
    vlp_params_pop(setup->model->params);
    vlp_params_pop(setup->model->params);
    if (status != VLP_OK) return status;
    out->items[out->count].kind = kind;
    out->items[out->count].state = state;
    out->items[out->count].scale = 1;
    out->items[out->count++].weight = weight;
    return VLP_OK;
}

/* The twin follows the encoders, and the masked language head where there is one. */
static vlp_status create_momentum(vlp_objectives *out, const vlp_objective_setup *setup) {
    const vlp_objective_options *o = setup->options;
    vlp_momentum_options options = {o->momentum_decay, o->momentum_queue, o->mlm_weight > 0};
    if (!(o->momentum_decay > 0)) return VLP_OK;
    return vlp_momentum_new(&out->momentum, setup->model, &options);
}

vlp_status vlp_objectives_create(vlp_objectives *out, const vlp_objective_setup *setup) {
    *out = (vlp_objectives){0};
    for (int i = 0; i < vlp_objective_kind_count; i++) {
        double weight = vlp_objective_weight(vlp_objective_kinds[i], setup->options);
        vlp_status status =
            weight > 0 ? create_one(out, vlp_objective_kinds[i], setup, weight) : VLP_OK;
        if (status != VLP_OK) {
            vlp_objectives_destroy(out);
            return status;
        }
    }
    if (out->count == 0)
        return VLP_FAIL(VLP_ERR_USAGE, "all objectives have weight 0; give one a weight");
    vlp_status status = create_momentum(out, setup);
    if (status != VLP_OK) vlp_objectives_destroy(out);
    return status;
}

void vlp_objectives_start(vlp_objectives *objectives, uint64_t seed) {
    if (objectives->momentum) vlp_momentum_start(objectives->momentum, seed);
}

void vlp_objectives_before_step(vlp_objectives *objectives, vlp_model *model, double ramp) {
    vlp_model_clamp(model);
    if (!objectives->momentum) return;
    vlp_momentum_update(objectives->momentum);
    objectives->momentum->ramp = ramp;
}

void vlp_objectives_after_batch(vlp_objectives *objectives, const vlp_pairs *pairs) {
    if (objectives->momentum) vlp_momentum_enqueue(objectives->momentum, pairs);
}

bool vlp_objectives_counted(const vlp_objectives *objectives) {
    bool any = false;
    for (int i = 0; i < objectives->count; i++) any |= objectives->items[i].kind->count != NULL;
    return any;
}

void vlp_objectives_count(vlp_objectives *objectives, const vlp_pairs *pairs, bool first) {
    for (int i = 0; i < objectives->count; i++) {
        const vlp_objective_kind *kind = objectives->items[i].kind;
        if (first) objectives->items[i].items = 0;
        if (kind->count)
            objectives->items[i].items += kind->count(objectives->items[i].state, pairs);
    }
}

/* mean over all = sum over micro-batches of (items here / items in all) times the mean here */
void vlp_objectives_share(vlp_objectives *objectives, const vlp_pairs *pairs,
                          int64_t micro_batches) {
    for (int i = 0; i < objectives->count; i++) {
        const vlp_objective_kind *kind = objectives->items[i].kind;
        int64_t all = objectives->items[i].items;
        if (!kind->count) continue;
        double share =
            all ? (double)kind->count(objectives->items[i].state, pairs) / (double)all : 0;
        objectives->items[i].scale = share * (double)micro_batches;
    }
}

void vlp_objectives_destroy(vlp_objectives *objectives) {
    for (int i = 0; i < objectives->count; i++)
        objectives->items[i].kind->destroy(objectives->items[i].state);
    vlp_momentum_free(objectives->momentum);
    *objectives = (vlp_objectives){0};
}

/* The embeddings come first, in the order of the pass that found the cotangents: so random numbers
 * repeat. */
static vlp_tensor *given_term(vlp_encodings *e) {
    vlp_tensor *image = vlp_encodings_image_embedding(e), *text = vlp_encodings_text_embedding(e);
    vlp_tensor *terms[] = {vlp_dot_constant(e->tape, image, e->cotangents->image),
                           vlp_dot_constant(e->tape, text, e->cotangents->text)};
    return vlp_weighted_sum(e->tape, terms, (const double[]){1, 1}, 2);
}

vlp_tensor *vlp_objectives_loss(vlp_objectives *objectives, vlp_encodings *e, vlp_tensor **terms) {
    vlp_tensor *summands[VLP_MAX_OBJECTIVES + 1];
    double weights[VLP_MAX_OBJECTIVES + 1] = {1};
    int n = 0;
    e->momentum = objectives->momentum;
    if (e->cotangents) summands[n++] = given_term(e);
    for (int i = 0; i < objectives->count; i++) {
        const vlp_objective_kind *kind = objectives->items[i].kind;
        terms[i] = NULL;
        if (e->cotangents && kind->contrastive) continue;
        summands[n] = terms[i] = kind->loss(objectives->items[i].state, e);
        weights[n++] = objectives->items[i].weight * objectives->items[i].scale;
    }
    return vlp_weighted_sum(e->tape, summands, weights, n);
}
