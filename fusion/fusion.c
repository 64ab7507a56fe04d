#include "fusion/fusion.h"

vlp_status vlp_fusion_declare(vlp_fusion *fusion, vlp_params *params, const vlp_fusion_config *c) {
    fusion->config = *c;
    vlp_block_config block = {.width = c->width,
                              .heads = c->heads,
                              .mlp_width = c->mlp_width,
                              .context_width = c->image_width,
                              .act = c->act,
                              .eps = c->eps,
                              .dropout = c->dropout,
                              .attention_dropout = c->attention_dropout};
    return vlp_stack_declare(&fusion->stack, params, &block, c->depth);
}

void vlp_fusion_free(vlp_fusion *fusion) {
    vlp_stack_free(&fusion->stack);
}

void vlp_fusion_keys(vlp_tape *tape, const vlp_fusion *fusion, vlp_tensor *images,
                     vlp_tensor **keys) {
    vlp_stack_context(tape, &fusion->stack, images, keys);
}

vlp_tensor *vlp_fusion_forward(vlp_tape *tape, const vlp_fusion *fusion, vlp_tensor *text,
                               const uint8_t *mask, vlp_tensor *const *keys,
                               const int32_t *image_index) {
    return vlp_stack_forward(
        tape, &fusion->stack, text,
        &(vlp_stack_input){.key_mask = mask, .context = keys, .context_index = image_index});
}
