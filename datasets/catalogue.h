/* Embeddings of a catalogue's images, kept in the index under the model that made them, and search
 * over them.
 *
 *     vlp_catalogue_missing(&rows, index, model);            ids without an embedding
 *     ... encode, and every few seconds:
 *     vlp_catalogue_put(index, model, ids, vectors, n, D);   saved; an interrupted run goes on
 *     vlp_catalogue_load(&catalogue, index, model, D, where);   [N, D] and which of them pass
 *     vlp_catalogue_top(&catalogue, query, k, hits, &n);
 *
 * An image whose content changes loses its embedding and is missing again. */
#ifndef VLP_DATASETS_CATALOGUE_H
#define VLP_DATASETS_CATALOGUE_H

#include "core/memory.h"
#include "datasets/rows.h"

typedef struct {
    int64_t id; /* of the image */
    double score;
} vlp_hit;

/* Usable images without an embedding of this model, in order of id; none is not an error.
 * Unverified images are among them: encoding finds out whether they decode. Release with
 * vlp_rows_close. */
vlp_status vlp_catalogue_missing(vlp_rows *out, const vlp_index *index, const char *model);

/* Stores vectors [n, dim] f32 for ids [n] in one transaction, replacing older ones. model is a
 * short fingerprint of weights and preprocessing. Ids that left the index meanwhile are passed
 * over. */
vlp_status vlp_catalogue_put(vlp_index *index, const char *model, const int64_t *ids,
                             const float *vectors, int64_t n, int64_t dim);

/* Deletes embeddings that are not dim finite numbers, so that they are missing again; *n of them.
 */
vlp_status vlp_catalogue_discard_damaged(vlp_index *index, const char *model, int64_t dim,
                                         int64_t *n);

typedef struct {
    int64_t n, dim;
    int64_t *ids;                   /* [n] ascending */
    float *vectors;                 /* [n, dim] */
    uint8_t *passes;                /* [n] whether the filter lets it pass; NULL = all do */
    int64_t selected;               /* how many pass */
    int64_t damaged, first_damaged; /* embeddings left out, and the image of the first */
} vlp_catalogue;

/* One pass over the model's embeddings, each dim wide. where: see datasets/filter.h; NULL = all. An
 * empty result is no error; embeddings that are not dim finite numbers are left out and counted. */
vlp_status vlp_catalogue_load(vlp_catalogue *out, const vlp_index *index, const char *model,
                              int64_t dim, const char *where);
void vlp_catalogue_close(vlp_catalogue *catalogue);

/* The k largest dot products with query [dim] among those that pass, best first, ties by id; hits
 * [k]. *n <= k. All threads; the result does not depend on how many. */
vlp_status vlp_catalogue_top(const vlp_catalogue *catalogue, const float *query, int64_t k,
                             vlp_hit *hits, int64_t *n);

/* The k images whose captions and file name match the words best, best first: BM25 over captions,
 * and a point for every word in the file's name. Any text is a legal query. */
vlp_status vlp_catalogue_words(const vlp_index *index, const char *words, const char *where,
                               int64_t k, vlp_hit *hits, int64_t *n);

/* An image's path and its first caption ("" without one), replaced in the buffers. A picture inside
 * another file has that file's path, and in `item` (NULL = not wanted) which one it is. */
vlp_status vlp_catalogue_item(const vlp_index *index, int64_t id, vlp_buf *path, vlp_buf *item,
                              vlp_buf *caption);

#endif
