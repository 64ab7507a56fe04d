#include "train/classify.h"

#include "core/gemm.h"
#include "core/memory.h"
#include "train/decoder.h"
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 64 };

typedef struct {
    float score;
    int64_t class;
} ranked;

struct vlp_classifier {
    vlp_embedder *e;
    vlp_decoder *decoder;
    int64_t classes;
    float *class_vectors; /* [classes, E] */
    float *vectors;       /* [BATCH, E] */
    float *scores;        /* [BATCH, classes] */
    ranked *ranking;      /* [classes] */
    int64_t *order;       /* [classes] */
};

static vlp_status setup(vlp_classifier *c, const char *const *classes, const char *const *templates,
                        int64_t n_templates) {
    size_t n = (size_t)c->classes, width = (size_t)vlp_embedder_width(c->e);
    c->class_vectors = vlp_alloc(n * width * sizeof(float));
    c->vectors = vlp_alloc(BATCH * width * sizeof(float));
    c->scores = vlp_alloc(BATCH * n * sizeof(float));
    c->ranking = vlp_alloc(n * sizeof *c->ranking);
    c->order = vlp_alloc(n * sizeof *c->order);
    if (!c->class_vectors || !c->vectors || !c->scores || !c->ranking || !c->order)
        return VLP_ERR_MEMORY;
    VLP_TRY(vlp_decoder_open(&c->decoder, vlp_embedder_transform(c->e), BATCH, NULL));
    return vlp_class_vectors(c->e, classes, c->classes, templates, n_templates, c->class_vectors);
}

vlp_status vlp_classifier_open(vlp_classifier **out, vlp_embedder *e, const char *const *classes,
                               int64_t n_classes, const char *const *templates,
                               int64_t n_templates) {
    *out = NULL;
    vlp_classifier *c = vlp_alloc_zero(1, sizeof *c);
    if (!c) return VLP_ERR_MEMORY;
    c->e = e;
    c->classes = n_classes;
    vlp_status status = setup(c, classes, templates, n_templates);
    if (status != VLP_OK) {
        vlp_classifier_free(c);
        return status;
    }
    *out = c;
    return VLP_OK;
}

void vlp_classifier_free(vlp_classifier *c) {
    if (!c) return;
    vlp_decoder_free(c->decoder);
    vlp_free(c->class_vectors);
    vlp_free(c->vectors);
    vlp_free(c->scores);
    vlp_free(c->ranking);
    vlp_free(c->order);
    vlp_free(c);
}

static int best_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

/* Cosines become probabilities in place; c->order follows. */
static void rank(vlp_classifier *c, float *scores) {
    for (int64_t k = 0; k < c->classes; k++) c->ranking[k] = (ranked){scores[k], k};
    qsort(c->ranking, (size_t)c->classes, sizeof *c->ranking, best_first);
    double scale = vlp_embedder_scale(c->e), best = (double)c->ranking[0].score, sum = 0;
    for (int64_t k = 0; k < c->classes; k++) sum += exp(scale * ((double)scores[k] - best));
    for (int64_t k = 0; k < c->classes; k++) {
        scores[k] = (float)(exp(scale * ((double)scores[k] - best)) / sum);
        c->order[k] = c->ranking[k].class;
    }
}

static vlp_status classify_some(vlp_classifier *c, const char *const *paths, int64_t n,
                                vlp_classified_fn each, void *user, bool *more) {
    int64_t width = vlp_embedder_width(c->e);
    VLP_TRY(vlp_decoder_files(c->decoder, paths, n));
    VLP_TRY(vlp_embedder_pixels(c->e, vlp_decoder_pixels(c->decoder), n, c->vectors));
    vlp_gemm(false, true, n, c->classes, width, 1, c->vectors, width, c->class_vectors, width, 0,
             c->scores, c->classes);
    for (int64_t i = 0; i < n && *more; i++) {
        vlp_classified picture = {.path = paths[i], .reason = vlp_decoder_reason(c->decoder, i)};
        if (!picture.reason) {
            rank(c, c->scores + i * c->classes);
            picture.probabilities = c->scores + i * c->classes;
            picture.order = c->order;
        }
        *more = each(&picture, user);
    }
    return VLP_OK;
}

vlp_status vlp_classify_files(vlp_classifier *c, const char *const *paths, int64_t n,
                              vlp_classified_fn each, void *user) {
    bool more = true;
    for (int64_t at = 0; at < n && more; at += BATCH)
        VLP_TRY(classify_some(c, paths + at, n - at < BATCH ? n - at : BATCH, each, user, &more));
    return VLP_OK;
}
