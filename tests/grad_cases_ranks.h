/* Gradient cases of the exchange between ranks. */
#ifndef VLP_TESTS_GRAD_CASES_RANKS_H
#define VLP_TESTS_GRAD_CASES_RANKS_H

#include "tests/gradcheck.h"

static vlp_tensor *ranks_sum(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_ranks(tape, x[0], vlp_comm_single(), VLP_GATHER_GRAD_SUM);
}

static vlp_tensor *ranks_own(vlp_tape *tape, vlp_tensor **x) {
    return vlp_gather_ranks(tape, x[0], vlp_comm_single(), VLP_GATHER_GRAD_OWN);
}

static vlp_tensor *ranks_and_x(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, ranks_sum(tape, x), x[0]);
}

static const gradcheck_case grad_cases_ranks[] = {
    {"sum", "gather_ranks", 1, {{2, {5, 3}}}, ranks_sum},
    {"own", "gather_ranks", 1, {{2, {3, 37}}}, ranks_own},
    {"none", "gather_ranks", 1, {{2, {0, 3}}}, ranks_sum},
    {"x used twice", "gather_ranks", 1, {{2, {5, 3}}}, ranks_and_x},
};

#endif
