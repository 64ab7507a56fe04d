/* Inside train/ only: what search.c and search_rank.c share. */
#ifndef VLP_TRAIN_SEARCH_INTERNAL_H
#define VLP_TRAIN_SEARCH_INTERNAL_H

#include "datasets/catalogue.h"
#include "train/search.h"

struct vlp_search {
    const vlp_index *index;
    vlp_embedder *e;
    char *where;
    char model[33];
    vlp_catalogue rows; /* all of them: those outside the filter are background */
    int64_t missing;
    float *query;  /* [E] */
    float *vector; /* [E] */
};

/* Candidates, best first. */
typedef struct {
    vlp_hit *hits; /* [room] */
    int64_t n, room;
} vlp_candidates;

/* Reciprocal rank fusion (Cormack et al. 2009) with the pictures whose captions or names hold the
 * words; room for as many again must be left. */
vlp_status vlp_search_fuse_words(vlp_search *s, const vlp_query *q, vlp_candidates *c);
/* The best q->rerank in the order of the matching head. */
vlp_status vlp_search_rerank(vlp_search *s, const vlp_query *q, vlp_candidates *c);

#endif
