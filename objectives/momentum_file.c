/* The state of momentum encoders in files: a run's own, and released checkpoints. */
#include "core/checkpoint.h"
#include "core/memory.h"
#include "objectives/momentum.h"

#include <string.h>

/* A checkpoint's other copy of the encoders. */
static const char other_copy[] = "objective.momentum.";
/* Ours beside the parameters. */
static const char queue_prefix[] = "queue.";

/* One of the queues' tensors: where its rows are, and how wide they are; integers or reals. */
typedef struct {
    const char *name;
    vlp_real *reals;
    int64_t *integers;
    int64_t columns;
} queue_tensor;

enum { QUEUE_TENSORS = 5 };

static void queue_tensors(vlp_momentum *m, queue_tensor out[QUEUE_TENSORS]) {
    int64_t e = m->twin->config.embedding;
    out[0] = (queue_tensor){"queue.image_groups", NULL, m->image_groups + m->room, 1};
    out[1] = (queue_tensor){"queue.caption_groups", NULL, m->caption_groups + m->room, 1};
    out[2] = (queue_tensor){"queue.next", NULL, &m->next, 0};
    out[3] = (queue_tensor){"queue.images", m->images + m->room * e, NULL, e};
    out[4] = (queue_tensor){"queue.texts", m->texts + m->room * e, NULL, e};
}

static vlp_safetensor_spec queue_spec(const queue_tensor *q, int64_t queue) {
    vlp_safetensor_spec spec = {.name = q->name, .dtype = q->integers ? VLP_ST_I64 : VLP_ST_F32};
    if (q->columns > 0) spec.shape[spec.ndim++] = queue;
    if (q->reals) spec.shape[spec.ndim++] = q->columns;
    return spec;
}

static vlp_status write_queue(vlp_safetensors_writer *writer, const queue_tensor *q,
                              int64_t queue) {
    int64_t n = q->columns > 0 ? queue * q->columns : 1;
    if (q->reals) return vlp_safetensors_writer_real(writer, q->reals, n);
    return vlp_safetensors_writer_write(writer, q->integers, (size_t)n * sizeof(int64_t));
}

static vlp_status write_all(const vlp_params *params, const queue_tensor *queues, int64_t queue,
                            vlp_safetensors_writer *writer) {
    for (int i = 0; i < QUEUE_TENSORS; i++) VLP_TRY(write_queue(writer, &queues[i], queue));
    for (int i = 0; i < params->count; i++) {
        const vlp_tensor *t = &params->items[i]->tensor;
        VLP_TRY(vlp_safetensors_writer_real(writer, t->data, vlp_numel(t)));
    }
    return VLP_OK;
}

vlp_status vlp_momentum_save(const vlp_momentum *m, const char *path) {
    const vlp_params *params = m->twin->params;
    queue_tensor queues[QUEUE_TENSORS];
    vlp_momentum view = *m; /* pointers to its parts, to read from */
    queue_tensors(&view, queues);
    size_t n = QUEUE_TENSORS + (size_t)params->count;
    vlp_safetensor_spec *specs = vlp_alloc_zero(n, sizeof *specs);
    if (!specs) return VLP_ERR_MEMORY;
    for (int i = 0; i < QUEUE_TENSORS; i++) specs[i] = queue_spec(&queues[i], m->options.queue);
    for (int i = 0; i < params->count; i++) {
        const vlp_param *p = params->items[i];
        vlp_safetensor_spec *s = &specs[QUEUE_TENSORS + i];
        *s = (vlp_safetensor_spec){.name = p->name, .dtype = VLP_ST_F32, .ndim = p->tensor.ndim};
        for (int d = 0; d < p->tensor.ndim; d++) s->shape[d] = p->tensor.shape[d];
    }
    vlp_safetensors_writer *writer;
    vlp_status status = vlp_safetensors_writer_begin(&writer, path, specs, n, NULL, 0);
    if (status == VLP_OK) {
        status = write_all(params, queues, m->options.queue, writer);
        if (status == VLP_OK)
            status = vlp_safetensors_writer_commit(writer);
        else
            vlp_safetensors_writer_abandon(writer);
    }
    vlp_free(specs);
    return status;
}

