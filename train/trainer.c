#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/product_scratch.h"
#include "core/threads.h"
#include "train/trainer_internal.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { EVALUATIONS = 10 };

int vlp_trainer_slots(const vlp_trainer *t) {
    return VLP_TRAINER_SLOTS + (t->batches ? (int)t->recipe.accumulate : 0);
}

double vlp_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double vlp_trainer_seconds(const vlp_trainer *t) {
    return t->seconds_before + (t->started > 0 ? vlp_clock() - t->started : 0);
}

double vlp_trainer_waited(const vlp_trainer *t) {
    return t->waited_before + vlp_loader_wait_seconds(t->loader);
}

double vlp_trainer_progress_share(const vlp_trainer *t) {
    double steps = t->total_steps > 0 ? (double)t->step / (double)t->total_steps : 0;
    double time =
        t->recipe.max_minutes > 0 ? vlp_trainer_seconds(t) / (60 * t->recipe.max_minutes) : 0;
    return fmin(1, fmax(steps, time));
}

const vlp_recipe *vlp_trainer_recipe(const vlp_trainer *t) {
    return &t->recipe;
}

/* Of every weight that products keep packed: in one direction at a time. */
static size_t packed_bytes(const vlp_trainer *t) {
    const vlp_params *params = t->model->params;
    size_t each = vlp_tape_precision(t->tape) == VLP_BF16 ? 2 : sizeof(vlp_real), sum = 0;
    for (int i = 0; i < params->count; i++)
        if (params->items[i]->tensor.packed)
            sum += each * (size_t)vlp_numel(&params->items[i]->tensor);
    return sum;
}

static size_t product_bytes(const vlp_params *params) {
    int64_t largest = 0;
    for (int i = 0; i < params->count; i++) {
        int64_t n = vlp_numel(&params->items[i]->tensor);
        if (params->items[i]->decay == VLP_DECAY && n > largest) largest = n;
    }
    return (size_t)vlp_product_scratch_most(largest, vlp_threads_get());
}

vlp_status vlp_trainer_plan(vlp_trainer *t, vlp_train_plan *plan) {
    const vlp_params *params = t->model->params;
    size_t block = (size_t)params->total * sizeof(vlp_real);
    int64_t rows = vlp_loader_rows(t->loader);
    int64_t a_step = t->recipe.batch * t->recipe.accumulate;
    size_t pixels = (size_t)(3 * t->recipe.image_size * t->recipe.image_size) * sizeof(float);
    *plan = (vlp_train_plan){
        .parameters = params->learnt,
        .pictures = rows,
        .vocab = vlp_tokenizer_size(t->tokenizer),
        .batch = a_step,
        .steps = t->total_steps,
        .steps_an_epoch = (rows + a_step - 1) / a_step,
        .flops_a_step = t->flops,
        .parameter_bytes =
            block * (size_t)(4 + (t->ema ? 1 : 0) + (t->start ? 2 : 0)) + packed_bytes(t) +
            (t->objectives.momentum ? vlp_momentum_bytes(t->objectives.momentum) : 0),
        .step_bytes = vlp_tape_bytes(t->tape),
        .loader_bytes = (size_t)vlp_trainer_slots(t) * (size_t)t->recipe.batch * pixels +
                        ((size_t)t->recipe.cache_mb << 20),
        .product_bytes = product_bytes(params),
        .program_bytes = t->program_bytes,
        .threads = vlp_threads_get(),
    };
    plan->total_bytes = plan->parameter_bytes + plan->step_bytes + plan->product_bytes +
                        plan->loader_bytes + plan->program_bytes;
    return VLP_OK;
}

static bool finished(const vlp_trainer *t) {
    return vlp_trainer_progress_share(t) >= 1;
}

static bool stopped(const vlp_trainer *t) {
    return t->options.stop && *t->options.stop;
}

static vlp_status evaluate(vlp_trainer *t, const char *split, int64_t most, vlp_retrieval *out) {
    const char *source = *t->recipe.eval_source ? t->recipe.eval_source : NULL;
    vlp_eval_watch watch = {.stop = t->options.stop};
    vlp_eval_set set = {.split = split, .source = source, .max_images = most, .watch = &watch};
    vlp_trainer_show(t);
    vlp_status status = vlp_evaluate_retrieval(t->embedder, t->index, &set, out);
    vlp_trainer_hide(t);
    return status;
}

