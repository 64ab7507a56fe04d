#include "parity/model.h"

#include "core/memory.h"
#include "core/op_flow.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

vlp_status parity_model_open(parity_model *m, const parity_case *c, parity_report *report) {
    *m = (parity_model){.c = c, .report = report};
    if (!c->model || !c->config || !c->inputs || !c->expected)
        return VLP_FAIL(VLP_ERR_NOT_FOUND,
                        "%s: config.json or one of model, inputs and expected.safetensors is "
                        "missing",
                        c->folder);
    VLP_TRY(vlp_params_new(&m->params));
    VLP_TRY(vlp_tape_new(&m->tape));
    vlp_tape_set_precision(m->tape, c->precision);
    return VLP_OK;
}

void parity_model_close(parity_model *m) {
    for (int i = 0; i < m->buffer_count; i++) vlp_free(m->buffers[i]);
    vlp_tape_free(m->tape);
    if (!m->borrowed) vlp_params_free(m->params);
    *m = (parity_model){0};
}

void parity_model_borrow(parity_model *m, vlp_params *params) {
    vlp_params_free(m->params);
    m->params = params;
    m->borrowed = true;
}

static void keep_buffer(parity_model *m, void *buffer) {
    VLP_ASSERT(m->buffer_count < PARITY_BUFFERS, "more than %d inputs", PARITY_BUFFERS);
    m->buffers[m->buffer_count++] = buffer;
}

void *parity_model_room(parity_model *m, size_t bytes) {
    void *room = vlp_alloc(bytes);
    keep_buffer(m, room);
    return room;
}

const vlp_real *parity_values(parity_model *m, const vlp_tensor *x) {
    if (x->dtype != VLP_BF16) return vlp_real_data(x);
    vlp_real *wide = parity_model_room(m, (size_t)vlp_numel(x) * sizeof *wide);
    if (wide) vlp_widen(vlp_numel(x), vlp_bf16_data(x), wide);
    return wide;
}

vlp_status parity_model_reals(parity_model *m, const char *name, const vlp_real **out) {
    vlp_real *values = NULL;
    vlp_status status = parity_input_real(m->c, name, &values);
    keep_buffer(m, values);
    *out = values;
    return status;
}

vlp_status parity_model_ids(parity_model *m, const char *name, bool optional, const int32_t **out) {
    *out = NULL;
    if (optional && !parity_has_input(m->c, name)) return VLP_OK;
    int32_t *values = NULL;
    vlp_status status = parity_input_i32(m->c, name, &values);
    keep_buffer(m, values);
    *out = values;
    return status;
}

vlp_status parity_model_mask(parity_model *m, const char *name, bool optional,
                             const uint8_t **out) {
    const vlp_safetensor *t;
    *out = NULL;
    if (optional && !parity_has_input(m->c, name)) return VLP_OK;
    VLP_TRY(parity_input(m->c, name, &t));
    uint8_t *values = vlp_alloc((size_t)t->numel);
    if (!values) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < t->numel; i++) values[i] = vlp_safetensor_value(t, i) != 0;
    keep_buffer(m, values);
    *out = values;
    return VLP_OK;
}

vlp_status parity_model_dim(const parity_model *m, const char *name, int d, int64_t *out) {
    const vlp_safetensor *t;
    VLP_TRY(parity_input(m->c, name, &t));
    if (d >= t->ndim)
        return VLP_FAIL(VLP_ERR_FORMAT, "input \"%s\" has %d dimensions", name, t->ndim);
    *out = t->shape[d];
    return VLP_OK;
}

static parity_named *add(parity_model *m, vlp_tensor *tensor, bool grad) {
    VLP_ASSERT(m->count < PARITY_OUTPUTS, "more than %d outputs", PARITY_OUTPUTS);
    parity_named *named = &m->named[m->count++];
    *named = (parity_named){.tensor = tensor, .grad = grad};
    return named;
}

void parity_output(parity_model *m, vlp_tensor *tensor, const char *format, ...) {
    parity_named *named = add(m, tensor, false);
    va_list args;
    va_start(args, format);
    vsnprintf(named->name, sizeof named->name, format, args);
    va_end(args);
}

