/* The inside of the loader, shared by loader.c and loader_sample.c only. */
#ifndef VLP_DATASETS_LOADER_STATE_H
#define VLP_DATASETS_LOADER_STATE_H

#include "datasets/bitset.h"
#include "datasets/loader.h"
#include "datasets/pixel_cache.h"
#include "datasets/pixel_file.h"
#include "datasets/reader.h"
#include "datasets/sampler.h"

#include <pthread.h>

typedef struct {
    vlp_batch batch;
    int remaining; /* samples not yet there */
    float *pixels;
    int32_t *token_ids;
    uint8_t *attention_mask;
    int64_t *image_ids, *groups, *caption_ids, *caption_groups;
} loader_slot;

typedef struct {
    vlp_loader *loader;
    pthread_t thread;
    bool started;
    vlp_reader *reader;
    vlp_image image;
    vlp_transform_scratch transform;
    vlp_buf mirrored;
} loader_worker;

struct vlp_loader {
    vlp_loader_options options;
    vlp_transform transform_copy;
    vlp_transform upright, mirrored; /* never and always mirroring, for captions with sides */
    vlp_pixel_file *pixel_file;
    vlp_decode_options decode;
    int short_side; /* training shrinks larger pictures to it first */
    vlp_sampler *sampler;
    vlp_rows *pools; /* [n_pools] */
    int n_pools;
    vlp_pixel_cache *cache;
    loader_slot *slots;
    loader_worker *workers;
    float *pixels; /* the slots' memory, in one block each */
    int32_t *token_ids;
    uint8_t *masks;
    int64_t *ids;

    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    /* batches count from the last seek: released <= taken <= claimed */
    int64_t start, released, taken, claimed;
    int claimed_samples; /* of batch `claimed` */
    int in_flight;
    bool stop, paused;
    vlp_status status; /* of the first failure; ends everything */
    char error[512];
    vlp_bitset bad; /* ids of images that failed */
    int64_t skipped;
    double waited;
};

/* Fills sample j of the slot from a position of the order. */
vlp_status vlp_loader_fill(loader_worker *worker, loader_slot *slot, int j, int64_t position);

#endif
