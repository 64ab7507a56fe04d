#include "core/checkpoint_rename.h"

#include "core/memory.h"

#include <string.h>

/* Where the bytes of a tensor of theirs lie in a parameter of ours. */
typedef struct {
    const vlp_safetensor *tensor;
    const vlp_name_row *row;
    int param;
} source;

typedef struct {
    const vlp_rename *r;
    source *sources; /* [count], in the order of the file */
    size_t count;
    vlp_safetensor_spec *specs;
    vlp_name_target *targets; /* [most] of all parameters, one after the other */
    int *owners;              /* [most]: the parameter of each */
    size_t target_count;
    uint8_t *ours, *theirs; /* bytes of one parameter, of one tensor */
} work;

static int find_param(const vlp_params *params, const char *name) {
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->items[i]->name, name) == 0) return i;
    return -1;
}

static vlp_status find_sources(work *w) {
    const vlp_rename *r = w->r;
    size_t n = vlp_safetensors_count(r->from);
    w->sources = vlp_alloc_zero(n, sizeof *w->sources);
    if (!w->sources) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        char ours[VLP_NAME_BYTES];
        const vlp_safetensor *t = vlp_safetensors_at(r->from, i);
        const vlp_name_row *row = vlp_name_find(r->from_names, t->name, ours);
        if (row && r->from_names->count > 0 && !row->ours) continue; /* known, and not needed */
        int param = row ? find_param(r->params, ours) : -1;
        if (param < 0 && row && r->left_out && strncmp(ours, r->left_out, strlen(r->left_out)) == 0)
            continue;
        if (param < 0)
            return VLP_FAIL(VLP_ERR_FORMAT,
                            "%s: tensor \"%.96s\" belongs to no part that can be "
                            "converted",
                            t->file, t->name);
        w->sources[w->count++] = (source){t, row, param};
    }
    return VLP_OK;
}

/* All tensors of theirs, with the type of what they are made from. */
static vlp_status find_targets(work *w) {
    const vlp_rename *r = w->r;
    size_t most = (size_t)r->params->count * VLP_NAME_TARGETS * (size_t)r->copies;
    w->targets = vlp_alloc_zero(most, sizeof *w->targets);
    w->owners = vlp_alloc_zero(most, sizeof *w->owners);
    w->specs = vlp_alloc_zero(most + (size_t)r->filler_count, sizeof *w->specs);
    if (!w->targets || !w->owners || !w->specs) return VLP_ERR_MEMORY;
    for (int i = 0; i < r->params->count; i++) {
        const char *name = r->params->items[i]->name;
        size_t before = w->target_count;
        for (int copy = 0; copy < r->copies; copy++) {
            int n = vlp_name_targets(&r->to_names[copy], name, &w->targets[w->target_count]);
            for (int k = 0; k < n; k++) w->owners[w->target_count++] = i;
        }
        if (w->target_count == before)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED, "\"%s\" has no name in that format", name);
    }
    return VLP_OK;
}

static vlp_status dtype_of(const work *w, int param, vlp_st_dtype *out) {
    const source *first = NULL;
    for (size_t i = 0; i < w->count; i++) {
        if (w->sources[i].param != param) continue;
        if (first && first->tensor->dtype != w->sources[i].tensor->dtype)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                            "%s: \"%.96s\" and \"%.96s\" become one tensor, but their types differ",
                            first->tensor->file, first->tensor->name, w->sources[i].tensor->name);
        if (!first) first = &w->sources[i];
    }
    if (!first)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "the checkpoint lacks \"%s\"",
                        w->r->params->items[param]->name);
    *out = first->tensor->dtype;
    return VLP_OK;
}

static void add_axis(vlp_safetensor_spec *spec, int64_t size) {
    spec->shape[spec->ndim++] = size;
}

static void shape_of(const vlp_rename *r, const vlp_name_row *row, const vlp_tensor *ours,
                     vlp_safetensor_spec *spec) {
    int64_t shape[VLP_MAX_DIMS] = {0};
    int first = row->shape == VLP_SHAPE_FLAT && ours->ndim > 1 && ours->shape[0] == 1;
    for (int d = 0; d < ours->ndim; d++) shape[d] = ours->shape[d];
    if (row->parts) shape[0] /= row->parts;
    if (row->shape == VLP_SHAPE_BATCH) add_axis(spec, 1);
    if (row->shape == VLP_SHAPE_TOKEN) /* three axes in all */
        for (int d = ours->ndim; d < 3; d++) add_axis(spec, 1);
    for (int d = first; d < ours->ndim; d++)
        add_axis(spec, shape[row->transpose ? ours->ndim - 1 - d : d]);
    if (row->shape != VLP_SHAPE_PATCH) return;
    spec->ndim = 1;
    add_axis(spec, r->channels);
    add_axis(spec, r->patch);
    add_axis(spec, r->patch);
}

/* Fillers come first: of the types, counts are the widest. */
static vlp_status make_specs(work *w) {
    size_t fillers = (size_t)w->r->filler_count;
    for (size_t i = 0; i < fillers; i++) {
        const vlp_filler *f = &w->r->fillers[i];
        w->specs[i] = (vlp_safetensor_spec){
            .name = f->name,
            .dtype = f->fill == VLP_FILL_COUNT ? VLP_ST_I64 : VLP_ST_F32,
            .ndim = f->ndim,
        };
        memcpy(w->specs[i].shape, f->shape, sizeof f->shape);
    }
    for (size_t i = 0; i < w->target_count; i++) {
        vlp_safetensor_spec *spec = &w->specs[fillers + i];
        spec->name = w->targets[i].name;
        VLP_TRY(dtype_of(w, w->owners[i], &spec->dtype));
        shape_of(w->r, w->targets[i].row, &w->r->params->items[w->owners[i]]->tensor, spec);
    }
    return VLP_OK;
}

