#include "text/clip_text.h"

/* The standard deviations of the paper's code. */
static const double words_std = 0.02, positions_std = 0.01;

vlp_status vlp_clip_text_declare(vlp_clip_text *text, vlp_params *params,
                                 const vlp_clip_text_config *c) {
    *text = (vlp_clip_text){.config = *c};
    text->words = vlp_params_add(params, "words", VLP_INIT_NORMAL(words_std), VLP_NO_DECAY, 2,
                                 (int64_t[]){c->vocab, c->width});
    text->positions =
        vlp_params_add(params, "positions", VLP_INIT_NORMAL(positions_std), VLP_NO_DECAY, 2,
                       (int64_t[]){c->positions + (c->class_token ? 1 : 0), c->width});
    if (c->class_token)
        text->class_token = vlp_params_add(params, "class_token", VLP_INIT_NORMAL(positions_std),
                                           VLP_NO_DECAY, 2, (int64_t[]){1, c->width});
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .act = c->act,
                              .pre_norm = true,
                              .layer_scale = c->layer_scale,
                              .eps = c->eps,
                              .attention_dropout = c->attention_dropout};
    VLP_TRY(vlp_stack_declare(&text->stack, params, &block, c->depth));
    vlp_norm_declare(&text->norm, params, "norm", c->width, c->eps);
    return VLP_OK;
}

void vlp_clip_text_free(vlp_clip_text *text) {
    vlp_stack_free(&text->stack);
}

/* x [B, L, D] -> [B, L + 1, D], the class token last. */
static vlp_tensor *append_class_token(vlp_tape *tape, const vlp_clip_text *text, vlp_tensor *x,
                                      int64_t batch, int64_t length) {
    int64_t width = text->config.width, rows = batch * (length + 1);
    int32_t *order = vlp_tape_alloc(tape, (size_t)rows * sizeof *order);
    if (!order || !x) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < rows; i++) {
        int64_t b = i / (length + 1), l = i % (length + 1);
        order[i] = (int32_t)(l < length ? b * length + l : batch * length);
    }
    x = vlp_reshape(tape, x, 2, (int64_t[]){batch * length, width});
    x = vlp_gather_rows(tape, vlp_concat_rows(tape, x, text->class_token), order, rows);
    return vlp_reshape(tape, x, 3, (int64_t[]){batch, length + 1, width});
}

/* open_clip's released CoCa weights were trained with a mask that is shifted by one: the first key
 * always counts, key l + 1 does where id l is no padding. */
static const uint8_t *shifted_mask(vlp_tape *tape, const vlp_clip_text *text,
                                   const vlp_tokens *tokens) {
    int64_t length = tokens->length, n = tokens->batch * (length + 1);
    uint8_t *mask = vlp_tape_alloc(tape, (size_t)n);
    for (int64_t i = 0; mask && !vlp_tape_planning(tape) && i < n; i++) {
        int64_t b = i / (length + 1), l = i % (length + 1);
        mask[i] = l == 0 || tokens->ids[b * length + l - 1] != text->config.pad_id;
    }
    return mask;
}

vlp_tensor *vlp_clip_text_forward(vlp_tape *tape, const vlp_clip_text *text,
                                  const vlp_tokens *tokens, vlp_tensor **hidden) {
    const vlp_clip_text_config *c = &text->config;
    VLP_ASSERT(tokens->length <= c->positions, "text of %lld tokens, %lld positions",
               (long long)tokens->length, (long long)c->positions);
    const uint8_t *mask = c->reads_padding ? NULL : tokens->attention_mask;
    vlp_tensor *x = vlp_embedding(tape, text->words, tokens->ids, 2,
                                  (int64_t[]){tokens->batch, tokens->length}, -1);
    if (c->class_token) {
        x = append_class_token(tape, text, x, tokens->batch, tokens->length);
        mask = shifted_mask(tape, text, tokens);
    }
    x = vlp_add_positions(tape, x, text->positions, 0);
    return vlp_stack_forward(
        tape, &text->stack, x,
        &(vlp_stack_input){
            .key_mask = mask, .causal = !c->two_way, .final_norm = &text->norm, .hidden = hidden});
}

static int64_t largest(const int32_t *ids, int64_t length) {
    int64_t best = 0;
    for (int64_t i = 1; i < length; i++)
        if (ids[i] > ids[best]) best = i;
    return best;
}

static int64_t end_of(const vlp_clip_text *text, const int32_t *ids, int64_t length) {
    if (text->config.class_token) return length;
    if (text->config.pool == VLP_TEXT_END) return largest(ids, length);
    return text->config.pool == VLP_TEXT_LAST ? length - 1 : 0;
}

vlp_tensor *vlp_clip_text_end(vlp_tape *tape, const vlp_clip_text *text, vlp_tensor *x,
                              const vlp_tokens *tokens) {
    int32_t *rows = vlp_tape_alloc(tape, (size_t)tokens->batch * sizeof *rows);
    if (!rows || !x) return NULL;
    int64_t length = tokens->length;
    for (int64_t b = 0; !vlp_tape_planning(tape) && b < tokens->batch; b++)
        rows[b] = (int32_t)(b * x->shape[1] + end_of(text, tokens->ids + b * length, length));
    return vlp_gather_rows(tape, x, rows, tokens->batch);
}