static vlp_status read_queue(const vlp_safetensors *file, const queue_tensor *q, int64_t queue) {
    const vlp_safetensor *t;
    VLP_TRY(vlp_safetensors_get(file, q->name, &t));
    int64_t n = q->columns > 0 ? queue * q->columns : 1;
    if (t->numel != n || vlp_st_is_float(t->dtype) != (q->reals != NULL) ||
        (q->integers && t->dtype != VLP_ST_I64))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%s\" does not fit a queue of %lld", t->file, t->name,
                        (long long)queue);
    if (q->reals) return vlp_safetensors_read_real(t, q->reals, n);
    memcpy(q->integers, t->data, (size_t)n * sizeof(int64_t));
    return VLP_OK;
}

static vlp_status read_queues(vlp_momentum *m, const vlp_safetensors *file, const char *path) {
    queue_tensor queues[QUEUE_TENSORS];
    queue_tensors(m, queues);
    for (int i = 0; i < QUEUE_TENSORS; i++) VLP_TRY(read_queue(file, &queues[i], m->options.queue));
    if (m->next >= 0 && (m->next == 0 || m->next < m->options.queue)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"queue.next\" is %lld, the queue holds %lld", path,
                    (long long)m->next, (long long)m->options.queue);
}

vlp_status vlp_momentum_load(vlp_momentum *m, const char *path) {
    vlp_safetensors *file;
    VLP_TRY(vlp_safetensors_open(&file, path));
    vlp_status status = vlp_params_load(m->twin->params, file, (vlp_name_map){0}, queue_prefix);
    if (status == VLP_OK) status = read_queues(m, file, path);
    vlp_safetensors_close(file);
    return status;
}

/* Theirs is [E, Q]. Another size is passed over. */
static vlp_status import_rows(const vlp_safetensors *file, const char *name, int64_t queue,
                              int64_t width, vlp_real *rows, bool *found) {
    const vlp_safetensor *t = vlp_safetensors_find(file, name);
    *found = t && t->ndim == 2 && t->shape[0] == width && t->shape[1] == queue;
    if (!*found) return VLP_OK;
    vlp_real *theirs = vlp_alloc((size_t)t->numel * sizeof *theirs);
    if (!theirs) return VLP_ERR_MEMORY;
    vlp_status status = vlp_safetensors_read_real(t, theirs, t->numel);
    for (int64_t r = 0; status == VLP_OK && r < queue; r++)
        for (int64_t k = 0; k < width; k++) rows[r * width + k] = theirs[k * queue + r];
    vlp_free(theirs);
    return status;
}

static vlp_status import_queues(vlp_momentum *m, const vlp_safetensors *file) {
    int64_t queue = m->options.queue, e = m->twin->config.embedding;
    bool images, texts;
    VLP_TRY(import_rows(file, "image_queue", queue, e, m->images + m->room * e, &images));
    VLP_TRY(import_rows(file, "text_queue", queue, e, m->texts + m->room * e, &texts));
    const vlp_safetensor *next = vlp_safetensors_find(file, "queue_ptr");
    if (!next) next = vlp_safetensors_find(file, "ptr_queue");
    const vlp_safetensor *ids = vlp_safetensors_find(file, "idx_queue");
    if (images && texts && next && next->numel == 1) {
        double at = vlp_safetensor_value(next, 0);
        if (at >= 0 && at < (double)queue) m->next = (int64_t)at;
    }
    for (int64_t r = 0; ids && ids->numel == queue && r < queue; r++)
        m->image_groups[m->room + r] = (int64_t)vlp_safetensor_value(ids, r);
    return VLP_OK;
}

vlp_status vlp_momentum_import(vlp_momentum *m, const vlp_safetensors *file, bool *found) {
    vlp_name_map map = {0};
    char ours[VLP_NAME_BYTES];
    *found = false;
    vlp_model_names(&map, &m->twin->config, file, true);
    for (size_t i = 0; map.count > 0 && i < vlp_safetensors_count(file) && !*found; i++) {
        const vlp_name_row *row = vlp_name_find(&map, vlp_safetensors_at(file, i)->name, ours);
        *found = row && row->ours && strncmp(ours, other_copy, strlen(other_copy)) != 0;
    }
    if (!*found) return VLP_OK;
    VLP_TRY(vlp_params_load(m->twin->params, file, map, "objective."));
    return import_queues(m, file);
}
