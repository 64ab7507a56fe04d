#include "datasets/loader_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_SLOTS = 4, MAX_CLAIM = 8, BLOCKS_AT_ONCE = 16 };

static int world(const vlp_loader *loader) {
    return loader->options.world > 0 ? loader->options.world : 1;
}

/* The first position of this rank's share of a batch. */
static int64_t position_of(const vlp_loader *loader, int64_t batch) {
    int64_t size = loader->options.batch;
    return loader->start + batch * size * world(loader) + loader->options.rank * size;
}

/* How many samples a batch has: fewer, or none, only at the end of an evaluation. */
static int batch_count(const vlp_loader *loader, int64_t batch) {
    int size = loader->options.batch;
    if (loader->options.train) return size;
    int64_t left = loader->pools[0].count - position_of(loader, batch);
    return left >= size ? size : left > 0 ? (int)left : 0;
}

static bool may_claim(const vlp_loader *loader) {
    return !loader->paused && loader->status == VLP_OK &&
           loader->claimed < loader->released + loader->options.slots &&
           batch_count(loader, loader->claimed) > 0;
}

static void begin_batch(vlp_loader *loader, loader_slot *slot, int64_t batch) {
    int64_t global = loader->start + batch * loader->options.batch * world(loader);
    slot->remaining = batch_count(loader, batch);
    slot->batch.count = slot->remaining;
    slot->batch.cursor = global;
    slot->batch.next_cursor = global + (int64_t)loader->options.batch * world(loader);
    slot->batch.epoch = (double)global / (double)vlp_loader_rows(loader);
}

/* Takes some samples of the batch in turn. Called with the lock held. */
static void work_once(loader_worker *worker) {
    vlp_loader *loader = worker->loader;
    int64_t batch = loader->claimed;
    loader_slot *slot = &loader->slots[batch % loader->options.slots];
    int first = loader->claimed_samples;
    if (first == 0) begin_batch(loader, slot, batch);
    int n = slot->batch.count - first < MAX_CLAIM ? slot->batch.count - first : MAX_CLAIM;
    loader->claimed_samples += n;
    if (loader->claimed_samples == slot->batch.count) {
        loader->claimed++;
        loader->claimed_samples = 0;
    }
    loader->in_flight++;
    int64_t position = position_of(loader, batch);
    pthread_mutex_unlock(&loader->lock);
    vlp_status status = VLP_OK;
    for (int j = first; j < first + n && status == VLP_OK; j++)
        status = vlp_loader_fill(worker, slot, j, position + j);
    pthread_mutex_lock(&loader->lock);
    loader->in_flight--;
    slot->remaining -= n;
    if (status != VLP_OK && loader->status == VLP_OK) {
        loader->status = status;
        snprintf(loader->error, sizeof loader->error, "%s", vlp_error());
    }
    pthread_cond_broadcast(&loader->ready);
}

