/* "ViT (timm names)" and "ViT (HF)": the encoder with cotangents, and with a classifier. */
#include "parity/model.h"
#include "parity/runners.h"
#include "vision/vit.h"
#include "vision/vit_config.h"
#include "vision/vit_names.h"

#include <string.h>

typedef struct {
    vlp_vit vit;
    vlp_dense pooler; /* weight NULL where the checkpoint has none */
    const vlp_real *pixels;
    vlp_tensor *qkv;             /* of the first layer */
    const char *hidden, *output; /* the case's names for the stream and for what leaves */
    int first;                   /* the stream's first tensor that the case counts */
    vlp_tensor *stream[VLP_MAX_DEPTH + 1];
} vit_run;

/* How the systems name their outputs. */
static const struct {
    const char *system, *hidden, *output;
    int first;
} naming[] = {
    {"ViT (timm names)", "blocks.%d", "output", 1},
    {"ViT (HF)", "hidden_states/%d", "last_hidden_state", 0},
};

static vlp_status declare(parity_model *m, vit_run *r) {
    vlp_vit_config config;
    VLP_TRY(vlp_vit_config_read(&config, m->c->config, "config.json"));
    VLP_TRY(vlp_vit_names(&m->map, m->c->model, ""));
    VLP_TRY(vlp_vit_declare(&r->vit, m->params, &config));
    if (parity_checkpoint_has(m, "pooler.weight"))
        vlp_dense_declare(&r->pooler, m->params, "pooler", config.width, config.width, true, 0.02);
    return VLP_OK;
}

static vlp_tensor *first_projection(const parity_model *m, const vit_run *r) {
    const vlp_block *block = &r->vit.stack.blocks[0];
    vlp_tensor *x = vlp_norm_forward(m->tape, &block->norm1, r->stream[0]);
    return vlp_dense_forward(m->tape, &block->qkv, x, VLP_ACT_NONE);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    vit_run *r = ctx;
    vlp_tensor *pixels = parity_graph_input(m, "pixel_values", r->pixels);
    vlp_tensor *x = vlp_vit_forward(m->tape, &r->vit, pixels, NULL, r->stream);
    parity_hidden(m, r->stream, r->vit.config.depth, r->first, r->hidden);
    parity_output(m, x, "%s", r->output);
    if (r->pooler.weight)
        parity_output(m, vlp_pooler_forward(m->tape, &r->pooler, x), "pooler_output");
    if (parity_wants(m->report, "attentions/0")) r->qkv = first_projection(m, r);
    return NULL;
}

static vlp_status run(parity_model *m, vit_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(parity_model_reals(m, "pixel_values", &r->pixels));
    VLP_TRY(parity_model_run(m, build, r));
    return r->qkv ? parity_expect_attention(m, "attentions/0", r->qkv, r->vit.config.heads)
                  : VLP_OK;
}

vlp_status parity_run_vit(const parity_case *c, parity_report *report) {
    parity_model m;
    vit_run r = {0};
    for (size_t i = 0; i < VLP_COUNT(naming); i++) {
        if (strcmp(c->system, naming[i].system) != 0) continue;
        r.hidden = naming[i].hidden;
        r.output = naming[i].output;
        r.first = naming[i].first;
    }
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_vit_free(&r.vit);
    parity_model_close(&m);
    return status;
}
