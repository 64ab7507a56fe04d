/* Where a step's time goes: seconds and operations by op, filled by a tape that was given one.
 *
 *     vlp_op_profile profile = {0};
 *     vlp_tape_set_profile(tape, &profile);      NULL = off, the default
 *     ... steps ...
 *     for (int i = 0; i < profile.count; i++) use(profile.rows[i]);
 */
#ifndef VLP_CORE_OP_PROFILE_H
#define VLP_CORE_OP_PROFILE_H

#include <stdint.h>

enum { VLP_OP_PROFILE_ROWS = 96 };

typedef struct {
    const char *op;
    int64_t calls; /* of forward */
    double forward_seconds, backward_seconds;
    double flops; /* of both, as vlp_tape_flops counts them */
} vlp_op_row;

typedef struct {
    int count;
    vlp_op_row rows[VLP_OP_PROFILE_ROWS]; /* in order of their first call */
} vlp_op_profile;

/* The row of an op, made when first asked for; ops beyond the last row share it. */
vlp_op_row *vlp_op_profile_row(vlp_op_profile *profile, const char *op);

double vlp_op_profile_clock(void); /* seconds, monotonic */

#endif
