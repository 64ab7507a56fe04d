#include "train/captioner.h"

#include "core/memory.h"
#include "train/decoder.h"
#include "train/model_folder.h"

#include <string.h>

struct vlp_captioner {
    vlp_model_folder folder;
    int64_t batch;
    int32_t *prompt;                   /* [text's positions]: begin, prompt */
    int64_t prompt_length, shown_from; /* first token of what is told */
    vlp_generator *generator;
    vlp_writing *writings; /* [batch] */
    uint64_t *numbers;     /* [batch]: places in the whole list, for what is drawn */
    vlp_tape *tape;
    vlp_decoder *pictures;
    vlp_buf text;
};

/* pixels [n, C, S, S] to texts; with pixels NULL the rehearsal. */
static vlp_status pass(vlp_captioner *c, const vlp_real *pixels, int64_t n) {
    const vlp_model *model = c->folder.model;
    const vlp_vit_config *v = &model->config.vision;
    const int64_t shape[] = {n, v->channels, v->image_height, v->image_width};
    vlp_tensor *keys[VLP_MAX_DEPTH];
    vlp_tape_begin(c->tape, 0, 0);
    vlp_tape_set_grad(c->tape, false);
    vlp_tensor *x = vlp_tape_input(c->tape, VLP_REAL, 4, shape, pixels, false);
    vlp_model_decoder_keys(c->tape, model, vlp_model_image_tokens(c->tape, model, x), keys);
    return vlp_generator_write(c->generator, c->tape,
                               &(vlp_generator_source){.n = n,
                                                       .keys = keys,
                                                       .prompt = c->prompt,
                                                       .prompt_length = c->prompt_length,
                                                       .numbers = c->numbers},
                               c->writings);
}

static vlp_status rehearse(vlp_captioner *c) {
    enum { SLACK = 1 << 20 };
    VLP_TRY(vlp_tape_new(&c->tape));
    VLP_TRY(vlp_tape_plan(c->tape));
    VLP_TRY(pass(c, NULL, c->batch));
    return vlp_tape_open(c->tape, SLACK);
}

/* bos_id and the words of the prompt, without their [CLS] and [SEP]. */
static vlp_status set_prompt(vlp_captioner *c, const char *own, int64_t most) {
    const vlp_model_config *config = &c->folder.model->config;
    const char *text = own ? own : config->prompt;
    c->prompt = vlp_alloc_zero((size_t)most + 1, sizeof *c->prompt);
    if (!c->prompt) return VLP_ERR_MEMORY;
    c->prompt[0] = (int32_t)config->bos_id;
    c->prompt_length = 1 + vlp_tokenizer_encode_literal(c->folder.tokenizer, text, strlen(text),
                                                        c->prompt + 1, (int)most);
    c->shown_from = own ? 1 : c->prompt_length;
    if (c->prompt_length < most) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE,
                    "the prompt has %lld tokens or more; captions end at %lld: raise the most "
                    "tokens of a caption",
                    (long long)c->prompt_length, (long long)most);
}

static vlp_status check(const vlp_model *model, const char *folder) {
    if (!vlp_model_can_write(model))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: this model has no decoder: it cannot write captions; train one with "
                        "the recipe blip",
                        folder);
    if (model->config.decoder_reads_text || model->config.answers_questions)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: this model answers questions; it does not write captions", folder);
    return VLP_OK;
}

static vlp_status setup(vlp_captioner *c, const char *folder, const vlp_captioner_options *o) {
    VLP_TRY(vlp_model_folder_open(&c->folder, folder));
    VLP_TRY(check(c->folder.model, folder));
    VLP_TRY(set_prompt(c, o->prompt, o->generate.max_length));
    c->writings = vlp_alloc_zero((size_t)c->batch, sizeof *c->writings);
    c->numbers = vlp_alloc_zero((size_t)c->batch, sizeof *c->numbers);
    if (!c->writings || !c->numbers) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_generator_new(&c->generator, c->folder.model, c->batch, &o->generate));
    VLP_TRY(vlp_decoder_open(&c->pictures, &c->folder.transform, c->batch, NULL));
    return rehearse(c);
}

vlp_status vlp_captioner_open(vlp_captioner **out, const char *folder,
                              const vlp_captioner_options *options) {
    *out = NULL;
    vlp_captioner *c = vlp_alloc_zero(1, sizeof *c);
    if (!c) return VLP_ERR_MEMORY;
    c->batch = options->batch;
    vlp_status status = setup(c, folder, options);
    if (status != VLP_OK) {
        vlp_captioner_free(c);
        return status;
    }
    *out = c;
    return VLP_OK;
}

void vlp_captioner_free(vlp_captioner *c) {
    if (!c) return;
    vlp_decoder_free(c->pictures);
    vlp_generator_free(c->generator);
    vlp_tape_free(c->tape);
    vlp_free(c->writings);
    vlp_free(c->numbers);
    vlp_free(c->prompt);
    vlp_buf_free(&c->text);
    vlp_model_folder_close(&c->folder);
    vlp_free(c);
}

static vlp_status tell(vlp_captioner *c, int64_t i, vlp_captioned *picture) {
    const vlp_writing *w = &c->writings[i];
    int64_t from = c->shown_from < w->length ? c->shown_from : w->length;
    vlp_buf_clear(&c->text);
    VLP_TRY(vlp_writing_text(c->folder.tokenizer, w, from, &c->text));
    picture->caption = c->text.data;
    picture->score = w->score;
    return VLP_OK;
}

static vlp_status some(vlp_captioner *c, const char *const *paths, int64_t at, int64_t n,
                       vlp_captioned_fn each, void *user, bool *more) {
    paths += at;
    for (int64_t i = 0; i < n; i++) c->numbers[i] = (uint64_t)(at + i);
    VLP_TRY(vlp_decoder_files(c->pictures, paths, n));
    VLP_TRY(pass(c, vlp_decoder_pixels(c->pictures), n));
    for (int64_t i = 0; i < n && *more; i++) {
        vlp_captioned picture = {.path = paths[i], .reason = vlp_decoder_reason(c->pictures, i)};
        if (!picture.reason) VLP_TRY(tell(c, i, &picture));
        *more = each(&picture, user);
    }
    return VLP_OK;
}

vlp_status vlp_captioner_files(vlp_captioner *c, const char *const *paths, int64_t n,
                               vlp_captioned_fn each, void *user) {
    bool more = true;
    for (int64_t at = 0; at < n && more; at += c->batch)
        VLP_TRY(some(c, paths, at, n - at < c->batch ? n - at : c->batch, each, user, &more));
    return VLP_OK;
}
