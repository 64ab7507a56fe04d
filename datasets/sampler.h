/* The order of training samples as a function: position -> row, in constant memory.
 *
 * Positions count samples since the start of training, over all ranks; the whole state of a run's
 * data is the next position. Every pool is walked in passes; a pass is a keyed permutation of its
 * rows (a Feistel network with cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite
 * Domains", CT-RSA 2002), so each row comes exactly once a pass. Passes follow one another without
 * a gap: a batch may hold the end of one and the start of the next, none is dropped or padded, and
 * any batch size works, also one larger than the corpus.
 *
 * Rank r of W with batch B takes, in step k, the positions k*W*B + r*B + [0, B): W ranks with B see
 * together what one rank sees with W*B. */
#ifndef VLP_DATASETS_SAMPLER_H
#define VLP_DATASETS_SAMPLER_H

#include "core/status.h"

#include <stdint.h>

/* Index i of a permutation of [0, n) chosen by the key; i in [0, n). */
int64_t vlp_permute(uint64_t key, int64_t n, int64_t i);

/* Rows that are drawn with one weight: a source, or everything. */
typedef struct {
    int64_t rows;
    double weight; /* share of the samples, any positive scale */
} vlp_pool;

typedef struct {
    int pool;
    int64_t row;  /* in [0, pool.rows) */
    int64_t pass; /* how often the pool was walked before: the epoch for random numbers */
} vlp_sample;

typedef struct vlp_sampler vlp_sampler;

/* Several pools are mixed in blocks of 4096 positions that hold each pool's share, rounded, at
 * least one, in a keyed order. A pool without rows or weight is VLP_ERR_USAGE. */
vlp_status vlp_sampler_new(vlp_sampler **out, uint64_t seed, const vlp_pool *pools, int n);
void vlp_sampler_free(vlp_sampler *sampler);

/* Of a mixture, `run` positions in a row (1 by default) come from one pool; a run of a batch's size
 * makes batches of one source, whose samples are harder negatives of one another. */
void vlp_sampler_set_run(vlp_sampler *sampler, int64_t run);

/* Rows that lie together are drawn together: a pass walks blocks of `block` rows in a keyed order,
 * and shuffles the rows of `window` blocks at a time, so that a slow disk reads nearly in order.
 * Constant memory still; 0 = every row anywhere. For rows in order of place (vlp_rows_open). */
void vlp_sampler_set_blocks(vlp_sampler *sampler, int64_t block, int64_t window);

vlp_sample vlp_sampler_at(const vlp_sampler *sampler, int64_t position);

/* Rows of all pools: what one epoch means, also for a mixture. */
int64_t vlp_sampler_epoch_size(const vlp_sampler *sampler);

#endif
