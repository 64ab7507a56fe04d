/* "ViT (timm names)", "ViT (HF)" and "SimMIM (HF ViT)": the encoder with cotangents, with a
 * classifier, and with a decoder of masked patches. */
#include "core/memory.h"
#include "parity/model.h"
#include "parity/runners.h"
#include "vision/vit.h"
#include "vision/vit_classifier.h"
#include "vision/vit_config.h"
#include "vision/vit_names.h"

#include <string.h>

typedef struct {
    vlp_vit vit;
    vlp_dense pooler, decoder; /* weight NULL where the checkpoint has none */
    vlp_vit_classifier classifier;
    vlp_dense distillation; /* DeiT's second head */
    const int32_t *teacher; /* [B]: what it is to learn */
    int64_t batch;
    const vlp_real *pixels;
    const int32_t *labels;   /* [B], or */
    const vlp_real *targets; /* [B, classes]: several labels at once */
    const uint8_t *masked;   /* [B, P] */
    double smoothing;
    vlp_tensor *qkv;             /* of the first layer */
    vlp_tensor *patches;         /* [B, P, C p p], decoded */
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
    {"SimMIM (HF ViT)", "hidden_states/%d", "last_hidden_state", 0},
    {"DeiT (HF)", "hidden_states/%d", "last_hidden_state", 0},
};

static vlp_status declare_heads(parity_model *m, vit_run *r) {
    const vlp_vit_config *c = &r->vit.config;
    const vlp_safetensor *head = parity_checkpoint_find(m, "classifier.weight");
    if (parity_checkpoint_find(m, "pooler.weight"))
        vlp_dense_declare(&r->pooler, m->params, "pooler", c->width, c->width, true, 0.02);
    if (head) vlp_vit_classifier_declare(&r->classifier, m->params, c, head->shape[0]);
    head = parity_checkpoint_find(m, "distillation_classifier.weight");
    if (head)
        vlp_dense_declare(&r->distillation, m->params, "distillation_classifier", c->width,
                          head->shape[0], true, 0.02);
    if (parity_checkpoint_find(m, "decoder.weight"))
        vlp_dense_declare(&r->decoder, m->params, "decoder", c->width,
                          c->channels * c->patch * c->patch, true, 0.02);
    return VLP_OK;
}

static vlp_status declare(parity_model *m, vit_run *r) {
    vlp_vit_config config;
    VLP_TRY(vlp_vit_config_read(&config, m->c->config, "config.json"));
    VLP_TRY(vlp_vit_names(&m->map, m->c->model, ""));
    config.mask_token = parity_checkpoint_find(m, "mask_token") != NULL;
    VLP_TRY(vlp_vit_declare(&r->vit, m->params, &config));
    return declare_heads(m, r);
}

static vlp_status read_inputs(parity_model *m, vit_run *r) {
    r->smoothing = vlp_json_double(m->c->config, "label_smoothing", 0);
    VLP_TRY(parity_model_dim(m, "pixel_values", 0, &r->batch));
    VLP_TRY(parity_model_reals(m, "pixel_values", &r->pixels));
    VLP_TRY(parity_model_mask(m, "bool_masked_pos", !r->decoder.weight, &r->masked));
    if (!r->classifier.head.weight) return VLP_OK;
    const vlp_safetensor *labels;
    VLP_TRY(parity_input(m->c, "labels", &labels));
    VLP_TRY(parity_model_ids(m, "teacher_labels", true, &r->teacher));
    return vlp_st_is_float(labels->dtype) ? parity_model_reals(m, "labels", &r->targets)
                                          : parity_model_ids(m, "labels", false, &r->labels);
}

static vlp_tensor *first_projection(const parity_model *m, const vit_run *r) {
    const vlp_block *block = &r->vit.stack.blocks[0];
    vlp_tensor *x = vlp_norm_forward(m->tape, &block->norm1, r->stream[0]);
    return vlp_dense_forward(m->tape, &block->qkv, x, VLP_ACT_NONE);
}

/* The logits of both heads, averaged for use and trained apart; the teacher's decisions are hard.
 */
static vlp_tensor *distil(parity_model *m, vit_run *r, vlp_tensor *x) {
    vlp_tensor *first =
        vlp_vit_classifier_logits(m->tape, &r->classifier, vlp_first_tokens(m->tape, x));
    int64_t batch = r->batch, length = x ? x->shape[1] : 0;
    int32_t *rows = vlp_tape_alloc(m->tape, (size_t)batch * sizeof *rows);
    if (!rows) return NULL;
    for (int64_t b = 0; !vlp_tape_planning(m->tape) && b < batch; b++)
        rows[b] = (int32_t)(b * length + 1);
    vlp_tensor *second =
        vlp_dense_readout(m->tape, &r->distillation, vlp_gather_rows(m->tape, x, rows, batch));
    vlp_tensor *terms[] = {vlp_cross_entropy(m->tape, first, r->labels, 0),
                           vlp_cross_entropy(m->tape, second, r->teacher, 0)};
    parity_output(m, first, "cls_logits");
    parity_output(m, second, "distillation_logits");
    parity_output(m, vlp_scale(m->tape, vlp_add(m->tape, first, second), 0.5), "logits");
    parity_output(m, terms[0], "loss_cls");
    parity_output(m, terms[1], "loss_distill");
    return vlp_weighted_sum(m->tape, terms, (double[]){0.5, 0.5}, 2);
}