void parity_hidden(parity_model *m, vlp_tensor *const *hidden, int64_t depth, int first,
                   const char *format) {
    const char *hole = strstr(format, "%d");
    VLP_ASSERT(hole, "no %%d in \"%s\"", format);
    for (int64_t i = first; i <= depth; i++)
        parity_output(m, hidden[i], "%.*s%d%s", (int)(hole - format), format, (int)i - first,
                      hole + 2);
}

vlp_tensor *parity_graph_input(parity_model *m, const char *name, const vlp_real *data) {
    const vlp_safetensor *t = vlp_safetensors_find(m->c->inputs, name);
    VLP_ASSERT(t && t->ndim <= VLP_MAX_DIMS, "input \"%s\"", name);
    vlp_tensor *tensor = vlp_tape_input(m->tape, VLP_REAL, t->ndim, t->shape, data, true);
    parity_named *named = add(m, tensor, true);
    snprintf(named->name, sizeof named->name, "grad_input/%.48s", name);
    return tensor;
}

const vlp_safetensor *parity_checkpoint_find(const parity_model *m, const char *ours) {
    char name[VLP_NAME_BYTES];
    for (size_t i = 0; i < vlp_safetensors_count(m->c->model); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(m->c->model, i);
        const vlp_name_row *row = vlp_name_find(&m->map, t->name, name);
        if (row && row->ours && strcmp(name, ours) == 0) return t;
    }
    return NULL;
}

vlp_status parity_model_load(parity_model *m, const char *optional) {
    VLP_TRY(vlp_params_allocate(m->params, true));
    VLP_TRY(vlp_params_load(m->params, m->c->model, m->map, optional));
    vlp_params_zero_grads(m->params);
    return VLP_OK;
}

/* Sets the gradients of all outputs for which there is a cotangent; *loss is sum(output cot). */
static vlp_status seed(parity_model *m, double *loss) {
    *loss = 0;
    for (int i = 0; i < m->count; i++) {
        char name[80];
        vlp_tensor *tensor = m->named[i].tensor;
        snprintf(name, sizeof name, "cot/%s", m->named[i].name);
        if (m->named[i].grad || !tensor || !parity_has_input(m->c, name)) continue;
        const vlp_safetensor *t = vlp_safetensors_find(m->c->inputs, name);
        if (t->numel != vlp_numel(tensor))
            return VLP_FAIL(VLP_ERR_FORMAT, "input \"%s\" does not have its output's shape", name);
        vlp_real *cot = NULL;
        vlp_status status = parity_input_real(m->c, name, &cot);
        if (status == VLP_OK) {
            vlp_tape_seed(m->tape, tensor, cot);
            const vlp_real *x = vlp_tape_planning(m->tape) ? NULL : parity_values(m, tensor);
            for (int64_t k = 0; x && k < t->numel; k++) *loss += (double)cot[k] * (double)x[k];
        }
        vlp_free(cot);
        VLP_TRY(status);
    }
    return VLP_OK;
}

static vlp_status pass(parity_model *m, parity_build *build, void *ctx) {
    double value = 0;
    m->count = 0;
    vlp_tensor *loss = build(m, ctx);
    VLP_TRY(vlp_tape_status(m->tape));
    bool real = !vlp_tape_planning(m->tape);
    for (int i = 0; real && i < m->count; i++)
        if (!m->named[i].grad)
            parity_expect_tensor(m->report, m->named[i].name, m->named[i].tensor, false);
    if (!loss) VLP_TRY(seed(m, &value));
    if (loss && real) value = (double)vlp_real_data(loss)[0];
    VLP_TRY(vlp_tape_backward(m->tape, loss));
    if (real && (loss || m->c->precision != VLP_BF16))
        parity_expect_scalar(m->report, "loss", value);
    else if (real)
        parity_pass_over(m->report, "loss", "the case's own sum of products with given gradients");
    return VLP_OK;
}

/* What belongs to one tensor of the checkpoint, as it is laid out there; or, where loading has
 * converted it, as the parameter is. */
