/* A catalogue's missing embeddings: decoded by all threads, encoded in batches, saved every few
 * seconds, so that an interruption loses seconds. */
#ifndef VLP_TRAIN_EMBED_H
#define VLP_TRAIN_EMBED_H

#include "datasets/index.h"
#include "train/embedder.h"

typedef struct {
    int64_t total, done, skipped; /* of this run */
    double seconds, per_second, seconds_left;
} vlp_embed_progress;

/* {0} is valid. */
typedef struct {
    int64_t batch;       /* 0 = 64 */
    double save_seconds; /* 0 = 3 */
    volatile int *stop;  /* nonzero: saves what is done, then VLP_ERR_INTERRUPTED */
    void (*progress)(const vlp_embed_progress *progress, void *user);
    /* A picture that cannot be read now, or (gone) whose file has been moved or deleted. */
    void (*skipped)(const char *path, const char *reason, void *user);
    void *user;
} vlp_embed_options;

typedef struct {
    int64_t damaged;  /* embeddings that were no good, and are made again */
    int64_t present;  /* had an embedding before */
    int64_t embedded; /* got one now */
    int64_t skipped;  /* could not be read */
    int64_t gone;     /* of `present`: the file is no longer there */
    double seconds;
} vlp_embed_report;

/* Every image that is not known to be bad; verify first (vlp_index_verify). The model's folder and
 * fingerprint are recorded in the index (datasets/meta.h). */
vlp_status vlp_embed_catalogue(vlp_embedder *e, vlp_index *index, const char *model_folder,
                               const vlp_embed_options *options, vlp_embed_report *report);

/* The fingerprint under which this model's vectors lie in an index: 32 hexadecimal digits. */
void vlp_embed_model_id(const vlp_embedder *e, char out[33]);

#endif
