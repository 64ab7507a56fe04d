/* The sizes of a model that exists, as a recipe's. */
#include "core/memory.h"
#include "train/recipe.h"
#include "train/recipe_towers.h"

#include <stdio.h>
#include <string.h>

/* What training chooses anew, or the weights bring. */
static void leave_out(vlp_model_config *c, const vlp_model_config *from) {
    c->vision.dropout = from->vision.dropout;
    c->vision.attention_dropout = from->vision.attention_dropout;
    c->vision.drop_path = from->vision.drop_path;
    c->vision.mask_token = from->vision.mask_token;
    c->text.dropout = from->text.dropout;
    c->text.attention_dropout = from->text.attention_dropout;
    if (c->fusion.depth == 0) c->fusion = from->fusion;
    c->clip_text.attention_dropout = from->clip_text.attention_dropout;
    if (!c->clip_text.two_way && c->clip_text.pool == VLP_TEXT_END) /* padding is behind the end */
        c->clip_text.reads_padding = from->clip_text.reads_padding;
    c->fusion.dropout = from->fusion.dropout;
    c->fusion.attention_dropout = from->fusion.attention_dropout;
    c->logit_scale_init = from->logit_scale_init;
    c->logit_scale_max = from->logit_scale_max;
    c->temperature_most = from->temperature_most;
    c->text_length = from->text_length;
    if (c->pool.kind != VLP_POOL_MAP) c->pool.heads = from->pool.heads; /* of nothing */
    c->logit_bias = from->logit_bias;
    c->logit_bias_init = from->logit_bias_init;
    c->answers_questions = from->answers_questions;
    c->bos_id = from->bos_id;
    c->enc_id = from->enc_id;
    c->eos_id = from->eos_id;
}

/* The first line of a that is another in b; "" = none. */
static void first_difference(const char *a, const char *b, char *out, size_t size) {
    *out = '\0';
    while (*a || *b) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || strncmp(a, b, n) != 0) {
            snprintf(out, size, "%.*s", (int)n, a + strspn(a, " "));
            return;
        }
        a += n + (a[n] != '\0');
        b += m + (b[m] != '\0');
    }
}

static vlp_status compare(const vlp_model_config *want, const vlp_model_config *have,
                          const char *where) {
    vlp_json *json[] = {vlp_model_config_write(want), vlp_model_config_write(have)};
    vlp_buf text[2] = {{0}, {0}};
    char line[96] = "";
    vlp_status status = vlp_json_dump(json[0], 2, &text[0]);
    if (status == VLP_OK) status = vlp_json_dump(json[1], 2, &text[1]);
    if (status == VLP_OK) first_difference(text[0].data, text[1].data, line, sizeof line);
    if (*line)
        status = VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s cannot be trained further: no recipe has %s",
                          where, line);
    for (int i = 0; i < 2; i++) {
        vlp_json_free(json[i]);
        vlp_buf_free(&text[i]);
    }
    return status;
}

void vlp_recipe_take_vision(vlp_recipe *r, const vlp_vit_config *v) {
    r->image_size = v->image_height;
    r->patch = v->patch;
    r->width = v->width;
    r->vision_depth = v->depth;
    r->heads = v->heads;
    r->mlp_ratio = (double)v->mlp_width / (double)v->width;
}

void vlp_recipe_take_bert(vlp_recipe *r, const vlp_bert_config *t) {
    r->text_mlp_ratio = (double)t->mlp_width / (double)t->width;
    r->text_width = t->width;
    r->text_depth = t->depth;
    r->text_heads = t->heads;
    r->text_types = t->types;
    r->text_positions = t->positions;
    if (r->text_length > r->text_positions) r->text_length = r->text_positions;
}

/* A text that is read at its last position has all of them. */
static void take_clip_text(vlp_recipe *r, const vlp_clip_text_config *t) {
    r->text_mlp_ratio = (double)t->mlp_width / (double)t->width;
    r->text_width = t->width;
    r->text_depth = t->depth;
    r->text_heads = t->heads;
    r->text_types = 0;
    r->text_positions = t->positions;
    if (t->pool == VLP_TEXT_LAST) r->text_length = t->positions;
}

vlp_status vlp_recipe_take_sizes(vlp_recipe *r, const vlp_model_config *c, const char *where) {
    int towers = vlp_towers_of(c);
    bool clip = c->clip_text.width > 0;
    if (c->decoder.width > 0 || (c->text.width == 0 && !clip) || c->embedding == 0 || towers < 0)
        return VLP_FAIL(
            VLP_ERR_UNSUPPORTED,
            "%s cannot be trained further: recipes describe a ViT and a BERT, or CLIP's or "
            "SigLIP's towers, with a shared space, without a decoder of its own",
            where);
    r->towers = towers;
    vlp_recipe_take_vision(r, &c->vision);
    r->pool = (int)c->pool.kind;
    if (clip)
        take_clip_text(r, &c->clip_text);
    else
        vlp_recipe_take_bert(r, &c->text);
    r->fusion_in_text = c->text.context_width > 0;
    r->fusion_depth = c->fusion.depth;
    r->embedding = c->embedding;
    r->projection_bias = c->projection_bias;
    r->plain_temperature = c->plain_temperature;
    if (r->text_length > r->text_positions) r->text_length = r->text_positions;
    vlp_model_config made, wanted = *c;
    vlp_recipe_model(r, vlp_model_vocab(c), &made);
    leave_out(&wanted, &made);
    return compare(&wanted, &made, where);
}
