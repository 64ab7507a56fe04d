/* A model of a few hundred numbers with all four objectives and one batch of four pairs, in the
 * precision of the library it is built with. Included after cmocka.h. */
#ifndef VLP_TESTS_FIXTURE_OBJECTIVES_H
#define VLP_TESTS_FIXTURE_OBJECTIVES_H

#include "core/rng.h"
#include "objectives/objective.h"

#include "tests/text_fixture.h"

enum {
    OBJECTIVES_BATCH = 4,
    OBJECTIVES_LENGTH = 9,
    OBJECTIVES_SIDE = 8,
    OBJECTIVES_PIXELS = OBJECTIVES_BATCH * 3 * OBJECTIVES_SIDE * OBJECTIVES_SIDE,
    OBJECTIVES_TOKENS = OBJECTIVES_BATCH * OBJECTIVES_LENGTH,
};

static const char objectives_vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\ngreen\nblue\n"
                                       "square\ncircle\n##s\n##ly\non\nthe\npaper\ntwo\nlarge\n";

static inline vlp_objective_options objectives_defaults(void) {
    return (vlp_objective_options){.itc_weight = 1,
                                   .itm_weight = 1,
                                   .mlm_weight = 1,
                                   .mim_weight = 1,
                                   .itm_share = 1,
                                   .mlm_share = 1,
                                   .mim_share = 1,
                                   .lm_share = 1,
                                   .mlm_probability = 0.3,
                                   .mlm_mask = 0.8,
                                   .mlm_random = 0.1,
                                   .mim_ratio = 0.5,
                                   .mim_loss = VLP_LOSS_L1};
}

typedef struct {
    vlp_tokenizer *tokenizer;
    vlp_model *model;
    vlp_objectives objectives;
    vlp_tape *tape;
    vlp_real pixels[OBJECTIVES_PIXELS];
    int32_t ids[OBJECTIVES_TOKENS];
    uint8_t mask[OBJECTIVES_TOKENS];
    uint64_t keys[OBJECTIVES_BATCH];
    int64_t image_groups[OBJECTIVES_BATCH], caption_groups[OBJECTIVES_BATCH];
    vlp_pairs pairs;
    vlp_tensor *terms[VLP_MAX_OBJECTIVES];
    vlp_encodings encodings;
} objectives_world;

static inline vlp_model_config objectives_model(int64_t vocab, double dropout) {
    return (vlp_model_config){
        .vision = {.image_height = OBJECTIVES_SIDE,
                   .image_width = OBJECTIVES_SIDE,
                   .channels = 3,
                   .patch = 4,
                   .width = 8,
                   .depth = 2,
                   .heads = 2,
                   .mlp_width = 12,
                   .act = VLP_ACT_GELU,
                   .eps = 1e-6,
                   .patch_bias = true,
                   .output_norm = true,
                   .mask_token = true,
                   .dropout = dropout},
        .text = {.vocab = vocab,
                 .positions = OBJECTIVES_LENGTH,
                 .width = 8,
                 .depth = 1,
                 .heads = 2,
                 .mlp_width = 12,
                 .act = VLP_ACT_GELU,
                 .eps = 1e-12,
                 .dropout = dropout},
        .fusion = {.width = 8,
                   .depth = 2,
                   .heads = 2,
                   .mlp_width = 12,
                   .image_width = 8,
                   .act = VLP_ACT_GELU,
                   .eps = 1e-12,
                   .dropout = dropout},
        .embedding = 6,
        .logit_scale_init = 1,
        .logit_scale_max = 4.6,
        .text_length = OBJECTIVES_LENGTH,
    };
}

/* BLIP's: the text tower fuses, and a decoder shares it. */
static inline void objectives_write(vlp_model_config *config) {
    config->fusion.depth = 0;
    config->text.context_width = config->vision.width;
    config->text.depth = 2;
    config->decoder_shared = true;
    config->bos_id = config->text.vocab++;
    config->enc_id = config->text.vocab++;
    config->eos_id = 3;
}