/* vlp_name_copy for elements of any size. */
static void copy(const vlp_name_row *row, const vlp_tensor *shape, size_t size, uint8_t *ours,
                 uint8_t *theirs, bool to_theirs) {
    int64_t n = vlp_numel(shape) / (row->parts ? row->parts : 1);
    int64_t cols = vlp_col_count(shape), rows = n / (cols ? cols : 1);
    uint8_t *base = ours + (size_t)(n * row->part) * size;
    if (!row->transpose) {
        memcpy(to_theirs ? theirs : base, to_theirs ? base : theirs, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint8_t *a = base + (size_t)i * size;
        uint8_t *b = theirs + (size_t)((i % cols) * rows + i / cols) * size;
        memcpy(to_theirs ? b : a, to_theirs ? a : b, size);
    }
}

/* The parameter's bytes, from all tensors that are parts of it. */
static vlp_status assemble(work *w, int param, size_t size) {
    const vlp_tensor *shape = &w->r->params->items[param]->tensor;
    int64_t filled = 0;
    for (size_t i = 0; i < w->count; i++) {
        const source *s = &w->sources[i];
        if (s->param != param) continue;
        int64_t n = vlp_numel(shape) / (s->row->parts ? s->row->parts : 1);
        if (s->tensor->numel != n)
            return VLP_FAIL(VLP_ERR_FORMAT,
                            "%s: tensor \"%.96s\" has %lld elements, %lld are wanted; does "
                            "config.json belong to it?",
                            s->tensor->file, s->tensor->name, (long long)s->tensor->numel,
                            (long long)n);
        if (filled >= vlp_numel(shape)) break; /* stored twice */
        copy(s->row, shape, size, w->ours, (uint8_t *)(uintptr_t)s->tensor->data, false);
        vlp_safetensors_release(w->r->from, s->tensor, 0, n);
        filled += n;
    }
    if (filled >= vlp_numel(shape)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "parameter \"%s\" is incomplete",
                    w->r->params->items[param]->name);
}

static vlp_status write_filler(const vlp_filler *f, vlp_safetensors_writer *writer) {
    int64_t n = 1, columns = f->ndim > 0 ? f->shape[f->ndim - 1] : 1;
    for (int d = 0; d < f->ndim; d++) n *= f->shape[d];
    for (int64_t i = 0; i < n; i++) {
        bool zero = f->fill == VLP_FILL_DIAGONAL && i / columns != i % columns;
        float value = zero ? 0 : (float)f->value;
        if (f->fill == VLP_FILL_COUNT)
            VLP_TRY(vlp_safetensors_writer_write(writer, &i, sizeof i));
        else
            VLP_TRY(vlp_safetensors_writer_write(writer, &value, sizeof value));
    }
    return VLP_OK;
}

static vlp_status write_tensors(work *w, vlp_safetensors_writer *writer) {
    int fillers = w->r->filler_count;
    for (int i = 0; i < fillers; i++) VLP_TRY(write_filler(&w->r->fillers[i], writer));
    int loaded = -1;
    for (size_t i = 0; i < w->target_count; i++) {
        const vlp_name_row *row = w->targets[i].row;
        const vlp_tensor *shape = &w->r->params->items[w->owners[i]]->tensor;
        size_t size = vlp_st_dtype_size(w->specs[(size_t)fillers + i].dtype);
        if (w->owners[i] != loaded) VLP_TRY(assemble(w, w->owners[i], size));
        loaded = w->owners[i];
        copy(row, shape, size, w->ours, w->theirs, true);
        int64_t n = vlp_numel(shape) / (row->parts ? row->parts : 1);
        VLP_TRY(vlp_safetensors_writer_write(writer, w->theirs, (size_t)n * size));
    }
    return VLP_OK;
}

static vlp_status write_file(work *w, const char *path) {
    enum { WIDEST = 8 };
    vlp_safetensors_writer *writer;
    int64_t largest = 0;
    for (int i = 0; i < w->r->params->count; i++) {
        int64_t n = vlp_numel(&w->r->params->items[i]->tensor);
        if (n > largest) largest = n;
    }
    w->ours = vlp_alloc((size_t)largest * WIDEST);
    w->theirs = vlp_alloc((size_t)largest * WIDEST);
    if (!w->ours || !w->theirs) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_safetensors_writer_begin(&writer, path, w->specs,
                                         (size_t)w->r->filler_count + w->target_count, NULL, 0));
    vlp_status status = write_tensors(w, writer);
    if (status == VLP_OK) return vlp_safetensors_writer_commit(writer);
    vlp_safetensors_writer_abandon(writer);
    return status;
}

vlp_status vlp_checkpoint_rename(const vlp_rename *rename, const char *path) {
    work w = {.r = rename};
    vlp_status status = find_sources(&w);
    if (status == VLP_OK) status = find_targets(&w);
    if (status == VLP_OK) status = make_specs(&w);
    if (status == VLP_OK) status = write_file(&w, path);
    vlp_free(w.sources);
    vlp_free(w.targets);
    vlp_free(w.owners);
    vlp_free(w.specs);
    vlp_free(w.ours);
    vlp_free(w.theirs);
    return status;
}
