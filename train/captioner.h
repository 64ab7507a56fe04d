/* What a model with a decoder says about pictures: captions (BLIP, Li et al., 2022), and answers to
 * questions where it was trained for them (ALBEF, BLIP).
 *
 *     vlp_captioner_open(&c, "model/", &options);
 *     vlp_captioner_files(c, paths, n, each, user);
 *     vlp_captioner_free(c); */
#ifndef VLP_TRAIN_CAPTIONER_H
#define VLP_TRAIN_CAPTIONER_H

#include "fusion/generate.h"

typedef struct vlp_captioner vlp_captioner;

typedef struct {
    vlp_generate_options generate;
    const char *prompt; /* what every caption begins with; NULL = the model's own, left out again */
    int64_t batch;      /* pictures at a time */
} vlp_captioner_options;

/* VLP_ERR_UNSUPPORTED for a model without a decoder, or one that answers questions only. */
vlp_status vlp_captioner_open(vlp_captioner **out, const char *folder,
                              const vlp_captioner_options *options);
void vlp_captioner_free(vlp_captioner *captioner);

/* One picture: `reason` says why it could not be read, else NULL and the caption. Texts live until
 * the function returns. */
typedef struct {
    const char *path, *reason, *caption;
    double score; /* see vlp_writing */
} vlp_captioned;
/* Returning false ends the work. */
typedef bool (*vlp_captioned_fn)(const vlp_captioned *picture, void *user);

/* paths [n], told in order. */
vlp_status vlp_captioner_files(vlp_captioner *captioner, const char *const *paths, int64_t n,
                               vlp_captioned_fn each, void *user);

#endif