static void *work(void *user) {
    loader_worker *worker = user;
    vlp_loader *loader = worker->loader;
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        if (may_claim(loader))
            work_once(worker);
        else
            pthread_cond_wait(&loader->work, &loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

static vlp_status check_options(const vlp_loader_options *o) {
    int ranks = o->world > 0 ? o->world : 1;
    if (o->batch < 1)
        return VLP_FAIL(VLP_ERR_USAGE, "a batch of %d; it must be at least 1", o->batch);
    if (o->tokenizer && o->text_length < 2)
        return VLP_FAIL(VLP_ERR_USAGE, "text length %d; it must be at least 2", o->text_length);
    if (o->n_mixture > 1 && !o->train)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "a mixture of sources is for training; evaluate each by itself");
    VLP_ASSERT(o->rank >= 0 && o->rank < ranks, "rank %d of %d", o->rank, ranks);
    VLP_ASSERT(o->cursor >= 0, "cursor %lld", (long long)o->cursor);
    return VLP_OK;
}

static vlp_status open_rows(vlp_loader *loader, const vlp_index *index) {
    const vlp_loader_options *o = &loader->options;
    int n = o->n_mixture > 0 ? o->n_mixture : 1;
    loader->pools = vlp_alloc_zero((size_t)n, sizeof *loader->pools);
    vlp_pool *pools = vlp_alloc_zero((size_t)n, sizeof *pools);
    vlp_status status = loader->pools && pools ? VLP_OK : VLP_ERR_MEMORY;
    for (int p = 0; p < n && status == VLP_OK; p++) {
        const char *source = o->n_mixture > 0 ? o->mixture[p].source : NULL;
        bool place = o->train && o->block_rows > 0;
        status = (place ? vlp_rows_open_by_place : vlp_rows_open)(&loader->pools[p], index, o->rows,
                                                                  o->split, source);
        loader->n_pools = p + 1;
        pools[p] = (vlp_pool){loader->pools[p].count, source ? o->mixture[p].weight : 1};
    }
    if (status == VLP_OK) status = vlp_sampler_new(&loader->sampler, o->seed, pools, n);
    if (status == VLP_OK && o->block_rows > 0)
        vlp_sampler_set_blocks(loader->sampler, o->block_rows, BLOCKS_AT_ONCE);
    if (status == VLP_OK && o->by_source)
        vlp_sampler_set_run(loader->sampler, (int64_t)o->batch * (o->world > 0 ? o->world : 1));
    vlp_free(pools);
    return status;
}

/* All slots' arrays lie in four blocks. */
static vlp_status open_slots(vlp_loader *loader) {
    const vlp_loader_options *o = &loader->options;
    size_t n = (size_t)o->slots, batch = (size_t)o->batch;
    size_t size = o->transform ? (size_t)o->transform->image_size : 0, plane = 3 * size * size;
    size_t length = o->tokenizer ? (size_t)o->text_length : 0;
    loader->slots = vlp_alloc_zero(n, sizeof *loader->slots);
    loader->ids = vlp_alloc_zero(n * batch * 4, sizeof *loader->ids);
    loader->pixels = vlp_alloc_zero(n * batch * plane + 1, sizeof *loader->pixels);
    loader->token_ids = vlp_alloc_zero(n * batch * length + 1, sizeof *loader->token_ids);
    loader->masks = vlp_alloc_zero(n * batch * length + 1, 1);
    if (!loader->slots || !loader->ids || !loader->pixels || !loader->token_ids || !loader->masks)
        return VLP_ERR_MEMORY;
    for (size_t s = 0; s < n; s++) {
        loader_slot *slot = &loader->slots[s];
        slot->pixels = loader->pixels + s * batch * plane;
        slot->token_ids = loader->token_ids + s * batch * length;
        slot->attention_mask = loader->masks + s * batch * length;
        slot->image_ids = loader->ids + s * batch * 4;
        slot->groups = slot->image_ids + batch;
        slot->caption_ids = slot->groups + batch;
        slot->caption_groups = slot->caption_ids + batch;
        slot->batch = (vlp_batch){.pixels = plane ? slot->pixels : NULL,
                                  .token_ids = length ? slot->token_ids : NULL,
                                  .attention_mask = length ? slot->attention_mask : NULL,
                                  .image_ids = slot->image_ids,
                                  .groups = slot->groups,
                                  .caption_ids = slot->caption_ids,
                                  .caption_groups = slot->caption_groups};
    }
    return VLP_OK;
}

static vlp_status start_workers(vlp_loader *loader, const vlp_index *index) {
    int n = loader->options.threads;
    loader->workers = vlp_alloc_zero((size_t)n, sizeof *loader->workers);
    if (!loader->workers) return VLP_ERR_MEMORY;
    for (int i = 0; i < n; i++) {
        loader_worker *worker = &loader->workers[i];
        worker->loader = loader;
        VLP_TRY(vlp_reader_open(&worker->reader, vlp_index_path(index)));
    }
    for (int i = 0; i < n; i++) {
        loader_worker *worker = &loader->workers[i];
        worker->started = pthread_create(&worker->thread, NULL, work, worker) == 0;
        if (!worker->started)
            return VLP_FAIL(VLP_ERR_MEMORY, "cannot start loader thread %d of %d; use fewer", i + 1,
                            n);
    }
    return VLP_OK;
}

/* The smallest crop of it still has as many pixels as the model's input. */
static int short_side(const vlp_transform *t) {
    double side = t->image_size * sqrt(2 / t->augment.scale_min);
    return (int)lround(fmin(side, 1 << 20));
}

/* Pictures of all pools; a pool of captions goes by its pictures, which a pool of pairs names. */
static vlp_status open_pixel_file(vlp_loader *loader, const vlp_index *index) {
    const vlp_loader_options *o = &loader->options;
    if (!o->pixel_file || !o->train || !o->transform) return VLP_OK;
    vlp_rows rows;
    VLP_TRY(vlp_rows_open(&rows, index, VLP_ROWS_IMAGES, o->split, NULL));
    vlp_pixel_file_options options = {.path = o->pixel_file,
                                      .decode = loader->decode,
                                      .short_side = loader->short_side,
                                      .threads = o->threads,
                                      .progress = o->building,
                                      .user = o->user};
    vlp_status status = vlp_pixel_file_open(&loader->pixel_file, index, &rows, &options);
    vlp_rows_close(&rows);
    return status;
}

static void set_defaults(vlp_loader *loader) {
    vlp_loader_options *o = &loader->options;
    if (o->threads <= 0) o->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (o->threads < 1) o->threads = 1;
    if (o->slots <= 0) o->slots = DEFAULT_SLOTS;
    if (o->rows == VLP_ROWS_TEXTS) o->transform = NULL;
    if (o->rows == VLP_ROWS_IMAGES) o->tokenizer = NULL;
    if (o->transform) {
        loader->transform_copy = *o->transform;
        o->transform = &loader->transform_copy;
        loader->upright = loader->mirrored = loader->transform_copy;
        loader->upright.augment.flip = 0;
        loader->mirrored.augment.flip = 1.5; /* above every draw */
        loader->decode = vlp_transform_decode_options(o->transform, o->train);
        loader->short_side = o->train ? short_side(o->transform) : 0;
    }
    loader->start = o->cursor;
}

vlp_status vlp_loader_open(vlp_loader **out, const vlp_index *index,
                           const vlp_loader_options *options) {
    *out = NULL;
    VLP_TRY(check_options(options));
    vlp_loader *loader = vlp_alloc_zero(1, sizeof *loader);
    if (!loader) return VLP_ERR_MEMORY;
    loader->options = *options;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    set_defaults(loader);
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(open_rows(loader, index));
    VLP_TRY_DONE(open_slots(loader));
    VLP_TRY_DONE(vlp_pixel_cache_new(&loader->cache, options->cache_bytes));
    VLP_TRY_DONE(open_pixel_file(loader, index));
    VLP_TRY_DONE(start_workers(loader, index));
done:
    if (status != VLP_OK)
        vlp_loader_free(loader);
    else
        *out = loader;
    return status;
}

static void free_workers(vlp_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; loader->workers && i < loader->options.threads; i++) {
        loader_worker *worker = &loader->workers[i];
        if (worker->started) pthread_join(worker->thread, NULL);
        vlp_reader_free(worker->reader);
        vlp_image_free(&worker->image);
        vlp_transform_scratch_free(&worker->transform);
        vlp_buf_free(&worker->mirrored);
    }
    vlp_free(loader->workers);
}

