/* A classification head on a ViT: logits of the class token, or of the mean of the patches. */
#ifndef VLP_VISION_VIT_CLASSIFIER_H
#define VLP_VISION_VIT_CLASSIFIER_H

#include "vision/vit.h"

typedef struct {
    bool mean_pool;
    vlp_norm norm;  /* with mean_pool: of the mean */
    vlp_dense head; /* [classes, D] */
} vlp_vit_classifier;

/* Declares "classifier" and, where the ViT's config says mean_pool, "fc_norm". */
void vlp_vit_classifier_declare(vlp_vit_classifier *classifier, vlp_params *params,
                                const vlp_vit_config *config, int64_t classes);
/* What the head reads: tokens [B, 1 + P, D] as vlp_vit_forward returns them -> [B, D] */
vlp_tensor *vlp_vit_classifier_features(vlp_tape *tape, const vlp_vit_classifier *classifier,
                                        vlp_tensor *tokens);
/* [B, D] -> [B, classes] */
vlp_tensor *vlp_vit_classifier_logits(vlp_tape *tape, const vlp_vit_classifier *classifier,
                                      vlp_tensor *features);

#endif
