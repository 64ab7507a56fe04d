/* Checkpoints. RUN/state-N/ holds everything a run continues from: parameters, moments, average,
 * counters. RUN/state.json names the folder that counts and is written last, so a kill at any
 * moment leaves either the old state or the new one. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/log.h"
#include "core/threads.h"
#include "train/trainer_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const state_files[] = {"params.safetensors", "optimizer.safetensors",
                                          "ema.safetensors", "momentum.safetensors"};

static vlp_status in_folder(vlp_buf *path, const vlp_trainer *t, const char *folder,
                            const char *name) {
    vlp_buf_clear(path);
    return vlp_buf_printf(path, "%s/%s%s%s", t->out, folder, *name ? "/" : "", name);
}

static vlp_status write_state(vlp_trainer *t, const char *folder, vlp_buf *path) {
    VLP_TRY(in_folder(path, t, folder, ""));
    VLP_TRY(vlp_make_folder(path->data));
    VLP_TRY(in_folder(path, t, folder, state_files[0]));
    VLP_TRY(vlp_params_save(t->model->params, t->model->params->values, path->data));
    VLP_TRY(in_folder(path, t, folder, state_files[1]));
    VLP_TRY(vlp_optimizer_save(t->optimizer, path->data));
    if (t->ema) {
        VLP_TRY(in_folder(path, t, folder, state_files[2]));
        VLP_TRY(vlp_ema_save(t->ema, path->data));
    }
    if (!t->objectives.momentum) return VLP_OK;
    VLP_TRY(in_folder(path, t, folder, state_files[3]));
    return vlp_momentum_save(t->objectives.momentum, path->data);
}

static vlp_status write_pointer(const vlp_trainer *t, const char *folder, vlp_buf *path) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "folder", folder);
    vlp_json_set_int(json, "step", t->step);
    vlp_json_set_int(json, "cursor", t->cursor);
    vlp_json_set_int(json, "ema_updates", t->ema ? t->ema->updates : 0);
    vlp_json_set_bool(json, "from_model", t->from_model);
    vlp_json_set_int(json, "evaluated", t->evaluated);
    vlp_json_set_int(json, "best_step", t->best_step);
    vlp_json_set_double(json, "best_score", t->best_score);
    vlp_json_set_int(json, "threads", vlp_threads_get());
    vlp_json_set_int(json, "rows", vlp_loader_rows(t->loader));
    vlp_json_set_double(json, "loss", t->now.loss);
    vlp_json_set_double(json, "seconds", vlp_trainer_seconds(t));
    vlp_json_set_double(json, "waited", vlp_trainer_waited(t));
    vlp_status status = in_folder(path, t, "state.json", "");
    if (status == VLP_OK) status = vlp_json_save(json, path->data);
    vlp_json_free(json);
    return status;
}

/* A state folder with its files, also the unfinished ones of a run that was killed. */
static void remove_state(const vlp_trainer *t, const char *folder, vlp_buf *path) {
    for (size_t i = 0; i < VLP_COUNT(state_files); i++) {
        if (in_folder(path, t, folder, state_files[i]) != VLP_OK) return;
        unlink(path->data);
        if (vlp_buf_puts(path, ".tmp") == VLP_OK) unlink(path->data);
    }
    if (in_folder(path, t, folder, "") == VLP_OK) rmdir(path->data);
}

/* Removes the state folders that do not count any more. */
static void remove_others(const vlp_trainer *t, const char *keep, vlp_buf *path) {
    DIR *dir = opendir(t->out);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "state-", 6) == 0 && strcmp(entry->d_name, keep) != 0)
            remove_state(t, entry->d_name, path);
    closedir(dir);
}

vlp_status vlp_trainer_save_start(vlp_trainer *t) {
    char folder[] = "state-0";
    vlp_buf path = {0};
    vlp_status status = in_folder(&path, t, "state.json", "");
    if (status == VLP_OK) unlink(path.data); /* of a start that was cut off */
    bool given = t->options.init || t->options.init_image || t->options.init_text;
    if (status == VLP_OK && given) status = write_state(t, folder, &path);
    if (status == VLP_OK) status = vlp_trainer_save_guard(t, &path);
    if (status == VLP_OK && given) status = write_pointer(t, folder, &path);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_trainer_save(vlp_trainer *t) {
    char folder[64];
    vlp_buf path = {0};
    snprintf(folder, sizeof folder, "state-%lld", (long long)t->step);
    vlp_status status = vlp_metrics_sync(t->metrics);
    if (status == VLP_OK) status = write_state(t, folder, &path);
    if (status == VLP_OK) status = write_pointer(t, folder, &path);
    if (status == VLP_OK) status = vlp_trainer_write_model(t);
    if (status == VLP_OK) remove_others(t, folder, &path);
    if (status == VLP_OK) vlp_trainer_forget_best(t, &path);
    vlp_buf_free(&path);
    t->last_checkpoint = vlp_clock();
    return status;
}

static vlp_status save_json(const vlp_trainer *t, const char *name, vlp_json *json, vlp_buf *path) {
    vlp_status status = in_folder(path, t, name, "");
    if (status == VLP_OK) status = vlp_json_save(json, path->data);
    vlp_json_free(json);
    return status;
}

vlp_status vlp_trainer_save_folder(const vlp_trainer *t) {
    vlp_buf path = {0};
    vlp_status status = vlp_make_folder(t->out);
    if (status == VLP_OK) {
        vlp_json *config = vlp_model_config_write(&t->model->config);
        vlp_tokenizer_mark(t->tokenizer, config);
        status = save_json(t, "config.json", config, &path);
    }
    if (status == VLP_OK)
        status =
            save_json(t, "preprocessor_config.json", vlp_transform_to_json(&t->transform), &path);
    if (status == VLP_OK) status = vlp_tokenizer_save(t->tokenizer, t->out);
    if (status == VLP_OK)
        status = save_json(t, "recipe.json", vlp_recipe_to_json(&t->recipe), &path);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_trainer_read_recipe(vlp_recipe *out, const char *folder) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, folder, "recipe.json");
    if (status == VLP_OK) status = vlp_recipe_open(out, path.data, NULL);
    if (status == VLP_ERR_NOT_FOUND)
        status =
            VLP_FAIL(VLP_ERR_USAGE, "%s holds no run to resume: it has no recipe.json", folder);
    vlp_buf_free(&path);
    return status;
}

