#include "tests/gradcheck.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

/* Three threads on any machine: the split of the work is part of what is checked. */
enum { ARENA_BYTES = 16 << 20, THREADS = 3 };
static const double h = 1e-5;

typedef struct {
    const gradcheck_case *c;
    vlp_tape *tape;
    vlp_real *values[GRADCHECK_INPUTS];
    double *analytic[GRADCHECK_INPUTS];
    int64_t numel[GRADCHECK_INPUTS];
    vlp_tensor *x[GRADCHECK_INPUTS];
} checker;

/* The op gets copies, which are forgotten as its result is: what it reads backward all the same is
 * gone. */
static vlp_tensor *evaluate(checker *k, bool with_grad) {
    vlp_tape_begin(k->tape, 1, 2);
    vlp_tape_set_grad(k->tape, with_grad);
    vlp_tape_set_training(k->tape, true);
    for (int i = 0; i < k->c->n_inputs; i++)
        k->x[i] = vlp_tape_input(k->tape, VLP_REAL, k->c->inputs[i].ndim, k->c->inputs[i].shape,
                                 k->values[i], true);
    vlp_tensor *copies[GRADCHECK_INPUTS];
    for (int i = 0; i < k->c->n_inputs; i++) copies[i] = vlp_scale(k->tape, k->x[i], 1);
    vlp_tensor *y = k->c->build(k->tape, copies);
    VLP_ASSERT(y, "%s: %s", k->c->name, vlp_error());
    for (int i = 0; i < k->c->n_inputs; i++)
        if (copies[i] != y) vlp_tape_forget(k->tape, copies[i]);
    int64_t n = vlp_numel(y);
    if (y->ndim == 0) return y;
    vlp_real *cotangent = vlp_tape_alloc(k->tape, (size_t)n * sizeof(vlp_real));
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < n; i++) cotangent[i] = (vlp_real)vlp_rng_normal(&rng);
    vlp_tensor *loss = vlp_dot_constant(k->tape, y, cotangent);
    vlp_tape_forget(k->tape, y);
    return loss;
}

static double value(checker *k) {
    return (double)vlp_real_data(evaluate(k, false))[0];
}

static void fill(checker *k) {
    for (int i = 0; i < k->c->n_inputs; i++) {
        vlp_tensor shape = {.ndim = k->c->inputs[i].ndim};
        memcpy(shape.shape, k->c->inputs[i].shape, sizeof shape.shape);
        k->numel[i] = vlp_numel(&shape);
        k->values[i] = vlp_alloc_zero((size_t)k->numel[i], sizeof(vlp_real));
        k->analytic[i] = vlp_alloc_zero((size_t)k->numel[i], sizeof(double));
        vlp_rng rng = vlp_rng_at(3, VLP_RNG_TEST, 0, (uint64_t)i + 1);
        for (int64_t n = 0; n < k->numel[i]; n++) k->values[i][n] = (vlp_real)vlp_rng_normal(&rng);
    }
}

static void analytic(checker *k) {
    vlp_tensor *loss = evaluate(k, true);
    vlp_status status = vlp_tape_backward(k->tape, loss);
    VLP_ASSERT(status == VLP_OK, "%s: %s", k->c->name, vlp_error());
    for (int i = 0; i < k->c->n_inputs; i++)
        for (int64_t n = 0; k->x[i]->grad && n < k->numel[i]; n++)
            k->analytic[i][n] = (double)k->x[i]->grad[n];
}

static double compare(checker *k, int i, int64_t n, double limit) {
    vlp_real saved = k->values[i][n];
    k->values[i][n] = (vlp_real)((double)saved + h);
    double up = value(k);
    k->values[i][n] = (vlp_real)((double)saved - h);
    double down = value(k);
    k->values[i][n] = saved;
    double numeric = (up - down) / (2 * h);
    double error = fabs(k->analytic[i][n] - numeric) / fmax(1, fabs(numeric));
    if (!(error <= limit))
        fprintf(stderr, "%s: input %d element %lld: analytic %.10g numeric %.10g\n", k->c->name, i,
                (long long)n, k->analytic[i][n], numeric);
    return isnan(error) ? INFINITY : error;
}

/* Step memory starts as NaN, so that a gradient left unwritten shows. */
static void poison(vlp_tape *tape) {
    size_t bytes = ARENA_BYTES / 2;
    void *memory = vlp_tape_alloc(tape, bytes);
    VLP_ASSERT(memory, "%s", vlp_error());
    memset(memory, 0xff, bytes);
}

double gradcheck_run(const gradcheck_case *c, double limit) {
    checker k = {.c = c};
    VLP_ASSERT(vlp_threads_set(THREADS) == VLP_OK, "%s", vlp_error());
    VLP_ASSERT(vlp_tape_new(&k.tape) == VLP_OK, "%s", vlp_error());
    VLP_ASSERT(vlp_tape_open(k.tape, ARENA_BYTES) == VLP_OK, "%s", vlp_error());
    poison(k.tape);
    vlp_tape_set_poison(k.tape, true);
    fill(&k);
    for (int i = 0; i < 2; i++) { /* the second finds used workspace and gives memory back */
        vlp_tape_set_reuse(k.tape, i == 1);
        analytic(&k);
    }
    double worst = 0;
    for (int i = 0; i < c->n_inputs; i++)
        for (int64_t n = 0; n < k.numel[i]; n++) worst = fmax(worst, compare(&k, i, n, limit));
    for (int i = 0; i < c->n_inputs; i++) {
        vlp_free(k.values[i]);
        vlp_free(k.analytic[i]);
    }
    vlp_tape_free(k.tape);
    return worst;
}
