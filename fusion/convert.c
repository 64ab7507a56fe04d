#include "fusion/convert.h"

#include "core/checkpoint_rename.h"
#include "core/file.h"
#include "fusion/clip.h"

#include <string.h>

const char *const vlp_convert_formats[] = {"hf", "openclip", "openai", NULL};

/* How a format's folder is laid out. */
static const struct {
    vlp_clip_layout layout;
    bool openai;
    const char *weights, *config;
} formats[] = {
    {VLP_CLIP_HF, false, "model.safetensors", "config.json"},
    {VLP_CLIP_OPENAI, false, "open_clip_model.safetensors", "open_clip_config.json"},
    {VLP_CLIP_OPENAI, true, "model.safetensors", "config.json"},
};

/* What goes along unchanged. */
static const char *const companions[] = {
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.json",
    "encoder.json",
    "vocab.bpe",
    "added_tokens.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "bpe_simple_vocab_16e6.txt.gz",
    "bpe_simple_vocab_16e6.txt",
    "preprocessor_config.json",
};

typedef struct {
    const char *from, *to;
    size_t format;
    vlp_buf folder; /* of the source's other files */
    vlp_safetensors *file;
    vlp_model_config config;
    vlp_model *model; /* declared only */
} conversion;

static vlp_status find_folder(conversion *c) {
    const char *slash = strrchr(c->from, '/');
    if (vlp_is_folder(c->from)) return vlp_buf_puts(&c->folder, c->from);
    return slash ? vlp_buf_append(&c->folder, c->from, (size_t)(slash - c->from) + 1)
                 : vlp_buf_puts(&c->folder, ".");
}

static vlp_status read_config(conversion *c, const char *given) {
    static const char *const names[] = {"config.json", "open_clip_config.json"};
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status = VLP_OK;
    if (given) {
        VLP_TRY_DONE(vlp_buf_puts(&path, given));
    } else {
        for (size_t i = 0; i < VLP_COUNT(names); i++) {
            VLP_TRY_DONE(vlp_path_join(&path, c->folder.data, names[i]));
            if (vlp_path_exists(path.data)) break;
        }
        if (!vlp_path_exists(path.data)) {
            status = vlp_clip_config_from_file(&c->config, c->file);
            if (status == VLP_ERR_NOT_FOUND)
                status = VLP_FAIL(status, "%s: no config.json beside it; give one with --config",
                                  c->from);
            goto done;
        }
    }
    VLP_TRY_DONE(vlp_json_load(&json, path.data));
    status = vlp_model_config_any(&c->config, json, path.data);
done:
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static vlp_status open_source(conversion *c, const char *config) {
    VLP_TRY(find_folder(c));
    VLP_TRY(vlp_checkpoint_open(&c->file, c->from));
    VLP_TRY(read_config(c, config));
    vlp_model_config_complete(&c->config, c->file);
    return vlp_model_new_parts(&c->model, &c->config, vlp_model_parts(c->file));
}

/* open_clip puts the text tower behind "text." when it is more than CLIP's. */
static vlp_clip_layout layout_of(const conversion *c) {
    const vlp_clip_text_config *t = &c->config.clip_text;
    bool custom = t->two_way || t->class_token || t->pool != VLP_TEXT_END ||
                  c->config.text_projection_bias || c->config.logit_bias;
    vlp_clip_layout layout = formats[c->format].layout;
    return layout == VLP_CLIP_OPENAI && custom ? VLP_CLIP_CUSTOM : layout;
}

static vlp_status write_config(const conversion *c) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    vlp_status status =
        vlp_clip_config_write(&json, &c->config, layout_of(c), formats[c->format].openai);
    if (status != VLP_OK) return vlp_fail_in(status, "%s", c->from);
    status = vlp_make_folder(c->to);
    if (status == VLP_OK) status = vlp_path_join(&path, c->to, formats[c->format].config);
    if (status == VLP_OK) status = vlp_json_save(json, path.data);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static vlp_status write_weights(const conversion *c) {
    vlp_name_map from = {0}, to = {0};
    vlp_buf path = {0};
    vlp_model_names(&from, &c->config, c->file, false);
    vlp_clip_names_of(&to, &c->config, layout_of(c));
    vlp_rename rename = {
        c->file, &from, &to, c->model->params, c->config.vision.channels, c->config.vision.patch};
    vlp_status status = vlp_path_join(&path, c->to, formats[c->format].weights);
    if (status == VLP_OK) status = vlp_checkpoint_rename(&rename, path.data);
    vlp_buf_free(&path);
    return status;
}

static vlp_status copy_companions(const conversion *c) {
    vlp_buf from = {0}, to = {0}, bytes = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(companions) && status == VLP_OK; i++) {
        VLP_TRY_DONE(vlp_path_join(&from, c->folder.data, companions[i]));
        VLP_TRY_DONE(vlp_path_join(&to, c->to, companions[i]));
        if (!vlp_path_exists(from.data)) continue;
        vlp_buf_clear(&bytes);
        VLP_TRY_DONE(vlp_file_read(from.data, 0, &bytes));
        VLP_TRY_DONE(vlp_file_write(to.data, bytes.data, bytes.len));
    }
done:
    vlp_buf_free(&from);
    vlp_buf_free(&to);
    vlp_buf_free(&bytes);
    return status;
}

vlp_status vlp_convert(const char *from, const char *config, const char *to, const char *format) {
    conversion c = {.from = from, .to = to};
    while (vlp_convert_formats[c.format] && strcmp(format, vlp_convert_formats[c.format]) != 0)
        c.format++;
    VLP_ASSERT(vlp_convert_formats[c.format], "format \"%s\"", format);
    vlp_status status = open_source(&c, config);
    if (status == VLP_OK) status = write_config(&c);
    if (status == VLP_OK) status = write_weights(&c);
    if (status == VLP_OK) status = copy_companions(&c);
    vlp_buf_free(&c.folder);
    vlp_safetensors_close(c.file);
    vlp_model_free(c.model);
    return status;
}
