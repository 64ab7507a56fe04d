/* "distributed InfoNCE" and "SigLIP sigmoid loss": two projections and a temperature on every rank.
 * Ranks are threads of this process; one rank with the whole batch is computed too. */
#include "core/attend.h"
#include "core/memory.h"
#include "fusion/clip.h"
#include "parity/model.h"
#include "parity/runners.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static const double norm_eps = 1e-12;

/* The ways to exchange, under the cases' names. */
static const struct {
    const char *name;
    bool siglip, local, with_grad;
} ways[] = {
    {"global_grad", false, false, true}, {"global_nograd", false, false, false},
    {"local_grad", false, true, true},   {"local_nograd", false, true, false},
    {"bidir", true, false, true},
};

typedef struct {
    const parity_case *c;
    size_t way;
    vlp_comm *comm;
    vlp_real *image_x, *text_x; /* [B, Di], [B, Dt] */
    int64_t batch;
    vlp_params *params;
    vlp_tensor *image_w, *text_w, *scale, *bias;
    vlp_tape *tape;
    vlp_tensor *image, *text, *logits, *loss; /* of the last pass */
    vlp_real *features;   /* [2, B, E], once the first pass has computed them: leaves of the next */
    vlp_real *own, *mean; /* gradients of this rank, averaged over ranks */
    vlp_status status;
    char error[300];
} rank_run;

static vlp_tensor *declare_as(rank_run *r, const char *name) {
    const vlp_safetensor *t = vlp_safetensors_find(r->c->model, name);
    if (!t || t->ndim > 2) return NULL;
    return vlp_params_add(r->params, name, VLP_INIT_CONSTANT(0), VLP_DECAY, t->ndim, t->shape);
}

static vlp_status prepare(rank_run *r) {
    VLP_TRY(vlp_params_new(&r->params));
    VLP_TRY(vlp_tape_new(&r->tape));
    vlp_tape_set_precision(r->tape, r->c->precision);
    r->image_w = declare_as(r, "image_proj.weight");
    r->text_w = declare_as(r, "text_proj.weight");
    r->scale = declare_as(r, "logit_scale");
    r->bias = declare_as(r, "logit_bias");
    if (!r->image_w || !r->text_w || !r->scale)
        return VLP_FAIL(VLP_ERR_FORMAT, "model.safetensors lacks a projection or logit_scale");
    VLP_TRY(vlp_params_allocate(r->params, true));
    return vlp_params_load(r->params, r->c->model, (vlp_name_map){0}, NULL);
}

static vlp_tensor *features(rank_run *r, const vlp_real *x, vlp_tensor *w, int which) {
    int64_t shape[] = {r->batch, w->shape[0]};
    if (r->features)
        return vlp_tape_input(r->tape, VLP_REAL, 2, shape,
                              r->features + which * shape[0] * shape[1], true);
    vlp_tensor *rows =
        vlp_tape_input(r->tape, VLP_REAL, 2, (int64_t[]){r->batch, w->shape[1]}, x, false);
    return vlp_l2_normalize(r->tape, vlp_linear(r->tape, rows, w, NULL, VLP_ACT_NONE), norm_eps);
}

static void build(rank_run *r) {
    r->image = features(r, r->image_x, r->image_w, 0);
    r->text = features(r, r->text_x, r->text_w, 1);
    vlp_clip_ranks ranks = {r->comm, ways[r->way].local, ways[r->way].with_grad};
    r->logits = vlp_scale_exp(r->tape, vlp_linear(r->tape, r->image, r->text, NULL, VLP_ACT_NONE),
                              r->scale, INFINITY);
    if (r->bias) r->logits = vlp_add_scalar(r->tape, r->logits, r->bias);
    r->loss = ways[r->way].siglip
                  ? vlp_siglip_loss_ranks(r->tape, r->comm, r->image, r->text, r->scale, r->bias,
                                          INFINITY)
                  : vlp_clip_loss_ranks(r->tape, &ranks, r->image, r->text, r->scale, INFINITY);
}

