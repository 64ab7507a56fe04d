/* Zero-shot classification of pictures in files: class names through templates, softmax over the
 * classes of the temperature times the cosine (CLIP, Radford et al. 2021, section 3.1). */
#ifndef VLP_TRAIN_CLASSIFY_H
#define VLP_TRAIN_CLASSIFY_H

#include "train/embedder.h"

typedef struct vlp_classifier vlp_classifier;

/* classes [n_classes] are borrowed; templates as in vlp_class_vectors. The embedder is borrowed. */
vlp_status vlp_classifier_open(vlp_classifier **out, vlp_embedder *e, const char *const *classes,
                               int64_t n_classes, const char *const *templates,
                               int64_t n_templates);
void vlp_classifier_free(vlp_classifier *classifier);

/* One picture: `reason` says why it could not be read, else NULL and probabilities [n_classes] with
 * the classes in order of probability, best first. */
typedef struct {
    const char *path, *reason;
    const float *probabilities;
    const int64_t *order;
} vlp_classified;

/* Returning false ends the work. */
typedef bool (*vlp_classified_fn)(const vlp_classified *picture, void *user);

/* paths [n], told in order; decoded by all threads, 64 at a time. */
vlp_status vlp_classify_files(vlp_classifier *classifier, const char *const *paths, int64_t n,
                              vlp_classified_fn each, void *user);

#endif
