#include "core/product.h"

#include "core/product_backend.h"
#include "core/product_onednn.h"
#include "core/product_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds from which driving AMX tiles through oneDNN beats a product of our own */
static const double TILES_PAY = 1 << 21;

static const struct {
    const char *name, *title;
} backends[VLP_GEMM_COUNT] = {
    [VLP_GEMM_AUTO] = {"auto", ""},
    [VLP_GEMM_OWN] = {"own", "own"},
    [VLP_GEMM_OPENBLAS] = {"openblas", "OpenBLAS"},
    [VLP_GEMM_ONEDNN] = {"onednn", "oneDNN"},
};

const char *vlp_gemm_backend_name(vlp_gemm_backend backend) {
    return (unsigned)backend < VLP_GEMM_COUNT ? backends[backend].name : "unknown";
}

bool vlp_gemm_backend_has(vlp_gemm_backend backend) {
    return (unsigned)backend < VLP_GEMM_COUNT &&
           (backend != VLP_GEMM_ONEDNN || vlp_onednn_version() != NULL);
}

/* VLP_GEMM_COUNT for an unknown word */
static vlp_gemm_backend wanted(void) {
    const char *word = getenv("VLP_GEMM");
    if (!word || !*word) return VLP_GEMM_AUTO;
    int backend = 0;
    while (backend < VLP_GEMM_COUNT && strcmp(word, backends[backend].name) != 0) backend++;
    return (vlp_gemm_backend)backend;
}

vlp_gemm_backend vlp_gemm_backend_chosen(void) {
    static _Atomic int kept = -1; /* the environment is read once */
    if (kept < 0) kept = (int)(vlp_gemm_backend_has(wanted()) ? wanted() : VLP_GEMM_AUTO);
    return (vlp_gemm_backend)kept;
}

vlp_status vlp_gemm_backend_check(void) {
    if (wanted() == VLP_GEMM_COUNT)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "VLP_GEMM=\"%s\" is unknown; use auto, own, openblas or onednn",
                        getenv("VLP_GEMM"));
    if (!vlp_gemm_backend_has(wanted()))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "VLP_GEMM=%s: this build lacks %s; build it with libdnnl-dev installed",
                        getenv("VLP_GEMM"), backends[wanted()].title);
    return VLP_OK;
}

const vlp_product_set *vlp_product_set_of(vlp_isa isa, bool bf16, bool dots) {
    static const vlp_product_set *(*const sets[VLP_ISA_COUNT])(bool) = {
        [VLP_ISA_PLAIN] = vlp_product_set_plain,
        [VLP_ISA_AVX2] = vlp_product_set_avx2,
        [VLP_ISA_AVX512] = vlp_product_set_avx512,
    };
    if (isa > vlp_isa_best()) isa = vlp_isa_best();
    const vlp_product_set *set = NULL;
    if (bf16 && dots && isa == VLP_ISA_AVX512 && vlp_cpu()->avx512_bf16)
        set = vlp_product_set_avx512_bf16();
    for (int at = (int)isa; !set; at--) set = sets[at](bf16);
    return set;
}

/* The set for products of this kind; the environment is read once. */
static const vlp_product_set *chosen_set(bool bf16) {
    static const vlp_product_set *_Atomic kept[2];
    const vlp_product_set *set = kept[bf16];
    if (!set) kept[bf16] = set = vlp_product_set_of(vlp_isa_chosen(), bf16, true);
    return set;
}

static bool has_tiles(void) {
    return vlp_cpu()->amx_bf16 && vlp_isa_chosen() == VLP_ISA_AVX512 &&
           vlp_gemm_backend_has(VLP_GEMM_ONEDNN);
}

/* In float our kernels win on AVX-512 where op(B) is packed already or packing it is soon paid, but
 * not where op(A) lies across memory; below AVX-512 OpenBLAS's assembly wins. */
static bool own_float(const vlp_product *p) {
#ifdef VLP_REAL_DOUBLE
    (void)p;
    return false;
#else
    enum { PACKING_PAYS = 1024 }; /* rows */
    return chosen_set(false) == vlp_product_set_avx512(false) && !p->a.transposed &&
           (p->b.packed || p->m >= PACKING_PAYS);
#endif
}

