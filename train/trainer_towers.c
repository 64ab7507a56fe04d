/* Encoders that a run starts from, each by itself: a ViT, and a BERT whose last layers begin the
 * fusion stack where there is one, as ALBEF does it. What they lack begins at random. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/memory.h"
#include "text/bert_config.h"
#include "text/bert_names.h"
#include "train/trainer_internal.h"
#include "vision/vit_config.h"
#include "vision/vit_names.h"

#include <string.h>

static vlp_status read_config(const char *folder, vlp_json **json, vlp_buf *path) {
    VLP_TRY(vlp_path_join(path, folder, "config.json"));
    return vlp_json_load(json, path->data);
}

static vlp_status unlike(const char *where, const char *what) {
    return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s cannot start a run: it is no %s as recipes have it",
                    where, what);
}

static vlp_status take_image(vlp_recipe *r, const char *folder) {
    vlp_vit_config c;
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = read_config(folder, &json, &path);
    if (status == VLP_OK) status = vlp_vit_config_read(&c, json, path.data);
    if (status == VLP_OK && (c.act != VLP_ACT_GELU || !c.output_norm || c.distillation_token ||
                             c.no_qkv_bias || c.channels != 3 || c.image_height != c.image_width))
        status = unlike(folder, "ViT");
    if (status == VLP_OK) vlp_recipe_take_vision(r, &c);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static vlp_status take_text(vlp_recipe *r, const char *folder) {
    vlp_bert_config c;
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = read_config(folder, &json, &path);
    if (status == VLP_OK) status = vlp_bert_config_read(&c, json, path.data);
    if (status == VLP_OK && c.act != VLP_ACT_GELU) status = unlike(folder, "BERT");
    if (status == VLP_OK && c.depth <= r->fusion_depth)
        status =
            VLP_FAIL(VLP_ERR_USAGE,
                     "%s has %lld layers, of which fusion_depth=%lld are wanted for the fusion "
                     "stack; lower it",
                     folder, (long long)c.depth, (long long)r->fusion_depth);
    if (status == VLP_OK) {
        c.depth -= r->fusion_depth;
        vlp_recipe_take_bert(r, &c);
    }
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_trainer_take_towers(vlp_trainer *t) {
    const vlp_train_options *o = &t->options;
    if (o->resume || (!o->init_image && !o->init_text)) return VLP_OK;
    if (o->init)
        return VLP_FAIL(VLP_ERR_USAGE, "--init gives both towers; leave --init-image and "
                                       "--init-text away");
    if (t->recipe.towers > 0)
        return VLP_FAIL(VLP_ERR_USAGE, "a ViT or a BERT to start from needs towers=vlp");
    if (o->init_image) VLP_TRY(take_image(&t->recipe, o->init_image));
    return o->init_text ? take_text(&t->recipe, o->init_text) : VLP_OK;
}

/* Parameters below `prefix`, but for those that begin with one of `but`, must be in the file. */
static vlp_status all_there(const vlp_params *params, const vlp_safetensors *file,
                            const vlp_name_map *map, const char *prefix, const char *const *but) {
    char ours[VLP_NAME_BYTES];
    for (int i = 0; i < params->count; i++) {
        const char *name = params->items[i]->name;
        bool wanted = strncmp(name, prefix, strlen(prefix)) == 0, found = false;
        for (int k = 0; but[k]; k++) wanted &= strncmp(name, but[k], strlen(but[k])) != 0;
        for (size_t n = 0; wanted && !found && n < vlp_safetensors_count(file); n++) {
            const vlp_name_row *row = vlp_name_find(map, vlp_safetensors_at(file, n)->name, ours);
            found = row && row->ours && strcmp(ours, name) == 0;
        }
        if (wanted && !found)
            return VLP_FAIL(VLP_ERR_FORMAT, "%s: nothing for \"%s\" is there",
                            vlp_safetensors_at(file, 0)->file, name);
    }
    return VLP_OK;
}

/* The file's tensors that a map names and the model has. */
static vlp_status load_part(vlp_params *params, const vlp_safetensors *file,
                            const vlp_name_map *map, const char *prefix, const char *const *but) {
    VLP_TRY(all_there(params, file, map, prefix, but));
    return vlp_params_load(params, file, *map, ""); /* all else may be missing or left over */
}

static vlp_status load_image(vlp_trainer *t) {
    static const char *const but[] = {"vision.mask_token", "vision.pool.", NULL};
    vlp_name_map map = {0};
    vlp_safetensors *file;
    VLP_TRY(vlp_checkpoint_open(&file, t->options.init_image));
    vlp_status status = vlp_vit_names(&map, file, "vision.");
    if (status == VLP_OK) status = load_part(t->model->params, file, &map, "vision.", but);
    vlp_safetensors_close(file);
    return status;
}

static vlp_status load_text(vlp_trainer *t) {
    static const char *const but[] = {NULL};
    static const char *const crossing[] = {"text.blocks.", NULL}; /* BLIP's look at the picture */
    vlp_name_map map = {0};
    vlp_safetensors *file;
    VLP_TRY(vlp_checkpoint_open(&file, t->options.init_text));
    vlp_status status =
        vlp_bert_names_split(&map, file, "text.", "fusion.", t->model->config.text.depth);
    if (status == VLP_OK)
        status = load_part(t->model->params, file, &map, "text.",
                           t->recipe.fusion_in_text ? crossing : but);
    vlp_safetensors_close(file);
    return status;
}

vlp_status vlp_trainer_load_towers(vlp_trainer *t) {
    if (t->options.init_image) VLP_TRY(load_image(t));
    if (t->options.init_text) VLP_TRY(load_text(t));
    if (t->options.init_image || t->options.init_text)
        vlp_objectives_start(&t->objectives, (uint64_t)t->recipe.seed);
    return VLP_OK;
}
