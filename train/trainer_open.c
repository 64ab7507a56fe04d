/* Putting a run together: recipe, index, tokenizer, model, objectives, memory, data. */
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "datasets/captions.h"
#include "datasets/verify.h"
#include "text/wordpiece_train.h"
#include "train/model_folder.h"
#include "train/recipe_towers.h"
#include "train/step.h"
#include "train/trainer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_BATCH = 64, DEFAULT_VOCAB = 8000, MAX_MIXTURE = 16 };

/* NULL = all rows. */
static const char *train_split(const vlp_trainer *t) {
    return *t->recipe.train_split ? t->recipe.train_split : NULL;
}

static vlp_status add_caption(const char *text, int64_t len, void *trainer) {
    return vlp_wordpiece_trainer_add(trainer, text, (size_t)len);
}

static vlp_status train_tokenizer(vlp_trainer *t) {
    vlp_wordpiece_trainer *trainer;
    vlp_rows rows;
    const char *split = train_split(t);
    VLP_TRY(vlp_rows_open(&rows, t->index, VLP_ROWS_PAIRS, split, NULL)); /* or says why not */
    vlp_rows_close(&rows);
    int64_t vocab = t->options.vocab ? t->options.vocab : DEFAULT_VOCAB;
    vlp_wordpiece_train_options options = {.vocab_size = (int32_t)vocab, .lower_case = true};
    VLP_TRY(vlp_wordpiece_trainer_new(&trainer, &options));
    vlp_status status = vlp_captions_each(t->index, split, add_caption, trainer);
    if (status == VLP_OK) status = vlp_wordpiece_trainer_finish(trainer, &t->tokenizer);
    vlp_wordpiece_trainer_free(trainer);
    return status;
}

/* The run's own tokenizer when resuming; the given one; the initial model's; or a new one. */
static vlp_status open_tokenizer(vlp_trainer *t) {
    const char *path = t->options.resume      ? t->out
                       : t->options.tokenizer ? t->options.tokenizer
                       : t->options.init_text ? t->options.init_text
                                              : t->options.init;
    return path ? vlp_tokenizer_open(&t->tokenizer, path) : train_tokenizer(t);
}

static bool verify_progress(int64_t done, int64_t total, void *user) {
    const vlp_trainer *t = user;
    if (done > 0 && done % 5000 == 0)
        vlp_log(VLP_LOG_INFO, "checked %lld of %lld pictures", (long long)done, (long long)total);
    return !(t->options.stop && *t->options.stop);
}

static void warn_bad(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                     void *user) {
    (void)row;
    (void)reason;
    (void)user;
    vlp_log(VLP_LOG_WARN, "skipped %s: %s", path, detail);
}

static vlp_status open_index(vlp_trainer *t) {
    if (!vlp_path_exists(t->data)) /* opening for writing would make an empty one */
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "no index at %s; make one with `vlp index %s SOURCE`",
                        t->data, t->data);
    vlp_verify_report report;
    vlp_verify_options options = {.progress = verify_progress, .bad = warn_bad, .user = t};
    VLP_TRY(vlp_index_open_verified(&t->index, t->data, &options, &report));
    if (report.bad > 0)
        vlp_log(VLP_LOG_WARN, "%lld pictures cannot be decoded and are left out",
                (long long)report.bad);
    return VLP_OK;
}

/* A twin in the file is taken too; otherwise it starts as the model. */
static vlp_status load_init(vlp_trainer *t, const vlp_safetensors *file) {
    vlp_name_map map = {0};
    bool found = false;
    vlp_model_names(&map, &t->model->config, file, false);
    VLP_TRY(vlp_params_load(t->model->params, file, map, "objective."));
    vlp_objectives_start(&t->objectives, (uint64_t)t->recipe.seed);
    if (!t->objectives.momentum) return VLP_OK;
    return vlp_momentum_import(t->objectives.momentum, file, &found);
}

static vlp_status init_weights(vlp_trainer *t) {
    vlp_params *params = t->model->params;
    VLP_TRY(vlp_params_allocate(params, true));
    vlp_params_init(params, (uint64_t)t->recipe.seed);
    vlp_objectives_start(&t->objectives, (uint64_t)t->recipe.seed);
    if (t->options.resume) return VLP_OK;
    if (!t->options.init) return vlp_trainer_load_towers(t);
    vlp_safetensors *file;
    VLP_TRY(vlp_checkpoint_open(&file, t->options.init));
    vlp_status status = load_init(t, file);
    vlp_safetensors_close(file);
    return status;
}

