/* "BERT": the masked language model, alone or with the sentence relationship beside it.
 * "BERT fine-tuning": classes of texts or of tokens, a regression, spans that answer. */
#include "parity/model.h"
#include "parity/runners.h"
#include "text/bert_config.h"
#include "text/bert_names.h"

#include <string.h>

typedef struct {
    vlp_bert bert;
    vlp_mlm_head mlm; /* these heads: weights NULL where the checkpoint has none */
    vlp_dense pooler, relationship, classifier, answer;
    vlp_tokens tokens;
    const int32_t *labels, *next_sentence, *start, *end;
    const vlp_real *targets; /* labels that are no classes */
    vlp_regression kind;     /* what the targets are */
    vlp_tensor *stream[VLP_MAX_DEPTH + 1];
} bert_run;

static void declare_head(parity_model *m, vlp_dense *head, const char *name, int64_t width) {
    char weight[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    const vlp_safetensor *t = parity_checkpoint_find(m, weight);
    if (t && t->ndim == 2) vlp_dense_declare(head, m->params, name, width, t->shape[0], true, 0.02);
}

static vlp_status declare(parity_model *m, bert_run *r) {
    vlp_bert_config c;
    VLP_TRY(vlp_bert_config_read(&c, m->c->config, "config.json"));
    VLP_TRY(vlp_bert_names(&m->map, m->c->model, ""));
    VLP_TRY(vlp_bert_declare(&r->bert, m->params, &c));
    if (parity_checkpoint_find(m, "mlm.bias")) {
        vlp_params_push(m->params, "mlm");
        vlp_mlm_head_declare(&r->mlm, m->params, &c);
        vlp_params_pop(m->params);
    }
    declare_head(m, &r->pooler, "pooler", c.width);
    declare_head(m, &r->relationship, "nsp", c.width);
    declare_head(m, &r->classifier, "classifier", c.width);
    declare_head(m, &r->answer, "answer", c.width);
    return VLP_OK;
}

static vlp_status read_labels(parity_model *m, bert_run *r) {
    const char *problem = vlp_json_string(m->c->config, "problem_type", "");
    const vlp_safetensor *labels;
    if (r->answer.weight) {
        VLP_TRY(parity_model_ids(m, "start_positions", false, &r->start));
        return parity_model_ids(m, "end_positions", false, &r->end);
    }
    VLP_TRY(parity_model_ids(m, "next_sentence_label", !r->relationship.weight, &r->next_sentence));
    VLP_TRY(parity_input(m->c, "labels", &labels));
    r->kind = strcmp(problem, "regression") == 0 ? VLP_LOSS_MSE : VLP_LOSS_BINARY;
    return vlp_st_is_float(labels->dtype) ? parity_model_reals(m, "labels", &r->targets)
                                          : parity_model_ids(m, "labels", false, &r->labels);
}

static vlp_status read_inputs(parity_model *m, bert_run *r) {
    VLP_TRY(parity_model_dim(m, "input_ids", 0, &r->tokens.batch));
    VLP_TRY(parity_model_dim(m, "input_ids", 1, &r->tokens.length));
    VLP_TRY(parity_model_ids(m, "input_ids", false, &r->tokens.ids));
    VLP_TRY(parity_model_ids(m, "token_type_ids", true, &r->tokens.types));
    VLP_TRY(parity_model_mask(m, "attention_mask", true, &r->tokens.attention_mask));
    return read_labels(m, r);
}

static vlp_tensor *pretraining(parity_model *m, bert_run *r, vlp_tensor *x, vlp_tensor *pooled) {
    vlp_tensor *logits = vlp_mlm_head_forward(m->tape, &r->mlm, &r->bert, x);
    vlp_tensor *mlm = vlp_cross_entropy(m->tape, logits, r->labels, 0);
    parity_output(m, logits, r->next_sentence ? "prediction_logits" : "logits");
    if (!r->next_sentence || !pooled) return mlm;
    logits = vlp_dense_forward(m->tape, &r->relationship, pooled, VLP_ACT_NONE);
    vlp_tensor *nsp = vlp_cross_entropy(m->tape, logits, r->next_sentence, 0);
    parity_output(m, logits, "seq_relationship_logits");
    parity_output(m, mlm, "mlm_loss");
    parity_output(m, nsp, "nsp_loss");
    return vlp_weighted_sum(m->tape, (vlp_tensor *[]){mlm, nsp}, (double[]){1, 1}, 2);
}

/* x [B, D] for texts or [B, S, D] for tokens */
static vlp_tensor *classify(parity_model *m, bert_run *r, vlp_tensor *x) {
    vlp_tensor *logits = vlp_dense_forward(m->tape, &r->classifier, x, VLP_ACT_NONE);
    parity_output(m, logits, "logits");
    return r->targets ? vlp_regression_loss(m->tape, logits, r->targets, r->kind)
                      : vlp_cross_entropy(m->tape, logits, r->labels, 0);
}

/* One end of the span: rows first .. first + B of logits [2 B, S]. Positions are clamped to
 * [0, S], and S does not count. */
static vlp_tensor *span_end(parity_model *m, const bert_run *r, vlp_tensor *logits, int64_t first,
                            const int32_t *positions, const char *name) {
    int64_t batch = r->tokens.batch, length = r->tokens.length;
    int32_t *rows = vlp_tape_alloc(m->tape, (size_t)batch * sizeof *rows);
    int32_t *targets = vlp_tape_alloc(m->tape, (size_t)batch * sizeof *targets);
    if (!rows || !targets) return NULL;
    for (int64_t b = 0; !vlp_tape_planning(m->tape) && b < batch; b++) {
        rows[b] = (int32_t)(first + b);
        targets[b] = positions[b] < 0 ? 0 : positions[b] >= length ? -1 : positions[b];
    }
    logits = vlp_gather_rows(m->tape, logits, rows, batch);
    parity_output(m, logits, "%s", name);
    return vlp_cross_entropy(m->tape, logits, targets, 0);
}

static vlp_tensor *answer(parity_model *m, bert_run *r, vlp_tensor *x) {
    int64_t batch = r->tokens.batch, length = r->tokens.length;
    x = vlp_dense_forward(m->tape, &r->answer, x, VLP_ACT_NONE);
    x = vlp_reshape(m->tape, x, 2, (int64_t[]){batch * length, 2});
    x = vlp_reshape(m->tape, vlp_transpose(m->tape, x), 2, (int64_t[]){2 * batch, length});
    vlp_tensor *ends[] = {span_end(m, r, x, 0, r->start, "start_logits"),
                          span_end(m, r, x, batch, r->end, "end_logits")};
    return vlp_weighted_sum(m->tape, ends, (double[]){0.5, 0.5}, 2);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    bert_run *r = ctx;
    vlp_tensor *x = vlp_bert_forward(m->tape, &r->bert, &r->tokens, r->stream), *pooled = NULL;
    parity_hidden(m, r->stream, r->bert.config.depth, 0, "hidden_states.%d");
    parity_output(m, x, "last_hidden_state");
    if (r->pooler.weight) {
        pooled = vlp_pooler_forward(m->tape, &r->pooler, x);
        parity_output(m, pooled, "pooler_output");
    }
    if (r->mlm.bias) return pretraining(m, r, x, pooled);
    return r->answer.weight ? answer(m, r, x) : classify(m, r, pooled ? pooled : x);
}

static vlp_status run(parity_model *m, bert_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    if (!r->mlm.bias && !r->answer.weight && !r->classifier.weight)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: no head that is known", m->c->folder);
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
