#include "apps/info.h"

#include "apps/files.h"
#include "apps/report.h"
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/suggest.h"
#include "fusion/model.h"
#include "text/tokenizer.h"
#include "train/recipe.h"

#include <stdio.h>
#include <string.h>

/* The part that a tensor's name belongs to: its first level, with "objective." its second too. */
static void part_of(const char *name, char *out, size_t size) {
    static const char heads[] = "objective.";
    size_t from = strncmp(name, heads, sizeof heads - 1) == 0 ? sizeof heads - 1 : 0;
    size_t n = from + strcspn(name + from, ".");
    snprintf(out, size, "%.*s", (int)n, name);
}

static void add_to(vlp_json *object, const char *key, int64_t n) {
    const vlp_json *old = vlp_json_key(object, key);
    vlp_json_set_int(object, key, (old ? vlp_json_as_int(old) : 0) + n);
}

static vlp_json *tensor_json(const vlp_safetensor *t) {
    vlp_json *json = vlp_json_new_object(), *shape = vlp_json_new_array();
    vlp_json_set_string(json, "name", t->name);
    vlp_json_set_string(json, "dtype", vlp_st_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim; i++) vlp_json_append(shape, vlp_json_new_int(t->shape[i]));
    vlp_json_set(json, "shape", shape);
    return json;
}

static vlp_json *weights_json(const vlp_safetensors *file, bool tensors) {
    vlp_json *json = vlp_json_new_object(), *parts = vlp_json_new_object();
    vlp_json *dtypes = vlp_json_new_object(), *list = vlp_json_new_array();
    int64_t elements = 0, bytes = 0;
    for (size_t i = 0; i < vlp_safetensors_count(file); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        char part[128];
        part_of(t->name, part, sizeof part);
        add_to(parts, part, t->numel);
        add_to(dtypes, vlp_st_dtype_name(t->dtype), 1);
        elements += t->numel;
        bytes += (int64_t)t->bytes;
        if (tensors) vlp_json_append(list, tensor_json(t));
    }
    const char *kind = vlp_model_kind(file);
    if (kind) vlp_json_set_string(json, "kind", kind);
    vlp_json_set_int(json, "tensor_count", (int64_t)vlp_safetensors_count(file));
    vlp_json_set_int(json, "parameters", elements);
    vlp_json_set_int(json, "bytes", bytes);
    vlp_json_set(json, "dtypes", dtypes);
    vlp_json_set(json, "parts", parts);
    if (tensors)
        vlp_json_set(json, "tensors", list);
    else
        vlp_json_free(list);
    return json;
}

static vlp_status add_weights(vlp_json *info, const char *path, bool tensors) {
    vlp_safetensors *file;
    VLP_TRY(vlp_checkpoint_open(&file, path));
    vlp_json_set(info, "weights", weights_json(file, tensors));
    vlp_safetensors_close(file);
    return VLP_OK;
}

static vlp_status add_json(vlp_json *info, const char *key, const char *path) {
    vlp_json *json;
    VLP_TRY(vlp_json_load(&json, path));
    vlp_json_set(info, key, json);
    return VLP_OK;
}

static vlp_status add_tokenizer(vlp_json *info, const char *path) {
    vlp_tokenizer *tokenizer;
    VLP_TRY(vlp_tokenizer_open(&tokenizer, path));
    vlp_json *json = vlp_json_new_object(), *special = vlp_json_new_object();
    vlp_special_ids ids = vlp_tokenizer_special(tokenizer);
    const struct {
        const char *name;
        int32_t id;
    } rows[] = {{"pad", ids.pad},   {"unk", ids.unk}, {"cls", ids.cls}, {"sep", ids.sep},
                {"mask", ids.mask}, {"bos", ids.bos}, {"eos", ids.eos}};
    for (size_t i = 0; i < VLP_COUNT(rows); i++)
        if (rows[i].id >= 0) vlp_json_set_int(special, rows[i].name, rows[i].id);
    vlp_json_set_string(json, "kind", vlp_tokenizer_kind_name(tokenizer));
    vlp_json_set_int(json, "tokens", vlp_tokenizer_size(tokenizer));
    vlp_json_set(json, "special", special);
    vlp_json_set(info, "tokenizer", json);
    vlp_tokenizer_free(tokenizer);
    return VLP_OK;
}

/* The last line of metrics.jsonl that has a loss. */
static vlp_status add_last_step(vlp_json *training, const char *path) {
    vlp_buf text = {0};
    vlp_status status = vlp_file_read(path, 0, &text);
    for (size_t end = text.len; status == VLP_OK && end > 0;) {
        while (end > 0 && text.data[end - 1] == '\n') end--;
        size_t start = end;
        while (start > 0 && text.data[start - 1] != '\n') start--;
        vlp_json *line = NULL;
        if (end > start && vlp_json_parse(&line, text.data + start, end - start, path) == VLP_OK &&
            vlp_json_key(line, "loss")) {
            vlp_json_set(training, "last", line);
            break;
        }
        vlp_json_free(line); /* an evaluation, or a line cut short by a kill */
        end = start;
    }
    vlp_buf_free(&text);
    return status;
}

static vlp_status add_recipe(vlp_json *info, const char *path) {
    vlp_recipe recipe;
    VLP_TRY(vlp_recipe_open(&recipe, path, NULL));
    vlp_json *json = vlp_recipe_to_json(&recipe);
    vlp_json_set(info, "recipe", vlp_json_copy(vlp_json_key(json, "set")));
    vlp_json_free(json);
    return VLP_OK;
}

