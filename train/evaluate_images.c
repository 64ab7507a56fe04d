#include "train/evaluate_images.h"

#include "datasets/loader.h"

enum { BATCH = 64 };

vlp_status vlp_eval_watched(const vlp_eval_watch *watch, const char *what, int64_t done,
                            int64_t total) {
    if (!watch) return VLP_OK;
    if (watch->progress) watch->progress(what, done, total, watch->user);
    if (!watch->stop || !*watch->stop) return VLP_OK;
    return VLP_FAIL(VLP_ERR_INTERRUPTED,
                    "interrupted after %lld of %lld %s; no figures are given for a part",
                    (long long)done, (long long)total, what);
}

static vlp_status walk(vlp_loader *loader, const vlp_eval_set *set, int64_t n_images,
                       vlp_images_fn each, void *user) {
    for (int64_t at = 0; at < n_images;) {
        VLP_TRY(vlp_eval_watched(set->watch, "pictures", at, n_images));
        const vlp_batch *batch;
        VLP_TRY(vlp_loader_next(loader, &batch));
        if (!batch) break;
        int64_t n = n_images - at < batch->count ? n_images - at : batch->count;
        vlp_status status = each(batch->pixels, at, n, user);
        vlp_loader_release(loader);
        VLP_TRY(status);
        at += n;
    }
    return VLP_OK;
}

vlp_status vlp_evaluate_images(const vlp_index *index, const vlp_eval_set *set,
                               const vlp_transform *transform, int64_t n_images, vlp_images_fn each,
                               void *user) {
    vlp_mixture one = {set->source, 1};
    vlp_loader_options options = {.rows = VLP_ROWS_PAIRS,
                                  .split = set->split,
                                  .mixture = &one,
                                  .n_mixture = set->source ? 1 : 0,
                                  .batch = BATCH,
                                  .transform = transform};
    vlp_loader *loader;
    VLP_TRY(vlp_loader_open(&loader, index, &options));
    vlp_status status = walk(loader, set, n_images, each, user);
    vlp_loader_free(loader);
    return status;
}
