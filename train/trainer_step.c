/* One optimizer step: micro-batches forward and backward, then clip, update, average. */
#include "train/step.h"
#include "train/trainer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Random numbers of a sample: a position of the data order is one sample of one epoch. */
static void fill_keys(vlp_trainer *t, const vlp_batch *batch) {
    for (int i = 0; i < batch->count; i++) t->keys[i] = (uint64_t)(batch->cursor + i);
}

static vlp_pairs pairs_of(vlp_trainer *t, const vlp_batch *batch) {
    vlp_tokens padded = {.batch = batch->count,
                         .length = t->recipe.text_length,
                         .ids = batch->token_ids,
                         .attention_mask = batch->attention_mask};
    vlp_tokens tokens = padded;
    if (!vlp_model_reads_padding(&t->model->config))
        vlp_tokens_trim(&padded, t->ids, t->ids_mask, &tokens);
    return (vlp_pairs){
        .batch = batch->count,
        .pixels = batch->pixels,
        .tokens = tokens,
        .keys = t->keys,
        .image_groups = batch->groups,
        .caption_groups = batch->caption_groups,
        .seed = (uint64_t)t->recipe.seed,
    };
}

static vlp_step step_of(vlp_trainer *t) {
    return (vlp_step){t->tape, t->model, &t->objectives};
}

vlp_status vlp_trainer_rehearse(vlp_trainer *t) {
    vlp_step step = step_of(t);
    VLP_TRY(
        vlp_step_rehearse(&step, t->recipe.batch, t->recipe.text_length, t->contrast, &t->flops));
    t->flops *= (double)t->recipe.accumulate;
    return VLP_OK;
}

/* Of the micro-batch at hand, for messages. */
static void remember_images(vlp_trainer *t, const vlp_batch *batch) {
    t->last_images = batch->count;
    for (int i = 0; i < batch->count && i < VLP_TRAINER_SHOWN; i++)
        t->last_image_ids[i] = batch->image_ids[i];
}

/* `what` in words: "the loss itm is not finite". */
static vlp_status not_finite(const vlp_trainer *t, const char *what) {
    char ids[VLP_TRAINER_SHOWN * 24] = "";
    for (int i = 0; i < t->last_images && i < VLP_TRAINER_SHOWN; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%lld", i ? ", " : "",
                 (long long)t->last_image_ids[i]);
    return VLP_FAIL(VLP_ERR_NUMERIC,
                    "step %lld: %s; images %s%s of %s; the last checkpoint is kept; lower lr or "
                    "raise warmup in a new run, perhaps with --init from this one",
                    (long long)t->step + 1, what, ids,
                    t->last_images > VLP_TRAINER_SHOWN ? ", ..." : "", t->data);
}

static vlp_status loss_not_finite(const vlp_trainer *t, const char *name) {
    char what[64];
    snprintf(what, sizeof what, "the loss %s is not finite", name);
    return not_finite(t, what);
}

static vlp_status update(vlp_trainer *t) {
    char what[256];
    vlp_params_reached(t->model->params, t->has_grad);
    vlp_status status =
        vlp_optimizer_step(t->optimizer, t->now.lr, 1.0 / (double)t->recipe.accumulate, t->has_grad,
                           &t->now.grad_norm);
    if (status != VLP_ERR_NUMERIC) return status;
    snprintf(what, sizeof what, "%s", vlp_error());
    return not_finite(t, what);
}

static vlp_status note_loss(vlp_trainer *t, int i, double value, double share) {
    const vlp_objective_kind *kind = t->objectives.items[i].kind;
    if (!isfinite(value)) return loss_not_finite(t, kind->name);
    t->now.losses[i] += share * value;
    t->now.chance[i] += share * kind->chance(t->objectives.items[i].state);
    t->now.loss += share * t->objectives.items[i].weight * value;
    return VLP_OK;
}

static vlp_status accumulate_losses(vlp_trainer *t, vlp_tensor *loss, vlp_tensor *const *terms) {
    double share = 1.0 / (double)t->recipe.accumulate;
    for (int i = 0; i < t->objectives.count; i++) {
        double value = terms[i] ? (double)vlp_real_data(terms[i])[0] : 0;
        if (terms[i]) VLP_TRY(note_loss(t, i, value, share * t->objectives.items[i].scale));
    }
    return isfinite((double)vlp_real_data(loss)[0]) ? VLP_OK : loss_not_finite(t, "sum");
}

