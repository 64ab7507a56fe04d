/* "optimizer": some steps with given gradients; every parameter after every step, the learning
 * rates, the norms and the moments at the end. */
#include "core/memory.h"
#include "parity/runners.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#include <string.h>

typedef struct {
    const parity_case *c;
    parity_report *report;
    vlp_params *params;
    vlp_optimizer *optimizer;
    bool *has_grad;
    int64_t steps;
    vlp_real *rates, *norms; /* [steps] */
    vlp_buf name;
} optimizer_run;

static bool decays(const parity_case *c, const char *name) {
    const vlp_json *list = vlp_json_key(c->config, "no_decay_substrings");
    for (size_t i = 0; i < vlp_json_len(list); i++)
        if (strstr(name, vlp_json_as_string(vlp_json_at(list, i)))) return false;
    return true;
}

static vlp_status make_params(optimizer_run *r) {
    const vlp_safetensors *model = r->c->model;
    VLP_TRY(vlp_params_new(&r->params));
    for (size_t i = 0; i < vlp_safetensors_count(model); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(model, i);
        if (t->ndim > VLP_MAX_DIMS)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s has %d dimensions", t->name, t->ndim);
        vlp_params_add(r->params, t->name, VLP_INIT_CONSTANT(0),
                       decays(r->c, t->name) ? VLP_DECAY : VLP_NO_DECAY, t->ndim, t->shape);
    }
    VLP_TRY(vlp_params_allocate(r->params, true));
    for (int i = 0; i < r->params->count; i++) {
        const vlp_safetensor *t = vlp_safetensors_at(model, (size_t)i);
        VLP_TRY(vlp_safetensors_read_real(t, r->params->items[i]->tensor.data, t->numel));
    }
    return VLP_OK;
}

static int kind_of(const char *const *names, const char *name) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Their optimizers under our names. */
static const struct {
    const char *theirs;
    bool correct_bias;
    const char *ours;
} optimizers[] = {
    {"torch.AdamW", true, "adamw"},         {"hf.AdamW", true, "adamw-hf"},
    {"hf.AdamW", false, "adamw-hf-nobias"}, {"pytorch-lamb", true, "lamb"},
    {"timm.Lamb", true, "lamb-nv"},
};

static vlp_status make_optimizer(optimizer_run *r) {
    const vlp_json *config = r->c->config, *betas = vlp_json_key(config, "betas");
    const char *theirs = vlp_json_string(config, "optimizer", "");
    bool correct_bias = vlp_json_bool(config, "correct_bias", true);
    vlp_optimizer_options options = vlp_optimizer_defaults();
    options.kind = -1;
    for (size_t i = 0; i < VLP_COUNT(optimizers); i++)
        if (strcmp(theirs, optimizers[i].theirs) == 0 && correct_bias == optimizers[i].correct_bias)
            options.kind = kind_of(vlp_optimizer_kinds, optimizers[i].ours);
    if (options.kind < 0)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "config.json: optimizer \"%s\"", theirs);
    if (vlp_json_len(betas) == 2) {
        options.beta1 = vlp_json_as_double(vlp_json_at(betas, 0));
        options.beta2 = vlp_json_as_double(vlp_json_at(betas, 1));
    }
    options.eps = vlp_json_double(config, "eps", options.eps);
    options.weight_decay = vlp_json_double(config, "weight_decay", 0);
    options.max_grad_norm = vlp_json_double(config, "max_grad_norm", 0);
    options.max_grad_norm = vlp_json_double(config, "lamb_max_grad_norm", options.max_grad_norm);
    options.always_adapt = vlp_json_bool(config, "always_adapt", false);
    options.trust_clip = vlp_json_bool(config, "trust_clip", false);
    return vlp_optimizer_new(&r->optimizer, r->params, &options);
}

