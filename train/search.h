/* Search over an embedded catalogue: what is asked, what is found, and how far it stands out.
 *
 *     vlp_search *s;
 *     vlp_search_open(&s, index, e, where);
 *     vlp_search_run(s, &query, &found);
 *     ... found.hits[i] ...
 *     vlp_found_close(&found);
 *     vlp_search_free(s);
 *
 * An absolute cosine says little: models differ, and so do queries. Each query is scored against
 * the catalogue's own background: z = (cosine - median) / spread, where the spread comes from the
 * lower half of the query's cosines over the whole catalogue (1.4826 times the median distance
 * below the median), because the upper half holds the answers. z orders nothing anew and proves
 * nothing: a query about something that the catalogue does not hold can stand out too, near its
 * neighbours. */
#ifndef VLP_TRAIN_SEARCH_H
#define VLP_TRAIN_SEARCH_H

#include "datasets/index.h"
#include "train/embedder.h"

typedef struct vlp_search vlp_search;

/* One text of a query; weight < 0 pushes away. */
typedef struct {
    double weight;
    const char *text;
} vlp_query_text;

typedef struct {
    const vlp_query_text *texts; /* [n_texts] */
    int64_t n_texts;
    const char *image; /* a file, or NULL */
    int64_t top;
    int64_t rerank; /* candidates for the matching head; 0 = none */
    bool hybrid;    /* together with words in captions and file names */
    bool has_least_z;
    double least_z; /* where it has one: only what stands out so far */
} vlp_query;

typedef struct {
    int64_t id;
    double score;         /* cosine; probability after a rerank; reciprocal-rank sum when hybrid */
    double z;             /* against the background */
    char *path, *caption; /* owned; caption "" without one */
} vlp_found_hit;

typedef struct {
    vlp_found_hit *hits;
    int64_t n;
    int64_t searched; /* pictures that passed the filter */
    int64_t gone;     /* better ones whose files are no longer there, left out */
    double best_z;    /* of all that were searched */
} vlp_found;

/* index and e are borrowed. where: datasets/filter.h, applied before the search. VLP_ERR_NOT_FOUND
 * when the catalogue has no embedding of this model; the message holds the command to run, with
 * model_folder in it. */
vlp_status vlp_search_open(vlp_search **out, const vlp_index *index, vlp_embedder *e,
                           const char *model_folder, const char *where);
void vlp_search_free(vlp_search *search);
/* Pictures of the index that have no embedding yet. */
int64_t vlp_search_missing(const vlp_search *search);
/* Pictures left out because their embedding is damaged, and the first one's id. */
int64_t vlp_search_damaged(const vlp_search *search, int64_t *first);

vlp_status vlp_search_run(vlp_search *search, const vlp_query *query, vlp_found *out);
void vlp_found_close(vlp_found *found);

/* "+a dog", "-red", "2:a dog", "a dog" into weight and text (borrowed). A weight is a number before
 * the first colon; "1:12:30" says the text 12:30. */
vlp_query_text vlp_query_parse(const char *text);

/* Median and spread of n values as above; values are reordered. */
void vlp_background(float *values, int64_t n, double *median, double *spread);

#endif
