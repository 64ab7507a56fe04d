/* The optimizer's state to and from a safetensors file: all counters, then all first, then all
 * second moments, in the order of the parameters. */
#include "core/memory.h"
#include "train/optimizer_internal.h"

#include <string.h>

enum { KINDS = 3 };
static const char *const prefixes[KINDS] = {"step.", "exp_avg.", "exp_avg_sq."};

static vlp_status name_of(vlp_buf *buf, int kind, const vlp_param *param) {
    vlp_buf_clear(buf);
    return vlp_buf_printf(buf, "%s%s", prefixes[kind], param->name);
}

static vlp_status fill_specs(const vlp_params *params, vlp_safetensor_spec *specs, char **names) {
    vlp_buf buf = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < params->count; i++) {
            const vlp_param *p = params->items[i];
            int at = kind * params->count + i;
            vlp_status status = name_of(&buf, kind, p);
            names[at] = status == VLP_OK ? vlp_strdup(buf.data) : NULL;
            if (!names[at]) {
                vlp_buf_free(&buf);
                return VLP_ERR_MEMORY;
            }
            specs[at].name = names[at];
            specs[at].dtype = kind == 0 ? VLP_ST_I64 : VLP_ST_F32;
            specs[at].ndim = kind == 0 ? 0 : p->tensor.ndim;
            for (int d = 0; d < specs[at].ndim; d++) specs[at].shape[d] = p->tensor.shape[d];
        }
    }
    vlp_buf_free(&buf);
    return VLP_OK;
}

static vlp_status write_moments(const vlp_optimizer *o, vlp_safetensors_writer *writer,
                                const vlp_real *block) {
    for (int i = 0; i < o->params->count; i++) {
        const vlp_param *p = o->params->items[i];
        VLP_TRY(vlp_safetensors_writer_real(writer, block + p->offset, vlp_numel(&p->tensor)));
    }
    return VLP_OK;
}

static vlp_status write_file(const vlp_optimizer *o, const char *path,
                             const vlp_safetensor_spec *specs) {
    vlp_safetensors_writer *writer;
    size_t count = (size_t)o->params->count;
    const vlp_st_pair kind = {"optimizer", vlp_optimizer_kinds[o->options.kind]};
    vlp_status status;
    VLP_TRY(vlp_safetensors_writer_begin(&writer, path, specs, KINDS * count, &kind, 1));
    VLP_TRY_DONE(vlp_safetensors_writer_write(writer, o->steps, count * sizeof *o->steps));
    VLP_TRY_DONE(write_moments(o, writer, o->exp_avg));
    VLP_TRY_DONE(write_moments(o, writer, o->exp_avg_sq));
    return vlp_safetensors_writer_commit(writer);
done:
    vlp_safetensors_writer_abandon(writer);
    return status;
}

vlp_status vlp_optimizer_save(const vlp_optimizer *o, const char *path) {
    size_t count = KINDS * (size_t)o->params->count;
    vlp_safetensor_spec *specs = vlp_alloc_zero(count, sizeof *specs);
    char **names = vlp_alloc_zero(count, sizeof *names);
    vlp_status status = specs && names ? fill_specs(o->params, specs, names) : VLP_ERR_MEMORY;
    if (status == VLP_OK) status = write_file(o, path, specs);
    for (size_t i = 0; names && i < count; i++) vlp_free(names[i]);
    vlp_free(names);
    vlp_free(specs);
    return status;
}

static vlp_status same_shape(const vlp_safetensor *t, const vlp_param *p) {
    bool same = t->ndim == p->tensor.ndim;
    for (int d = 0; same && d < t->ndim; d++) same = t->shape[d] == p->tensor.shape[d];
    if (same) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: tensor \"%s\" has another shape than the parameter; the "
                    "state belongs to another model",
                    t->file, t->name);
}

static vlp_status load_steps(vlp_optimizer *o, const vlp_safetensor *t, int i) {
    if (t->dtype != VLP_ST_I64 || t->numel != 1)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: tensor \"%s\" is not one I64", t->file, t->name);
    int64_t steps;
    memcpy(&steps, t->data, sizeof steps);
    if (steps < 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: tensor \"%s\" is negative", t->file, t->name);
    o->steps[i] = steps;
    return VLP_OK;
}

static vlp_status load_all(vlp_optimizer *o, const vlp_safetensors *file, vlp_buf *name) {
    vlp_real *const blocks[KINDS] = {NULL, o->exp_avg, o->exp_avg_sq};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < o->params->count; i++) {
            const vlp_param *p = o->params->items[i];
            const vlp_safetensor *t;
            VLP_TRY(name_of(name, kind, p));
            VLP_TRY(vlp_safetensors_get(file, name->data, &t));
            if (kind == 0) {
                VLP_TRY(load_steps(o, t, i));
                continue;
            }
            VLP_TRY(same_shape(t, p));
            VLP_TRY(vlp_safetensors_read_real(t, blocks[kind] + p->offset, t->numel));
        }
    }
    return VLP_OK;
}

static vlp_status check_file(const vlp_optimizer *o, const vlp_safetensors *file,
                             const char *path) {
    const char *kind = vlp_safetensors_metadata(file, "optimizer");
    const char *wanted = vlp_optimizer_kinds[o->options.kind];
    if (!kind) return VLP_FAIL(VLP_ERR_FORMAT, "%s: not the state of an optimizer", path);
    if (strcmp(kind, wanted) != 0)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: the state of optimizer %.40s, but the recipe says %s",
                        path, kind, wanted);
    size_t count = vlp_safetensors_count(file), want = KINDS * (size_t)o->params->count;
    if (count > want)
        return VLP_FAIL(VLP_ERR_FORMAT,
                        "%s: %zu tensors, but the model needs %zu; the state belongs to another "
                        "model",
                        path, count, want);
    return VLP_OK;
}

vlp_status vlp_optimizer_load(vlp_optimizer *o, const char *path) {
    vlp_safetensors *file;
    vlp_buf name = {0};
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_status status = check_file(o, file, path);
    if (status == VLP_OK) status = load_all(o, file, &name);
    vlp_buf_free(&name);
    vlp_safetensors_close(file);
    return status;
}
