/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
 * 1, 2, 3", SC 2011). A stream is a pure function of its key, so what a sample draws depends on
 * (seed, stream, epoch, id) and never on threads, batch or order.
 *
 *     vlp_rng rng = vlp_rng_at(seed, VLP_RNG_AUGMENT, epoch, image_id);
 *     double u = vlp_rng_double(&rng);
 */
#ifndef VLP_CORE_RNG_H
#define VLP_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What the numbers are for: two purposes never share a stream. */
typedef enum {
    VLP_RNG_INIT = 1, /* parameter initialisation: id = hash of the parameter's name */
    VLP_RNG_ORDER,    /* epoch permutation */
    VLP_RNG_AUGMENT,  /* crops, flips, colours */
    VLP_RNG_CAPTION,  /* which caption of an image */
    VLP_RNG_MLM,      /* text masking */
    VLP_RNG_MIM,      /* patch masking */
    VLP_RNG_ITM,      /* hard negatives */
    VLP_RNG_DROPOUT,  /* epoch = step, id = op number on the tape */
    VLP_RNG_SPLIT,    /* train/val/test by content hash */
    VLP_RNG_TEST,
    VLP_RNG_GENERATE, /* tokens of generated text: epoch = place, id = the source */
    VLP_RNG_QUEUE,    /* the first content of momentum queues */
} vlp_rng_stream;

typedef struct {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t out[4];
    int left; /* unused words of `out` */
} vlp_rng;

vlp_rng vlp_rng_at(uint64_t seed, vlp_rng_stream stream, uint64_t epoch, uint64_t id);

uint32_t vlp_rng_u32(vlp_rng *rng);
uint64_t vlp_rng_u64(vlp_rng *rng);
double vlp_rng_double(vlp_rng *rng);                         /* uniform in [0,1), 53 bits */
uint64_t vlp_rng_below(vlp_rng *rng, uint64_t bound);        /* unbiased, bound > 0 */
double vlp_rng_normal(vlp_rng *rng);                         /* mean 0, variance 1 (Box-Muller) */
double vlp_rng_truncated_normal(vlp_rng *rng, double limit); /* normal within +-limit deviations */

/* The block function itself, for kernels that index the stream: out = philox(counter, key). */
void vlp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64-bit mix of a string, for the ids of named streams. */
uint64_t vlp_rng_name(const char *name);

#endif
