#include "core/gemm_openblas.h"

#include <cblas.h>

void vlp_openblas_gemm(bool ta, bool tb, int m, int n, int k, vlp_real alpha, const vlp_real *a,
                       int lda, const vlp_real *b, int ldb, vlp_real beta, vlp_real *c, int ldc) {
    CBLAS_TRANSPOSE op_a = ta ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE op_b = tb ? CblasTrans : CblasNoTrans;
#ifdef VLP_REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#else
    cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#endif
}

const char *vlp_openblas_core(void) {
    return openblas_get_corename();
}

const char *vlp_openblas_config(void) {
    return openblas_get_config();
}

void vlp_openblas_set_single_thread(void) {
    openblas_set_num_threads(1);
}
