/* Gradient checks by central differences in double precision.
 *
 * A case builds a scalar from input tensors; gradcheck_run compares the tape's gradient of every
 * element of every input with (f(x + h) - f(x - h)) / 2h, h = 1e-5.
 *
 * The cases of core/op_X.c are the table `static const gradcheck_case grad_cases_X[]` in
 * tests/grad_cases_X.h; tests/test_grad_X.c runs them, and tests/test_grad_coverage.c includes all
 * tables (so names of helpers begin with X) to demand a case for every op in vlp_ops. */
#ifndef VLP_TESTS_GRADCHECK_H
#define VLP_TESTS_GRADCHECK_H

#include "core/ops.h"

#include <stdio.h>
#include <string.h>

enum { GRADCHECK_INPUTS = 8 };

typedef struct gradcheck_case {
    const char *name; /* what the case shows, for instance "attention, cross, kv shared" */
    const char *op;   /* the op's name in vlp_ops: an op without a case fails the test */
    int n_inputs;
    struct {
        int ndim;
        int64_t shape[VLP_MAX_DIMS];
    } inputs[GRADCHECK_INPUTS];
    /* Builds the function; x[i] are leaf tensors with standard normal values. Any output: when it
     * is not a scalar the harness reduces it by a fixed random cotangent. */
    vlp_tensor *(*build)(vlp_tape *tape, vlp_tensor **x);
} gradcheck_case;

/* Largest |analytic - numeric| / max(1, |numeric|) over all elements of all inputs; details to
 * stderr where it exceeds limit. */
double gradcheck_run(const gradcheck_case *c, double limit);

/* Ops that round: the difference quotient of a staircase is not its slope. test_core_stack
 * checks them. */
static inline bool gradcheck_exempt(const char *op) {
    return strcmp(op, "to_real") == 0;
}

#endif
