#include "train/answerer.h"

#include "core/memory.h"
#include "fusion/rank.h"
#include "train/decoder.h"
#include "train/model_folder.h"

#include <string.h>

struct vlp_answerer {
    vlp_model_folder folder;
    const char *const *choices;
    int64_t n_choices, length; /* of questions and choices, in tokens */
    vlp_rank_options rank;
    vlp_generator *generator; /* NULL when answers are chosen */
    vlp_tokens candidates;
    int32_t *candidate_ids, *question; /* [n_choices, length], [length] */
    uint8_t *candidate_mask;
    int32_t *order; /* [k] */
    double *p;      /* [k] */
    vlp_answer *answers;
    vlp_buf text;
    vlp_tape *tape;
    vlp_decoder *pictures;
    const float *pixels; /* of the picture at hand */
};

/* The decoder has no other way to know the question than to begin with it. */
static bool continues(const vlp_answerer *a) {
    return a->folder.model->config.answers_questions;
}

/* The picture and a question of `length` tokens -> what the decoder attends to. */
static void attend(vlp_answerer *a, int64_t length, vlp_tensor **keys) {
    const vlp_model *model = a->folder.model;
    const vlp_vit_config *v = &model->config.vision;
    const int64_t shape[] = {1, v->channels, v->image_height, v->image_width};
    vlp_tokens question = {.batch = 1, .length = length, .ids = a->question};
    vlp_tensor *image_keys[VLP_MAX_DEPTH], *text = NULL;
    vlp_tape_begin(a->tape, 0, 0);
    vlp_tape_set_grad(a->tape, false);
    vlp_tensor *x = vlp_tape_input(a->tape, VLP_REAL, 4, shape, a->pixels, false);
    x = vlp_model_image_tokens(a->tape, model, x);
    if (continues(a)) {
        vlp_model_decoder_keys(a->tape, model, x, keys);
        return;
    }
    vlp_model_image_keys(a->tape, model, x, image_keys);
    if (!vlp_model_fuses_anew(model)) text = vlp_model_text_tokens(a->tape, model, &question);
    vlp_model_decoder_keys(a->tape, model,
                           vlp_model_fuse(a->tape, model, &question, text, image_keys, NULL), keys);
}

static vlp_status pass(vlp_answerer *a, int64_t length, vlp_writing *writing) {
    int32_t begin = (int32_t)a->folder.model->config.bos_id;
    vlp_tensor *keys[VLP_MAX_DEPTH];
    attend(a, length, keys);
    if (a->n_choices > 0)
        return vlp_rank_answers(a->tape, a->folder.model,
                                &(vlp_rank_source){1, keys, NULL, &a->candidates}, &a->rank,
                                a->order, a->p);
    vlp_generator_source source = {.n = 1, .keys = keys, .prompt = &begin, .prompt_length = 1};
    if (continues(a)) {
        source.prompt = a->question;
        source.prompt_length = length;
    }
    return vlp_generator_write(a->generator, a->tape, &source, writing);
}

static vlp_status rehearse(vlp_answerer *a) {
    enum { SLACK = 1 << 20 };
    VLP_TRY(vlp_tape_new(&a->tape));
    VLP_TRY(vlp_tape_plan(a->tape));
    VLP_TRY(pass(a, a->length, NULL));
    return vlp_tape_open(a->tape, SLACK);
}

static vlp_status encode_choices(vlp_answerer *a) {
    size_t n = (size_t)(a->n_choices * a->length);
    a->candidate_ids = vlp_alloc_zero(n, sizeof *a->candidate_ids);
    a->candidate_mask = vlp_alloc_zero(n, 1);
    if (!a->candidate_ids || !a->candidate_mask) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < a->n_choices; i++) {
        int32_t *ids = a->candidate_ids + i * a->length;
        vlp_tokenizer_encode_padded(a->folder.tokenizer, a->choices[i], strlen(a->choices[i]),
                                    (int)a->length, ids, a->candidate_mask + i * a->length);
        ids[0] = (int32_t)a->folder.model->config.bos_id;
    }
    vlp_tokens all = {a->n_choices, a->length, a->candidate_ids, NULL, a->candidate_mask};
    vlp_tokens_trim(&all, a->candidate_ids, a->candidate_mask, &a->candidates);
    return VLP_OK;
}

static vlp_status check(const vlp_model *model, const char *folder) {
    const vlp_model_config *c = &model->config;
    if (vlp_model_can_write(model) && (c->decoder_reads_text || c->answers_questions))
        return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: this model was not trained on questions; BLIP's and ALBEF's models for "
                    "visual question answering are, and what `vlp finetune vqa` makes%s",
                    folder,
                    vlp_model_can_write(model) ? "; `vlp caption` works with this one" : "");
}

