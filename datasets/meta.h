/* Small facts that an index keeps about itself, by name: which model embedded it last. */
#ifndef VLP_DATASETS_META_H
#define VLP_DATASETS_META_H

#include "core/memory.h"
#include "datasets/index.h"

/* Replaces the value of `name`. The index must be open for writing. */
vlp_status vlp_meta_set(vlp_index *index, const char *name, const char *value);
/* The value into out (cleared first); "" when there is none. */
vlp_status vlp_meta_get(const vlp_index *index, const char *name, vlp_buf *out);

/* The folder (absolute) and fingerprint of the model that last embedded the catalogue. */
#define VLP_META_MODEL "embed.model"
#define VLP_META_MODEL_ID "embed.model_id"

#endif
