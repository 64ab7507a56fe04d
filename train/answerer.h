/* Questions about pictures (VQA): an answer is written by the decoder, or chosen from a list.
 *
 *     vlp_answerer_open(&a, "model/", &options);
 *     vlp_answerer_look(a, "photo.jpg");
 *     vlp_answerer_ask(a, "what colour is the car", &answers, &n);
 *     vlp_answerer_free(a); */
#ifndef VLP_TRAIN_ANSWERER_H
#define VLP_TRAIN_ANSWERER_H

#include "fusion/generate.h"

typedef struct vlp_answerer vlp_answerer;

typedef struct {
    vlp_generate_options generate;
    const char *const
        *choices; /* [n_choices], borrowed; or n_choices 0 and the answer is written */
    int64_t n_choices;
    int64_t k; /* best choices that are told */
} vlp_answerer_options;

typedef struct {
    const char *text; /* the answerer's until the next question */
    double score;     /* of a choice: its probability among the k; written: see vlp_writing */
} vlp_answer;

/* VLP_ERR_UNSUPPORTED for a model that was not trained on questions. */
vlp_status vlp_answerer_open(vlp_answerer **out, const char *folder,
                             const vlp_answerer_options *options);
void vlp_answerer_free(vlp_answerer *answerer);

/* Decodes and encodes a picture; the questions that follow are about it. A picture that cannot be
 * decoded is an error that names it. */
vlp_status vlp_answerer_look(vlp_answerer *answerer, const char *path);
/* answers [*n], the best first: the k best choices, or the one that was written. */
vlp_status vlp_answerer_ask(vlp_answerer *answerer, const char *question,
                            const vlp_answer **answers, int64_t *n);

#endif
