#include "core/op_profile.h"

#include <string.h>
#include <time.h>

vlp_op_row *vlp_op_profile_row(vlp_op_profile *profile, const char *op) {
    for (int i = 0; i < profile->count; i++)
        if (profile->rows[i].op == op || strcmp(profile->rows[i].op, op) == 0)
            return &profile->rows[i];
    if (profile->count == VLP_OP_PROFILE_ROWS) return &profile->rows[VLP_OP_PROFILE_ROWS - 1];
    profile->rows[profile->count] = (vlp_op_row){.op = op};
    return &profile->rows[profile->count++];
}

double vlp_op_profile_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
