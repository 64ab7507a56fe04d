/* The writer's parts: generate.c (steps, greedy, sampling), beam.c (beam search), scores.c (what is
 * done to the scores of the next token). */
#ifndef VLP_FUSION_GENERATE_INTERNAL_H
#define VLP_FUSION_GENERATE_INTERNAL_H

#include "core/rng.h"
#include "fusion/generate.h"

/* A finished text of beam search. */
typedef struct {
    int32_t *ids; /* [max_length] */
    int64_t length;
    double score;
} vlp_hypothesis;

struct vlp_generator {
    const vlp_model *model;
    vlp_generate_options options;
    int64_t sources, rows; /* rows: sources x beams */
    int64_t vocab, length, depth;
    vlp_real **kv, *spare;        /* see vlp_stack_cache */
    uint8_t *mask;                /* [rows, length] */
    int32_t *ids, *spare_ids;     /* [rows, length] */
    int32_t *last, *index, *from; /* [rows]: newest token, source, row that a beam continues */
    vlp_real *logits;             /* [rows, vocab] of the step */
    double *scores;               /* [rows, vocab] for the choice of the next token */
    double *sums;                 /* [rows]: log p so far */
    bool *done;                   /* [sources] */
    int64_t *lengths;             /* [sources] */
    vlp_hypothesis *ends;         /* [sources, beams + 1] */
    int32_t *end_ids;             /* their memory */
    int *end_counts;              /* [sources] */
};

/* scores.c */

/* scores = log softmax(logits), or the logits themselves. */
void vlp_scores_log_softmax(const vlp_real *logits, int64_t vocab, double *scores);
void vlp_scores_copy(const vlp_real *logits, int64_t vocab, double *scores);
/* Repetition penalty over the `length` tokens there are (Keskar et al., 2019), and no end before
 * min_length. */
void vlp_scores_process(const vlp_generate_options *options, int32_t eos, const int32_t *ids,
                        int64_t length, double *scores);
/* A token drawn from softmax(scores / temperature) cut by top_k and top_p. Destroys the scores. */
int32_t vlp_scores_draw(const vlp_generate_options *options, int64_t vocab, double *scores,
                        vlp_rng *rng);

/* beam.c: chooses w->from and w->last for the next step from w->logits, `length` tokens being
 * there. finish fills the best text of every source. */
void vlp_beam_begin(vlp_generator *w, int64_t n);
void vlp_beam_advance(vlp_generator *w, int64_t n, int64_t length);
bool vlp_beam_done(const vlp_generator *w, int64_t n);
void vlp_beam_finish(vlp_generator *w, int64_t n, int64_t length, vlp_writing *writings);

#endif
