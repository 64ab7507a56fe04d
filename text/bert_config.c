#include "text/bert_config.h"

#include "core/act_names.h"
#include "core/options.h"

#include <string.h>

#define INT(key, member, least, most, fallback)                                                    \
    {                                                                                              \
        (key), VLP_OPTION_INT, offsetof(vlp_bert_config, member), (least), (most), (fallback), "", \
            NULL                                                                                   \
    }
#define REAL(key, member, most, fallback)                                                          \
    { (key), VLP_OPTION_DOUBLE, offsetof(vlp_bert_config, member), 0, (most), (fallback), "", NULL }

enum { MOST_WIDTH = 65536 };

static const vlp_option rows[] = {
    INT("vocab_size", vocab, 1, 10000000, "30522"),
    INT("max_position_embeddings", positions, 1, 1000000, "512"),
    INT("type_vocab_size", types, 0, 1000, "2"),
    INT("hidden_size", width, 1, MOST_WIDTH, "768"),
    INT("num_hidden_layers", depth, 0, VLP_MAX_DEPTH, "12"),
    INT("num_attention_heads", heads, 1, 1024, "12"),
    INT("intermediate_size", mlp_width, 1, 4 * MOST_WIDTH, "3072"),
    REAL("layer_norm_eps", eps, 1, "1e-12"),
    REAL("hidden_dropout_prob", dropout, 0.99, "0.1"),
    REAL("attention_probs_dropout_prob", attention_dropout, 0.99, "0.1"),
};

static const vlp_options table = {rows, VLP_COUNT(rows)};

static vlp_status check_kind(const vlp_json *json, const char *where) {
    static const vlp_json_typed keys[] = {{"position_embedding_type", VLP_JSON_STRING},
                                          {"is_decoder", VLP_JSON_BOOL}};
    VLP_TRY(vlp_json_expect(json, keys, VLP_COUNT(keys), where));
    const char *positions = vlp_json_string(json, "position_embedding_type", "absolute");
    if (strcmp(positions, "absolute") != 0)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: position_embedding_type is \"%s\"; \"absolute\" is what can be read",
                        where, positions);
    if (vlp_json_bool(json, "is_decoder", false))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: is_decoder is true; an encoder is wanted", where);
    return VLP_OK;
}

/* null stands for a table without a padding row. */
static vlp_status read_pad_id(vlp_bert_config *c, const vlp_json *json, const char *where) {
    const vlp_json *value = vlp_json_key(json, "pad_token_id");
    if (value && !vlp_json_is_null(value) && !vlp_json_is_integer(value))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"pad_token_id\" must be a whole number or null",
                        where);
    int64_t id = !value ? 0 : vlp_json_is_null(value) ? -1 : vlp_json_as_int(value);
    if (id < -1 || id >= c->vocab)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: pad_token_id %lld, but vocab_size is %lld", where,
                        (long long)id, (long long)c->vocab);
    c->pad_id = (int32_t)id;
    return VLP_OK;
}

vlp_status vlp_bert_config_read(vlp_bert_config *out, const vlp_json *json, const char *where) {
    *out = (vlp_bert_config){0};
    VLP_TRY(check_kind(json, where));
    vlp_options_defaults(table, out);
    VLP_TRY(vlp_options_pick(table, out, json, where));
    VLP_TRY(vlp_act_read(&out->act, json, "hidden_act", VLP_ACT_GELU, where));
    return read_pad_id(out, json, where);
}