/* The step once more from given features, so that their gradients are kept. */
static vlp_status again_from_features(rank_run *r) {
    size_t n = (size_t)vlp_numel(r->image);
    vlp_real *both = vlp_alloc(2 * n * sizeof *both);
    if (!both) return VLP_ERR_MEMORY;
    memcpy(both, vlp_real_data(r->image), n * sizeof *both);
    memcpy(both + n, vlp_real_data(r->text), n * sizeof *both);
    r->features = both;
    vlp_tape_begin(r->tape, 0, 0);
    build(r);
    return vlp_tape_backward(r->tape, r->loss);
}

static vlp_status compute(rank_run *r) {
    VLP_TRY(prepare(r));
    VLP_TRY(vlp_tape_plan(r->tape));
    build(r);
    VLP_TRY(vlp_tape_backward(r->tape, r->loss));
    VLP_TRY(vlp_tape_open(r->tape, 1 << 20));
    vlp_tape_begin(r->tape, 0, 0);
    vlp_params_zero_grads(r->params);
    build(r);
    VLP_TRY(vlp_tape_backward(r->tape, r->loss));
    size_t n = (size_t)r->params->total;
    r->mean = vlp_alloc(n * sizeof *r->mean);
    if (!r->mean) return VLP_ERR_MEMORY;
    memcpy(r->mean, r->params->grads, n * sizeof *r->mean);
    VLP_TRY(vlp_comm_all_reduce(r->comm, r->mean, (int64_t)n));
    for (size_t i = 0; i < n; i++) r->mean[i] /= (vlp_real)r->comm->size;
    r->own = vlp_alloc(n * sizeof *r->own);
    if (!r->own) return VLP_ERR_MEMORY;
    memcpy(r->own, r->params->grads, n * sizeof *r->own);
    VLP_TRY(again_from_features(r));
    return r->comm->status;
}

static void *run_rank(void *ctx) {
    rank_run *r = ctx;
    r->status = compute(r);
    if (r->status == VLP_OK) return NULL;
    snprintf(r->error, sizeof r->error, "%s", vlp_error());
    vlp_comm_abandon(r->comm);
    return NULL;
}

static void release(rank_run *r) {
    vlp_tape_free(r->tape);
    vlp_params_free(r->params);
    vlp_free(r->own);
    vlp_free(r->mean);
    vlp_free(r->features);
    r->features = r->own = r->mean = NULL;
}

/* Inputs of one rank, or of all, one after the other. */
static vlp_status read_inputs(rank_run *r, int first, int count) {
    static const char *const kinds[] = {"image_x", "text_x"};
    vlp_real **to[] = {&r->image_x, &r->text_x};
    for (int k = 0; k < 2; k++) {
        int64_t elements = 0;
        r->batch = 0;
        for (int i = first; i < first + count; i++) {
            char name[64];
            const vlp_safetensor *t;
            snprintf(name, sizeof name, "rank%d/%s", i, kinds[k]);
            VLP_TRY(parity_input(r->c, name, &t));
            vlp_real *longer = vlp_realloc(*to[k], (size_t)(elements + t->numel) * sizeof *longer);
            if (!longer) return VLP_ERR_MEMORY;
            *to[k] = longer;
            VLP_TRY(vlp_safetensors_read_real(t, longer + elements, t->numel));
            elements += t->numel;
            r->batch += t->shape[0];
        }
    }
    return VLP_OK;
}

static void expect_params(parity_report *report, const rank_run *r, const char *prefix,
                          const vlp_real *block) {
    char name[512];
    for (int i = 0; i < r->params->count; i++) {
        const vlp_param *p = r->params->items[i];
        snprintf(name, sizeof name, "grad/%.64s%.256s", prefix, p->name);
        parity_expect(report, name, p->tensor.ndim, p->tensor.shape, block + p->offset);
    }
}