static vlp_tensor *classify(parity_model *m, vit_run *r, vlp_tensor *x) {
    vlp_tensor *features = vlp_vit_classifier_features(m->tape, &r->classifier, x);
    vlp_tensor *logits = vlp_vit_classifier_logits(m->tape, &r->classifier, features);
    parity_output(m, features, "features");
    parity_output(m, logits, "logits");
    return r->targets ? vlp_regression_loss(m->tape, logits, r->targets, VLP_LOSS_BINARY)
                      : vlp_cross_entropy(m->tape, logits, r->labels, r->smoothing);
}

/* Offset in the images [B, C, H, W] of element i of patches [B, P, C p p]. */
static int64_t pixel_of(const vlp_vit_config *c, int64_t i) {
    int64_t p = c->patch, across = c->image_width / p, patches = vlp_vit_patches(c);
    int64_t x = i % p, y = i / p % p, channel = i / (p * p) % c->channels;
    int64_t patch = i / (p * p * c->channels) % patches, b = i / (p * p * c->channels * patches);
    return ((b * c->channels + channel) * c->image_height + patch / across * p + y) *
               c->image_width +
           patch % across * p + x;
}

/* L1 over the pixels of masked patches: their sum / (masked pixels + 1e-5) / channels. */
static vlp_tensor *reconstruct(parity_model *m, vit_run *r, vlp_tensor *x) {
    const vlp_vit_config *c = &r->vit.config;
    int64_t patches = vlp_vit_patches(c), each = c->channels * c->patch * c->patch, count = 0;
    int64_t n = r->batch * patches;
    int32_t *rows = vlp_tape_alloc(m->tape, (size_t)n * sizeof *rows);
    int32_t *masked = vlp_tape_alloc(m->tape, (size_t)n * sizeof *masked);
    vlp_real *target = vlp_tape_alloc(m->tape, (size_t)(n * each) * sizeof *target);
    if (!rows || !masked || !target) return NULL;
    bool real = !vlp_tape_planning(m->tape);
    for (int64_t i = 0; i < n; i++) {
        /* Hugging Face's DeiT decodes all but the first and the last token of the sequence, so its
         * second token stands for the first patch. */
        if (real) rows[i] = (int32_t)(i + i / patches * vlp_vit_prefix(c) + 1);
        if (!r->masked[i]) continue;
        for (int64_t k = 0; real && k < each; k++)
            target[count * each + k] = r->pixels[pixel_of(c, i * each + k)];
        if (real) masked[count] = (int32_t)i;
        count++;
    }
    x = vlp_dense_forward(m->tape, &r->decoder, vlp_gather_rows(m->tape, x, rows, n), VLP_ACT_NONE);
    r->patches = x;
    x = vlp_regression_loss(m->tape, vlp_gather_rows(m->tape, x, masked, count), target,
                            VLP_LOSS_L1);
    double pixels = (double)(count * c->patch * c->patch);
    return vlp_scale(m->tape, x, pixels / (pixels + 1e-5));
}

/* The positions that were added, under the names that cases of interpolation give them. */
static void used_positions(parity_model *m, const vit_run *r, const vlp_tensor *pixels) {
    static const char *const names[] = {"position_embeddings_used", "pos_embed_interpolated"};
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        if (!pixels || !parity_wants(m->report, names[i])) continue;
        vlp_tensor *x = vlp_vit_positions(m->tape, &r->vit, pixels->shape[2], pixels->shape[3]);
        if (!x) continue;
        x = vlp_reshape(m->tape, x, 3, (int64_t[]){1, x->shape[0], x->shape[1]});
        parity_output(m, x, "%s", names[i]);
    }
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    vit_run *r = ctx;
    vlp_tensor *pixels = parity_graph_input(m, "pixel_values", r->pixels);
    vlp_tensor *x = vlp_vit_forward(m->tape, &r->vit, pixels, r->masked, r->stream);
    parity_hidden(m, r->stream, r->vit.config.depth, r->first, r->hidden);
    parity_output(m, x, "%s", r->output);
    used_positions(m, r, pixels);
    if (r->pooler.weight)
        parity_output(m, vlp_pooler_forward(m->tape, &r->pooler, x), "pooler_output");
    if (parity_wants(m->report, "attentions/0")) r->qkv = first_projection(m, r);
    if (r->teacher && r->distillation.weight) return distil(m, r, x);
    if (r->classifier.head.weight) return classify(m, r, x);
    return r->decoder.weight ? reconstruct(m, r, x) : NULL;
}

static vlp_status expect_reconstruction(parity_model *m, const vit_run *r) {
    const vlp_vit_config *c = &r->vit.config;
    int64_t n = vlp_numel(r->patches);
    vlp_real *images = vlp_alloc((size_t)n * sizeof *images);
    if (!images) return VLP_ERR_MEMORY;
    const vlp_real *patches = parity_values(m, r->patches);
    for (int64_t i = 0; patches && i < n; i++) images[pixel_of(c, i)] = patches[i];
    parity_expect(m->report, "reconstruction", 4,
                  (int64_t[]){r->batch, c->channels, c->image_height, c->image_width}, images);
    vlp_free(images);
    return VLP_OK;
}

static vlp_status run(parity_model *m, vit_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_run(m, build, r));
    if (r->patches) VLP_TRY(expect_reconstruction(m, r));
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