/* CLIP's text is read at its largest id, which has to be the token that ends it. */
static vlp_status check_end(const vlp_trainer *t, const vlp_model_config *config) {
    int64_t last = vlp_tokenizer_size(t->tokenizer) - 1;
    if (config->clip_text.width == 0 || config->clip_text.pool != VLP_TEXT_END ||
        vlp_tokenizer_special(t->tokenizer).sep == last)
        return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "towers %s read a text at the token that ends it, whose number must be the "
                    "largest; give CLIP's tokenizer with --tokenizer",
                    vlp_tower_names[t->recipe.towers]);
}

static vlp_status build_model(vlp_trainer *t) {
    vlp_model_config config;
    vlp_recipe_model(&t->recipe, vlp_tokenizer_size(t->tokenizer), &config);
    vlp_recipe_marks(&t->recipe, t->tokenizer, &config);
    VLP_TRY(check_end(t, &config));
    VLP_TRY(vlp_model_new(&t->model, &config));
    vlp_objective_setup setup = {t->model, t->tokenizer, &t->recipe.objectives};
    VLP_TRY(vlp_objectives_create(&t->objectives, &setup));
    t->now.n_losses = t->objectives.count;
    for (int i = 0; i < t->objectives.count; i++)
        t->now.names[i] = t->objectives.items[i].kind->name;
    return init_weights(t);
}

/* What is of the whole step and not of one micro-batch: a contrast, the number of items. */
static vlp_status build_whole_step(vlp_trainer *t) {
    const vlp_recipe *r = &t->recipe;
    bool contrastive = false;
    for (int i = 0; i < t->objectives.count; i++)
        contrastive |= t->objectives.items[i].kind->contrastive;
    contrastive &= r->whole_step_contrast;
    if (r->accumulate < 2 || !(contrastive || vlp_objectives_counted(&t->objectives)))
        return VLP_OK;
    t->batches = vlp_alloc_zero((size_t)r->accumulate, sizeof *t->batches);
    if (!t->batches) return VLP_ERR_MEMORY;
    if (!contrastive) return VLP_OK;
    return vlp_contrast_new(&t->contrast, r->accumulate, r->batch, r->embedding);
}

static vlp_status build_optimizer(vlp_trainer *t) {
    const vlp_recipe *r = &t->recipe;
    vlp_optimizer_options options = vlp_step_optimizer(r);
    VLP_TRY(vlp_optimizer_new(&t->optimizer, t->model->params, &options));
    return r->ema > 0 ? vlp_ema_new(&t->ema, t->model->params, r->ema, true) : VLP_OK;
}

/* "a=1,b=2.5" into rows; names point into text, which is cut. */
static vlp_status parse_mixture(char *text, vlp_mixture *out, int *n) {
    *n = 0;
    for (char *save, *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(part, '='), *end = NULL;
        double weight = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || equals == part || end == equals + 1 || *end || !(weight > 0) ||
            isinf(weight) || *n == MAX_MIXTURE)
            return VLP_FAIL(VLP_ERR_USAGE,
                            "data.mixture: \"%s\" is not source=weight with a weight above 0",
                            part);
        *equals = '\0';
        for (int i = 0; i < *n; i++)
            if (strcmp(out[i].source, part) == 0)
                return VLP_FAIL(VLP_ERR_USAGE, "data.mixture: source %s is named twice", part);
        out[(*n)++] = (vlp_mixture){part, weight};
    }
    return VLP_OK;
}

static void warn_skipped(const char *path, const char *reason, void *user) {
    (void)user;
    vlp_log(VLP_LOG_WARN, "skipped %s: %s", path, reason);
}

vlp_rows_kind vlp_trainer_rows(const vlp_recipe *recipe) {
    static const vlp_rows_kind rows[] = {VLP_ROWS_PAIRS, VLP_ROWS_CAPTIONS, VLP_ROWS_QUESTIONS};
    return rows[recipe->captions];
}