static void expect_rank(parity_report *report, const rank_run *r) {
    char name[96], prefix[64];
    snprintf(prefix, sizeof prefix, "rank%d/", r->comm->rank);
    snprintf(name, sizeof name, "%simage_features", prefix);
    if (parity_wants(report, name)) parity_expect_tensor(report, name, r->image, false);
    snprintf(name, sizeof name, "%stext_features", prefix);
    if (parity_wants(report, name)) parity_expect_tensor(report, name, r->text, false);
    snprintf(prefix, sizeof prefix, "%s/rank%d/", ways[r->way].name, r->comm->rank);
    snprintf(name, sizeof name, "%sloss", prefix);
    parity_expect_tensor(report, name, r->loss, false);
    snprintf(name, sizeof name, "grad/%simage_features", prefix);
    parity_expect_tensor(report, name, r->image, true);
    snprintf(name, sizeof name, "grad/%stext_features", prefix);
    parity_expect_tensor(report, name, r->text, true);
    expect_params(report, r, prefix, r->own);
    if (r->comm->rank > 0) return;
    snprintf(prefix, sizeof prefix, "%s/ddp_mean/", ways[r->way].name);
    expect_params(report, r, prefix, r->mean);
}

static vlp_status run_way(rank_run *ranks, vlp_comm_group *group, int size, size_t way,
                          parity_report *report) {
    pthread_t threads[64];
    vlp_status status = VLP_OK;
    int started = 0;
    for (int i = 0; i < size; i++) {
        rank_run *r = &ranks[i];
        r->way = way;
        r->comm = vlp_comm_group_rank(group, i);
        if (status != VLP_OK || pthread_create(&threads[i], NULL, run_rank, r) != 0) {
            status = VLP_FAIL(VLP_ERR_IO, "a thread could not be started");
            vlp_comm_abandon(r->comm);
            break;
        }
        started++;
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < started; i++) {
        if (ranks[i].status == VLP_OK && status == VLP_OK) expect_rank(report, &ranks[i]);
        if (ranks[i].status != VLP_OK && status == VLP_OK)
            status = VLP_FAIL(ranks[i].status, "rank %d: %s", i, ranks[i].error);
        release(&ranks[i]);
    }
    return status;
}

/* All pairs in one process. */
static vlp_status run_single(rank_run *r, int size, size_t way, parity_report *report) {
    r->comm = vlp_comm_single();
    r->way = way;
    VLP_TRY(read_inputs(r, 0, size));
    VLP_TRY(compute(r));
    parity_expect_tensor(report, "logits_per_image", r->logits, false);
    parity_expect_tensor(report, "loss", r->loss, false);
    expect_params(report, r, "", r->own);
    return VLP_OK;
}

static vlp_status run_all(const parity_case *c, rank_run *ranks, int size, parity_report *report) {
    bool siglip = vlp_safetensors_find(c->model, "logit_bias") != NULL;
    rank_run single = {.c = c};
    for (int i = 0; i < size; i++) {
        ranks[i].c = c;
        VLP_TRY(read_inputs(&ranks[i], i, 1));
    }
    vlp_status status = VLP_OK;
    for (size_t w = 0; w < VLP_COUNT(ways) && status == VLP_OK; w++) {
        if (ways[w].siglip != siglip) continue;
        vlp_comm_group *group;
        VLP_TRY(vlp_comm_group_new(&group, size));
        status = run_way(ranks, group, size, w, report);
        vlp_comm_group_free(group);
    }
    if (status == VLP_OK) status = run_single(&single, size, siglip ? 4 : 0, report);
    release(&single);
    vlp_free(single.image_x);
    vlp_free(single.text_x);
    return status;
}

vlp_status parity_run_ranks(const parity_case *c, parity_report *report) {
    enum { MOST = 64 };
    int64_t size = vlp_json_int(c->config, "world_size", 0);
    if (size < 1 || size > MOST || !c->model)
        return VLP_FAIL(VLP_ERR_FORMAT, "config.json: world_size %lld", (long long)size);
    rank_run *ranks = vlp_alloc_zero((size_t)size, sizeof *ranks);
    if (!ranks) return VLP_ERR_MEMORY;
    vlp_status status = run_all(c, ranks, (int)size, report);
    for (int64_t i = 0; i < size; i++) {
        vlp_free(ranks[i].image_x);
        vlp_free(ranks[i].text_x);
    }
    vlp_free(ranks);
    return status;
}
