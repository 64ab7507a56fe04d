/* The full text over the captions lags behind them: it is brought up to date after a small import
 * and before embedding, not while millions of captions stream in that nobody will search. */
#ifndef VLP_DATASETS_FULLTEXT_H
#define VLP_DATASETS_FULLTEXT_H

#include "datasets/index.h"

/* Captions that are not in the full text yet. */
vlp_status vlp_fulltext_behind(const vlp_index *index, int64_t *captions);
/* Adds them if they are few: what an import does by itself. */
vlp_status vlp_fulltext_near(vlp_index *index);
/* Adds them, in transactions of a second or so. */
vlp_status vlp_fulltext_update(vlp_index *index);

#endif
