/* Batches for a step: threads read, decode, augment and tokenize into a ring of preallocated slots.
 *
 *     vlp_loader_open(&loader, index, &options);
 *     while (...) {
 *         vlp_loader_next(loader, &batch);       waits; batch is NULL at the end of an evaluation
 *         ... use batch->pixels, batch->token_ids ...
 *         vlp_loader_release(loader);            gives the oldest batch's slot back
 *     }
 *     vlp_loader_free(loader);
 *
 * What a batch holds depends on the seed, the cursor and the good rows' contents: not on threads,
 * slots, timing, the picture caches, or on unusable files lying among the good ones. */
#ifndef VLP_DATASETS_LOADER_H
#define VLP_DATASETS_LOADER_H

#include "datasets/rows.h"
#include "datasets/sides.h"
#include "text/tokenizer.h"
#include "vision/transform.h"

typedef struct vlp_loader vlp_loader;

/* One source of a mixture. */
typedef struct {
    const char *source; /* its name in the index */
    double weight;
} vlp_mixture;

typedef struct {
    vlp_rows_kind rows;
    const char *split;          /* NULL = all */
    const vlp_mixture *mixture; /* [n_mixture]; none = all sources, each row once an epoch; an
                                   evaluation takes one source at most */
    int n_mixture;
    bool by_source;  /* every batch comes from one source of the mixture */
    bool train;      /* random order, augmentation and captions, endless; else in order, once */
    int batch;       /* samples a batch of this rank */
    int rank, world; /* world 0 = 1 */
    uint64_t seed;
    int64_t cursor;                 /* first position: 0, or a stored batch->next_cursor */
    const vlp_transform *transform; /* borrowed; NULL = no pixels */
    const vlp_tokenizer *tokenizer; /* borrowed; NULL = no tokens */
    int text_length;                /* L */
    int threads;                    /* 0 = as many as processors */
    int slots;                      /* batches ahead; 0 = 4 */
    int64_t cache_bytes;            /* for decoded pictures in memory; 0 = none */
    const char *pixel_file; /* decoded pictures on disk (datasets/pixel_file.h), made when it
                               lacks any; training only; NULL = none */
    bool (*building)(int64_t done, int64_t total, void *user); /* while that file is made */
    int64_t block_rows; /* training: rows that lie together are drawn together, so many at a time,
                           for archives on slow disks (vlp_sampler_set_blocks); 0 = any order */
    vlp_sides sides;    /* captions that say left or right, where the transform may mirror */
    /* A file that was good when verified and is not now, once a file, from any thread. In training
     * the pool's next row takes the place; in evaluation image_ids is -1 and the pixels are 0. */
    void (*skipped)(const char *path, const char *reason, void *user);
    void *user;
} vlp_loader_options;

/* One batch, borrowed until its release. Absent parts (no transform, no tokenizer, texts without
 * images) are NULL, or 0 for ids. */
typedef struct {
    int count;                     /* B; less only at the end of an evaluation */
    int64_t cursor, next_cursor;   /* over all ranks; resume at next_cursor */
    double epoch;                  /* cursor / rows */
    const float *pixels;           /* [B, 3, S, S] */
    const int32_t *token_ids;      /* [B, L] */
    const uint8_t *attention_mask; /* [B, L] */
    const int64_t *image_ids;      /* [B] */
    const int64_t *groups;         /* [B]; byte-identical images share one: positives */
    const int64_t *caption_ids;    /* [B] */
    const int64_t *caption_groups; /* [B]; captions equal but for case and final punctuation, and
                                     those of one class, share one */
} vlp_batch;

/* The index may be freed afterwards; its file must stay. */
vlp_status vlp_loader_open(vlp_loader **out, const vlp_index *index,
                           const vlp_loader_options *options);
void vlp_loader_free(vlp_loader *loader);

/* The next batch. One thread consumes; up to `slots` batches may be held at once. */
vlp_status vlp_loader_next(vlp_loader *loader, const vlp_batch **out);
void vlp_loader_release(vlp_loader *loader);

/* Goes on at a cursor; held batches are given back. */
void vlp_loader_seek(vlp_loader *loader, int64_t cursor);

int64_t vlp_loader_rows(const vlp_loader *loader);        /* rows an epoch */
double vlp_loader_wait_seconds(const vlp_loader *loader); /* that next spent waiting, in all */
int64_t vlp_loader_skipped(vlp_loader *loader);           /* files found bad while loading */

#endif