/* The mean of the six recalls. */
static double score_of(const vlp_retrieval *r) {
    double sum = 0;
    for (int i = 0; i < VLP_RECALL_LEVELS; i++) sum += r->image_to_text[i] + r->text_to_image[i];
    return sum / (2 * VLP_RECALL_LEVELS);
}

static vlp_status evaluate_loss(vlp_trainer *t) {
    double loss;
    vlp_status status = vlp_trainer_held_out(t, &loss);
    if (status == VLP_ERR_NOT_FOUND || status == VLP_ERR_INTERRUPTED) return VLP_OK; /* as below */
    VLP_TRY(status);
    vlp_log(VLP_LOG_INFO, "step %lld, validation: loss %.4f", (long long)t->step, loss);
    VLP_TRY(vlp_trainer_consider(t, -loss));
    return vlp_metrics_eval_loss(t->metrics, t->step, loss);
}

static vlp_status evaluate_now(vlp_trainer *t) {
    vlp_retrieval result;
    if (vlp_trainer_only_writes(t)) return evaluate_loss(t);
    vlp_status status = evaluate(t, t->recipe.val_split, t->recipe.eval_rows, &result);
    if (status == VLP_ERR_NOT_FOUND) return VLP_OK;   /* said by vlp_trainer_run */
    if (status == VLP_ERR_INTERRUPTED) return VLP_OK; /* the loop ends, and saves */
    VLP_TRY(status);
    if (t->options.on_eval) t->options.on_eval(t->step, &result, t->options.user);
    VLP_TRY(vlp_trainer_consider(t, score_of(&result)));
    return vlp_metrics_eval(t->metrics, t->step, &result);
}

/* Whether this step ends a tenth of the run, or eval_every steps. */
static bool evaluation_due(const vlp_trainer *t, double share_before) {
    if (t->recipe.eval_every > 0) return t->step % t->recipe.eval_every == 0;
    double now = t->now.progress;
    return now < 1 && floor(now * EVALUATIONS) > floor(share_before * EVALUATIONS);
}

static bool checkpoint_due(const vlp_trainer *t) {
    int64_t steps = t->recipe.checkpoint_steps;
    double minutes = t->recipe.checkpoint_minutes;
    return (steps > 0 && t->step % steps == 0) ||
           (minutes > 0 && vlp_clock() >= t->last_checkpoint + 60 * minutes);
}

static void estimate(vlp_trainer *t) {
    double done = t->now.progress, seconds = vlp_trainer_seconds(t);
    t->now.total_steps = t->total_steps;
    t->now.seconds_left = done > 0 ? seconds * (1 - done) / done : 0;
}

static vlp_status loop(vlp_trainer *t) {
    while (!finished(t) && !stopped(t)) {
        double share = vlp_trainer_progress_share(t);
        VLP_TRY(vlp_trainer_step(t));
        estimate(t);
        VLP_TRY(vlp_metrics_step(t->metrics, &t->now));
        if (t->options.on_step) t->options.on_step(&t->now, t->options.user);
        bool last = t->keep_best && finished(t); /* before its checkpoint, which then knows of it */
        if (last || evaluation_due(t, share)) VLP_TRY(evaluate_now(t));
        if (checkpoint_due(t)) VLP_TRY(vlp_trainer_save(t));
    }
    return VLP_OK;
}

static vlp_json *recall_json(const double *values) {
    vlp_json *json = vlp_json_new_object();
    for (int i = 0; i < VLP_RECALL_LEVELS; i++) {
        char key[16];
        snprintf(key, sizeof key, "R@%d", vlp_recall_at[i]);
        vlp_json_set_double(json, key, values[i]);
    }
    return json;
}

static vlp_status save_summary(const vlp_trainer *t, const vlp_train_summary *s) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_int(json, "steps", s->steps);
    vlp_json_set_double(json, "seconds", s->seconds);
    vlp_json_set_double(json, "loss", s->loss);
    vlp_json_set_double(json, "pairs_per_s", s->pairs_per_s);
    vlp_json_set_double(json, "data_wait", s->data_wait);
    if (t->best_step >= 0) vlp_json_set_int(json, "best_step", t->best_step);
    vlp_json_set_int(json, "parameters", t->model->params->learnt);
    vlp_json_set_int(json, "threads", vlp_threads_get());
    if (s->has_test) {
        vlp_json *test = vlp_json_new_object();
        vlp_json_set_string(test, "split", t->recipe.test_split);
        vlp_json_set_int(test, "images", s->test.images);
        vlp_json_set_int(test, "captions", s->test.captions);
        vlp_json_set(test, "image_to_text", recall_json(s->test.image_to_text));
        vlp_json_set(test, "text_to_image", recall_json(s->test.text_to_image));
        vlp_json_set(json, "test", test);
    }
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, t->out, "summary.json");
    if (status == VLP_OK) status = vlp_json_save(json, path.data);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