/* Makes the batch the one at hand and begins micro-batch `m` of the step on the tape. */
static vlp_pairs begin_part(vlp_trainer *t, int64_t m, const vlp_batch *batch) {
    fill_keys(t, batch);
    remember_images(t, batch);
    uint64_t number = (uint64_t)(t->step * t->recipe.accumulate + m);
    vlp_tape_begin(t->tape, (uint64_t)t->recipe.seed, number);
    return pairs_of(t, batch);
}

static vlp_status micro_batch(vlp_trainer *t, int64_t m, const vlp_batch *batch) {
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_pairs pairs = begin_part(t, m, batch);
    vlp_step step = step_of(t);
    if (t->batches) vlp_objectives_share(&t->objectives, &pairs, t->recipe.accumulate);
    const vlp_cotangents *given = t->contrast ? vlp_contrast_cotangents(t->contrast, m) : NULL;
    vlp_tensor *loss = vlp_step_loss(&step, &pairs, given, terms);
    VLP_TRY(vlp_tape_status(t->tape));
    VLP_TRY(accumulate_losses(t, loss, terms));
    VLP_TRY(vlp_tape_backward(t->tape, loss));
    vlp_objectives_after_batch(&t->objectives, &pairs);
    return VLP_OK;
}

vlp_status vlp_trainer_loss(vlp_trainer *t, const vlp_batch *batch, double *loss) {
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_pairs pairs = begin_part(t, 0, batch);
    vlp_step step = step_of(t);
    vlp_tape_set_grad(t->tape, false);
    vlp_tape_set_training(t->tape, false);
    vlp_tensor *x = vlp_step_loss(&step, &pairs, NULL, terms);
    vlp_tape_set_training(t->tape, true);
    vlp_tape_set_grad(t->tape, true);
    VLP_TRY(vlp_tape_status(t->tape));
    *loss = (double)vlp_real_data(x)[0];
    return isfinite(*loss) ? VLP_OK : loss_not_finite(t, "sum");
}

/* Targets are softened more and more during the first passes over the data. */
static double ramp(const vlp_trainer *t) {
    double passes = (double)t->cursor / (double)vlp_loader_rows(t->loader);
    return t->recipe.momentum_ramp > 0 ? fmin(1, passes / t->recipe.momentum_ramp) : 1;
}

/* The contrast of the whole step. The optimizer divides all gradients by the number of parts, which
 * this one has not. */
static vlp_status contrast_whole(vlp_trainer *t) {
    double losses[VLP_MAX_OBJECTIVES];
    vlp_step step = step_of(t);
    for (int64_t m = 0; m < t->recipe.accumulate; m++) {
        vlp_pairs pairs = begin_part(t, m, t->batches[m]);
        VLP_TRY(vlp_contrast_embed(t->contrast, &step, m, &pairs));
    }
    VLP_TRY(vlp_contrast_solve(t->contrast, &step, (double)t->recipe.accumulate, losses));
    for (int i = 0; i < t->objectives.count; i++)
        if (t->objectives.items[i].kind->contrastive) VLP_TRY(note_loss(t, i, losses[i], 1));
    return VLP_OK;
}

static void count_items(vlp_trainer *t, int64_t m) {
    fill_keys(t, t->batches[m]);
    vlp_pairs pairs = pairs_of(t, t->batches[m]);
    vlp_objectives_count(&t->objectives, &pairs, m == 0);
}

/* Holds the batches of the step: all are looked at before the first backward pass. */
static vlp_status held_passes(vlp_trainer *t) {
    int64_t held = 0, parts = t->recipe.accumulate;
    vlp_status status = VLP_OK;
    while (status == VLP_OK && held < parts) {
        status = vlp_loader_next(t->loader, &t->batches[held]);
        if (status == VLP_OK) count_items(t, held++);
    }
    if (status == VLP_OK && t->contrast) status = contrast_whole(t);
    for (int64_t m = 0; m < parts && status == VLP_OK; m++)
        status = micro_batch(t, m, t->batches[m]);
    for (int64_t m = 0; m < held; m++) {
        t->cursor = t->batches[m]->next_cursor;
        t->now.epoch = t->batches[m]->epoch;
        vlp_loader_release(t->loader);
    }
    return status;
}

