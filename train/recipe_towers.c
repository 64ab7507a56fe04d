#include "train/recipe_towers.h"

#include <math.h>

const char *const vlp_tower_names[] = {"vlp", "clip", "openai", "siglip", NULL};

/* The first row stands for a ViT and a BERT as the recipe has made them. */
static const struct {
    bool clip_text;
    vlp_act act;
    double eps;
    bool input_norm, patch_bias;
    bool siglip; /* no class token, a text read at its last position, images not projected */
} kinds[] = {
    {false, VLP_ACT_GELU, 1e-6, false, true, false},
    {true, VLP_ACT_GELU, 1e-5, true, false, false},
    {true, VLP_ACT_QUICK_GELU, 1e-5, true, false, false},
    {true, VLP_ACT_GELU_TANH, 1e-6, false, true, true},
};

void vlp_towers_apply(int i, vlp_model_config *c) {
    if (!kinds[i].clip_text) return;
    const vlp_bert_config *t = &c->text;
    bool siglip = kinds[i].siglip;
    c->clip_text = (vlp_clip_text_config){.vocab = t->vocab,
                                          .positions = t->positions,
                                          .width = t->width,
                                          .depth = t->depth,
                                          .heads = t->heads,
                                          .mlp_width = t->mlp_width,
                                          .act = kinds[i].act,
                                          .eps = kinds[i].eps,
                                          .two_way = siglip,
                                          .reads_padding = siglip,
                                          .pool = siglip ? VLP_TEXT_LAST : VLP_TEXT_END};
    c->text = (vlp_bert_config){0};
    c->vision.act = kinds[i].act;
    c->vision.eps = kinds[i].eps;
    c->vision.input_norm = kinds[i].input_norm;
    c->vision.patch_bias = kinds[i].patch_bias;
    c->vision.no_class_token = siglip;
    c->no_image_projection = c->text_projection_bias = siglip;
    c->logit_bias |= siglip;
}

int vlp_towers_of(const vlp_model_config *c) {
    if (c->clip_text.width == 0) return 0;
    for (int i = 1; i < (int)VLP_COUNT(kinds); i++)
        if (kinds[i].act == c->vision.act && kinds[i].siglip == c->no_image_projection) return i;
    return -1;
}
