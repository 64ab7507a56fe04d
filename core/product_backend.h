/* Who computes the products of core/product.h: chosen at run time, by measured rules or by the
 * environment's VLP_GEMM=auto|own|openblas|onednn. */
#ifndef VLP_CORE_PRODUCT_BACKEND_H
#define VLP_CORE_PRODUCT_BACKEND_H

#include "core/product.h"

typedef enum {
    VLP_GEMM_AUTO, /* whichever measured fastest for this kind of product on this kind of CPU */
    VLP_GEMM_OWN,  /* core/product_own.c */
    VLP_GEMM_OPENBLAS,
    VLP_GEMM_ONEDNN,
    VLP_GEMM_COUNT
} vlp_gemm_backend;

const char *vlp_gemm_backend_name(vlp_gemm_backend backend); /* "auto", "own", ... */
bool vlp_gemm_backend_has(vlp_gemm_backend backend);         /* built in */

/* What VLP_GEMM asks for; auto for an unknown word or for what is not built in. */
vlp_gemm_backend vlp_gemm_backend_chosen(void);
/* VLP_ERR_USAGE if VLP_GEMM holds an unknown word, VLP_ERR_UNSUPPORTED if it names what this build
 * lacks. */
vlp_status vlp_gemm_backend_check(void);

/* What vlp_multiply takes for such a product: never VLP_GEMM_AUTO. */
vlp_gemm_backend vlp_gemm_backend_for(const vlp_product *p);
/* "own avx512_bf16", "OpenBLAS": for large products of the kind */
const char *vlp_gemm_backend_about(bool bf16, char *text, size_t size);

/* A certain way, for tests and measurements: our own kernels up to isa, with or without products of
 * bfloat16 pairs. Returns false, having done nothing, where the build or the CPU lacks it. */
bool vlp_multiply_by(vlp_gemm_backend backend, vlp_isa isa, bool dots, const vlp_product *p,
                     bool parallel);

/* The backends. The product is checked, not empty, and its alpha is set. */
void vlp_product_openblas(const vlp_product *p, bool parallel);

#endif
