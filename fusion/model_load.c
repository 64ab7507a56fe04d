/* Opening model folders. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "fusion/model.h"

static const char training_heads[] = "objective.";

vlp_status vlp_model_load_weights(vlp_model *model, const char *path) {
    vlp_safetensors *file;
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_status status = vlp_params_load(model->params, file, (vlp_name_map){0}, training_heads);
    vlp_safetensors_close(file);
    return status;
}

static vlp_status read_config(vlp_model_config *config, const char *folder) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = vlp_path_join(&path, folder, "config.json");
    if (status == VLP_OK) status = vlp_json_load(&json, path.data);
    if (status == VLP_OK) status = vlp_model_config_read(config, json, path.data);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static vlp_status fill(vlp_model *model, const char *folder) {
    VLP_TRY(vlp_params_allocate(model->params, false));
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, folder, "model.safetensors");
    if (status == VLP_OK) status = vlp_model_load_weights(model, path.data);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_model_open(vlp_model **out, const char *folder) {
    *out = NULL;
    vlp_model_config config;
    VLP_TRY(read_config(&config, folder));
    vlp_model *model;
    VLP_TRY(vlp_model_new(&model, &config));
    vlp_status status = fill(model, folder);
    if (status != VLP_OK) {
        vlp_model_free(model);
        return status;
    }
    *out = model;
    return VLP_OK;
}
