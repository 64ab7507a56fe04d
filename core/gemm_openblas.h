/* OpenBLAS behind plain functions: the only door to cblas.h. Every call runs on its own thread. */
#ifndef VLP_CORE_GEMM_OPENBLAS_H
#define VLP_CORE_GEMM_OPENBLAS_H

#include "core/real.h"

#include <stdbool.h>

/* As vlp_gemm_serial; sizes fit in int. */
void vlp_openblas_gemm(bool ta, bool tb, int m, int n, int k, vlp_real alpha, const vlp_real *a,
                       int lda, const vlp_real *b, int ldb, vlp_real beta, vlp_real *c, int ldc);

const char *vlp_openblas_core(void);       /* "SkylakeX" */
const char *vlp_openblas_config(void);     /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." */
void vlp_openblas_set_single_thread(void); /* idempotent */

#endif
