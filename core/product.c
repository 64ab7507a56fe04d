#include "core/product.h"

#include "core/gemm.h"
#include "core/memory.h"

#include <string.h>

/* The operand in vlp_real, rounded to bfloat16 if asked for; *made must be freed. */
static const vlp_real *real_operand(const vlp_operand *x, int64_t rows, int64_t cols, bool bf16,
                                    vlp_real **made) {
    if (x->dtype == VLP_REAL && !bf16) return x->data;
    if (x->transposed) {
        int64_t swap = rows;
        rows = cols;
        cols = swap;
    }
    int64_t n = rows ? (rows - 1) * x->ld + cols : 0;
    vlp_real *to = *made = vlp_alloc((size_t)n * sizeof *to + 1);
    VLP_ASSERT(to, "no memory for an operand of a product");
    for (int64_t i = 0; i < n; i++) {
        float value;
        if (x->dtype == VLP_BF16) {
            vlp_kernels_get()->from_bf16(1, (const uint16_t *)x->data + i, &value);
        } else {
            uint16_t half;
            float exact = (float)((const vlp_real *)x->data)[i];
            vlp_kernels_get()->to_bf16(1, &exact, &half);
            vlp_kernels_get()->from_bf16(1, &half, &value);
        }
        to[i] = value;
    }
    return to;
}

static void store_row(const vlp_result *to, int64_t row, int64_t cols, const vlp_real *from) {
    if (to->dtype == VLP_REAL) {
        memcpy((vlp_real *)to->data + row * to->ld, from, (size_t)cols * sizeof *from);
        return;
    }
    for (int64_t j = 0; j < cols; j++) {
        float value = (float)from[j];
        vlp_kernels_get()->to_bf16(1, &value, (uint16_t *)to->data + row * to->ld + j);
    }
}

static void multiply(const vlp_product *p, bool parallel) {
    vlp_real *made[3] = {0};
    const vlp_real *a = real_operand(&p->a, p->m, p->k, p->bf16, &made[0]);
    const vlp_real *b = real_operand(&p->b, p->k, p->n, p->bf16, &made[1]);
    bool direct = p->c.dtype == VLP_REAL;
    bool kept = direct && p->pre.data;
    int64_t ldc = kept ? p->pre.ld : direct ? p->c.ld : p->n;
    vlp_real *c = kept ? p->pre.data : p->c.data;
    if (!direct) {
        c = made[2] = vlp_alloc((size_t)(p->m * p->n) * sizeof *c + 1);
        VLP_ASSERT(c, "no memory for a product");
    }
    vlp_real alpha = p->alpha != 0 ? p->alpha : 1;
    (parallel ? vlp_gemm : vlp_gemm_serial)(p->a.transposed, p->b.transposed, p->m, p->n, p->k,
                                            alpha, a, p->a.ld, b, p->b.ld, p->beta, c, ldc);
    for (int64_t i = 0; i < p->m && (p->bias || p->act != VLP_ACT_NONE || !direct); i++) {
        vlp_real *row = c + i * ldc;
        if (p->bias) vlp_kernels_get()->bias_act(1, p->n, p->bias, VLP_ACT_NONE, row, row);
        if (p->pre.data && !kept) store_row(&p->pre, i, p->n, row);
        vlp_real *y = kept ? (vlp_real *)p->c.data + i * p->c.ld : row;
        if (p->act != VLP_ACT_NONE) vlp_kernels_get()->act(p->n, p->act, row, y);
        if (!direct) store_row(&p->c, i, p->n, row);
    }
    for (int i = 0; i < 3; i++) vlp_free(made[i]);
}

void vlp_multiply(const vlp_product *p) {
    multiply(p, true);
}

void vlp_multiply_serial(const vlp_product *p) {
    multiply(p, false);
}
