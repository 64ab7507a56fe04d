#include "train/recipe.h"

#include "core/suggest.h"
#include "train/recipe_towers.h"
#include "train/recipes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BASES = 8, MAX_RECIPES = 64 };

int vlp_recipe_count(void) {
    return (int)vlp_builtin_recipe_count;
}

const char *vlp_recipe_name(int i) {
    return vlp_builtin_recipes[i].name;
}

static vlp_status load(vlp_json **out, const char *name) {
    for (size_t i = 0; i < vlp_builtin_recipe_count; i++)
        if (strcmp(vlp_builtin_recipes[i].name, name) == 0)
            return vlp_json_parse(out, vlp_builtin_recipes[i].json,
                                  strlen(vlp_builtin_recipes[i].json), name);
    if (strchr(name, '/') || strchr(name, '.')) return vlp_json_load(out, name);
    const char *known[MAX_RECIPES];
    size_t n = vlp_builtin_recipe_count < MAX_RECIPES ? vlp_builtin_recipe_count : MAX_RECIPES;
    for (size_t i = 0; i < n; i++) known[i] = vlp_builtin_recipes[i].name;
    char hint[300];
    return VLP_FAIL(VLP_ERR_USAGE,
                    "no built-in recipe is called \"%s\"%s; a file needs a path with a dot", name,
                    vlp_suggest_text(name, known, n, hint, sizeof hint));
}

const char *vlp_recipe_about(int i) {
    static _Thread_local char about[256];
    vlp_json *json;
    about[0] = '\0';
    if (load(&json, vlp_builtin_recipes[i].name) != VLP_OK) return about;
    snprintf(about, sizeof about, "%s", vlp_json_string(json, "about", ""));
    vlp_json_free(json);
    return about;
}

static vlp_status apply_size(vlp_recipe *out, const vlp_json *sizes, const char *name,
                             const char *size) {
    const vlp_json *set = vlp_json_key(sizes, size);
    char all[256] = "";
    if (set) {
        snprintf(out->size, sizeof out->size, "%s", size);
        return vlp_options_read(vlp_recipe_options, out, set, name);
    }
    for (void *it = vlp_json_first(sizes); it; it = vlp_json_next(sizes, it))
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", vlp_json_iter_key(it));
    return VLP_FAIL(VLP_ERR_USAGE, "recipe %s has no size \"%s\"; it has%s", name, size,
                    *all ? all : " none");
}

static vlp_status apply(vlp_recipe *out, const char *name, const char *size, int depth);

static vlp_status apply_json(vlp_recipe *out, const vlp_json *json, const char *name,
                             const char *size, int depth) {
    static const char *const known[] = {"about", "base", "set", "size", "sizes"};
    static const vlp_json_typed keys[] = {{"about", VLP_JSON_STRING},
                                          {"base", VLP_JSON_STRING},
                                          {"size", VLP_JSON_STRING},
                                          {"set", VLP_JSON_OBJECT},
                                          {"sizes", VLP_JSON_OBJECT}};
    VLP_TRY(vlp_json_expect(json, keys, VLP_COUNT(keys), name));
    for (void *it = vlp_json_first(json); it; it = vlp_json_next(json, it)) {
        const char *key = vlp_json_iter_key(it);
        bool found = false;
        for (size_t i = 0; i < VLP_COUNT(known); i++) found |= strcmp(key, known[i]) == 0;
        char hint[300];
        if (!found)
            return VLP_FAIL(VLP_ERR_USAGE, "%s: unknown key \"%s\"%s; options belong into \"set\"",
                            name, key,
                            vlp_suggest_text(key, known, VLP_COUNT(known), hint, sizeof hint));
    }
    const char *base = vlp_json_string(json, "base", NULL);
    const vlp_json *set = vlp_json_key(json, "set"), *sizes = vlp_json_key(json, "sizes");
    bool asked = size && *size;
    if (!asked) size = vlp_json_string(json, "size", "");
    if (base) VLP_TRY(apply(out, base, sizes ? NULL : size, depth + 1));
    snprintf(out->name, sizeof out->name, "%.100s", name);
    if (vlp_json_is_object(set)) VLP_TRY(vlp_options_read(vlp_recipe_options, out, set, name));
    if (sizes && *size) return apply_size(out, sizes, name, size);
    if (asked && !base && !sizes)
        return VLP_FAIL(VLP_ERR_USAGE, "recipe %s has no sizes to choose from; leave --size away",
                        name);
    return VLP_OK;
}

static vlp_status apply(vlp_recipe *out, const char *name, const char *size, int depth) {
    if (depth > MAX_BASES)
        return VLP_FAIL(VLP_ERR_USAGE, "recipe %s: more than %d bases; does one name itself?", name,
                        MAX_BASES);
    vlp_json *json;
    VLP_TRY(load(&json, name));
    vlp_status status = apply_json(out, json, name, size, depth);
    vlp_json_free(json);
    return status;
}

vlp_status vlp_recipe_open(vlp_recipe *out, const char *name, const char *size) {
    *out = (vlp_recipe){0};
    vlp_options_defaults(vlp_recipe_options, out);
    return apply(out, name, size, 0);
}

vlp_status vlp_recipe_set(vlp_recipe *recipe, const char *assignment) {
    char key[VLP_OPTION_TEXT_BYTES];
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof key)
        return VLP_FAIL(VLP_ERR_USAGE, "--set %s: key=value is wanted", assignment);
    snprintf(key, sizeof key, "%.*s", (int)(equals - assignment), assignment);
    return vlp_options_set(vlp_recipe_options, recipe, key, equals + 1, "--set");
}

