#include "fusion/lock.h"

#include <stdio.h>

void vlp_model_lock_images(vlp_model *model, int64_t unlocked) {
    int64_t depth = model->config.vision.depth;
    char block[64];
    vlp_params_freeze(model->params, "vision.", true);
    vlp_params_freeze(model->params, "image_projection.", unlocked < 1);
    for (int64_t i = depth - 1; i >= 0 && unlocked > depth - i; i--) {
        snprintf(block, sizeof block, "vision.blocks.%lld.", (long long)i);
        vlp_params_freeze(model->params, block, false);
    }
    vlp_params_freeze(model->params, "vision.norm.", unlocked < 2);
    vlp_params_freeze(model->params, "vision.pool.", unlocked < 2);
    if (unlocked >= depth + 2) vlp_params_freeze(model->params, "vision.", false);
}
