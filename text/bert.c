#include "text/bert.h"

#include <string.h>

static vlp_tensor *table(vlp_params *params, const char *name, int64_t rows, int64_t width) {
    return vlp_params_add(params, name, VLP_INIT_TRUNCATED(vlp_init_std(width)), VLP_NO_DECAY, 2,
                          (int64_t[]){rows, width});
}

vlp_status vlp_bert_declare(vlp_bert *bert, vlp_params *params, const vlp_bert_config *c) {
    *bert = (vlp_bert){.config = *c};
    bert->words = table(params, "words", c->vocab, c->width);
    bert->positions = table(params, "positions", c->positions, c->width);
    if (c->types > 0) bert->types = table(params, "types", c->types, c->width);
    vlp_norm_declare(&bert->norm, params, "norm", c->width, c->eps);
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .context_width = c->context_width,
                              .act = c->act,
                              .eps = c->eps,
                              .dropout = c->dropout,
                              .attention_dropout = c->attention_dropout};
    return vlp_stack_declare(&bert->stack, params, &block, c->depth);
}

vlp_status vlp_bert_declare_shared(vlp_bert *bert, vlp_params *params, const vlp_bert *from) {
    *bert = *from;
    return vlp_stack_declare_shared(&bert->stack, params, &from->stack);
}

void vlp_bert_free(vlp_bert *bert) {
    vlp_stack_free(&bert->stack);
}

static const int32_t *segment_ids(vlp_tape *tape, const vlp_tokens *tokens) {
    if (tokens->types) return tokens->types;
    int64_t n = tokens->batch * tokens->length;
    int32_t *zeros = vlp_tape_alloc(tape, (size_t)n * sizeof *zeros);
    if (zeros && !vlp_tape_planning(tape))
        for (int64_t i = 0; i < n; i++) zeros[i] = 0;
    return zeros;
}

/* The first token stands at `place`. */
static vlp_tensor *embed(vlp_tape *tape, const vlp_bert *bert, const vlp_tokens *tokens,
                         int64_t place) {
    const int64_t leading[] = {tokens->batch, tokens->length};
    vlp_tensor *x = vlp_embedding(tape, bert->words, tokens->ids, 2, leading, bert->config.pad_id);
    if (bert->types) {
        vlp_tensor *types =
            vlp_embedding(tape, bert->types, segment_ids(tape, tokens), 2, leading, -1);
        x = vlp_add(tape, x, types);
    }
    x = vlp_forgetting(tape, x, vlp_add_positions(tape, x, bert->positions, place));
    x = vlp_forgetting(tape, x, vlp_norm_forward(tape, &bert->norm, x));
    return vlp_dropout(tape, x, bert->config.dropout);
}

vlp_tensor *vlp_bert_forward_with(vlp_tape *tape, const vlp_bert *bert, const vlp_tokens *tokens,
                                  const vlp_stack_input *input) {
    int64_t place = input->cache ? input->cache->at : 0;
    VLP_ASSERT(place + tokens->length <= bert->config.positions,
               "text of %lld tokens, %lld positions", (long long)(place + tokens->length),
               (long long)bert->config.positions);
    vlp_stack_input in = *input;
    in.key_mask = tokens->attention_mask;
    return vlp_stack_forward(tape, &bert->stack, embed(tape, bert, tokens, place), &in);
}

vlp_tensor *vlp_bert_forward(vlp_tape *tape, const vlp_bert *bert, const vlp_tokens *tokens,
                             vlp_tensor **hidden) {
    return vlp_bert_forward_with(tape, bert, tokens, &(vlp_stack_input){.hidden = hidden});
}

vlp_tokens vlp_tokens_begin_with(vlp_tape *tape, const vlp_tokens *tokens, int32_t id) {
    vlp_tokens out = *tokens;
    int64_t n = tokens->batch * tokens->length;
    int32_t *ids = vlp_tape_alloc(tape, (size_t)n * sizeof *ids);
    out.ids = ids;
    if (!ids || vlp_tape_planning(tape)) return out;
    memcpy(ids, tokens->ids, (size_t)n * sizeof *ids);
    for (int64_t b = 0; b < tokens->batch; b++) ids[b * tokens->length] = id;
    return out;
}

void vlp_mlm_head_declare(vlp_mlm_head *head, vlp_params *params, const vlp_bert_config *c) {
    vlp_dense_declare(&head->dense, params, "dense", c->width, c->width, true,
                      vlp_init_std(c->width));
    vlp_norm_declare(&head->norm, params, "norm", c->width, c->eps);
    head->bias = vlp_params_add(params, "bias", VLP_INIT_CONSTANT(0), VLP_NO_DECAY, 1, &c->vocab);
}

void vlp_mlm_head_untie(vlp_mlm_head *head, vlp_params *params, const vlp_bert_config *c) {
    head->words = table(params, "words", c->vocab, c->width);
}

static vlp_tensor *vocabulary(const vlp_mlm_head *head, const vlp_bert *bert) {
    return head->words ? head->words : bert->words;
}

static vlp_tensor *transformed(vlp_tape *tape, const vlp_mlm_head *head, const vlp_bert *bert,
                               vlp_tensor *x) {
    x = vlp_dense_forward(tape, &head->dense, x, bert->config.act);
    return vlp_norm_forward(tape, &head->norm, x);
}

vlp_tensor *vlp_mlm_head_forward(vlp_tape *tape, const vlp_mlm_head *head, const vlp_bert *bert,
                                 vlp_tensor *x) {
    return vlp_readout(tape, transformed(tape, head, bert, x), vocabulary(head, bert), head->bias);
}

vlp_tensor *vlp_mlm_head_loss(vlp_tape *tape, const vlp_mlm_head *head, const vlp_bert *bert,
                              vlp_tensor *x, const int32_t *target, double label_smoothing) {
    return vlp_linear_cross_entropy(tape, transformed(tape, head, bert, x), vocabulary(head, bert),
                                    head->bias, target, label_smoothing);
}

void vlp_tokens_trim(const vlp_tokens *tokens, int32_t *ids, uint8_t *mask, vlp_tokens *out) {
    int64_t length = tokens->length, longest = 1;
    for (int64_t b = 0; b < tokens->batch; b++)
        for (int64_t l = longest; l < length; l++)
            if (tokens->attention_mask[b * length + l]) longest = l + 1;
    for (int64_t b = 0; b < tokens->batch; b++) {
        memcpy(ids + b * longest, tokens->ids + b * length, (size_t)longest * sizeof *ids);
        memcpy(mask + b * longest, tokens->attention_mask + b * length, (size_t)longest);
    }
    *out = (vlp_tokens){tokens->batch, longest, ids, NULL, mask};
}
