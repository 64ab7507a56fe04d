#include "fusion/convert.h"

#include "core/file.h"
#include "fusion/albef.h"
#include "fusion/clip.h"
#include "fusion/layout.h"

#include <stdio.h>
#include <string.h>

const char *const vlp_convert_formats[] = {"hf",   "openclip", "openai", "albef",
                                           "blip", "vlp",      NULL};

/* The head of masked language modelling; other heads that only train stay behind. */
static const char words_head[] = "objective.mlm.", training_heads[] = "objective.";

/* What goes along unchanged. */
static const char *const companions[] = {
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.json",
    "spiece.model",
    "tokenizer.model",
    "encoder.json",
    "vocab.bpe",
    "added_tokens.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "bpe_simple_vocab_16e6.txt.gz",
    "bpe_simple_vocab_16e6.txt",
    "preprocessor_config.json",
};

/* What a tokenizer's files say of the weights, see vlp_tokenizer_mark. */
static const char hash_key[] = "tokenizer_hash";

typedef struct {
    const char *from, *to;
    const vlp_layout *layout;
    char hash[64];  /* of the tokenizer, if the source says it */
    vlp_buf folder; /* of the source's other files */
    vlp_safetensors *file;
    vlp_model_config config;
    vlp_model *model; /* declared only */
    vlp_mlm_head mlm;
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
    snprintf(c->hash, sizeof c->hash, "%s", vlp_json_string(json, hash_key, ""));
done:
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

/* The source's tensor of a parameter of ours, whole and by itself; NULL if there is none. */
static const vlp_safetensor *find_ours(const conversion *c, const char *name, size_t length) {
    vlp_name_map map = {0};
    char ours[VLP_NAME_BYTES];
    vlp_model_names(&map, &c->config, c->file, false);
    for (size_t i = 0; i < vlp_safetensors_count(c->file); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(c->file, i);
        const vlp_name_row *row = vlp_name_find(&map, t->name, ours);
        if (row && (row->ours || map.count == 0) && strncmp(ours, name, length) == 0) return t;
    }
    return NULL;
}

static void declare_words_head(conversion *c) {
    if (!find_ours(c, words_head, strlen(words_head))) return;
    vlp_params_push(c->model->params, "objective");
    vlp_params_push(c->model->params, "mlm");
    vlp_mlm_head_declare(&c->mlm, c->model->params, &c->config.text);
    vlp_params_pop(c->model->params);
    vlp_params_pop(c->model->params);
}

static vlp_status open_source(conversion *c, const char *config) {
    VLP_TRY(find_folder(c));
    VLP_TRY(vlp_checkpoint_open(&c->file, c->from));
    VLP_TRY(read_config(c, config));
    vlp_model_config_complete(&c->config, c->file);
    return vlp_model_new_parts(&c->model, &c->config, vlp_model_parts(c->file));
}

static vlp_status write_config(const conversion *c) {
    vlp_buf path = {0};
    vlp_json *json = NULL;
    VLP_TRY(c->layout->config(&json, &c->config));
    if (c->hash[0]) vlp_json_set_string(json, hash_key, c->hash);
    vlp_status status = vlp_make_folder(c->to);
    if (status == VLP_OK) status = vlp_path_join(&path, c->to, c->layout->config_file);
    if (status == VLP_OK) status = vlp_json_save(json, path.data);
    vlp_json_free(json);
    vlp_buf_free(&path);
    return status;
}

static double temperature_of(const conversion *c) {
    static const char name[] = "logit_scale";
    const vlp_safetensor *t = find_ours(c, name, sizeof name);
    double scale = t && t->numel == 1 ? vlp_safetensor_value(t, 0) : c->config.logit_scale_init;
    return vlp_albef_temperature(&c->config, scale);
}

static vlp_status write_weights(conversion *c) {
    vlp_name_map from = {0};
    vlp_buf path = {0};
    vlp_layout_source source = {&c->config, false, temperature_of(c)};
    vlp_layout_plan *plan = vlp_alloc_zero(1, sizeof *plan);
    if (!plan) return VLP_ERR_MEMORY;
    if (c->layout->words_head) declare_words_head(c);
    source.words_head = c->mlm.bias != NULL;
    vlp_model_names(&from, &c->config, c->file, false);
    c->layout->plan(plan, &source);
    vlp_rename rename = {.from = c->file,
                         .from_names = &from,
                         .to_names = plan->names,
                         .copies = plan->copies,
                         .fillers = plan->fillers,
                         .filler_count = plan->filler_count,
                         .params = c->model->params,
                         .channels = c->config.vision.channels,
                         .patch = c->config.vision.patch,
                         .left_out = training_heads};
    vlp_status status = vlp_path_join(&path, c->to, c->layout->weights);
    if (status == VLP_OK) status = vlp_checkpoint_rename(&rename, path.data);
    vlp_buf_free(&path);
    vlp_free(plan);
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
    vlp_status status = open_source(&c, config);
    if (status == VLP_OK) {
        status = vlp_layout_find(&c.layout, format, &c.config);
        if (status != VLP_OK) status = vlp_fail_in(status, "%s", from);
    }
    if (status == VLP_OK) status = write_config(&c);
    if (status == VLP_OK) status = write_weights(&c);
    if (status == VLP_OK) status = copy_companions(&c);
    vlp_buf_free(&c.folder);
    vlp_safetensors_close(c.file);
    vlp_model_free(c.model);
    return status;
}