static vlp_status build_loader(vlp_trainer *t) {
    const vlp_recipe *r = &t->recipe;
    char text[VLP_OPTION_TEXT_BYTES];
    vlp_mixture mixture[MAX_MIXTURE];
    int n_mixture;
    memcpy(text, r->mixture, sizeof text);
    VLP_TRY(parse_mixture(text, mixture, &n_mixture));
    vlp_loader_options options = {.rows = vlp_trainer_rows(r),
                                  .split = train_split(t),
                                  .mixture = mixture,
                                  .n_mixture = n_mixture,
                                  .by_source = r->by_source,
                                  .train = true,
                                  .batch = (int)r->batch,
                                  .seed = (uint64_t)r->seed,
                                  .cursor = t->cursor,
                                  .transform = &t->transform,
                                  .tokenizer = t->tokenizer,
                                  .text_length = (int)r->text_length,
                                  .threads = (int)r->loader_threads,
                                  .slots = vlp_trainer_slots(t),
                                  .cache_bytes = r->cache_mb << 20,
                                  .block_rows = r->block_rows,
                                  .pixel_file = r->pixel_file[0] ? r->pixel_file : NULL,
                                  .sides = (vlp_sides)r->sides,
                                  .skipped = warn_skipped};
    return vlp_loader_open(&t->loader, t->index, &options);
}

/* The order of samples is a permutation of the rows: with other rows it is another run. */
static vlp_status check_rows(const vlp_trainer *t) {
    int64_t rows = vlp_loader_rows(t->loader);
    if (t->rows_before == 0 || t->rows_before == rows) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "the run was started on %lld pictures, %s has %lld now; resume with the same "
                    "data, or start a new run with --init %s",
                    (long long)t->rows_before, t->data, (long long)rows, t->out);
}

static void count_steps(vlp_trainer *t) {
    const vlp_recipe *r = &t->recipe;
    int64_t a_step = r->batch * r->accumulate;
    int64_t by_epochs = (r->epochs * vlp_loader_rows(t->loader) + a_step - 1) / a_step;
    t->total_steps = r->steps;
    if (by_epochs > 0 && (t->total_steps == 0 || by_epochs < t->total_steps))
        t->total_steps = by_epochs;
}

static vlp_status open_metrics(vlp_trainer *t) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, t->out, "metrics.jsonl");
    if (status == VLP_OK)
        status = vlp_metrics_open(&t->metrics, path.data, t->step > 0 ? t->step : -1);
    vlp_buf_free(&path);
    return status;
}

static vlp_status refuse_existing(const vlp_trainer *t) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, t->out, "recipe.json");
    if (status == VLP_OK && vlp_path_exists(path.data))
        status = VLP_FAIL(
            VLP_ERR_USAGE,
            "%s already holds a run; continue it with --resume or choose another --out", t->out);
    if (status == VLP_OK) status = vlp_path_join(&path, t->out, "model.safetensors");
    if (status == VLP_OK && vlp_path_exists(path.data))
        status = VLP_FAIL(VLP_ERR_USAGE, "%s already holds a model; choose another --out", t->out);
    vlp_buf_free(&path);
    return status;
}

static vlp_status hold_folder(vlp_trainer *t) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, t->out, "lock");
    if (status == VLP_OK && t->lock < 0) status = vlp_lock_open(&t->lock, path.data);
    vlp_buf_free(&path);
    return status;
}

/* As the model that is trained further sees pictures; a folder that does not say leaves it to the
 * recipe. */
static vlp_status take_transform(vlp_trainer *t, const char *folder,
                                 const vlp_model_config *config) {
    vlp_status status = vlp_model_folder_transform(&t->transform, folder, config);
    if (status != VLP_ERR_NOT_FOUND) return status;
    t->transform = (vlp_transform){0};
    return VLP_OK;
}

/* Whether they are equal once written: numbers lose their last bits in a file. */
static bool same_text(const vlp_transform *a, const vlp_transform *b) {
    vlp_json *json[] = {vlp_transform_to_json(a), vlp_transform_to_json(b)};
    vlp_buf text[2] = {{0}, {0}};
    bool same = json[0] && json[1] && vlp_json_dump(json[0], 0, &text[0]) == VLP_OK &&
                vlp_json_dump(json[1], 0, &text[1]) == VLP_OK &&
                strcmp(text[0].data, text[1].data) == 0;
    for (int i = 0; i < 2; i++) {
        vlp_json_free(json[i]);
        vlp_buf_free(&text[i]);
    }
    return same;
}