static vlp_status expect_param(parity_model *m, const char *theirs, const vlp_name_map *map,
                               const vlp_params *params, vlp_real *block,
                               const vlp_safetensor *expected) {
    char ours[VLP_NAME_BYTES];
    const vlp_safetensor *t = vlp_safetensors_find(m->c->model, theirs);
    const vlp_name_row *row = t ? vlp_name_find(map, theirs, ours) : NULL;
    const vlp_param *param = row && row->ours ? vlp_params_find(params, ours) : NULL;
    if (!param) return VLP_OK; /* reported as not computed */
    int64_t n = vlp_numel(&param->tensor) / (row->parts ? row->parts : 1);
    if (t->numel != n) t = expected;
    if (t->numel != n) return VLP_OK;
    vlp_real *values = vlp_alloc_zero((size_t)n, sizeof *values);
    if (!values) return VLP_ERR_MEMORY;
    vlp_name_copy(row, &param->tensor, block + param->offset, values, true);
    parity_expect(m->report, expected->name, t->ndim, t->shape, values);
    vlp_free(values);
    return VLP_OK;
}

vlp_status parity_expect_params(parity_model *m, const char *prefix, const vlp_name_map *map,
                                const vlp_params *params, vlp_real *block) {
    size_t n = strlen(prefix);
    for (size_t i = 0; i < vlp_safetensors_count(m->c->expected); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(m->c->expected, i);
        if (strncmp(t->name, prefix, n) == 0)
            VLP_TRY(expect_param(m, t->name + n, map, params, block, t));
    }
    return VLP_OK;
}

static vlp_status expect_grads(parity_model *m) {
    for (int i = 0; i < m->count; i++)
        if (m->named[i].grad)
            parity_expect_tensor(m->report, m->named[i].name, m->named[i].tensor, true);
    return parity_expect_params(m, "grad/", &m->map, m->params, m->params->grads);
}

vlp_status parity_model_run(parity_model *m, parity_build *build, void *ctx) {
    VLP_TRY(parity_model_load(m, "objective."));
    return parity_model_compute(m, build, ctx);
}

vlp_status parity_model_compute(parity_model *m, parity_build *build, void *ctx) {
    VLP_TRY(vlp_tape_plan(m->tape));
    VLP_TRY(pass(m, build, ctx));
    VLP_TRY(vlp_tape_open(m->tape, 0));
    vlp_tape_begin(m->tape, 0, 0);
    VLP_TRY(pass(m, build, ctx));
    return expect_grads(m);
}

/* In place, in double. */
static void softmax(vlp_real *row, int64_t n) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) largest = fmax(largest, (double)row[j]);
    for (int64_t j = 0; j < n; j++) sum += exp((double)row[j] - largest);
    for (int64_t j = 0; j < n; j++) row[j] = (vlp_real)(exp((double)row[j] - largest) / sum);
}

static void probabilities(const vlp_real *q, const vlp_real *keys, int64_t length, int64_t stride,
                          int64_t head_width, vlp_real *out) {
    for (int64_t j = 0; j < length; j++) {
        double score = 0;
        for (int64_t k = 0; k < head_width; k++)
            score += (double)q[k] * (double)keys[j * stride + k];
        out[j] = (vlp_real)(score / sqrt((double)head_width));
    }
    softmax(out, length);
}

vlp_status parity_expect_attention(parity_model *m, const char *name, const vlp_tensor *qkv,
                                   int64_t heads) {
    int64_t batch = qkv->shape[0], length = qkv->shape[1], stride = qkv->shape[2];
    int64_t head_width = stride / 3 / heads, shape[] = {batch, heads, length, length};
    vlp_real *p = vlp_alloc((size_t)(batch * heads * length * length) * sizeof *p);
    if (!p) return VLP_ERR_MEMORY;
    const vlp_real *rows = parity_values(m, qkv);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < length; i++)
                probabilities(rows + (b * length + i) * stride + h * head_width,
                              rows + b * length * stride + stride / 3 + h * head_width, length,
                              stride, head_width, p + ((b * heads + h) * length + i) * length);
    parity_expect(m->report, name, 4, shape, p);
    vlp_free(p);
    return VLP_OK;
}

vlp_status parity_expect_softmax(parity_model *m, const char *name, const vlp_tensor *logits) {
    int64_t rows = vlp_row_count(logits), cols = vlp_col_count(logits);
    vlp_real *p = vlp_alloc((size_t)(rows * cols) * sizeof *p);
    if (!p) return VLP_ERR_MEMORY;
    memcpy(p, parity_values(m, logits), (size_t)(rows * cols) * sizeof *p);
    for (int64_t i = 0; i < rows; i++) softmax(p + i * cols, cols);
    parity_expect(m->report, name, logits->ndim, logits->shape, p);
    vlp_free(p);
    return VLP_OK;
}
