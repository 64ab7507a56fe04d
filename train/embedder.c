#include "train/embedder.h"

#include "core/file.h"
#include "core/memory.h"
#include "train/model_folder.h"

#include <math.h>
#include <string.h>

struct vlp_embedder {
    const vlp_model *model;
    const vlp_tokenizer *tokenizer;
    vlp_transform transform;
    vlp_model_folder own; /* empty when wrapped around borrowed ones */
    vlp_tape *tape;
    int64_t batch;
    int32_t *ids, *trimmed_ids;   /* [batch, L] */
    uint8_t *mask, *trimmed_mask; /* [batch, L] */
    int32_t *same_image;          /* [batch] zeros */
    vlp_image image;
    vlp_transform_scratch scratch;
};

/* The passes whose memory is rehearsed. */
static vlp_tensor *image_pass(vlp_embedder *e, const vlp_real *pixels, int64_t n) {
    const vlp_vit_config *c = &e->model->config.vision;
    const int64_t shape[] = {n, c->channels, c->image_height, c->image_width};
    vlp_tensor *x = vlp_tape_input(e->tape, VLP_REAL, 4, shape, pixels, false);
    return vlp_model_image_tokens(e->tape, e->model, x);
}

/* The tokens of the first n rows, without common padding; rehearsals assume none. */
static vlp_tokens tokens_of(const vlp_embedder *e, int64_t n) {
    vlp_tokens all = {.batch = n,
                      .length = e->model->config.text_length,
                      .ids = e->ids,
                      .attention_mask = e->mask};
    vlp_tokens trimmed;
    if (vlp_tape_planning(e->tape) || vlp_model_reads_padding(&e->model->config)) return all;
    vlp_tokens_trim(&all, e->trimmed_ids, e->trimmed_mask, &trimmed);
    return trimmed;
}

static vlp_tensor *text_pass(vlp_embedder *e, const vlp_tokens *tokens) {
    return vlp_model_text_tokens(e->tape, e->model, tokens);
}

static vlp_tensor *text_vectors(vlp_embedder *e, int64_t n) {
    vlp_tokens tokens = tokens_of(e, n);
    return vlp_model_text_embedding(e->tape, e->model, &tokens, text_pass(e, &tokens));
}

/* n images against one text: the text's states are shared by repeating them. */
static vlp_tensor *match_pass(vlp_embedder *e, const vlp_real *pixels, int64_t n) {
    vlp_tensor *keys[VLP_MAX_DEPTH], *text = NULL;
    vlp_model_image_keys(e->tape, e->model, image_pass(e, pixels, n), keys);
    vlp_tokens tokens = tokens_of(e, n);
    if (!vlp_model_fuses_anew(e->model)) text = text_pass(e, &tokens);
    vlp_tensor *fused = vlp_model_fuse(e->tape, e->model, &tokens, text, keys, NULL);
    return vlp_model_match(e->tape, e->model, fused);
}

/* Logits [n, 2] of the first n texts with one image; their cosines [n, 1] where they count. */
static vlp_tensor *rank_pass(vlp_embedder *e, const vlp_real *pixels, int64_t n,
                             vlp_tensor **cosines) {
    vlp_tensor *keys[VLP_MAX_DEPTH], *image = image_pass(e, pixels, 1), *text = NULL;
    vlp_model_image_keys(e->tape, e->model, image, keys);
    vlp_tokens tokens = tokens_of(e, n);
    if (vlp_model_fuses_anew(e->model))
        *cosines =
            vlp_linear(e->tape, text_vectors(e, n),
                       vlp_model_image_embedding(e->tape, e->model, image), NULL, VLP_ACT_NONE);
    else
        text = text_pass(e, &tokens);
    vlp_tensor *fused = vlp_model_fuse(e->tape, e->model, &tokens, text, keys, e->same_image);
    return vlp_model_match(e->tape, e->model, fused);
}

static void begin(vlp_embedder *e) {
    vlp_tape_begin(e->tape, 0, 0);
    vlp_tape_set_grad(e->tape, false);
}

static vlp_status rehearse(vlp_embedder *e) {
    VLP_TRY(vlp_tape_plan(e->tape));
    begin(e);
    vlp_model_image_embedding(e->tape, e->model, image_pass(e, NULL, e->batch));
    begin(e);
    text_vectors(e, e->batch);
    if (vlp_model_can_match(e->model)) {
        begin(e);
        match_pass(e, NULL, e->batch);
        begin(e);
        rank_pass(e, NULL, e->batch, &(vlp_tensor *){NULL});
    }
    return vlp_tape_open(e->tape, 1 << 20);
}

