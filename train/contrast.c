#include "train/contrast.h"

#include "core/memory.h"

#include <string.h>

struct vlp_contrast {
    int64_t parts, batch, embedding;
    vlp_real *images, *texts;               /* [parts batch, embedding] */
    vlp_real *image_grads, *text_grads;     /* the same */
    int64_t *image_groups, *caption_groups; /* [parts batch] */
    vlp_cotangents part;
};

vlp_status vlp_contrast_new(vlp_contrast **out, int64_t parts, int64_t batch, int64_t embedding) {
    *out = NULL;
    vlp_contrast *c = vlp_alloc_zero(1, sizeof *c);
    if (!c) return VLP_ERR_MEMORY;
    c->parts = parts;
    c->batch = batch;
    c->embedding = embedding;
    size_t rows = (size_t)(parts * batch), numbers = rows * (size_t)embedding;
    vlp_real **blocks[] = {&c->images, &c->texts, &c->image_grads, &c->text_grads};
    bool good = true;
    for (size_t i = 0; i < VLP_COUNT(blocks); i++)
        good &= (*blocks[i] = vlp_alloc_zero(numbers, sizeof(vlp_real))) != NULL;
    good &= (c->image_groups = vlp_alloc_zero(rows, sizeof(int64_t))) != NULL;
    good &= (c->caption_groups = vlp_alloc_zero(rows, sizeof(int64_t))) != NULL;
    if (!good) {
        vlp_contrast_free(c);
        return VLP_ERR_MEMORY;
    }
    *out = c;
    return VLP_OK;
}

void vlp_contrast_free(vlp_contrast *c) {
    if (!c) return;
    vlp_free(c->images);
    vlp_free(c->texts);
    vlp_free(c->image_grads);
    vlp_free(c->text_grads);
    vlp_free(c->image_groups);
    vlp_free(c->caption_groups);
    vlp_free(c);
}

static void keep(vlp_contrast *c, int64_t part, const vlp_pairs *pairs, const vlp_tensor *image,
                 const vlp_tensor *text) {
    int64_t row = part * c->batch, at = row * c->embedding;
    size_t bytes = (size_t)(c->batch * c->embedding) * sizeof(vlp_real);
    memcpy(c->images + at, vlp_real_data(image), bytes);
    memcpy(c->texts + at, vlp_real_data(text), bytes);
    memcpy(c->image_groups + row, pairs->image_groups, (size_t)c->batch * sizeof(int64_t));
    memcpy(c->caption_groups + row, pairs->caption_groups, (size_t)c->batch * sizeof(int64_t));
}

vlp_status vlp_contrast_embed(vlp_contrast *c, const vlp_step *step, int64_t part,
                              const vlp_pairs *pairs) {
    VLP_ASSERT(pairs->batch == c->batch && part < c->parts, "contrast: part %lld of %lld pairs",
               (long long)part, (long long)pairs->batch);
    vlp_encodings e;
    vlp_tape_set_grad(step->tape, false);
    vlp_encodings_begin(&e, step->tape, step->model, pairs);
    vlp_tensor *image = vlp_encodings_image_embedding(&e);
    vlp_tensor *text = vlp_encodings_text_embedding(&e);
    vlp_tape_set_grad(step->tape, true);
    VLP_TRY(vlp_tape_status(step->tape));
    keep(c, part, pairs, image, text);
    return VLP_OK;
}

/* The contrastive objectives of the whole batch; NULL where there is none. */
static vlp_tensor *whole_loss(vlp_contrast *c, const vlp_step *step, vlp_encodings *e,
                              vlp_tensor **terms) {
    const vlp_objectives *o = step->objectives;
    vlp_tensor *wanted[VLP_MAX_OBJECTIVES];
    double weights[VLP_MAX_OBJECTIVES];
    int n = 0;
    int64_t shape[] = {c->parts * c->batch, c->embedding};
    e->image_embedding = vlp_tape_input(step->tape, VLP_REAL, 2, shape, c->images, true);
    e->text_embedding = vlp_tape_input(step->tape, VLP_REAL, 2, shape, c->texts, true);
    for (int i = 0; i < o->count; i++) {
        terms[i] = NULL;
        if (!o->items[i].kind->contrastive) continue;
        wanted[n] = terms[i] = o->items[i].kind->loss(o->items[i].state, e);
        weights[n++] = o->items[i].weight;
    }
    return n ? vlp_weighted_sum(step->tape, wanted, weights, n) : NULL;
}

static vlp_pairs whole_batch(const vlp_contrast *c) {
    return (vlp_pairs){.batch = c->parts * c->batch,
                       .image_groups = c->image_groups,
                       .caption_groups = c->caption_groups};
}

vlp_status vlp_contrast_rehearse(vlp_contrast *c, const vlp_step *step) {
    vlp_encodings e;
    vlp_pairs pairs = whole_batch(c);
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_tape_begin(step->tape, 0, 0);
    vlp_encodings_begin(&e, step->tape, step->model, &pairs);
    return vlp_tape_backward(step->tape, whole_loss(c, step, &e, terms));
}

vlp_status vlp_contrast_solve(vlp_contrast *c, const vlp_step *step, double scale, double *losses) {
    vlp_encodings e;
    vlp_pairs pairs = whole_batch(c);
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_tape_begin(step->tape, 0, 0);
    vlp_encodings_begin(&e, step->tape, step->model, &pairs);
    vlp_tensor *loss = whole_loss(c, step, &e, terms);
    VLP_TRY(vlp_tape_status(step->tape));
    for (int i = 0; i < step->objectives->count; i++)
        if (terms[i]) losses[i] = (double)vlp_real_data(terms[i])[0];
    VLP_TRY(vlp_tape_backward_scaled(step->tape, loss, scale));
    size_t bytes = (size_t)(c->parts * c->batch * c->embedding) * sizeof(vlp_real);
    memcpy(c->image_grads, e.image_embedding->grad, bytes);
    memcpy(c->text_grads, e.text_embedding->grad, bytes);
    return VLP_OK;
}

const vlp_cotangents *vlp_contrast_cotangents(vlp_contrast *c, int64_t part) {
    int64_t at = part * c->batch * c->embedding;
    c->part = (vlp_cotangents){c->image_grads + at, c->text_grads + at};
    return &c->part;
}