static inline void objectives_batch(objectives_world *w) {
    static const char *const captions[OBJECTIVES_BATCH] = {
        "a red square", "two large green circles on the paper", "bluely", "the large circle"};
    vlp_rng rng = vlp_rng_at(4, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < OBJECTIVES_PIXELS; i++) w->pixels[i] = (vlp_real)vlp_rng_normal(&rng);
    for (int b = 0; b < OBJECTIVES_BATCH; b++) {
        vlp_tokenizer_encode_padded(w->tokenizer, captions[b], strlen(captions[b]),
                                    OBJECTIVES_LENGTH, w->ids + b * OBJECTIVES_LENGTH,
                                    w->mask + b * OBJECTIVES_LENGTH);
        w->keys[b] = (uint64_t)(100 + b);
        w->image_groups[b] = w->caption_groups[b] = b + 1;
    }
    w->pairs = (vlp_pairs){.batch = OBJECTIVES_BATCH,
                           .pixels = w->pixels,
                           .tokens = {.batch = OBJECTIVES_BATCH,
                                      .length = OBJECTIVES_LENGTH,
                                      .ids = w->ids,
                                      .attention_mask = w->mask},
                           .keys = w->keys,
                           .image_groups = w->image_groups,
                           .caption_groups = w->caption_groups,
                           .seed = 11};
}

/* Parameters are far from their small initial values, so that gradients are not. */
static inline void objectives_open_model(objectives_world *w, const vlp_objective_options *options,
                                         double dropout, bool plain_temperature) {
    *w = (objectives_world){0};
    w->tokenizer = text_open(objectives_vocab, NULL);
    vlp_model_config config = objectives_model(vlp_tokenizer_size(w->tokenizer), dropout);
    config.plain_temperature = config.projection_bias = plain_temperature;
    config.temperature_most = 0.5;
    if (options->lm_weight > 0) objectives_write(&config);
    assert_int_equal(vlp_model_new(&w->model, &config), VLP_OK);
    vlp_objective_setup setup = {w->model, w->tokenizer, options};
    assert_int_equal(vlp_objectives_create(&w->objectives, &setup), VLP_OK);
    assert_int_equal(vlp_params_allocate(w->model->params, true), VLP_OK);
    vlp_params_init(w->model->params, 5);
    vlp_rng rng = vlp_rng_at(6, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < w->model->params->count; i++) {
        vlp_tensor *tensor = &w->model->params->items[i]->tensor;
        for (int64_t n = 0; n < vlp_numel(tensor); n++)
            vlp_real_data(tensor)[n] += (vlp_real)(0.25 * vlp_rng_normal(&rng));
    }
    objectives_batch(w);
    vlp_objectives_start(&w->objectives, 7);
    assert_int_equal(vlp_tape_new(&w->tape), VLP_OK);
    assert_int_equal(vlp_tape_open(w->tape, 16 << 20), VLP_OK);
}

static inline void objectives_open(objectives_world *w, const vlp_objective_options *options,
                                   double dropout) {
    objectives_open_model(w, options, dropout, false);
}

static inline void objectives_close(objectives_world *w) {
    vlp_objectives_destroy(&w->objectives);
    vlp_tape_free(w->tape);
    vlp_model_free(w->model);
    vlp_tokenizer_free(w->tokenizer);
}

/* The weighted sum; w->terms holds the parts. */
static inline vlp_tensor *objectives_loss(objectives_world *w, bool with_grad) {
    vlp_tape_begin(w->tape, 1, 2);
    vlp_tape_set_grad(w->tape, with_grad);
    vlp_tape_set_training(w->tape, true);
    vlp_encodings_begin(&w->encodings, w->tape, w->model, &w->pairs);
    vlp_tensor *loss = vlp_objectives_loss(&w->objectives, &w->encodings, w->terms);
    if (!loss) fail_msg("%s", vlp_error());
    return loss;
}

/* The loss of one objective by name, after objectives_loss. */
static inline double objectives_term(const objectives_world *w, const char *name) {
    for (int i = 0; i < w->objectives.count; i++)
        if (strcmp(w->objectives.items[i].kind->name, name) == 0)
            return (double)vlp_real_data(w->terms[i])[0];
    fail_msg("no objective %s", name);
    return 0;
}

static inline double objectives_chance(const objectives_world *w, const char *name) {
    for (int i = 0; i < w->objectives.count; i++)
        if (strcmp(w->objectives.items[i].kind->name, name) == 0)
            return w->objectives.items[i].kind->chance(w->objectives.items[i].state);
    fail_msg("no objective %s", name);
    return 0;
}

#endif
