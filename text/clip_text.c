#include "text/clip_text.h"

/* The standard deviations of the paper's code. */
static const double words_std = 0.02, positions_std = 0.01;

vlp_status vlp_clip_text_declare(vlp_clip_text *text, vlp_params *params,
                                 const vlp_clip_text_config *c) {
    *text = (vlp_clip_text){.config = *c};
    text->words = vlp_params_add(params, "words", VLP_INIT_NORMAL(words_std), VLP_NO_DECAY, 2,
                                 (int64_t[]){c->vocab, c->width});
    text->positions = vlp_params_add(params, "positions", VLP_INIT_NORMAL(positions_std),
                                     VLP_NO_DECAY, 2, (int64_t[]){c->positions, c->width});
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .act = c->act,
                              .pre_norm = true,
                              .eps = c->eps,
                              .attention_dropout = c->attention_dropout};
    VLP_TRY(vlp_stack_declare(&text->stack, params, &block, c->depth));
    vlp_norm_declare(&text->norm, params, "norm", c->width, c->eps);
    return VLP_OK;
}

void vlp_clip_text_free(vlp_clip_text *text) {
    vlp_stack_free(&text->stack);
}

vlp_tensor *vlp_clip_text_forward(vlp_tape *tape, const vlp_clip_text *text,
                                  const vlp_tokens *tokens, vlp_tensor **hidden) {
    VLP_ASSERT(tokens->length <= text->config.positions, "text of %lld tokens, %lld positions",
               (long long)tokens->length, (long long)text->config.positions);
    vlp_tensor *x = vlp_embedding(tape, text->words, tokens->ids, 2,
                                  (int64_t[]){tokens->batch, tokens->length}, -1);
    x = vlp_add_positions(tape, x, text->positions, 0);
    return vlp_stack_forward(tape, &text->stack, x,
                             &(vlp_stack_input){.key_mask = tokens->attention_mask,
                                                .causal = true,
                                                .final_norm = &text->norm,
                                                .hidden = hidden});
}

static int64_t end_of(const int32_t *ids, int64_t length) {
    int64_t best = 0;
    for (int64_t i = 1; i < length; i++)
        if (ids[i] > ids[best]) best = i;
    return best;
}

vlp_tensor *vlp_clip_text_end(vlp_tape *tape, vlp_tensor *x, const vlp_tokens *tokens) {
    int32_t *rows = vlp_tape_alloc(tape, (size_t)tokens->batch * sizeof *rows);
    if (!rows || !x) return NULL;
    int64_t length = tokens->length;
    for (int64_t b = 0; !vlp_tape_planning(tape) && b < tokens->batch; b++)
        rows[b] = (int32_t)(b * length + end_of(tokens->ids + b * length, length));
    return vlp_gather_rows(tape, x, rows, tokens->batch);
}
