/* Drawing hard negatives for image-text matching. */
#ifndef VLP_OBJECTIVES_ITM_H
#define VLP_OBJECTIVES_ITM_H

#include "core/rng.h"
#include "objectives/encodings.h"

/* A partner j of sample i that is not a positive, drawn with probability proportional to
 * exp(scores[j stride]) (uniformly when scores is NULL); -1 when there is none. Which numbers are
 * drawn depends on the batch size only. */
int32_t vlp_itm_draw(const vlp_pairs *pairs, int64_t i, const vlp_real *scores, int64_t stride,
                     vlp_rng *rng);

#endif
