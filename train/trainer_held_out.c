/* What runs that only learn to write are judged by: the mean loss on the validation split. */
#include "train/step.h"
#include "train/trainer_internal.h"

#include <string.h>

static vlp_status open_loader(const vlp_trainer *t, vlp_loader **out) {
    const vlp_recipe *r = &t->recipe;
    vlp_mixture source = {r->eval_source, 1};
    vlp_loader_options options = {.rows = vlp_trainer_rows(r),
                                  .split = r->val_split,
                                  .mixture = &source,
                                  .n_mixture = r->eval_source[0] ? 1 : 0,
                                  .batch = (int)r->batch,
                                  .seed = (uint64_t)r->seed,
                                  .transform = &t->transform,
                                  .tokenizer = t->tokenizer,
                                  .text_length = (int)r->text_length,
                                  .threads = (int)r->loader_threads,
                                  .slots = 2};
    return vlp_loader_open(out, t->index, &options);
}

bool vlp_trainer_only_writes(const vlp_trainer *t) {
    return t->objectives.count == 1 && strcmp(t->objectives.items[0].kind->name, "lm") == 0;
}

static vlp_status add_batches(vlp_trainer *t, vlp_loader *loader, double *sum, int64_t *rows) {
    while (*rows < t->recipe.eval_rows && !(t->options.stop && *t->options.stop)) {
        const vlp_batch *batch;
        double loss;
        VLP_TRY(vlp_loader_next(loader, &batch));
        if (!batch) return VLP_OK;
        VLP_TRY(vlp_trainer_loss(t, batch, &loss));
        *sum += loss * batch->count;
        *rows += batch->count;
        vlp_loader_release(loader);
    }
    return VLP_OK;
}

vlp_status vlp_trainer_held_out(vlp_trainer *t, double *loss) {
    vlp_loader *loader;
    double sum = 0;
    int64_t rows = 0;
    VLP_TRY(open_loader(t, &loader));
    vlp_trainer_show(t);
    vlp_status status = add_batches(t, loader, &sum, &rows);
    vlp_trainer_hide(t);
    vlp_loader_free(loader);
    VLP_TRY(status);
    *loss = rows > 0 ? sum / (double)rows : 0;
    return rows > 0 ? VLP_OK : VLP_FAIL(VLP_ERR_INTERRUPTED, "interrupted");
}