static void choose_transform(vlp_trainer *t) {
    vlp_transform own = vlp_recipe_transform(&t->recipe);
    t->transform.augment = own.augment;
    if (t->transform.image_size != own.image_size || same_text(&t->transform, &own))
        t->transform = own;
}

/* A model folder to start from has its sizes; weights alone must have the recipe's. */
static vlp_status take_sizes(vlp_trainer *t) {
    vlp_model_config config = {0};
    vlp_buf path = {0};
    if (t->options.resume) return take_transform(t, t->out, &config);
    if (!t->options.init) return VLP_OK;
    t->from_model = true;
    vlp_status status = vlp_path_join(&path, t->options.init, "config.json");
    bool sized = status == VLP_OK && vlp_path_exists(path.data);
    if (!sized && status == VLP_OK)
        status = vlp_path_join(&path, t->options.init, "open_clip_config.json");
    sized |= status == VLP_OK && vlp_path_exists(path.data);
    vlp_buf_free(&path);
    if (!sized) return status;
    VLP_TRY(vlp_model_folder_config(&config, t->options.init));
    VLP_TRY(vlp_recipe_take_sizes(&t->recipe, &config, t->options.init));
    return take_transform(t, t->options.init, &config);
}

static vlp_status assemble(vlp_trainer *t) {
    if (t->options.resume) {
        VLP_TRY(vlp_trainer_read_recipe(&t->recipe, t->out));
        VLP_TRY(hold_folder(t));
    } else
        VLP_TRY(refuse_existing(t));
    VLP_TRY(take_sizes(t));
    VLP_TRY(vlp_trainer_take_towers(t));
    VLP_TRY(vlp_recipe_check(&t->recipe));
    choose_transform(t);
    t->keys = vlp_alloc((size_t)t->recipe.batch * sizeof *t->keys);
    size_t tokens = (size_t)(t->recipe.batch * t->recipe.text_length);
    t->ids = vlp_alloc(tokens * sizeof *t->ids);
    t->ids_mask = vlp_alloc(tokens);
    if (!t->keys || !t->ids || !t->ids_mask) return VLP_ERR_MEMORY;
    VLP_TRY(open_index(t));
    VLP_TRY(open_tokenizer(t));
    VLP_TRY(build_model(t));
    VLP_TRY(build_optimizer(t));
    t->has_grad = vlp_alloc((size_t)t->model->params->count * sizeof *t->has_grad);
    if (!t->has_grad) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_tape_new(&t->tape));
    vlp_step_prepare(t->tape, &t->recipe);
    if (vlp_tape_precision(t->tape) == VLP_BF16) VLP_TRY(vlp_params_keep_packed(t->model->params));
    VLP_TRY(build_whole_step(t));
    VLP_TRY(vlp_trainer_rehearse(t));
    if (t->options.resume) VLP_TRY(vlp_trainer_load(t));
    VLP_TRY(vlp_trainer_guard(t));
    VLP_TRY(build_loader(t));
    VLP_TRY(check_rows(t));
    count_steps(t);
    return vlp_embedder_wrap(&t->embedder, t->model, t->tokenizer, &t->transform, EVAL_BATCH);
}

vlp_status vlp_trainer_open(vlp_trainer **out, const vlp_recipe *recipe,
                            const vlp_train_options *options) {
    *out = NULL;
    vlp_trainer *t = vlp_alloc_zero(1, sizeof *t);
    if (!t) return VLP_ERR_MEMORY;
    t->program_bytes = vlp_resident_bytes();
    t->recipe = *recipe;
    t->lock = -1;
    t->best_step = t->evaluated = -1;
    t->options = *options;
    t->data = vlp_strdup(options->data);
    t->out = vlp_strdup(options->out);
    vlp_status status = t->data && t->out ? assemble(t) : VLP_ERR_MEMORY;
    if (status != VLP_OK) {
        vlp_trainer_free(t);
        return status;
    }
    *out = t;
    return VLP_OK;
}

vlp_status vlp_trainer_prepare(vlp_trainer *t) {
    VLP_TRY(vlp_make_folder(t->out));
    VLP_TRY(hold_folder(t));
    if (!t->options.resume) VLP_TRY(vlp_trainer_save_start(t));
    VLP_TRY(vlp_trainer_save_folder(t)); /* its recipe, written last, makes it a run to resume */
    return open_metrics(t);
}
