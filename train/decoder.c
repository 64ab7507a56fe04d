#include "train/decoder.h"

#include "core/file.h"
#include "core/memory.h"
#include "core/threads.h"
#include "datasets/reader.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    vlp_reader *reader; /* NULL without an index */
    vlp_buf bytes;
    vlp_image image;
    vlp_transform_scratch scratch;
} worker;

typedef struct {
    bool ok;
    bool out_of_memory;
    vlp_buf path;
    char reason[256];
} outcome;

struct vlp_decoder {
    vlp_transform transform;
    vlp_decode_options decode;
    int64_t batch, plane; /* plane: numbers of one picture */
    int threads;
    float *pixels;     /* [batch, plane] */
    outcome *outcomes; /* [batch] */
    worker *workers;   /* [threads] */
};

static vlp_status setup(vlp_decoder *d, const vlp_index *index) {
    d->pixels = vlp_alloc_zero((size_t)(d->batch * d->plane), sizeof *d->pixels);
    d->outcomes = vlp_alloc_zero((size_t)d->batch, sizeof *d->outcomes);
    d->workers = vlp_alloc_zero((size_t)d->threads, sizeof *d->workers);
    if (!d->pixels || !d->outcomes || !d->workers) return VLP_ERR_MEMORY;
    for (int i = 0; index && i < d->threads; i++)
        VLP_TRY(vlp_reader_open(&d->workers[i].reader, vlp_index_path(index)));
    return VLP_OK;
}

vlp_status vlp_decoder_open(vlp_decoder **out, const vlp_transform *transform, int64_t batch,
                            const vlp_index *index) {
    *out = NULL;
    vlp_decoder *d = vlp_alloc_zero(1, sizeof *d);
    if (!d) return VLP_ERR_MEMORY;
    d->transform = *transform;
    d->decode = vlp_transform_decode_options(transform, false);
    d->batch = batch;
    d->plane = 3 * (int64_t)transform->image_size * transform->image_size;
    d->threads = vlp_threads_get();
    vlp_status status = setup(d, index);
    if (status != VLP_OK) {
        vlp_decoder_free(d);
        return status;
    }
    *out = d;
    return VLP_OK;
}

void vlp_decoder_free(vlp_decoder *d) {
    if (!d) return;
    for (int i = 0; d->workers && i < d->threads; i++) {
        worker *w = &d->workers[i];
        vlp_reader_free(w->reader);
        vlp_buf_free(&w->bytes);
        vlp_image_free(&w->image);
        vlp_transform_scratch_free(&w->scratch);
    }
    for (int64_t i = 0; d->outcomes && i < d->batch; i++) vlp_buf_free(&d->outcomes[i].path);
    vlp_free(d->workers);
    vlp_free(d->outcomes);
    vlp_free(d->pixels);
    vlp_free(d);
}

static vlp_status set_path(outcome *o, const char *path) {
    vlp_buf_clear(&o->path);
    return vlp_buf_puts(&o->path, path);
}

static vlp_status read_file(const vlp_decoder *d, worker *w, const char *path) {
    vlp_buf_clear(&w->bytes);
    VLP_TRY(vlp_file_read(path, 0, &w->bytes));
    return vlp_image_decode(&w->image, (const uint8_t *)w->bytes.data, w->bytes.len, &d->decode);
}

static vlp_status read_image(const vlp_decoder *d, worker *w, outcome *o, int64_t id) {
    vlp_located located;
    VLP_TRY(set_path(o, ""));
    VLP_TRY(vlp_reader_locate(w->reader, id, &located));
    VLP_TRY(set_path(o, located.path));
    return vlp_reader_pixels(w->reader, &located, &d->decode, 0, &w->image);
}

/* What is left of the message when the path, which the caller names, is taken off its front. */
static const char *without_path(const char *message, const char *path) {
    size_t n = strlen(path);
    if (strncmp(message, path, n) != 0) return message;
    return message + n + strspn(message + n, ": ");
}

static void decode_one(vlp_decoder *d, const char *const *paths, const int64_t *ids, int64_t i) {
    worker *w = &d->workers[omp_get_thread_num()];
    outcome *o = &d->outcomes[i];
    float *pixels = d->pixels + i * d->plane;
    vlp_status status = paths ? set_path(o, paths[i]) : VLP_OK;
    if (status == VLP_OK) status = paths ? read_file(d, w, paths[i]) : read_image(d, w, o, ids[i]);
    if (status == VLP_OK)
        status = vlp_transform_apply(&d->transform, &w->image, NULL, &w->scratch, pixels);
    o->ok = status == VLP_OK;
    o->out_of_memory = status == VLP_ERR_MEMORY;
    if (o->ok) return;
    memset(pixels, 0, (size_t)d->plane * sizeof *pixels);
    snprintf(o->reason, sizeof o->reason, "%s",
             without_path(vlp_error(), o->path.data ? o->path.data : ""));
}

static vlp_status decode_all(vlp_decoder *d, const char *const *paths, const int64_t *ids,
                             int64_t n) {
    VLP_ASSERT(n >= 0 && n <= d->batch, "%lld pictures in room for %lld", (long long)n,
               (long long)d->batch);
#pragma omp parallel for schedule(dynamic) num_threads(d->threads)
    for (int64_t i = 0; i < n; i++) decode_one(d, paths, ids, i);
    for (int64_t i = 0; i < n; i++)
        if (d->outcomes[i].out_of_memory)
            return VLP_FAIL(VLP_ERR_MEMORY, "%s: %s", vlp_decoder_path(d, i),
                            d->outcomes[i].reason);
    return VLP_OK;
}

vlp_status vlp_decoder_files(vlp_decoder *d, const char *const *paths, int64_t n) {
    return decode_all(d, paths, NULL, n);
}

vlp_status vlp_decoder_images(vlp_decoder *d, const int64_t *ids, int64_t n) {
    VLP_ASSERT(d->workers[0].reader, "this decoder was opened without an index");
    return decode_all(d, NULL, ids, n);
}

const float *vlp_decoder_pixels(const vlp_decoder *d) {
    return d->pixels;
}

const char *vlp_decoder_reason(const vlp_decoder *d, int64_t i) {
    return d->outcomes[i].ok ? NULL : d->outcomes[i].reason;
}

const char *vlp_decoder_path(const vlp_decoder *d, int64_t i) {
    return d->outcomes[i].path.data ? d->outcomes[i].path.data : "";
}
