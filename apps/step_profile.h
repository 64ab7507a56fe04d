/* Where a training step's time goes, for people and for programs. Figures are those of one step. */
#ifndef VLP_APPS_STEP_PROFILE_H
#define VLP_APPS_STEP_PROFILE_H

#include "apps/ceilings.h"
#include "train/step.h"

/* A line for each op and pass, those of the slowest op first (which sorts the profile): time, what
 * it multiplies and moves, and the share of what the ceilings allow: the longer of its operations
 * at the peak of `precision` and its bytes at the speed of reading memory, over the time taken. */
void step_profile_print(FILE *to, vlp_step_profile *profile, vlp_dtype precision,
                        const ceilings *peak);

/* The same as an array of {"op", "pass", "ms", "share", "calls", "bytes", "flops", "gb_per_s",
 * "gflops", "roofline"}; of "(update)", "(data)" and "(between ops)" only what is known. */
vlp_json *step_profile_json(vlp_step_profile *profile, vlp_dtype precision, const ceilings *peak);

#endif