/* What a folder may hold, each read when its file is there. */
static vlp_status add_model_weights(vlp_json *info, const char *path) {
    return add_weights(info, path, false);
}
static vlp_status add_all_weights(vlp_json *info, const char *path) {
    return add_weights(info, path, true);
}
static vlp_status add_model(vlp_json *info, const char *path) {
    return add_json(info, "model", path);
}
static vlp_status add_preprocessing(vlp_json *info, const char *path) {
    return add_json(info, "preprocessing", path);
}
static vlp_status add_checkpoint(vlp_json *info, const char *path) {
    return add_json(info, "checkpoint", path);
}
static vlp_status add_summary(vlp_json *info, const char *path) {
    return add_json(info, "summary", path);
}

typedef struct {
    const char *file;
    vlp_status (*add)(vlp_json *info, const char *path);
} part;

static const part parts[] = {
    {"config.json", add_model},
    {"open_clip_config.json", add_model},
    {"preprocessor_config.json", add_preprocessing},
    {"recipe.json", add_recipe},
    {"state.json", add_checkpoint},
    {"metrics.jsonl", add_last_step},
    {"summary.json", add_summary},
};

/* Returns whether the file was there. */
static bool add_part(vlp_json *info, vlp_json *problems, const char *folder, part p) {
    vlp_buf path = {0};
    bool there = vlp_path_join(&path, folder, p.file) == VLP_OK && vlp_path_exists(path.data);
    if (there && p.add(info, path.data) != VLP_OK)
        vlp_json_append(problems, vlp_json_new_string(vlp_error()));
    vlp_buf_free(&path);
    return there;
}

static vlp_status collect_folder(vlp_json *info, const char *folder, bool tensors) {
    vlp_json *problems = vlp_json_new_array();
    vlp_json_set(info, "problems", problems);
    vlp_buf path = {0};
    bool weights = vlp_checkpoint_path(folder, &path) == VLP_OK &&
                   add_part(info, problems, "",
                            (part){path.data, tensors ? add_all_weights : add_model_weights});
    vlp_buf_free(&path);
    int found = weights;
    for (size_t i = 0; i < VLP_COUNT(parts); i++)
        found += add_part(info, problems, folder, parts[i]);
    if (vlp_tokenizer_in_folder(folder)) {
        found++;
        if (add_tokenizer(info, folder) != VLP_OK)
            vlp_json_append(problems, vlp_json_new_string(vlp_error()));
    }
    if (!found)
        return VLP_FAIL(VLP_ERR_NOT_FOUND,
                        "%s holds neither a model (config.json, model.safetensors), a run "
                        "(recipe.json) nor a tokenizer (vocab.txt and others)",
                        folder);
    bool run = vlp_json_key(info, "recipe") || vlp_json_key(info, "last");
    vlp_json_set_string(info, "kind",
                        run                                      ? "run"
                        : weights || vlp_json_key(info, "model") ? "model"
                                                                 : "tokenizer");
    return VLP_OK;
}

static vlp_status collect_index(vlp_json *info, const char *path) {
    vlp_json *stats;
    VLP_TRY(cli_index_stats(path, &stats));
    vlp_json_set_string(info, "kind", "index");
    vlp_json_set(info, "stats", stats);
    return VLP_OK;
}

static vlp_status collect_weights(vlp_json *info, const char *path, bool tensors) {
    vlp_json_set_string(info, "kind", "weights");
    return add_weights(info, path, tensors);
}

static vlp_status collect_json(vlp_json *info, const char *path, bool tensors) {
    vlp_json *json;
    VLP_TRY(vlp_json_load(&json, path));
    if (vlp_json_key(json, "weight_map")) {
        vlp_json_free(json);
        return collect_weights(info, path, tensors);
    }
    bool config = vlp_json_key(json, "model_type") || vlp_json_key(json, "architectures");
    if (config)
        vlp_json_set(info, "model", json);
    else
        vlp_json_free(json);
    vlp_json_set_string(info, "kind", config ? "model" : "recipe");
    return config ? VLP_OK : add_recipe(info, path);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static vlp_status collect_file(vlp_json *info, const char *path, bool tensors) {
    if (cli_is_index(path)) return collect_index(info, path);
    if (ends_with(path, ".json")) return collect_json(info, path, tensors);
    if (ends_with(path, ".txt")) {
        vlp_json_set_string(info, "kind", "tokenizer");
        return add_tokenizer(info, path);
    }
    return collect_weights(info, path, tensors);
}

static vlp_status collect_name(vlp_json *info, const char *name) {
    for (int i = 0; i < vlp_recipe_count(); i++) {
        if (strcmp(vlp_recipe_name(i), name) != 0) continue;
        vlp_json_set_string(info, "kind", "recipe");
        vlp_json_set_string(info, "about", vlp_recipe_about(i));
        return add_recipe(info, name);
    }
    enum { SUGGESTED = 64 };
    const char *known[SUGGESTED];
    size_t n = 0;
    for (int i = 0; i < vlp_recipe_count() && n < SUGGESTED; i++) known[n++] = vlp_recipe_name(i);
    char hint[128];
    return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no such file, folder or built-in recipe%s", name,
                    vlp_suggest_text(name, known, n, hint, sizeof hint));
}

vlp_status cli_info_collect(const char *path, bool tensors, vlp_json **out) {
    vlp_json *info = vlp_json_new_object();
    vlp_json_set_string(info, "path", path);
    vlp_status status = vlp_is_folder(path)     ? collect_folder(info, path, tensors)
                        : vlp_path_exists(path) ? collect_file(info, path, tensors)
                                                : collect_name(info, path);
    if (status != VLP_OK) vlp_json_free(info);
    *out = status == VLP_OK ? info : NULL;
    return status;
}
