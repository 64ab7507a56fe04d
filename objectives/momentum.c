#include "objectives/momentum.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 16384 };

static int64_t width(const vlp_momentum *m) {
    return m->twin->config.embedding;
}

static void declare_mlm(vlp_momentum *m) {
    vlp_params *params = m->twin->params;
    vlp_params_push(params, "objective");
    vlp_params_push(params, "mlm");
    vlp_mlm_head_declare(&m->mlm, params, &m->twin->config.text);
    vlp_params_pop(params);
    vlp_params_pop(params);
}

vlp_status vlp_momentum_new(vlp_momentum **out, const vlp_model *model,
                            const vlp_momentum_options *options) {
    *out = NULL;
    vlp_momentum *m = vlp_alloc_zero(1, sizeof *m);
    if (!m) return VLP_ERR_MEMORY;
    m->options = *options;
    m->model = model;
    m->ramp = 1;
    vlp_model_config config = model->config; /* what is written is not averaged */
    config.decoder = (vlp_bert_config){0};
    config.decoder_shared = false;
    vlp_status status = vlp_model_new_parts(&m->twin, &config, VLP_MODEL_SPACE);
    if (status == VLP_OK && options->mlm) declare_mlm(m);
    if (status == VLP_OK) status = vlp_params_allocate(m->twin->params, false);
    if (status == VLP_OK) status = vlp_momentum_reserve(m, 1);
    if (status != VLP_OK) {
        vlp_momentum_free(m);
        return status;
    }
    *out = m;
    return VLP_OK;
}

void vlp_momentum_free(vlp_momentum *m) {
    if (!m) return;
    vlp_model_free(m->twin);
    vlp_free(m->images);
    vlp_free(m->texts);
    vlp_free(m->image_groups);
    vlp_free(m->caption_groups);
    vlp_free(m);
}

size_t vlp_momentum_bytes(const vlp_momentum *m) {
    size_t rows = (size_t)(m->room + m->options.queue);
    return (size_t)m->twin->params->total * sizeof(vlp_real) +
           2 * rows * ((size_t)width(m) * sizeof(vlp_real) + sizeof(int64_t));
}

/* The queue moves to the end of larger memory. */
static bool grow(void **block, size_t row_bytes, int64_t room, int64_t more, int64_t queue) {
    char *bytes = vlp_realloc(*block, (size_t)(room + more + queue) * row_bytes);
    if (!bytes) return false;
    *block = bytes;
    memmove(bytes + (size_t)(room + more) * row_bytes, bytes + (size_t)room * row_bytes,
            (size_t)queue * row_bytes);
    return true;
}

vlp_status vlp_momentum_reserve(vlp_momentum *m, int64_t batch) {
    int64_t more = batch - m->room, queue = m->room ? m->options.queue : 0;
    if (more <= 0) return VLP_OK;
    if (m->room == 0) more += m->options.queue; /* at first: room for all */
    size_t row = (size_t)width(m) * sizeof(vlp_real);
    if (!grow((void **)&m->images, row, m->room, more, queue) ||
        !grow((void **)&m->texts, row, m->room, more, queue) ||
        !grow((void **)&m->image_groups, sizeof(int64_t), m->room, more, queue) ||
        !grow((void **)&m->caption_groups, sizeof(int64_t), m->room, more, queue))
        return VLP_ERR_MEMORY;
    m->room = batch;
    return VLP_OK;
}

/* Random unit vectors: candidates from the first step on, as easy as any. */
static void fill_queue(vlp_real *rows, int64_t n, int64_t width, vlp_rng rng) {
    for (int64_t r = 0; r < n; r++) {
        vlp_real *row = rows + r * width;
        double sum = 0;
        for (int64_t k = 0; k < width; k++) {
            row[k] = (vlp_real)vlp_rng_normal(&rng);
            sum += (double)row[k] * (double)row[k];
        }
        for (int64_t k = 0; k < width; k++) row[k] = (vlp_real)((double)row[k] / sqrt(sum));
    }
}

