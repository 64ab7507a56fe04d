#include "core/act_names.h"

#include <string.h>

static const struct {
    const char *name;
    vlp_act act;
} names[] = {
    {"gelu", VLP_ACT_GELU},
    {"gelu_new", VLP_ACT_GELU_TANH},
    {"quick_gelu", VLP_ACT_QUICK_GELU},
    {"relu", VLP_ACT_RELU},
    {"silu", VLP_ACT_SILU},
    {"tanh", VLP_ACT_TANH},
    {"sigmoid", VLP_ACT_SIGMOID},
    {"linear", VLP_ACT_NONE},
    /* other spellings of the same functions */
    {"gelu_python", VLP_ACT_GELU},
    {"gelu_fast", VLP_ACT_GELU_TANH},
    {"gelu_accurate", VLP_ACT_GELU_TANH},
    {"gelu_pytorch_tanh", VLP_ACT_GELU_TANH},
    {"swish", VLP_ACT_SILU},
};

static vlp_status unknown(const char *name, const char *key, const char *where) {
    vlp_buf known = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(names) && status == VLP_OK; i++)
        status = vlp_buf_printf(&known, "%s%s", i ? ", " : "", names[i].name);
    if (status == VLP_OK)
        status = VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: %s is \"%s\"; known are %s", where, key, name,
                          known.data);
    vlp_buf_free(&known);
    return status;
}

vlp_status vlp_act_read(vlp_act *out, const vlp_json *object, const char *key, vlp_act fallback,
                        const char *where) {
    *out = fallback;
    const vlp_json *value = vlp_json_get(object, key);
    if (!value || vlp_json_is_null(value)) return VLP_OK;
    if (!vlp_json_is_string(value))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" must be a string", where, key);
    const char *name = vlp_json_as_string(value);
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        if (strcmp(name, names[i].name) != 0) continue;
        *out = names[i].act;
        return VLP_OK;
    }
    return unknown(name, key, where);
}

const char *vlp_act_name(vlp_act act) {
    for (size_t i = 0; i < VLP_COUNT(names); i++)
        if (names[i].act == act) return names[i].name;
    return names[0].name;
}