static vlp_status single_passes(vlp_trainer *t) {
    for (int64_t m = 0; m < t->recipe.accumulate; m++) {
        const vlp_batch *batch;
        VLP_TRY(vlp_loader_next(t->loader, &batch));
        vlp_status status = micro_batch(t, m, batch);
        t->cursor = batch->next_cursor;
        t->now.epoch = batch->epoch;
        vlp_loader_release(t->loader);
        VLP_TRY(status);
    }
    return VLP_OK;
}

/* What of this step a profile wants to know; NULL = nothing. */
static vlp_step_profile *profile_now(const vlp_trainer *t) {
    return t->steps_here >= VLP_STEPS_TO_WARM_UP ? t->options.profile : NULL;
}

static vlp_status gradients(vlp_trainer *t) {
    double began = vlp_clock();
    vlp_params_changed(t->model->params); /* by the update before, or a load */
    vlp_params_zero_grads(t->model->params);
    if (profile_now(t)) profile_now(t)->update_seconds += vlp_clock() - began;
    vlp_objectives_before_step(&t->objectives, t->model, ramp(t));
    return t->batches ? held_passes(t) : single_passes(t);
}

/* Bounded by steps, the schedule counts steps; bounded by time, it counts millionths of it. */
static double learning_rate(const vlp_trainer *t) {
    const vlp_recipe *r = &t->recipe;
    bool by_steps = t->total_steps > 0 && r->max_minutes == 0;
    double total = by_steps ? (double)t->total_steps : 1e6;
    double at = by_steps ? (double)t->step : 1e6 * vlp_trainer_progress_share(t);
    double warmup = r->warmup < 1 ? r->warmup * total : by_steps ? r->warmup : 0.05 * total;
    vlp_schedule schedule = {.kind = r->schedule,
                             .lr = r->lr,
                             .floor = r->lr_least,
                             .warmup = llround(warmup),
                             .total = (int64_t)total};
    return vlp_schedule_lr(&schedule, llround(at));
}

static void note_profile(vlp_trainer *t, double seconds, double updating, double waiting) {
    vlp_step_profile *p = t->options.profile;
    double block = (double)t->model->params->total * (double)sizeof(vlp_real);
    p->steps++;
    p->seconds += seconds;
    p->data_seconds += waiting;
    p->update_seconds += updating;
    p->update_bytes += vlp_optimizer_traffic(t->optimizer) + block * (t->ema ? 4 : 1);
}

vlp_status vlp_trainer_step(vlp_trainer *t) {
    double began = vlp_clock(), waited = vlp_loader_wait_seconds(t->loader);
    t->now.loss = 0;
    for (int i = 0; i < t->objectives.count; i++) t->now.losses[i] = t->now.chance[i] = 0;
    t->now.lr = learning_rate(t);
    if (profile_now(t)) vlp_tape_set_profile(t->tape, &t->options.profile->ops);
    VLP_TRY(gradients(t));
    double updated = vlp_clock();
    VLP_TRY(update(t));
    if (t->ema) vlp_ema_update(t->ema);
    double ended = vlp_clock(), seconds = ended - began;
    if (profile_now(t))
        note_profile(t, seconds, ended - updated, vlp_loader_wait_seconds(t->loader) - waited);
    t->steps_here++;
    t->step++;
    t->now.step = t->step;
    t->now.progress = vlp_trainer_progress_share(t);
    const vlp_tensor *logit_scale = t->model->logit_scale;
    t->now.logit_scale =
        logit_scale ? (double)vlp_real_data(logit_scale)[0] : log(vlp_model_scale(t->model));
    t->now.pairs_per_s = (double)(t->recipe.batch * t->recipe.accumulate) / seconds;
    t->now.data_wait = (vlp_loader_wait_seconds(t->loader) - waited) / seconds;
    return VLP_OK;
}
