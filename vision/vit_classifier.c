#include "vision/vit_classifier.h"

void vlp_vit_classifier_declare(vlp_vit_classifier *classifier, vlp_params *params,
                                const vlp_vit_config *c, int64_t classes) {
    *classifier = (vlp_vit_classifier){.mean_pool = c->mean_pool};
    if (c->mean_pool) vlp_norm_declare(&classifier->norm, params, "fc_norm", c->width, c->eps);
    vlp_dense_declare(&classifier->head, params, "classifier", c->width, classes, true, 0.02);
}

/* All tokens but the first. */
static vlp_tensor *patch_mean(vlp_tape *tape, vlp_tensor *tokens) {
    if (!tokens) return NULL;
    int64_t n = tokens->shape[0] * tokens->shape[1];
    uint8_t *mask = vlp_tape_alloc(tape, (size_t)n);
    if (!mask) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < n; i++) mask[i] = i % tokens->shape[1] != 0;
    return vlp_mean_rows(tape, tokens, mask);
}

vlp_tensor *vlp_vit_classifier_features(vlp_tape *tape, const vlp_vit_classifier *classifier,
                                        vlp_tensor *tokens) {
    if (!classifier->mean_pool) return vlp_first_tokens(tape, tokens);
    return vlp_norm_forward(tape, &classifier->norm, patch_mean(tape, tokens));
}

vlp_tensor *vlp_vit_classifier_logits(vlp_tape *tape, const vlp_vit_classifier *classifier,
                                      vlp_tensor *features) {
    return vlp_dense_readout(tape, &classifier->head, features);
}