static vlp_status load_params(vlp_trainer *t, const char *path) {
    vlp_safetensors *file;
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_status status = vlp_params_load(t->model->params, file, (vlp_name_map){0}, NULL);
    vlp_safetensors_close(file);
    return status;
}

static vlp_status load_state(vlp_trainer *t, const char *folder, int64_t ema_updates,
                             vlp_buf *path) {
    VLP_TRY(in_folder(path, t, folder, state_files[0]));
    VLP_TRY(load_params(t, path->data));
    VLP_TRY(in_folder(path, t, folder, state_files[1]));
    VLP_TRY(vlp_optimizer_load(t->optimizer, path->data));
    if (t->ema) {
        VLP_TRY(in_folder(path, t, folder, state_files[2]));
        VLP_TRY(vlp_ema_load(t->ema, path->data, ema_updates));
    }
    if (!t->objectives.momentum) return VLP_OK;
    VLP_TRY(in_folder(path, t, folder, state_files[3]));
    return vlp_momentum_load(t->objectives.momentum, path->data);
}

static vlp_status read_counters(vlp_trainer *t, const vlp_json *json, const char *path) {
    static const vlp_json_typed keys[] = {
        {"step", VLP_JSON_INTEGER},      {"cursor", VLP_JSON_INTEGER},
        {"rows", VLP_JSON_INTEGER},      {"ema_updates", VLP_JSON_INTEGER},
        {"loss", VLP_JSON_NUMBER},       {"seconds", VLP_JSON_NUMBER},
        {"waited", VLP_JSON_NUMBER},     {"folder", VLP_JSON_STRING},
        {"threads", VLP_JSON_INTEGER},   {"best_step", VLP_JSON_INTEGER},
        {"best_score", VLP_JSON_NUMBER}, {"evaluated", VLP_JSON_INTEGER}};
    VLP_TRY(vlp_json_expect(json, keys, VLP_COUNT(keys), path));
    t->step = vlp_json_int(json, "step", -1);
    const int64_t most = (int64_t)1 << 53; /* whole numbers that JSON keeps */
    t->cursor = vlp_json_int(json, "cursor", -1);
    t->rows_before = vlp_json_int(json, "rows", 0);
    t->now.loss = vlp_json_double(json, "loss", 0);
    t->from_model = vlp_json_bool(json, "from_model", false);
    t->evaluated = vlp_json_int(json, "evaluated", -1);
    t->best_step = vlp_json_int(json, "best_step", -1);
    t->best_score = vlp_json_double(json, "best_score", 0);
    t->seconds_before = vlp_json_double(json, "seconds", 0);
    t->waited_before = vlp_json_double(json, "waited", 0);
    const char *folder = vlp_json_string(json, "folder", "");
    if (t->step < 0 || t->step > most || t->cursor < 0 || t->cursor > most ||
        strncmp(folder, "state-", 6) != 0 || strchr(folder, '/') ||
        vlp_json_int(json, "ema_updates", 0) < 0 || !(t->seconds_before >= 0))
        return VLP_FAIL(VLP_ERR_FORMAT,
                        "%s: not the state of a run: folder, step, cursor, ema_updates or seconds "
                        "is missing or impossible",
                        path);
    int64_t threads = vlp_json_int(json, "threads", 0);
    if (threads != vlp_threads_get())
        vlp_log(VLP_LOG_INFO,
                "the run had %lld threads, now %d: it goes on equal within rounding, not bit for "
                "bit",
                (long long)threads, vlp_threads_get());
    return VLP_OK;
}

vlp_status vlp_trainer_load(vlp_trainer *t) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = in_folder(&path, t, "state.json", "");
    if (status == VLP_OK && !vlp_path_exists(path.data)) { /* killed before its first checkpoint */
        vlp_buf_free(&path);
        return VLP_OK;
    }
    if (status == VLP_OK) status = vlp_json_load(&json, path.data);
    if (status == VLP_OK) status = read_counters(t, json, path.data);
    if (status == VLP_OK)
        status = load_state(t, vlp_json_string(json, "folder", ""),
                            vlp_json_int(json, "ema_updates", 0), &path);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}
