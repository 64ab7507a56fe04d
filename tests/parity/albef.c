#include "parity/albef.h"

const char parity_albef_twin[] = "objective.momentum.";

vlp_status parity_albef_declare(parity_model *m, vlp_model **out) {
    vlp_model_config config;
    VLP_TRY(vlp_model_config_any(&config, m->c->config, "config.json"));
    vlp_model_config_complete(&config, m->c->model);
    VLP_TRY(vlp_model_new_parts(out, &config, vlp_model_parts(m->c->model)));
    parity_model_borrow(m, (*out)->params);
    vlp_model_names(&m->map, &config, m->c->model, false);
    return VLP_OK;
}

vlp_status parity_albef_tokens(parity_model *m, vlp_tokens *out) {
    VLP_TRY(parity_model_dim(m, "input_ids", 0, &out->batch));
    VLP_TRY(parity_model_dim(m, "input_ids", 1, &out->length));
    VLP_TRY(parity_model_ids(m, "input_ids", false, &out->ids));
    return parity_model_mask(m, "attention_mask", true, &out->attention_mask);
}
