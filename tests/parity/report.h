/* Compares what vlp computes with a case's expected tensors and keeps the tally.
 *
 * A case states its limits in case.json's "tolerance" in one of two ways, told apart by the type of
 * "forward":
 *
 *   a number t   max|x - e| <= t max(floor, max|e|); floor 1, and for grad/... with "grad" in place
 *                of "forward": 0.01 x the largest |gradient| of the case
 *   an object    max|x - e| <= abs + rel max|e|, one object each for "forward", "grad" (names that
 *                begin with grad) and "scalar" (no dimensions)
 *
 * Where the case's precision is VLP_BF16, forward values are compared by |x - e| / |e|, euclidean
 * norms, within 0.01. What is read from the states at last has 0.02: features, and scores and
 * losses, which are differences of larger terms and are taken for no smaller than 1 an element.
 * Integers, gradients, updated states, and what is decided by which score is larger are not
 * compared.
 *
 * Names that end with pixel_values are compared within 1e-5, which follows from equal pixels.
 * Integers and booleans must be equal; so must everything where the tolerance is "exact". Where the
 * case has "compare_rows", tensors whose first two axes are those of attention_mask are compared in
 * the rows that it marks with 1. */
#ifndef VLP_TESTS_PARITY_REPORT_H
#define VLP_TESTS_PARITY_REPORT_H

#include "core/tensor.h"
#include "parity/case.h"

#include <stdio.h>

typedef struct parity_report parity_report;

/* Lines go to `stream`. The case is borrowed. */
vlp_status parity_report_new(parity_report **out, const parity_case *c, FILE *stream);
void parity_report_free(parity_report *report);

/* Whether the case holds this name and it has not been compared yet: to spare needless work. */
bool parity_wants(const parity_report *report, const char *name);

/* One computed tensor; prints its line. Names that the case does not hold are passed over. */
void parity_expect(parity_report *report, const char *name, int ndim, const int64_t *shape,
                   const vlp_real *values);
void parity_expect_i32(parity_report *report, const char *name, int ndim, const int64_t *shape,
                       const int32_t *values);
void parity_expect_scalar(parity_report *report, const char *name, double value);
/* Its values or, with grad, its gradient (zeros where none arrived). */
void parity_expect_tensor(parity_report *report, const char *name, const vlp_tensor *tensor,
                          bool grad);
/* As parity_expect, comparing the rows where the named input [first two axes] is 1; NULL = all. */
void parity_expect_rows(parity_report *report, const char *name, int ndim, const int64_t *shape,
                        const vlp_real *values, const char *mask);

/* A tensor that the case holds and vlp does not compute on purpose: a line that says why, without a
 * verdict. */
void parity_pass_over(parity_report *report, const char *name, const char *why);

/* A result that is no tensor: decoded texts, ids of a tokenizer. `format` says what was found. */
void parity_check(parity_report *report, const char *name, bool pass, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Lists what was not computed, prints the verdict and returns it. failure (or NULL) is the message
 * of a runner that gave up. */
bool parity_verdict(parity_report *report, const char *failure);

#endif
