/* Memory of products that outlives them, so that a warm step allocates nothing: each thread has its
 * own and frees it when it ends. */
#ifndef VLP_CORE_PRODUCT_SCRATCH_H
#define VLP_CORE_PRODUCT_SCRATCH_H

#include <stdint.h>

typedef enum {
    VLP_SCRATCH_BLOCK,   /* what a part packs and sums */
    VLP_SCRATCH_B,       /* the packed op(B) of the calling thread's product */
    VLP_SCRATCH_PARTIAL, /* its partial sums */
    VLP_SCRATCH_COUNT
} vlp_scratch;

/* At least `bytes`, 64-byte aligned, as it was left or garbage; NULL without memory. Valid until
 * the thread asks for the same kind again. */
void *vlp_product_scratch(vlp_scratch kind, int64_t bytes);

/* What all threads hold together now. */
int64_t vlp_product_scratch_held(void);

/* At most what products of a training step need of it by our own kernels, for a plan: panels of
 * each thread, a chunk of packed columns, and the sums of a weight's gradient by several threads.
 * `largest`: elements of the largest weight. */
int64_t vlp_product_scratch_most(int64_t largest, int threads);

#endif
