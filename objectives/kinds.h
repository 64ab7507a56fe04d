/* The objectives' rows, defined in one file each. */
#ifndef VLP_OBJECTIVES_KINDS_H
#define VLP_OBJECTIVES_KINDS_H

#include "objectives/objective.h"

extern const vlp_objective_kind vlp_objective_itc;
extern const vlp_objective_kind vlp_objective_sigmoid;
extern const vlp_objective_kind vlp_objective_itm;
extern const vlp_objective_kind vlp_objective_mlm;
extern const vlp_objective_kind vlp_objective_mim;
extern const vlp_objective_kind vlp_objective_lm;

#endif