static vlp_status make_schedule(const optimizer_run *r, vlp_schedule *s) {
    const char *type = vlp_json_string(r->c->config, "schedule.type", "constant");
    if (strcmp(type, "constant_with_warmup") == 0) type = "constant";
    *s = (vlp_schedule){.kind = kind_of(vlp_schedule_kinds, type),
                        .lr = vlp_json_double(r->c->config, "lr", 0),
                        .warmup = vlp_json_int(r->c->config, "schedule.num_warmup_steps", 0),
                        .total = vlp_json_int(r->c->config, "schedule.num_training_steps", 0),
                        .from_zero = true};
    return s->kind >= 0 ? VLP_OK
                        : VLP_FAIL(VLP_ERR_UNSUPPORTED, "config.json: schedule \"%s\"", type);
}

static vlp_status load_gradients(optimizer_run *r, int64_t t) {
    vlp_params_zero_grads(r->params);
    for (int i = 0; i < r->params->count; i++) {
        const vlp_param *p = r->params->items[i];
        const vlp_safetensor *grad;
        vlp_buf_clear(&r->name);
        VLP_TRY(vlp_buf_printf(&r->name, "grad.%lld.%s", (long long)t, p->name));
        r->has_grad[i] = parity_has_input(r->c, r->name.data);
        if (!r->has_grad[i]) continue;
        VLP_TRY(parity_input(r->c, r->name.data, &grad));
        VLP_TRY(vlp_safetensors_read_real(grad, p->tensor.grad, vlp_numel(&p->tensor)));
    }
    return VLP_OK;
}

/* Hands over one block under "prefix<name>" for every parameter. */
static vlp_status expect_block(optimizer_run *r, const char *prefix, const vlp_real *block) {
    for (int i = 0; i < r->params->count; i++) {
        const vlp_param *p = r->params->items[i];
        vlp_buf_clear(&r->name);
        VLP_TRY(vlp_buf_printf(&r->name, "%s%s", prefix, p->name));
        parity_expect(r->report, r->name.data, p->tensor.ndim, p->tensor.shape, block + p->offset);
    }
    return VLP_OK;
}

static vlp_status step(optimizer_run *r, const vlp_schedule *schedule, int64_t t) {
    char prefix[40];
    double lr = vlp_schedule_lr(schedule, t), norm;
    VLP_TRY(load_gradients(r, t));
    VLP_TRY(vlp_optimizer_step(r->optimizer, lr, 1, r->has_grad, &norm));
    r->rates[t] = (vlp_real)lr;
    r->norms[t] = (vlp_real)norm;
    snprintf(prefix, sizeof prefix, "param.%lld.", (long long)t);
    return expect_block(r, prefix, r->params->values);
}

static vlp_status run(optimizer_run *r) {
    vlp_schedule schedule;
    if (!r->c->model || !r->c->config)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "model.safetensors or config.json is missing");
    r->steps = vlp_json_int(r->c->config, "steps", 0);
    if (r->steps < 1 || r->steps > 100000)
        return VLP_FAIL(VLP_ERR_FORMAT, "config.json: steps %lld", (long long)r->steps);
    VLP_TRY(make_params(r));
    VLP_TRY(make_optimizer(r));
    VLP_TRY(make_schedule(r, &schedule));
    r->has_grad = vlp_alloc_zero((size_t)r->params->count, sizeof *r->has_grad);
    r->rates = vlp_alloc_zero((size_t)r->steps, sizeof *r->rates);
    r->norms = vlp_alloc_zero((size_t)r->steps, sizeof *r->norms);
    if (!r->has_grad || !r->rates || !r->norms) return VLP_ERR_MEMORY;
    for (int64_t t = 0; t < r->steps; t++) VLP_TRY(step(r, &schedule, t));
    parity_expect(r->report, "lr", 1, &r->steps, r->rates);
    parity_expect(r->report, "grad_norm", 1, &r->steps, r->norms);
    VLP_TRY(expect_block(r, "exp_avg.", vlp_optimizer_exp_avg(r->optimizer)));
    return expect_block(r, "exp_avg_sq.", vlp_optimizer_exp_avg_sq(r->optimizer));
}

vlp_status parity_run_optimizer(const parity_case *c, parity_report *report) {
    optimizer_run r = {.c = c, .report = report};
    vlp_status status = run(&r);
    vlp_optimizer_free(r.optimizer);
    vlp_params_free(r.params);
    vlp_free(r.has_grad);
    vlp_free(r.rates);
    vlp_free(r.norms);
    vlp_buf_free(&r.name);
    return status;
}