static vlp_status setup(vlp_embedder *e) {
    size_t tokens = (size_t)(e->batch * e->model->config.text_length);
    e->ids = vlp_alloc_zero(tokens, sizeof *e->ids);
    e->mask = vlp_alloc_zero(tokens, 1);
    e->trimmed_ids = vlp_alloc_zero(tokens, sizeof *e->ids);
    e->trimmed_mask = vlp_alloc_zero(tokens, 1);
    e->same_image = vlp_alloc_zero((size_t)e->batch, sizeof *e->same_image);
    if (!e->ids || !e->mask || !e->trimmed_ids || !e->trimmed_mask || !e->same_image)
        return VLP_ERR_MEMORY;
    VLP_TRY(vlp_tape_new(&e->tape));
    return rehearse(e);
}

vlp_status vlp_embedder_speed_up(vlp_embedder *e, vlp_dtype precision) {
    vlp_tape_set_precision(e->tape, precision);
    VLP_TRY(vlp_params_keep_packed(e->model->params));
    return rehearse(e);
}

vlp_status vlp_embedder_wrap(vlp_embedder **out, const vlp_model *model,
                             const vlp_tokenizer *tokenizer, const vlp_transform *transform,
                             int64_t batch) {
    *out = NULL;
    vlp_embedder *e = vlp_alloc_zero(1, sizeof *e);
    if (!e) return VLP_ERR_MEMORY;
    e->model = model;
    e->tokenizer = tokenizer;
    e->transform = *transform;
    e->batch = batch;
    vlp_status status = setup(e);
    if (status != VLP_OK) {
        vlp_embedder_free(e);
        return status;
    }
    *out = e;
    return VLP_OK;
}

static vlp_status check_space(const vlp_model *model, const char *folder) {
    if (model->text_projection.weight) return VLP_OK;
    return VLP_FAIL(
        VLP_ERR_UNSUPPORTED,
        "%s: this model has no space that pictures and texts share; it cannot search or "
        "classify",
        folder);
}

vlp_status vlp_embedder_open(vlp_embedder **out, const char *folder, int64_t batch) {
    *out = NULL;
    vlp_model_folder f;
    vlp_status status = vlp_model_folder_open(&f, folder);
    if (status == VLP_OK) status = check_space(f.model, folder);
    if (status == VLP_OK)
        status = vlp_embedder_wrap(out, f.model, f.tokenizer, &f.transform, batch);
    if (status != VLP_OK) {
        vlp_model_folder_close(&f);
        return status;
    }
    (*out)->own = f;
    return VLP_OK;
}

void vlp_embedder_free(vlp_embedder *e) {
    if (!e) return;
    vlp_tape_free(e->tape);
    vlp_free(e->ids);
    vlp_free(e->mask);
    vlp_free(e->trimmed_ids);
    vlp_free(e->trimmed_mask);
    vlp_free(e->same_image);
    vlp_image_free(&e->image);
    vlp_transform_scratch_free(&e->scratch);
    vlp_model_folder_close(&e->own);
    vlp_free(e);
}

int64_t vlp_embedder_width(const vlp_embedder *e) {
    return e->model->config.embedding;
}

const vlp_transform *vlp_embedder_transform(const vlp_embedder *e) {
    return &e->transform;
}

const vlp_tokenizer *vlp_embedder_tokenizer(const vlp_embedder *e) {
    return e->tokenizer;
}

const vlp_model *vlp_embedder_model(const vlp_embedder *e) {
    return e->model;
}

double vlp_embedder_scale(const vlp_embedder *e) {
    return vlp_model_scale(e->model);
}

double vlp_embedder_flops(const vlp_embedder *e) {
    return vlp_tape_flops(e->tape);
}

vlp_hash vlp_embedder_id(const vlp_embedder *e) {
    const vlp_params *params = e->model->params;
    vlp_hash id = vlp_hash_bytes(params->values, (size_t)params->total * sizeof(vlp_real));
    vlp_json *json = vlp_transform_to_json(&e->transform);
    vlp_buf text = {0};
    if (json && vlp_json_dump(json, 0, &text) == VLP_OK)
        id = vlp_hash_more(id, text.data, text.len);
    vlp_buf_free(&text);
    vlp_json_free(json);
    return id;
}