void vlp_momentum_start(vlp_momentum *m, uint64_t seed) {
    int64_t e = width(m), queue = m->options.queue, room = m->room;
    vlp_momentum_follow(m->twin->params, m->model->params, 0);
    fill_queue(m->images + room * e, queue, e, vlp_rng_at(seed, VLP_RNG_QUEUE, 0, 0));
    fill_queue(m->texts + room * e, queue, e, vlp_rng_at(seed, VLP_RNG_QUEUE, 0, 1));
    for (int64_t r = room; r < room + queue; r++)
        m->image_groups[r] = m->caption_groups[r] = VLP_MOMENTUM_NOBODY;
    m->next = 0;
}

typedef struct {
    vlp_real *twin;
    const vlp_real *model;
    vlp_real rate; /* 1 - d */
} average;

static void average_body(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const average *a = ctx;
    if (a->rate == 1)
        memcpy(a->twin + begin, a->model + begin, (size_t)(end - begin) * sizeof *a->twin);
    else
        for (int64_t i = begin; i < end; i++) a->twin[i] += a->rate * (a->model[i] - a->twin[i]);
}

/* The parameter of that name, looked for from `from` on: both stores have the same order. */
static int source_of(const vlp_params *params, const char *name, int from) {
    for (int k = 0; k < params->count; k++) {
        int i = (from + k) % params->count;
        if (strcmp(params->items[i]->name, name) == 0) return i;
    }
    VLP_ASSERT(false, "the model has no %s", name);
    return 0;
}

void vlp_momentum_follow(vlp_params *twin, const vlp_params *model, double decay) {
    for (int i = 0, at = 0; i < twin->count; i++, at++) {
        const vlp_param *own = twin->items[i];
        at = source_of(model, own->name, at);
        average a = {own->tensor.data, model->items[at]->tensor.data, (vlp_real)(1 - decay)};
        vlp_parallel_for(vlp_numel(&own->tensor), GRAIN, average_body, &a);
    }
    vlp_params_changed(twin);
}

void vlp_momentum_update(vlp_momentum *m) {
    vlp_momentum_follow(m->twin->params, m->model->params, m->options.decay);
}

int64_t vlp_momentum_first(const vlp_momentum *m, int64_t batch) {
    VLP_ASSERT(batch <= m->room, "a batch of %lld, room for %lld", (long long)batch,
               (long long)m->room);
    return m->room - batch;
}

void vlp_momentum_put(vlp_momentum *m, const vlp_pairs *pairs, const vlp_real *images,
                      const vlp_real *texts) {
    int64_t n = pairs->batch, first = vlp_momentum_first(m, n), e = width(m);
    size_t bytes = (size_t)(n * e) * sizeof(vlp_real);
    memcpy(m->images + first * e, images, bytes);
    memcpy(m->texts + first * e, texts, bytes);
    for (int64_t i = 0; i < n; i++) {
        m->image_groups[first + i] = pairs->image_groups[i];
        m->caption_groups[first + i] = pairs->caption_groups[i];
    }
}

void vlp_momentum_enqueue(vlp_momentum *m, const vlp_pairs *pairs) {
    int64_t n = pairs->batch, from = vlp_momentum_first(m, n), e = width(m);
    if (m->options.queue == 0) return;
    for (int64_t i = 0; i < n; i++, from++) {
        int64_t to = m->room + m->next;
        memcpy(m->images + to * e, m->images + from * e, (size_t)e * sizeof(vlp_real));
        memcpy(m->texts + to * e, m->texts + from * e, (size_t)e * sizeof(vlp_real));
        m->image_groups[to] = m->image_groups[from];
        m->caption_groups[to] = m->caption_groups[from];
        m->next = (m->next + 1) % m->options.queue;
    }
}
