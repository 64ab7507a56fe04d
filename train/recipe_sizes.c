/* The sizes of a model that exists, as a recipe's. */
#include "core/memory.h"
#include "train/recipe.h"

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
    c->fusion.dropout = from->fusion.dropout;
    c->fusion.attention_dropout = from->fusion.attention_dropout;
    c->logit_scale_init = from->logit_scale_init;
    c->logit_scale_max = from->logit_scale_max;
    c->temperature_most = from->temperature_most;
    c->text_length = from->text_length;
    if (c->pool.kind != VLP_POOL_MAP) c->pool.heads = from->pool.heads; /* of nothing */
    c->logit_bias = from->logit_bias;
    c->logit_bias_init = from->logit_bias_init;
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

vlp_status vlp_recipe_take_sizes(vlp_recipe *r, const vlp_model_config *c, const char *where) {
    if (c->decoder.width > 0 || c->text.width == 0 || c->embedding == 0)
        return VLP_FAIL(
            VLP_ERR_UNSUPPORTED,
            "%s cannot be trained further: recipes describe a ViT and a BERT with a shared space, "
            "without a decoder of its own",
            where);
    r->image_size = c->vision.image_height;
    r->patch = c->vision.patch;
    r->width = c->vision.width;
    r->vision_depth = c->vision.depth;
    r->heads = c->vision.heads;
    r->mlp_ratio = (double)c->vision.mlp_width / (double)c->vision.width;
    r->text_mlp_ratio = (double)c->text.mlp_width / (double)c->text.width;
    r->text_width = c->text.width;
    r->text_depth = c->text.depth;
    r->text_heads = c->text.heads;
    r->text_types = c->text.types;
    r->text_positions = c->text.positions;
    r->fusion_depth = c->fusion.depth;
    r->pool = (int)c->pool.kind;
    r->fusion_in_text = c->text.context_width > 0;
    r->embedding = c->embedding;
    r->projection_bias = c->projection_bias;
    r->plain_temperature = c->plain_temperature;
    if (r->text_length > c->text.positions) r->text_length = c->text.positions;
    vlp_model_config made, wanted = *c;
    vlp_recipe_model(r, c->text.vocab, &made);
    leave_out(&wanted, &made);
    return compare(&wanted, &made, where);
}
