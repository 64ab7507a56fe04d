/* The pictures of an evaluation set, decoded by the loader's threads, handed over in order. */
#ifndef VLP_TRAIN_EVALUATE_IMAGES_H
#define VLP_TRAIN_EVALUATE_IMAGES_H

#include "train/evaluate.h"

/* pixels [n, 3, S, S] of the pictures first .. first + n - 1 */
typedef vlp_status (*vlp_images_fn)(const float *pixels, int64_t first, int64_t n, void *user);

vlp_status vlp_evaluate_images(const vlp_index *index, const vlp_eval_set *set,
                               const vlp_transform *transform, int64_t n_images, vlp_images_fn each,
                               void *user);

#endif
