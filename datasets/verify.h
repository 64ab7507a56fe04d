/* Decodes every image that was not yet decoded, once, in parallel: marks it good or bad and keeps
 * what it looks like (datasets/look.h). */
#ifndef VLP_DATASETS_VERIFY_H
#define VLP_DATASETS_VERIFY_H

#include "datasets/import.h"

/* {0} is valid. */
typedef struct {
    int threads;                   /* 0 = all */
    int64_t max_pixels, max_bytes; /* 0 = the decoder's default */
    bool (*progress)(int64_t done, int64_t total, void *user);
    void (*bad)(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                void *user); /* called on the caller's thread */
    void *user;
} vlp_verify_options;

typedef struct {
    int64_t total, checked, good, bad;
} vlp_verify_report;

/* Saved every few hundred images; running again goes on. Training calls it before the first step,
 * so that the order of samples depends on good images only. `progress` returning false stops with
 * VLP_ERR_INTERRUPTED. Bad images are no error. */
vlp_status vlp_index_verify(vlp_index *index, const vlp_verify_options *options,
                            vlp_verify_report *report);

/* Opens an index for reading, verified. Where nothing is left to verify it may lie on a read-only
 * file system; otherwise it is written. */
vlp_status vlp_index_open_verified(vlp_index **out, const char *path,
                                   const vlp_verify_options *options, vlp_verify_report *report);

#endif
