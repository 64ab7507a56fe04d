/* The guard of further training: which weights people get. They are the average where there is one,
 * mixed with those that the run started from (WiSE-FT, Wortsman et al., 2022), and of these the
 * ones that were best on the validation split. */
#include "core/file.h"
#include "core/log.h"
#include "core/threads.h"
#include "train/trainer_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GRAIN = 16384 };
enum { AUTO, ON }; /* keep_best */

static const char start_file[] = "start.safetensors", best_prefix[] = "best-";

typedef struct {
    vlp_real *values, *aside;
    const vlp_real *start;
    vlp_real share;
} mixing;

static void mix_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const mixing *m = ctx;
    for (int64_t i = begin; i < end; i++) {
        m->aside[i] = m->values[i];
        m->values[i] += m->share * (m->start[i] - m->values[i]);
    }
}

void vlp_trainer_show(vlp_trainer *t) {
    vlp_params *params = t->model->params;
    if (t->settled) return;
    if (t->ema) vlp_ema_swap(t->ema);
    if (!t->start) return;
    mixing m = {params->values, t->aside, t->start, (vlp_real)t->recipe.start_share};
    vlp_parallel_for(params->total, GRAIN, mix_body, &m);
    vlp_params_changed(params);
}

void vlp_trainer_hide(vlp_trainer *t) {
    vlp_params *params = t->model->params;
    if (t->settled) return;
    if (t->start) {
        memcpy(params->values, t->aside, (size_t)params->total * sizeof *params->values);
        vlp_params_changed(params);
    }
    if (t->ema) vlp_ema_swap(t->ema);
}

static vlp_status load_values(vlp_trainer *t, const char *path) {
    vlp_safetensors *file;
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_status status = vlp_params_load(t->model->params, file, (vlp_name_map){0}, NULL);
    vlp_safetensors_close(file);
    return status;
}

/* A resumed run has trained on; its start is in a file. */
static vlp_status read_start(vlp_trainer *t) {
    vlp_params *params = t->model->params;
    size_t bytes = (size_t)params->total * sizeof *params->values;
    vlp_buf path = {0};
    memcpy(t->aside, params->values, bytes);
    vlp_status status = vlp_path_join(&path, t->out, start_file);
    if (status == VLP_OK) status = load_values(t, path.data);
    memcpy(t->start, params->values, bytes);
    memcpy(params->values, t->aside, bytes);
    vlp_params_changed(params);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_trainer_guard(vlp_trainer *t) {
    vlp_params *params = t->model->params;
    t->keep_best = t->recipe.keep_best == ON || (t->recipe.keep_best == AUTO && t->from_model);
    if (!(t->recipe.start_share > 0)) return VLP_OK;
    if (!t->from_model)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "start_share mixes with the weights that a run starts from; give --init, "
                        "or set it to 0");
    t->start = vlp_alloc_zero((size_t)params->total, sizeof *t->start);
    t->aside = vlp_alloc_zero((size_t)params->total, sizeof *t->aside);
    if (!t->start || !t->aside) return VLP_ERR_MEMORY;
    if (t->options.resume) return read_start(t);
    memcpy(t->start, params->values, (size_t)params->total * sizeof *t->start);
    return VLP_OK;
}

vlp_status vlp_trainer_save_guard(const vlp_trainer *t, vlp_buf *path) {
    if (!t->start) return VLP_OK;
    VLP_TRY(vlp_path_join(path, t->out, start_file));
    return vlp_params_save(t->model->params, t->start, path->data);
}

static vlp_status best_path(const vlp_trainer *t, vlp_buf *path) {
    vlp_buf_clear(path);
    return vlp_buf_printf(path, "%s/%s%lld.safetensors", t->out, best_prefix,
                          (long long)t->best_step);
}

vlp_status vlp_trainer_consider(vlp_trainer *t, double score) {
    t->evaluated = t->step;
    if (!t->keep_best || (t->best_step >= 0 && score <= t->best_score)) return VLP_OK;
    vlp_buf path = {0};
    t->best_step = t->step;
    t->best_score = score;
    vlp_status status = best_path(t, &path);
    vlp_trainer_show(t);
    if (status == VLP_OK)
        status = vlp_params_save(t->model->params, t->model->params->values, path.data);
    vlp_trainer_hide(t);
    vlp_buf_free(&path);
    return status;
}

static vlp_status copy_file(const char *from, const char *to) {
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, from));
    vlp_status status = vlp_file_write(to, map.data, map.len);
    vlp_map_close(&map);
    return status;
}

vlp_status vlp_trainer_write_model(vlp_trainer *t) {
    vlp_buf path = {0}, best = {0};
    vlp_status status = vlp_path_join(&path, t->out, "model.safetensors");
    if (t->best_step >= 0) {
        if (status == VLP_OK) status = best_path(t, &best);
        if (status == VLP_OK) status = copy_file(best.data, path.data);
    } else if (status == VLP_OK) {
        vlp_trainer_show(t);
        status = vlp_params_save(t->model->params, t->model->params->values, path.data);
        vlp_trainer_hide(t);
    }
    vlp_buf_free(&path);
    vlp_buf_free(&best);
    return status;
}

void vlp_trainer_forget_best(const vlp_trainer *t, vlp_buf *path) {
    char keep[64];
    snprintf(keep, sizeof keep, "%s%lld.safetensors", best_prefix, (long long)t->best_step);
    DIR *dir = opendir(t->out);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, best_prefix, strlen(best_prefix)) == 0 &&
            strcmp(entry->d_name, keep) != 0 &&
            vlp_path_join(path, t->out, entry->d_name) == VLP_OK)
            unlink(path->data);
    closedir(dir);
}

vlp_status vlp_trainer_settle(vlp_trainer *t) {
    if (t->best_step < 0) return VLP_OK;
    vlp_buf path = {0};
    vlp_status status = best_path(t, &path);
    if (status == VLP_OK) status = load_values(t, path.data);
    vlp_buf_free(&path);
    t->settled = status == VLP_OK;
    bool recall = !vlp_trainer_only_writes(t);
    if (status == VLP_OK && t->best_step < t->step)
        vlp_log(VLP_LOG_INFO, "the model of step %lld is kept: it is the best on %s (%s %.4f)",
                (long long)t->best_step, t->recipe.val_split, recall ? "mean recall" : "loss",
                recall ? t->best_score : -t->best_score);
    return status;
}
