/* Evaluation on held-out pictures, each figure beside chance and beside the yardstick of no
 * learning at all: the label of the nearest training picture in raw pixels. */
#ifndef VLP_TRAIN_EVALUATE_H
#define VLP_TRAIN_EVALUATE_H

#include "datasets/index.h"
#include "train/embedder.h"

enum { VLP_RECALL_LEVELS = 3 };
extern const int vlp_recall_at[VLP_RECALL_LEVELS]; /* 1, 5, 10 */

/* Long work tells how far it is, and ends with VLP_ERR_INTERRUPTED soon after *stop is set. */
typedef struct {
    const volatile int *stop;
    void (*progress)(const char *what, int64_t done, int64_t total, void *user); /* or NULL */
    void *user;
} vlp_eval_watch;

/* VLP_OK, after telling; `what` names the pass: "pictures". watch NULL = none. */
vlp_status vlp_eval_watched(const vlp_eval_watch *watch, const char *what, int64_t done,
                            int64_t total);

/* Which rows: a split, optionally of one source. */
typedef struct {
    const char *split;
    const char *source; /* NULL = all */
    int64_t max_images; /* 0 = all; else the first so many in the index's order by content */
    int64_t rerank;     /* 0 = none; retrieval: so many of the best both ways, ordered anew */
    const vlp_eval_watch *watch; /* borrowed; NULL = nobody watches */
} vlp_eval_set;

/* Recall at 1, 5, 10. Protocol: every image of the set against every caption of the set. An image's
 * rank is that of its best caption; all its captions, those of byte-identical pictures and equal
 * captions of other pictures count as right. Ties count against the model (half of them).
 * With set->rerank = K the best K captions of an image, and images of a caption, are ordered anew
 * by the matching head (k_test of ALBEF, Li et al., 2021, is 128); what is right but not among the
 * K keeps its place. VLP_ERR_UNSUPPORTED for a model without that head. */
typedef struct {
    int64_t images, captions;
    double image_to_text[VLP_RECALL_LEVELS], text_to_image[VLP_RECALL_LEVELS];
    double image_to_text_chance[VLP_RECALL_LEVELS], text_to_image_chance[VLP_RECALL_LEVELS];
} vlp_retrieval;
vlp_status vlp_evaluate_retrieval(vlp_embedder *e, const vlp_index *index, const vlp_eval_set *set,
                                  vlp_retrieval *out);

/* Zero-shot classification: class names through templates ("a photo of a {}."), vectors averaged
 * and normalised again (CLIP's prompt ensembling). The label of a picture is its row's label field.
 */
typedef struct {
    int64_t images, classes, templates;
    double top1, top5, chance;
    int64_t *confusion; /* [classes, classes] true x predicted; owned */
} vlp_zero_shot;
vlp_status vlp_class_vectors(vlp_embedder *e, const char *const *classes, int64_t n_classes,
                             const char *const *templates, int64_t n_templates, float *out);
/* The class that a row's label means: its name in any case, or its number; -1 = none. */
int64_t vlp_class_of_label(const char *label, const char *const *classes, int64_t n_classes);
vlp_status vlp_evaluate_zero_shot(vlp_embedder *e, const vlp_index *index, const vlp_eval_set *set,
                                  const char *const *classes, int64_t n_classes,
                                  const char *const *templates, int64_t n_templates,
                                  vlp_zero_shot *out);
void vlp_zero_shot_free(vlp_zero_shot *result);

/* The yardstick: nearest training picture by L2 distance of raw pixels (shrunk to `side`, grey
 * level and colour kept). Its label answers for top-1; its captions retrieve: a test picture is
 * right at 1 if one of its own captions equals one of the neighbour's. */
typedef struct {
    int64_t images, train_images;
    double label_top1;  /* -1 where the rows have no labels */
    double caption_at1; /* -1 where no test caption occurs in training: retrieval is impossible */
} vlp_pixel_yardstick;
vlp_status vlp_evaluate_pixels(const vlp_index *index, const vlp_eval_set *train,
                               const vlp_eval_set *test, int side, vlp_pixel_yardstick *out);

#endif
