#include "core/attend.h"

void vlp_attend_declare(vlp_attend *a, vlp_params *params, const char *name, int64_t width,
                        int64_t context_width, int64_t heads) {
    vlp_init init = VLP_INIT_TRUNCATED(vlp_init_std(width));
    *a = (vlp_attend){.width = width, .heads = heads};
    vlp_params_push(params, "%s", name);
    if (context_width == width) {
        a->qkv =
            vlp_params_add(params, "qkv.weight", init, VLP_DECAY, 2, (int64_t[]){3 * width, width});
    } else {
        int64_t shape[] = {width, context_width};
        a->q = vlp_params_add(params, "q.weight", init, VLP_DECAY, 2, (int64_t[]){width, width});
        a->k = vlp_params_add(params, "k.weight", init, VLP_DECAY, 2, shape);
        a->v = vlp_params_add(params, "v.weight", init, VLP_DECAY, 2, shape);
    }
    a->bias = vlp_params_add(params, "qkv.bias", VLP_INIT_CONSTANT(0), VLP_NO_DECAY, 1,
                             (int64_t[]){3 * width});
    vlp_dense_declare(&a->proj, params, "proj", width, width, true, vlp_init_std(width));
    vlp_params_pop(params);
}

/* rows[i] = first + i % period */
static int32_t *count_rows(vlp_tape *tape, int64_t n, int64_t first, int64_t period) {
    int32_t *rows = vlp_tape_alloc(tape, (size_t)n * sizeof *rows);
    for (int64_t i = 0; rows && !vlp_tape_planning(tape) && i < n; i++)
        rows[i] = (int32_t)(first + i % period);
    return rows;
}

/* Rows first .. first + n of a matrix, or elements of a vector. */
static vlp_tensor *slice(vlp_tape *tape, vlp_tensor *x, int64_t first, int64_t n) {
    bool vector = x->ndim == 1;
    int32_t *rows = count_rows(tape, n, first, n);
    if (!rows) return NULL;
    if (vector) x = vlp_reshape(tape, x, 2, (int64_t[]){x->shape[0], 1});
    x = vlp_gather_rows(tape, x, rows, n);
    return vector ? vlp_reshape(tape, x, 1, &n) : x;
}

/* Projection number `part` of q, k and v. */
static vlp_tensor *project(vlp_tape *tape, const vlp_attend *a, vlp_tensor *x, int part) {
    vlp_tensor *const own[] = {a->q, a->k, a->v};
    vlp_tensor *w = a->qkv ? slice(tape, a->qkv, part * a->width, a->width) : own[part];
    return vlp_linear(tape, x, w, slice(tape, a->bias, part * a->width, a->width), VLP_ACT_NONE);
}

vlp_tensor *vlp_attend_forward(vlp_tape *tape, const vlp_attend *a, vlp_tensor *x,
                               vlp_tensor *context) {
    vlp_tensor *y = vlp_attention(tape, &(vlp_attention_args){.q = project(tape, a, x, 0),
                                                              .k = project(tape, a, context, 1),
                                                              .v = project(tape, a, context, 2),
                                                              .heads = a->heads,
                                                              .head_width = a->width / a->heads});
    return vlp_dense_forward(tape, &a->proj, y, VLP_ACT_NONE);
}

vlp_tensor *vlp_repeat_rows(vlp_tape *tape, vlp_tensor *x, int64_t batch) {
    if (!x) return NULL;
    int64_t n = x->shape[0], shape[] = {batch, n, x->shape[1]};
    int32_t *rows = count_rows(tape, batch * n, 0, n);
    if (!rows) return NULL;
    return vlp_reshape(tape, vlp_gather_rows(tape, x, rows, batch * n), 3, shape);
}

vlp_tensor *vlp_scale_features(vlp_tape *tape, vlp_tensor *x, vlp_tensor *gamma) {
    if (!x) return NULL;
    int64_t n = vlp_row_count(x);
    int32_t *rows = count_rows(tape, n, 0, 1);
    if (!rows) return NULL;
    gamma = vlp_reshape(tape, gamma, 2, (int64_t[]){1, gamma->shape[0]});
    gamma = vlp_gather_rows(tape, gamma, rows, n);
    return vlp_mul(tape, x, vlp_reshape(tape, gamma, x->ndim, x->shape));
}

vlp_tensor *vlp_add_scalar(vlp_tape *tape, vlp_tensor *x, vlp_tensor *s) {
    if (!x) return NULL;
    int64_t n = vlp_numel(x);
    int32_t *rows = count_rows(tape, n, 0, 1);
    if (!rows) return NULL;
    s = vlp_gather_rows(tape, vlp_reshape(tape, s, 2, (int64_t[]){1, 1}), rows, n);
    return vlp_add(tape, x, vlp_reshape(tape, s, x->ndim, x->shape));
}