void vlp_loader_free(vlp_loader *loader) {
    if (!loader) return;
    free_workers(loader);
    for (int p = 0; p < loader->n_pools; p++) vlp_rows_close(&loader->pools[p]);
    vlp_free(loader->pools);
    vlp_sampler_free(loader->sampler);
    vlp_pixel_cache_free(loader->cache);
    vlp_pixel_file_free(loader->pixel_file);
    vlp_free(loader->slots);
    vlp_free(loader->ids);
    vlp_free(loader->pixels);
    vlp_free(loader->token_ids);
    vlp_free(loader->masks);
    vlp_bitset_free(&loader->bad);
    pthread_mutex_destroy(&loader->lock);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->ready);
    vlp_free(loader);
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool batch_ready(const vlp_loader *loader) {
    return loader->claimed > loader->taken &&
           loader->slots[loader->taken % loader->options.slots].remaining == 0;
}

vlp_status vlp_loader_next(vlp_loader *loader, const vlp_batch **out) {
    *out = NULL;
    pthread_mutex_lock(&loader->lock);
    VLP_ASSERT(loader->taken < loader->released + loader->options.slots,
               "all %d batches are held; release one first", loader->options.slots);
    double before = now_seconds();
    pthread_cond_broadcast(&loader->work);
    bool more = batch_count(loader, loader->taken) > 0;
    while (more && loader->status == VLP_OK && !batch_ready(loader))
        pthread_cond_wait(&loader->ready, &loader->lock);
    loader->waited += now_seconds() - before;
    vlp_status status = loader->status;
    if (status != VLP_OK)
        VLP_FAIL(status, "%s", loader->error);
    else if (more)
        *out = &loader->slots[loader->taken++ % loader->options.slots].batch;
    pthread_mutex_unlock(&loader->lock);
    return status;
}

void vlp_loader_release(vlp_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    VLP_ASSERT(loader->released < loader->taken, "no batch is held");
    loader->released++;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

void vlp_loader_seek(vlp_loader *loader, int64_t cursor) {
    VLP_ASSERT(cursor >= 0, "cursor %lld", (long long)cursor);
    pthread_mutex_lock(&loader->lock);
    loader->paused = true;
    while (loader->in_flight > 0) pthread_cond_wait(&loader->ready, &loader->lock);
    loader->start = cursor;
    loader->released = loader->taken = loader->claimed = 0;
    loader->claimed_samples = 0;
    loader->paused = false;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

int64_t vlp_loader_rows(const vlp_loader *loader) {
    return vlp_sampler_epoch_size(loader->sampler);
}

double vlp_loader_wait_seconds(const vlp_loader *loader) {
    return loader->waited;
}

int64_t vlp_loader_skipped(vlp_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    int64_t skipped = loader->skipped;
    pthread_mutex_unlock(&loader->lock);
    return skipped;
}
