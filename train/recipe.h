/* Recipes: everything that decides what a training run does, in one flat struct behind one option
 * table. Built-in recipes are JSON files of train/recipes/, compiled into the program:
 *
 *     {"about": "...", "set": {"itc": {"weight": 1}, ...}, "sizes": {"nano": {...}, ...}}
 *
 * A user's file has the same form, and may start from another with "base": "vlp", "size": "nano".
 * The keys are in train/recipe_options.c; `vlp pretrain --help-keys` prints them. */
#ifndef VLP_TRAIN_RECIPE_H
#define VLP_TRAIN_RECIPE_H

#include "core/options.h"
#include "objectives/objective.h"
#include "vision/transform.h"

typedef enum { VLP_PRECISION_AUTO, VLP_PRECISION_FP32, VLP_PRECISION_BF16 } vlp_precision;

typedef struct {
    char name[VLP_OPTION_TEXT_BYTES]; /* of the recipe it came from */
    char size[VLP_OPTION_TEXT_BYTES];

    /* model */
    int64_t image_size, patch, width, vision_depth, heads;
    int64_t text_width, text_depth, text_heads, fusion_depth, embedding,
        text_length; /* 0 = as the image tower */
    int towers;      /* see train/recipe_towers.h */
    int pool;        /* vlp_pool_kind */
    double mlp_ratio, text_mlp_ratio, dropout, drop_path;
    int64_t text_types, text_positions; /* positions 0 = text_length */
    bool fusion_in_text, projection_bias, plain_temperature;
    double temperature, temperature_least, temperature_most; /* initial value, clamps */

    vlp_objective_options objectives;
    double momentum_ramp; /* passes over the data until the twin's targets have their whole share */

    /* optimisation */
    double lr, lr_least, weight_decay, beta1, beta2, eps, clip_grad, warmup, ema;
    int schedule;
    int64_t batch, accumulate, epochs, steps;
    double max_minutes;

    /* data */
    char train_split[VLP_OPTION_TEXT_BYTES], val_split[VLP_OPTION_TEXT_BYTES],
        test_split[VLP_OPTION_TEXT_BYTES];
    char eval_source[VLP_OPTION_TEXT_BYTES]; /* of validation and test; empty = all */
    char
        mixture[VLP_OPTION_TEXT_BYTES]; /* "source=weight,source=weight"; empty = every row alike */
    bool by_source;                     /* batches of one source: harder negatives */
    double crop_least, flip, jitter, randaugment;
    bool exif_rotate;
    int64_t loader_threads, cache_mb, block_rows;
    int captions, sides; /* one of the tables in recipe_options.c; sides: vlp_sides */
    char pixel_file[VLP_OPTION_TEXT_BYTES];

    /* further training */
    int keep_best; /* auto: with --init; on; off */
    double start_share;

    /* run */
    int64_t seed, eval_every, eval_rows;
    double checkpoint_minutes;
    int64_t checkpoint_steps;
    int precision;            /* vlp_precision */
    bool whole_step_contrast; /* over all micro-batches of a step, in two passes */
    bool recompute; /* blocks run forward again in the backward pass: less memory, more time */
} vlp_recipe;

extern const vlp_options vlp_recipe_options;

/* `name` is a built-in recipe or a JSON file; size NULL or "" = the recipe's own. */
vlp_status vlp_recipe_open(vlp_recipe *out, const char *name, const char *size);
/* One --set key=value. */
vlp_status vlp_recipe_set(vlp_recipe *recipe, const char *assignment);
/* What cannot be said key by key: sizes that must divide, something to optimise. */
vlp_status vlp_recipe_check(const vlp_recipe *recipe);
vlp_json *vlp_recipe_to_json(const vlp_recipe *recipe); /* {"set": ...}: opens again as a file */

/* The built-in ones. */
int vlp_recipe_count(void);
const char *vlp_recipe_name(int i);
const char *vlp_recipe_about(int i);

/* Takes over the sizes of a model that training starts from; captions are not longer than its
 * positions. VLP_ERR_UNSUPPORTED where no recipe describes such a model (`where` names it). */
vlp_status vlp_recipe_take_sizes(vlp_recipe *recipe, const vlp_model_config *model,
                                 const char *where);

/* Those of a tower alone. */
void vlp_recipe_take_vision(vlp_recipe *recipe, const vlp_vit_config *vision);
void vlp_recipe_take_bert(vlp_recipe *recipe, const vlp_bert_config *text);

void vlp_recipe_model(const vlp_recipe *recipe, int64_t vocab, vlp_model_config *out);
/* Gives a model that fuses in its text tower the tokens after the tokenizer's that texts begin
 * with.
 */
void vlp_recipe_marks(const vlp_recipe *recipe, const vlp_tokenizer *tokenizer,
                      vlp_model_config *model);
vlp_transform vlp_recipe_transform(const vlp_recipe *recipe);

#endif