vlp_gemm_backend vlp_gemm_backend_for(const vlp_product *p) {
    static _Atomic int tiles = -1;
    vlp_gemm_backend chosen = vlp_gemm_backend_chosen();
    if (chosen != VLP_GEMM_AUTO) return chosen;
    if (!p->bf16) return own_float(p) ? VLP_GEMM_OWN : VLP_GEMM_OPENBLAS;
    if (tiles < 0) tiles = has_tiles();
    return tiles && (double)p->m * (double)p->n * (double)p->k > TILES_PAY ? VLP_GEMM_ONEDNN
                                                                           : VLP_GEMM_OWN;
}

const char *vlp_gemm_backend_about(bool bf16, char *text, size_t size) {
    const vlp_product large = {.m = 4096, .n = 1024, .k = 1024, .bf16 = bf16};
    vlp_gemm_backend backend = vlp_gemm_backend_for(&large);
    const vlp_product_set *set = chosen_set(bf16);
    snprintf(text, size, "%s%s%s", backends[backend].title, backend == VLP_GEMM_OWN ? " " : "",
             backend == VLP_GEMM_OWN ? set->name : "");
    return text;
}

static void check_operand(const char *name, const vlp_operand *x, int64_t rows, int64_t cols) {
    VLP_ASSERT(x->dtype == VLP_REAL || x->dtype == VLP_BF16, "operand %s of type %d", name,
               (int)x->dtype);
    VLP_ASSERT(x->ld >= (x->transposed ? rows : cols),
               "operand %s [%lld,%lld]%s with rows %lld apart", name, (long long)rows,
               (long long)cols, x->transposed ? " transposed" : "", (long long)x->ld);
}

static void check_result(const char *name, const vlp_result *x, int64_t cols) {
    VLP_ASSERT(x->dtype == VLP_REAL || x->dtype == VLP_BF16, "result %s of type %d", name,
               (int)x->dtype);
    VLP_ASSERT(x->ld >= cols, "result %s of %lld columns with rows %lld apart", name,
               (long long)cols, (long long)x->ld);
}

static void check(const vlp_product *p) {
    VLP_ASSERT(p->m >= 0 && p->n >= 0 && p->k >= 0, "product of negative size");
    check_operand("a", &p->a, p->m, p->k);
    check_operand("b", &p->b, p->k, p->n);
    check_result("c", &p->c, p->n);
    if (p->pre.data) check_result("pre", &p->pre, p->n);
    VLP_ASSERT((unsigned)p->act < VLP_ACT_COUNT, "activation %d", (int)p->act);
    bool plain = p->c.dtype == VLP_REAL && p->act == VLP_ACT_NONE && !p->pre.data;
    VLP_ASSERT(p->beta == 0 || (p->beta == 1 && plain),
               "beta %g of a product that is rounded or activated", (double)p->beta);
    VLP_ASSERT(!p->a.packed, "only b may be kept packed");
}

/* false where there is nothing to compute */
static bool prepare(const vlp_product *p, vlp_product *ready) {
    check(p);
    *ready = *p;
    if (p->alpha == 0) ready->alpha = 1;
    return p->m > 0 && p->n > 0;
}

static void run(vlp_gemm_backend backend, const vlp_product_set *set, const vlp_product *p,
                bool parallel) {
    if (backend == VLP_GEMM_ONEDNN && vlp_product_onednn(p, parallel)) return;
    if (backend == VLP_GEMM_OPENBLAS)
        vlp_product_openblas(p, parallel);
    else
        vlp_product_own(set, p, parallel);
}

static void multiply(const vlp_product *p, bool parallel) {
    vlp_product ready;
    if (!prepare(p, &ready)) return;
    run(vlp_gemm_backend_for(p), chosen_set(p->bf16), &ready, parallel);
}

void vlp_multiply(const vlp_product *p) {
    multiply(p, true);
}

void vlp_multiply_serial(const vlp_product *p) {
    multiply(p, false);
}

bool vlp_multiply_by(vlp_gemm_backend backend, vlp_isa isa, bool dots, const vlp_product *p,
                     bool parallel) {
    vlp_product ready;
    const vlp_product_set *set = vlp_product_set_of(isa, p->bf16, dots);
    if (backend == VLP_GEMM_AUTO || !vlp_gemm_backend_has(backend)) return false;
    if (backend == VLP_GEMM_OWN &&
        (isa > vlp_isa_best() || (dots && set != vlp_product_set_avx512_bf16())))
        return false;
    if (prepare(p, &ready)) run(backend, set, &ready, parallel);
    return true;
}
