/* Matrix products by OpenBLAS, split over our own threads.
 *
 *     int main(int argc, char **argv)
 *     {
 *         vlp_status status = vlp_gemm_cure(argc, argv);   first, before files and threads
 *         ...
 *         vlp_gemm(false, true, T, N, D, 1, x, D, w, D, 0, y, N);    y [T,N] = x [T,D] w[N,D]^T
 */
#ifndef VLP_CORE_GEMM_H
#define VLP_CORE_GEMM_H

#include "core/cpu.h"
#include "core/real.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* C [m,n] = alpha op(A) op(B) + beta C, row-major. op(A) is [m,k]: A is stored [m,k] (ta false) or
 * [k,m] (ta true); op(B) is [k,n]: B is stored [k,n] or [n,k] (tb true). lda, ldb, ldc are the
 * elements between stored rows. C overlaps neither A nor B. m, n or k may be 0 (k = 0 gives beta
 * C); beta = 0 overwrites C, NaN included. Same shapes and thread count: same bits. A wrong leading
 * dimension is a bug. */
void vlp_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, vlp_real alpha, const vlp_real *a,
              int64_t lda, const vlp_real *b, int64_t ldb, vlp_real beta, vlp_real *c, int64_t ldc);

/* The same on the calling thread alone: for many small products inside vlp_parallel_for. */
void vlp_gemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t k, vlp_real alpha,
                     const vlp_real *a, int64_t lda, const vlp_real *b, int64_t ldb, vlp_real beta,
                     vlp_real *c, int64_t ldc);

/* An OpenBLAS older than the CPU falls back to slow kernels (Debian 12's 0.3.21: a fifth of the
 * speed). The library reads OPENBLAS_CORETYPE only when it is loaded, so the cure sets it and
 * executes the program once more with the same arguments; it returns in the process that is to
 * stay. Never overrides an OPENBLAS_CORETYPE that the user has set. Afterwards runs
 * vlp_gemm_selftest and, where the chosen kernels compute wrongly, retreats to a safe core type by
 * one more execution. VLP_ERR_NUMERIC: even that computes wrongly (or the user's own choice does);
 * the message says so. Call it first in main: before any thread starts and any file is opened. With
 * VLP_GEMM_CURE=off in the environment the kernels stay as the library or the user chose them. */
vlp_status vlp_gemm_cure(int argc, char **argv);

/* The rule of the cure: the core type to ask for on this CPU instead of `core`, NULL = none. */
const char *vlp_gemm_better_core(const char *core, const vlp_cpu_info *cpu);

/* Odd shapes, all transposes, against a plain loop. VLP_ERR_NUMERIC names the shape. */
vlp_status vlp_gemm_selftest(void);

typedef struct {
    char library[32]; /* "OpenBLAS 0.3.21" */
    char before[32];  /* the core type that the library chose by itself */
    char core[32];    /* the core type in use */
    const char *by;   /* who chose: "library", "user", "vlp", "vlp (safe fallback)" */
    bool wrong;       /* vlp_gemm_cure found that they compute wrongly, and had no others */
} vlp_gemm_about;
vlp_gemm_about vlp_gemm_info(void);

#endif
