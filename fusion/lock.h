/* Locked-image tuning (LiT, Zhai et al., 2022): the image tower, or its first parts, is not
 * trained. */
#ifndef VLP_FUSION_LOCK_H
#define VLP_FUSION_LOCK_H

#include "fusion/model.h"

/* Stops gradients into the image tower and its projection, but for the last `unlocked` of
 * open_clip's groups: embeddings with the input norm; each block, the last with the norm at the
 * end; projection. Call it after the parameters were allocated. */
void vlp_model_lock_images(vlp_model *model, int64_t unlocked);

#endif
