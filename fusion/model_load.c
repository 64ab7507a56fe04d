/* Opening model folders. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "fusion/albef.h"
#include "fusion/blip.h"
#include "fusion/clip.h"
#include "fusion/dual.h"
#include "fusion/model.h"
#include "text/bert_names.h"
#include "vision/vit_names.h"

#include <string.h>

static const char training_heads[] = "objective.";

static bool is_any_config(const vlp_json *json) {
    (void)json;
    return true;
}

static bool is_any_file(const vlp_safetensors *file) {
    (void)file;
    return true;
}

static unsigned all_parts(const vlp_safetensors *file) {
    (void)file;
    return VLP_MODEL_ALL;
}

static bool no_file(const vlp_safetensors *file) {
    (void)file;
    return false;
}

/* A model of ours in another layout: config.json has our own beside the other's. */
static bool holds_own(const vlp_json *json) {
    return vlp_json_is_object(vlp_json_key(json, "vlp"));
}

static vlp_status read_own(vlp_model_config *out, const vlp_json *json, const char *where) {
    return vlp_model_config_read(out, vlp_json_key(json, "vlp"), where);
}

static bool is_dual_config(const vlp_json *json) {
    return strcmp(vlp_json_string(json, "model_type", ""), vlp_dual_type) == 0;
}

static vlp_status refuse_dual(vlp_model_config *out, const vlp_json *json, const char *where) {
    (void)out;
    (void)json;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: a VisionTextDualEncoderModel opens only if vlp wrote it; others are read "
                    "through poolers that vlp's models do not have",
                    where);
}

/* Our own names: no table. */
static void own_names(vlp_name_map *map, const vlp_model_config *config,
                      const vlp_safetensors *file, bool momentum) {
    (void)map;
    (void)config;
    (void)file;
    (void)momentum;
}

/* Who wrote a model folder; the first row that fits, ours last. */
static const struct {
    const char *kind;
    bool (*is_config)(const vlp_json *json);
    vlp_status (*read)(vlp_model_config *out, const vlp_json *json, const char *where);
    void (*complete)(vlp_model_config *config, const vlp_safetensors *file); /* or NULL */
    bool (*is_file)(const vlp_safetensors *file);
    unsigned (*parts)(const vlp_safetensors *file);
    void (*names)(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                  bool momentum);
} formats[] = {
    {NULL, holds_own, read_own, NULL, no_file, NULL, NULL},
    {"VisionTextDualEncoder", is_dual_config, refuse_dual, NULL, vlp_dual_is_file, all_parts,
     vlp_dual_names},
    {"ALBEF", vlp_albef_is_config, vlp_albef_config_read, vlp_albef_complete, vlp_albef_is_file,
     vlp_albef_parts, vlp_albef_names},
    {"BLIP", vlp_blip_is_config, vlp_blip_config_read, vlp_blip_complete, vlp_blip_is_file,
     vlp_blip_parts, vlp_blip_names},
    {"CLIP", vlp_clip_is_config, vlp_clip_config_read, vlp_clip_complete, vlp_clip_is_file,
     vlp_clip_parts, vlp_clip_names},
    {NULL, is_any_config, vlp_model_config_read, NULL, is_any_file, all_parts, own_names},
};

static size_t format_of_file(const vlp_safetensors *file) {
    size_t i = 0;
    while (!formats[i].is_file(file)) i++;
    return i;
}

const char *vlp_model_kind(const vlp_safetensors *file) {
    static const char *const layouts[] = {
        [VLP_CLIP_HF] = "CLIP, Hugging Face's names",
        [VLP_CLIP_OPENAI] = "CLIP, OpenAI's and open_clip's names",
        [VLP_CLIP_CUSTOM] = "CLIP, open_clip's custom text names"};
    vlp_name_map map = {0};
    const char *kind = formats[format_of_file(file)].kind;
    if (kind) return vlp_clip_is_file(file) ? layouts[vlp_clip_layout_of(file)] : kind;
    if (vlp_safetensors_find(file, "vision.patch_embed.weight")) return "vlp";
    if (vlp_vit_names(&map, file, "") == VLP_OK) return "ViT";
    map = (vlp_name_map){0};
    return vlp_bert_names(&map, file, "") == VLP_OK ? "BERT" : NULL;
}

vlp_status vlp_model_config_any(vlp_model_config *out, const vlp_json *json, const char *where) {
    size_t i = 0;
    while (!formats[i].is_config(json)) i++;
    return formats[i].read(out, json, where);
}

void vlp_model_config_complete(vlp_model_config *config, const vlp_safetensors *file) {
    size_t i = format_of_file(file);
    if (formats[i].complete) formats[i].complete(config, file);
}

unsigned vlp_model_parts(const vlp_safetensors *file) {
    return formats[format_of_file(file)].parts(file);
}

void vlp_model_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                     bool momentum) {
    formats[format_of_file(file)].names(map, config, file, momentum);
}

static vlp_status load_file(vlp_model *model, const vlp_safetensors *file) {
    vlp_name_map map = {0};
    vlp_model_names(&map, &model->config, file, false);
    return vlp_params_load(model->params, file, map, training_heads);
}

vlp_status vlp_model_load_weights(vlp_model *model, const char *path) {
    vlp_safetensors *file;
    VLP_TRY(vlp_checkpoint_open(&file, path));
    vlp_status status = load_file(model, file);
    vlp_safetensors_close(file);
    return status;
}

static vlp_status read_config(vlp_model_config *config, const char *folder) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    if (!vlp_is_folder(folder))
        return VLP_FAIL(VLP_ERR_NOT_FOUND,
                        "%s: %s; give the folder of a run or of a model, with its config.json",
                        folder, vlp_path_exists(folder) ? "a file" : "no such model folder");
    vlp_status status = vlp_path_join(&path, folder, "config.json");
    if (status == VLP_OK && !vlp_path_exists(path.data)) {
        vlp_buf other = {0};
        status = vlp_path_join(&other, folder, "open_clip_config.json");
        if (status == VLP_OK && vlp_path_exists(other.data))
            status = vlp_path_join(&path, folder, "open_clip_config.json");
        vlp_buf_free(&other);
    }
    if (status == VLP_OK) status = vlp_json_load(&json, path.data);
    if (status == VLP_OK) status = vlp_model_config_any(config, json, path.data);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_model_folder_config(vlp_model_config *out, const char *folder) {
    vlp_safetensors *file;
    VLP_TRY(read_config(out, folder));
    VLP_TRY(vlp_checkpoint_open(&file, folder));
    vlp_model_config_complete(out, file);
    vlp_safetensors_close(file);
    return VLP_OK;
}

vlp_status vlp_model_open(vlp_model **out, const char *folder) {
    vlp_model_config config;
    vlp_buf path = {0};
    vlp_safetensors *file = NULL;
    vlp_status status;
    *out = NULL;
    VLP_TRY(read_config(&config, folder));
    VLP_TRY_DONE(vlp_checkpoint_path(folder, &path));
    VLP_TRY_DONE(vlp_checkpoint_open(&file, path.data));
    vlp_model_config_complete(&config, file);
    VLP_TRY_DONE(vlp_model_new_parts(out, &config, vlp_model_parts(file)));
    VLP_TRY_DONE(vlp_params_allocate((*out)->params, false));
    VLP_TRY_DONE(load_file(*out, file));
done:
    vlp_safetensors_close(file);
    vlp_buf_free(&path);
    if (status == VLP_OK) return VLP_OK;
    vlp_model_free(*out);
    *out = NULL;
    return status;
}