static vlp_status copy_out(vlp_embedder *e, const vlp_tensor *vectors, int64_t n, float *out) {
    VLP_TRY(vlp_tape_status(e->tape));
    const vlp_real *from = vlp_real_data(vectors);
    for (int64_t i = 0; i < n * vlp_embedder_width(e); i++) out[i] = (float)from[i];
    return VLP_OK;
}

static int64_t pixels_an_image(const vlp_embedder *e) {
    const vlp_vit_config *c = &e->model->config.vision;
    return c->channels * c->image_height * c->image_width;
}

vlp_status vlp_embedder_pixels(vlp_embedder *e, const float *pixels, int64_t n, float *out) {
    for (int64_t at = 0; at < n; at += e->batch) {
        int64_t some = n - at < e->batch ? n - at : e->batch;
        begin(e);
        vlp_tensor *tokens = image_pass(e, pixels + at * pixels_an_image(e), some);
        vlp_tensor *vectors = vlp_model_image_embedding(e->tape, e->model, tokens);
        VLP_TRY(copy_out(e, vectors, some, out + at * vlp_embedder_width(e)));
    }
    return VLP_OK;
}

static void encode(vlp_embedder *e, const char *text, int64_t row) {
    int64_t length = e->model->config.text_length;
    vlp_tokenizer_encode_padded(e->tokenizer, text, strlen(text), (int)length,
                                e->ids + row * length, e->mask + row * length);
}

vlp_status vlp_embedder_texts(vlp_embedder *e, const char *const *texts, int64_t n, float *out) {
    for (int64_t at = 0; at < n; at += e->batch) {
        int64_t some = n - at < e->batch ? n - at : e->batch;
        for (int64_t i = 0; i < some; i++) encode(e, texts[at + i], i);
        begin(e);
        vlp_tensor *vectors = text_vectors(e, some);
        VLP_TRY(copy_out(e, vectors, some, out + at * vlp_embedder_width(e)));
    }
    return VLP_OK;
}

vlp_status vlp_embedder_prepare(vlp_embedder *e, const uint8_t *data, size_t len, const char *where,
                                float *pixels) {
    vlp_decode_options how = vlp_transform_decode_options(&e->transform, false);
    vlp_status status = vlp_image_decode(&e->image, data, len, &how);
    if (status == VLP_OK)
        status = vlp_transform_apply(&e->transform, &e->image, NULL, &e->scratch, pixels);
    return status == VLP_OK ? VLP_OK : vlp_fail_in(status, "%s", where);
}

static vlp_status check_matching(const vlp_embedder *e) {
    if (vlp_model_can_match(e->model)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "this model has no fusion stack and no matching head; train one with the "
                    "recipe vlp");
}

vlp_status vlp_embedder_match(vlp_embedder *e, const float *pixels, int64_t n, const char *text,
                              float *out) {
    VLP_TRY(check_matching(e));
    for (int64_t at = 0; at < n; at += e->batch) {
        int64_t some = n - at < e->batch ? n - at : e->batch;
        for (int64_t i = 0; i < some; i++) encode(e, text, i);
        begin(e);
        vlp_tensor *logits = match_pass(e, pixels + at * pixels_an_image(e), some);
        VLP_TRY(vlp_tape_status(e->tape));
        const vlp_real *l = vlp_real_data(logits);
        for (int64_t i = 0; i < some; i++)
            out[at + i] = (float)(1 / (1 + exp((double)(l[2 * i] - l[2 * i + 1]))));
    }
    return VLP_OK;
}

vlp_status vlp_embedder_rank(vlp_embedder *e, const float *pixels, const char *const *texts,
                             int64_t n, float *out) {
    VLP_TRY(check_matching(e));
    for (int64_t at = 0; at < n; at += e->batch) {
        int64_t some = n - at < e->batch ? n - at : e->batch;
        for (int64_t i = 0; i < some; i++) encode(e, texts[at + i], i);
        begin(e);
        vlp_tensor *cosines = NULL, *logits = rank_pass(e, pixels, some, &cosines);
        VLP_TRY(vlp_tape_status(e->tape));
        for (int64_t i = 0; i < some; i++)
            out[at + i] = (float)(vlp_real_data(logits)[2 * i + 1] +
                                  (cosines ? vlp_real_data(cosines)[i] : 0));
    }
    return VLP_OK;
}
