/* "BERT": the masked language model, and with the sentence relationship beside it. */
#include "parity/model.h"
#include "parity/runners.h"
#include "text/bert_config.h"
#include "text/bert_names.h"

typedef struct {
    vlp_bert bert;
    vlp_mlm_head mlm;
    vlp_dense pooler, relationship; /* weight NULL where the checkpoint has none */
    vlp_tokens tokens;
    const int32_t *labels, *next_sentence;
    vlp_tensor *stream[VLP_MAX_DEPTH + 1];
} bert_run;

static vlp_status declare(parity_model *m, bert_run *r) {
    vlp_bert_config c;
    VLP_TRY(vlp_bert_config_read(&c, m->c->config, "config.json"));
    VLP_TRY(vlp_bert_names(&m->map, m->c->model, ""));
    VLP_TRY(vlp_bert_declare(&r->bert, m->params, &c));
    vlp_params_push(m->params, "mlm");
    vlp_mlm_head_declare(&r->mlm, m->params, &c);
    vlp_params_pop(m->params);
    if (parity_checkpoint_find(m, "pooler.weight"))
        vlp_dense_declare(&r->pooler, m->params, "pooler", c.width, c.width, true, 0.02);
    if (parity_checkpoint_find(m, "nsp.weight"))
        vlp_dense_declare(&r->relationship, m->params, "nsp", c.width, 2, true, 0.02);
    return VLP_OK;
}

static vlp_status read_inputs(parity_model *m, bert_run *r) {
    VLP_TRY(parity_model_dim(m, "input_ids", 0, &r->tokens.batch));
    VLP_TRY(parity_model_dim(m, "input_ids", 1, &r->tokens.length));
    VLP_TRY(parity_model_ids(m, "input_ids", false, &r->tokens.ids));
    VLP_TRY(parity_model_ids(m, "token_type_ids", true, &r->tokens.types));
    VLP_TRY(parity_model_mask(m, "attention_mask", true, &r->tokens.attention_mask));
    VLP_TRY(parity_model_ids(m, "labels", false, &r->labels));
    return parity_model_ids(m, "next_sentence_label", !r->relationship.weight, &r->next_sentence);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    bert_run *r = ctx;
    vlp_tensor *x = vlp_bert_forward(m->tape, &r->bert, &r->tokens, r->stream);
    parity_hidden(m, r->stream, r->bert.config.depth, 0, "hidden_states.%d");
    parity_output(m, x, "last_hidden_state");
    vlp_tensor *logits = vlp_mlm_head_forward(m->tape, &r->mlm, &r->bert, x);
    vlp_tensor *mlm = vlp_cross_entropy(m->tape, logits, r->labels, 0);
    vlp_tensor *pooled = NULL;
    if (r->pooler.weight) {
        pooled = vlp_pooler_forward(m->tape, &r->pooler, x);
        parity_output(m, pooled, "pooler_output");
    }
    parity_output(m, logits, r->next_sentence ? "prediction_logits" : "logits");
    if (!r->next_sentence || !pooled) return mlm;
    logits = vlp_dense_forward(m->tape, &r->relationship, pooled, VLP_ACT_NONE);
    vlp_tensor *nsp = vlp_cross_entropy(m->tape, logits, r->next_sentence, 0);
    parity_output(m, logits, "seq_relationship_logits");
    parity_output(m, mlm, "mlm_loss");
    parity_output(m, nsp, "nsp_loss");
    return vlp_weighted_sum(m->tape, (vlp_tensor *[]){mlm, nsp}, (double[]){1, 1}, 2);
}

static vlp_status run(parity_model *m, bert_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    return parity_model_run(m, build, r);
}

vlp_status parity_run_bert(const parity_case *c, parity_report *report) {
    parity_model m;
    bert_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_bert_free(&r.bert);
    parity_model_close(&m);
    return status;
}
