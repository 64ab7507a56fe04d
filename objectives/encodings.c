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

vlp_tensor *vlp_encodings_similarity(vlp_encodings *e) {
    if (e->similarity) return e->similarity;
    e->similarity = vlp_model_similarity(e->tape, e->model, vlp_encodings_image_embedding(e),
                                         vlp_encodings_text_embedding(e));
    return e->similarity;
}

vlp_tensor *const *vlp_encodings_image_keys(vlp_encodings *e) {
    if (!e->has_image_keys)
        vlp_fusion_keys(e->tape, &e->model->fusion, vlp_encodings_image_tokens(e), e->image_keys);
    e->has_image_keys = true;
    return e->image_keys;
}