/* The whole run counts, not this session: resuming a finished run changes nothing. */
static vlp_status finish(vlp_trainer *t, vlp_train_summary *s) {
    double seconds = vlp_trainer_seconds(t);
    int64_t pairs = t->step * t->recipe.batch * t->recipe.accumulate;
    *s = (vlp_train_summary){.steps = t->step,
                             .seconds = seconds,
                             .loss = t->now.loss,
                             .pairs_per_s = (double)pairs / seconds,
                             .data_wait = vlp_trainer_waited(t) / seconds};
    if (t->keep_best && t->evaluated < t->step && !stopped(t)) VLP_TRY(evaluate_now(t));
    VLP_TRY(vlp_trainer_save(t));
    if (stopped(t) && !finished(t))
        return VLP_FAIL(VLP_ERR_INTERRUPTED,
                        "stopped at step %lld, saved in %s; go on with --resume",
                        (long long)t->step, t->out);
    VLP_TRY(vlp_trainer_settle(t));
    if (vlp_trainer_only_writes(t)) return save_summary(t, s);
    vlp_status status = evaluate(t, t->recipe.test_split, 0, &s->test);
    s->has_test = status == VLP_OK;
    if (status == VLP_ERR_INTERRUPTED)
        return VLP_FAIL(VLP_ERR_INTERRUPTED,
                        "the model is trained and saved in %s; only its last evaluation was "
                        "interrupted; do it with: vlp eval %s --data %s --split %s",
                        t->out, t->out, t->data, t->recipe.test_split);
    if (status != VLP_OK && status != VLP_ERR_NOT_FOUND) return status;
    return save_summary(t, s);
}

/* Says once what will not be evaluated. */
static vlp_status look_for_split(const vlp_trainer *t, const char *split) {
    const char *source = *t->recipe.eval_source ? t->recipe.eval_source : NULL;
    vlp_rows rows;
    vlp_rows_kind kind = vlp_trainer_only_writes(t) ? vlp_trainer_rows(&t->recipe) : VLP_ROWS_PAIRS;
    vlp_status status = vlp_rows_open(&rows, t->index, kind, split, source);
    if (status == VLP_OK) vlp_rows_close(&rows);
    if (status != VLP_ERR_NOT_FOUND) return status;
    vlp_log(VLP_LOG_WARN, "%s; it is not evaluated", vlp_error());
    return VLP_OK;
}

vlp_status vlp_trainer_run(vlp_trainer *t, vlp_train_summary *summary) {
    VLP_TRY(vlp_trainer_prepare(t));
    VLP_TRY(look_for_split(t, t->recipe.val_split));
    if (!vlp_trainer_only_writes(t)) VLP_TRY(look_for_split(t, t->recipe.test_split));
    if (t->from_model && t->step == 0) VLP_TRY(evaluate_now(t)); /* what there is to improve on */
    t->started = t->last_checkpoint = vlp_clock();
    VLP_TRY(loop(t));
    return finish(t, summary);
}

void vlp_trainer_free(vlp_trainer *t) {
    if (!t) return;
    vlp_loader_free(t->loader);
    vlp_embedder_free(t->embedder);
    vlp_metrics_close(t->metrics);
    vlp_ema_free(t->ema);
    vlp_optimizer_free(t->optimizer);
    vlp_objectives_destroy(&t->objectives);
    vlp_model_free(t->model);
    vlp_tape_free(t->tape);
    vlp_contrast_free(t->contrast);
    vlp_free(t->batches);
    vlp_tokenizer_free(t->tokenizer);
    vlp_index_free(t->index);
    vlp_lock_close(t->lock);
    vlp_free(t->start);
    vlp_free(t->aside);
    vlp_free(t->has_grad);
    vlp_free(t->keys);
    vlp_free(t->ids);
    vlp_free(t->ids_mask);
    vlp_free(t->data);
    vlp_free(t->out);
    vlp_free(t);
}
