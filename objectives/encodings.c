#include "objectives/encodings.h"

#include <math.h>

bool vlp_pairs_positive(const vlp_pairs *pairs, int64_t i, int64_t j) {
    return i == j || pairs->image_groups[i] == pairs->image_groups[j] ||
           pairs->caption_groups[i] == pairs->caption_groups[j];
}

int64_t vlp_pairs_share(const vlp_pairs *pairs, double share) {
    int64_t n = llround(share * (double)pairs->batch);
    return n < 1 ? 1 : n;
}

void vlp_encodings_begin(vlp_encodings *e, vlp_tape *tape, const vlp_model *model,
                         const vlp_pairs *pairs) {
    *e = (vlp_encodings){.tape = tape, .model = model, .pairs = pairs};
}

vlp_tensor *vlp_encodings_pixels(vlp_encodings *e) {
    const vlp_vit_config *c = &e->model->config.vision;
    const int64_t shape[] = {e->pairs->batch, c->channels, c->image_height, c->image_width};
    if (!e->pixels)
        e->pixels = vlp_tape_input(e->tape, VLP_REAL, 4, shape, e->pairs->pixels, false);
    return e->pixels;
}

vlp_tensor *vlp_encodings_image_tokens(vlp_encodings *e) {
    if (!e->image_tokens)
        e->image_tokens = vlp_model_image_tokens(e->tape, e->model, vlp_encodings_pixels(e));
    return e->image_tokens;
}

vlp_tensor *vlp_encodings_text_tokens(vlp_encodings *e) {
    if (!e->text_tokens)
        e->text_tokens = vlp_model_text_tokens(e->tape, e->model, &e->pairs->tokens);
    return e->text_tokens;
}

vlp_tensor *vlp_encodings_image_embedding(vlp_encodings *e) {
    if (!e->image_embedding)
        e->image_embedding =
            vlp_model_image_embedding(e->tape, e->model, vlp_encodings_image_tokens(e));
    return e->image_embedding;
}

vlp_tensor *vlp_encodings_text_embedding(vlp_encodings *e) {
    if (!e->text_embedding)
        e->text_embedding = vlp_model_text_embedding(e->tape, e->model, &e->pairs->tokens,
                                                     vlp_encodings_text_tokens(e));
    return e->text_embedding;
}

bool vlp_encodings_pause(vlp_encodings *e) {
    bool before = vlp_tape_grad(e->tape);
    vlp_tape_set_grad(e->tape, false);
    return before;
}

void vlp_encodings_go_on(vlp_encodings *e, bool before) {
    vlp_tape_set_grad(e->tape, before);
}

/* Encodes the batch by the twin, once, and puts its features among the candidates. */
static void encode_twin(vlp_encodings *e) {
    vlp_momentum *m = e->momentum;
    if (e->twin.image_embedding) return;
    vlp_status status = vlp_momentum_reserve(m, e->pairs->batch);
    if (status != VLP_OK) vlp_tape_fail(e->tape, status);
    bool before = vlp_encodings_pause(e);
    e->twin.image_tokens = vlp_model_image_tokens(e->tape, m->twin, vlp_encodings_pixels(e));
    e->twin.image_embedding = vlp_model_image_embedding(e->tape, m->twin, e->twin.image_tokens);
    e->twin.text_embedding =
        vlp_model_text_embedding(e->tape, m->twin, &e->pairs->tokens,
                                 vlp_model_text_tokens(e->tape, m->twin, &e->pairs->tokens));
    vlp_encodings_go_on(e, before);
    if (vlp_tape_status(e->tape) == VLP_OK && !vlp_tape_planning(e->tape))
        vlp_momentum_put(m, e->pairs, vlp_real_data(e->twin.image_embedding),
                         vlp_real_data(e->twin.text_embedding));
}

/* [B + Q, E] of the images or the texts. */
static vlp_tensor *candidates(vlp_encodings *e, bool images) {
    vlp_momentum *m = e->momentum;
    encode_twin(e);
    if (vlp_tape_status(e->tape) != VLP_OK) return NULL;
    int64_t n = e->pairs->batch, width = e->model->config.embedding;
    const vlp_real *rows = (images ? m->images : m->texts) + vlp_momentum_first(m, n) * width;
    return vlp_tape_input(e->tape, VLP_REAL, 2, (int64_t[]){n + m->options.queue, width}, rows,
                          false);
}

static vlp_tensor *similarity(vlp_encodings *e, vlp_tensor *rows, vlp_tensor *others) {
    return vlp_tape_status(e->tape) == VLP_OK
               ? vlp_model_similarity(e->tape, e->model, rows, others)
               : NULL;
}

vlp_tensor *vlp_encodings_similarity(vlp_encodings *e) {
    if (!e->similarity)
        e->similarity =
            similarity(e, vlp_encodings_image_embedding(e), vlp_encodings_text_embedding(e));
    return e->similarity;
}

vlp_tensor *vlp_encodings_i2t(vlp_encodings *e) {
    if (!e->momentum) e->i2t = vlp_encodings_similarity(e);
    if (!e->i2t) e->i2t = similarity(e, vlp_encodings_image_embedding(e), candidates(e, false));
    return e->i2t;
}

vlp_tensor *vlp_encodings_t2i(vlp_encodings *e) {
    if (!e->t2i && e->momentum)
        e->t2i = similarity(e, vlp_encodings_text_embedding(e), candidates(e, true));
    else if (!e->t2i)
        e->t2i = vlp_transpose(e->tape, vlp_encodings_i2t(e));
    return e->t2i;
}

bool vlp_encodings_positive(const vlp_encodings *e, int64_t i, int64_t j) {
    int64_t n = e->pairs->batch;
    if (j < n) return vlp_pairs_positive(e->pairs, i, j);
    int64_t row = e->momentum->room + j - n;
    return e->momentum->image_groups[row] == e->pairs->image_groups[i] ||
           e->momentum->caption_groups[row] == e->pairs->caption_groups[i];
}

static vlp_tensor *twin_similarity(vlp_encodings *e, bool from_images) {
    vlp_tensor *others = candidates(e, !from_images);
    bool before = vlp_encodings_pause(e);
    vlp_tensor *x =
        similarity(e, from_images ? e->twin.image_embedding : e->twin.text_embedding, others);
    vlp_encodings_go_on(e, before);
    return x;
}

vlp_tensor *vlp_encodings_twin_i2t(vlp_encodings *e) {
    if (!e->twin.i2t) e->twin.i2t = twin_similarity(e, true);
    return e->twin.i2t;
}

vlp_tensor *vlp_encodings_twin_t2i(vlp_encodings *e) {
    if (!e->twin.t2i) e->twin.t2i = twin_similarity(e, false);
    return e->twin.t2i;
}

vlp_tensor *const *vlp_encodings_twin_keys(vlp_encodings *e) {
    encode_twin(e);
    if (!e->twin.has_image_keys && e->twin.image_tokens) {
        bool before = vlp_encodings_pause(e);
        vlp_model_image_keys(e->tape, e->momentum->twin, e->twin.image_tokens, e->twin.image_keys);
        vlp_encodings_go_on(e, before);
        e->twin.has_image_keys = true;
    }
    return e->twin.image_keys;
}

vlp_tensor *const *vlp_encodings_image_keys(vlp_encodings *e) {
    if (!e->has_image_keys)
        vlp_model_image_keys(e->tape, e->model, vlp_encodings_image_tokens(e), e->image_keys);
    e->has_image_keys = true;
    return e->image_keys;
}
