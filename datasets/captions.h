/* All captions of a split, one after the other: for vocabularies and full-text work. */
#ifndef VLP_DATASETS_CAPTIONS_H
#define VLP_DATASETS_CAPTIONS_H

#include "datasets/index.h"

/* Calls `each` for the captions of the split (NULL = all), repeats of one image's caption and
 * captions of bad images left out; a status other than VLP_OK stops and is returned. Memory does
 * not grow with the rows. */
typedef vlp_status (*vlp_caption_fn)(const char *text, int64_t len, void *user);
vlp_status vlp_captions_each(const vlp_index *index, const char *split, vlp_caption_fn each,
                             void *user);

#endif
