/* What the runners of ALBEF's cases share. */
#ifndef VLP_TESTS_PARITY_ALBEF_H
#define VLP_TESTS_PARITY_ALBEF_H

#include "fusion/model.h"
#include "parity/model.h"

/* The checkpoint's second copy of the encoders, under names of ours. */
extern const char parity_albef_twin[];

/* The model that the case's configuration and checkpoint describe; m->params are its parameters. */
vlp_status parity_albef_declare(parity_model *m, vlp_model **out);

/* input_ids and attention_mask */
vlp_status parity_albef_tokens(parity_model *m, vlp_tokens *out);

#endif