vlp_status vlp_recipe_check(const vlp_recipe *r) {
    if (r->image_size % r->patch != 0)
        return VLP_FAIL(VLP_ERR_USAGE, "patch %lld does not divide image_size %lld",
                        (long long)r->patch, (long long)r->image_size);
    if (r->objectives.mlm_mask + r->objectives.mlm_random > 1)
        return VLP_FAIL(VLP_ERR_USAGE, "mlm.mask + mlm.random is %g; at most 1",
                        r->objectives.mlm_mask + r->objectives.mlm_random);
    if (r->text_positions > 0 && r->text_positions < r->text_length)
        return VLP_FAIL(VLP_ERR_USAGE, "text_positions %lld are fewer than text_length %lld",
                        (long long)r->text_positions, (long long)r->text_length);
    if (r->whole_step_contrast && r->objectives.momentum_decay > 0)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "itc.whole_step and momentum.decay do not go together: with a queue the "
                        "candidates are not those of the step alone");
    if (r->temperature < r->temperature_least)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "temperature %g is below temperature_least %g: it would never learn",
                        r->temperature, r->temperature_least);
    if (r->fusion_in_text && r->fusion_depth > 0)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "fusion_in_text is true and fusion_depth %lld; set one to false or 0",
                        (long long)r->fusion_depth);
    if (r->towers > 0 && (r->fusion_depth > 0 || r->fusion_in_text || r->objectives.mlm_weight > 0))
        return VLP_FAIL(
            VLP_ERR_USAGE,
            "towers %s are two encoders without a fusion stack: set fusion_depth, "
            "fusion_in_text and mlm.weight to 0, or start from the recipe clip or siglip",
            vlp_tower_names[r->towers]);
    if (r->epochs == 0 && r->steps == 0 && r->max_minutes == 0)
        return VLP_FAIL(VLP_ERR_USAGE, "how long? give --steps, --epochs or --max-minutes");
    return VLP_OK;
}

vlp_json *vlp_recipe_to_json(const vlp_recipe *recipe) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set(json, "set", vlp_options_write(vlp_recipe_options, recipe));
    return json;
}

void vlp_recipe_marks(const vlp_recipe *r, const vlp_tokenizer *tokenizer, vlp_model_config *out) {
    if (!r->fusion_in_text) return;
    out->bos_id = out->text.vocab++;
    out->enc_id = out->text.vocab++;
    out->eos_id = vlp_tokenizer_special(tokenizer).sep;
}

void vlp_recipe_model(const vlp_recipe *r, int64_t vocab, vlp_model_config *out) {
    int64_t text_width = r->text_width ? r->text_width : r->width;
    int64_t text_heads = r->text_heads ? r->text_heads : r->heads;
    double text_ratio = r->text_mlp_ratio > 0 ? r->text_mlp_ratio : r->mlp_ratio;
    bool fusion = r->fusion_depth > 0;
    *out = (vlp_model_config){
        .vision = {.image_height = r->image_size,
                   .image_width = r->image_size,
                   .channels = 3,
                   .patch = r->patch,
                   .width = r->width,
                   .depth = r->vision_depth,
                   .heads = r->heads,
                   .mlp_width = llround(r->mlp_ratio * (double)r->width),
                   .act = VLP_ACT_GELU,
                   .eps = 1e-6,
                   .patch_bias = true,
                   .output_norm = true,
                   .mask_token =
                       r->objectives.mim_weight > 0 && r->objectives.mim_kind == VLP_MIM_TOKEN,
                   .dropout = r->dropout,
                   .drop_path = r->drop_path},
        .text = {.vocab = vocab,
                 .positions = r->text_positions ? r->text_positions : r->text_length,
                 .types = r->text_types,
                 .width = text_width,
                 .depth = r->text_depth,
                 .heads = text_heads,
                 .mlp_width = llround(text_ratio * (double)text_width),
                 .act = VLP_ACT_GELU,
                 .eps = 1e-12,
                 .dropout = r->dropout},
        .fusion = {.width = text_width,
                   .depth = r->fusion_depth,
                   .heads = text_heads,
                   .mlp_width = llround(text_ratio * (double)text_width),
                   .image_width = r->width,
                   .act = VLP_ACT_GELU,
                   .eps = 1e-12,
                   .dropout = fusion ? r->dropout : 0},
        .pool = {.kind = (vlp_pool_kind)r->pool, .heads = r->heads},
        .embedding = r->embedding,
        .projection_bias = r->projection_bias,
        .plain_temperature = r->plain_temperature,
        .temperature_most = r->temperature_most,
        .logit_bias = r->objectives.sigmoid_weight > 0,
        .logit_bias_init = r->objectives.sigmoid_bias,
        .logit_scale_init = -log(r->temperature),
        .logit_scale_max = -log(r->temperature_least),
        .text_length = r->text_length,
    };
    vlp_towers_apply(r->towers, out);
    if (!r->fusion_in_text) return; /* BLIP: a decoder shares the text tower's layers */
    out->text.context_width = r->width;
    out->decoder_shared = r->objectives.lm_weight > 0;
    out->answers_questions = out->decoder_shared && r->objectives.lm_answers;
}

vlp_transform vlp_recipe_transform(const vlp_recipe *r) {
    vlp_transform t = vlp_transform_defaults((int)r->image_size);
    t.exif_rotate = r->exif_rotate;
    t.augment.scale_min = r->crop_least;
    t.augment.flip = r->flip;
    t.augment.brightness = t.augment.contrast = t.augment.saturation = r->jitter;
    t.augment.randaugment = r->randaugment;
    return t;
}