/* A text of a model that continues questions holds both; written answers need some of the room. */
static vlp_status open_generator(vlp_answerer *a, const vlp_generate_options *options) {
    vlp_generate_options o = *options;
    if (continues(a)) {
        int64_t room = a->length / 2 < o.max_length ? a->length / 2 : o.max_length;
        o.max_length = a->length;
        o.min_length = 1;
        a->length -= room;
    }
    return vlp_generator_new(&a->generator, a->folder.model, 1, &o);
}

static vlp_status setup(vlp_answerer *a, const char *folder, const vlp_answerer_options *o) {
    VLP_TRY(vlp_model_folder_open(&a->folder, folder));
    VLP_TRY(check(a->folder.model, folder));
    const vlp_model_config *c = &a->folder.model->config;
    int64_t positions = a->folder.model->decoder.config.positions;
    a->length = c->text_length < positions ? c->text_length : positions;
    if (continues(a) && a->n_choices > 0)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: this model continues a question with its answer; it cannot choose "
                        "among given ones",
                        folder);
    a->rank = vlp_rank_defaults(a->folder.model, o->k < a->n_choices ? o->k : a->n_choices);
    size_t answers = a->n_choices > 0 ? (size_t)a->rank.k : 1;
    a->question = vlp_alloc_zero((size_t)a->length, sizeof *a->question);
    a->order = vlp_alloc_zero(answers, sizeof *a->order);
    a->p = vlp_alloc_zero(answers, sizeof *a->p);
    a->answers = vlp_alloc_zero(answers, sizeof *a->answers);
    if (!a->question || !a->order || !a->p || !a->answers) return VLP_ERR_MEMORY;
    VLP_TRY(a->n_choices > 0 ? encode_choices(a) : open_generator(a, &o->generate));
    VLP_TRY(vlp_decoder_open(&a->pictures, &a->folder.transform, 1, NULL));
    return rehearse(a);
}

vlp_status vlp_answerer_open(vlp_answerer **out, const char *folder,
                             const vlp_answerer_options *options) {
    *out = NULL;
    vlp_answerer *a = vlp_alloc_zero(1, sizeof *a);
    if (!a) return VLP_ERR_MEMORY;
    a->choices = options->choices;
    a->n_choices = options->n_choices;
    vlp_status status = setup(a, folder, options);
    if (status != VLP_OK) {
        vlp_answerer_free(a);
        return status;
    }
    *out = a;
    return VLP_OK;
}

void vlp_answerer_free(vlp_answerer *a) {
    if (!a) return;
    vlp_decoder_free(a->pictures);
    vlp_generator_free(a->generator);
    vlp_tape_free(a->tape);
    vlp_free(a->candidate_ids);
    vlp_free(a->candidate_mask);
    vlp_free(a->question);
    vlp_free(a->order);
    vlp_free(a->p);
    vlp_free(a->answers);
    vlp_buf_free(&a->text);
    vlp_model_folder_close(&a->folder);
    vlp_free(a);
}

vlp_status vlp_answerer_look(vlp_answerer *a, const char *path) {
    VLP_TRY(vlp_decoder_files(a->pictures, &path, 1));
    const char *reason = vlp_decoder_reason(a->pictures, 0);
    if (reason) return VLP_FAIL(VLP_ERR_FORMAT, "%s: %s", path, reason);
    a->pixels = vlp_decoder_pixels(a->pictures);
    return VLP_OK;
}

vlp_status vlp_answerer_ask(vlp_answerer *a, const char *question, const vlp_answer **answers,
                            int64_t *n) {
    VLP_ASSERT(a->pixels, "a question about no picture");
    vlp_writing writing;
    int length = vlp_tokenizer_encode(a->folder.tokenizer, question, strlen(question), true,
                                      a->question, (int)a->length);
    if (continues(a)) a->question[0] = (int32_t)a->folder.model->config.bos_id;
    VLP_TRY(pass(a, length, &writing));
    *answers = a->answers;
    *n = a->n_choices > 0 ? a->rank.k : 1;
    for (int64_t i = 0; a->n_choices > 0 && i < *n; i++)
        a->answers[i] = (vlp_answer){a->choices[a->order[i]], a->p[i]};
    if (a->n_choices > 0) return VLP_OK;
    vlp_buf_clear(&a->text);
    VLP_TRY(vlp_writing_text(a->folder.tokenizer, &writing, continues(a) ? length : 1, &a->text));
    a->answers[0] = (vlp_answer){a->text.data, writing.score};
    return VLP_OK;
}
