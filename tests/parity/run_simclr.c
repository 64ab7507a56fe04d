/* "SimCLR NT-Xent": the projection head on given rows and the loss of two views. */
#include "objectives/ntxent.h"
#include "parity/model.h"
#include "parity/runners.h"

static const vlp_name_row names[] = {
    VLP_NAME_LAYER("projection_head.0", "fc1"),
    VLP_NAME_LAYER("projection_head.2", "fc2"),
};

typedef struct {
    vlp_simclr_head head;
    const vlp_real *h;
    double temperature;
} simclr_run;

static vlp_tensor *build(parity_model *m, void *ctx) {
    simclr_run *r = ctx;
    vlp_tensor *logits,
        *z = vlp_simclr_head_forward(m->tape, &r->head, parity_graph_input(m, "h", r->h));
    vlp_tensor *mean = vlp_ntxent_loss(m->tape, z, r->temperature, &logits);
    parity_output(m, z, "z");
    parity_output(m, logits, "logits_ab");
    parity_output(m, mean, "loss_mean_over_2N");
    return vlp_scale(m->tape, mean, 2);
}

static vlp_status run(parity_model *m, simclr_run *r) {
    const vlp_json *dims = vlp_json_key(m->c->config, "projection_dims");
    if (vlp_json_len(dims) != 3)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "config.json: projection_dims of two layers wanted");
    vlp_simclr_head_declare(&r->head, m->params, vlp_json_as_int(vlp_json_at(dims, 0)),
                            vlp_json_as_int(vlp_json_at(dims, 1)),
                            vlp_json_as_int(vlp_json_at(dims, 2)));
    vlp_name_map_add(&m->map, names, VLP_COUNT(names), "", "");
    r->temperature = vlp_json_double(m->c->config, "temperature", 0.5);
    VLP_TRY(parity_model_reals(m, "h", &r->h));
    return parity_model_run(m, build, r);
}

vlp_status parity_run_simclr(const parity_case *c, parity_report *report) {
    parity_model m;
    simclr_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    parity_model_close(&m);
    return status;
}
