/* Products by OpenBLAS (core/gemm.h): operands of another type or precision are converted first,
 * the epilogue is a pass of its own. */
#include "core/gemm.h"
#include "core/packed_form.h"
#include "core/product_backend.h"
#include "core/product_scratch.h"
#include "core/product_sets.h"
#include "core/threads.h"

enum { ROW_GRAIN = 16, CHUNK = 256 };

static void run_rows(int64_t rows, vlp_range_body body, void *ctx, bool parallel) {
    if (parallel)
        vlp_parallel_for(rows, ROW_GRAIN, body, ctx);
    else
        body(0, rows, 0, ctx);
}

typedef struct {
    const vlp_operand *x;
    int64_t rows, cols; /* as stored */
    vlp_real *to;       /* dense */
    bool bf16, parallel;
} conversion;

/* The values of a bfloat16 product, or of a bfloat16 operand */
static void convert_row(const conversion *c, int64_t row) {
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t begin = 0; begin < c->cols; begin += CHUNK) {
        int64_t n = c->cols - begin < CHUNK ? c->cols - begin : CHUNK, at = row * c->x->ld + begin;
        uint16_t half[CHUNK];
        float value[CHUNK];
        const uint16_t *from = half;
        if (c->x->dtype == VLP_BF16) {
            from = (const uint16_t *)c->x->data + at;
        } else {
            const vlp_real *real = (const vlp_real *)c->x->data + at;
            for (int64_t i = 0; i < n; i++) value[i] = (float)real[i];
            k->to_bf16(n, value, half);
        }
        k->from_bf16(n, from, value);
        for (int64_t i = 0; i < n; i++) c->to[row * c->cols + begin + i] = value[i];
    }
}

static void convert_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    for (int64_t row = begin; row < end; row++) convert_row(ctx, row);
}

static void convert(void *ctx, void *to) {
    conversion *c = ctx;
    c->to = to;
    run_rows(c->rows, convert_rows, c, c->parallel);
}

/* op(x) [rows,cols] in vlp_real as the product wants it, its own memory where possible; NULL
 * without memory. */
static const vlp_real *real_operand(const vlp_product *p, const vlp_operand *x, int64_t rows,
                                    int64_t cols, vlp_scratch space, bool parallel, int64_t *ld) {
    static const char maker;
    *ld = x->ld;
    if (x->dtype == VLP_REAL && !p->bf16) return x->data;
    conversion c = {.x = x, .bf16 = p->bf16, .parallel = parallel};
    c.rows = x->transposed ? cols : rows;
    c.cols = *ld = x->transposed ? rows : cols;
    size_t bytes = (size_t)(rows * cols) * sizeof(vlp_real);
    if (x->packed) {
        vlp_packed_key key = {.x = *x, .k = rows, .n = cols, .bf16 = p->bf16, .maker = &maker};
        return vlp_packed_form(x->packed, &key, bytes, convert, &c);
    }
    void *to = vlp_product_scratch(space, (int64_t)bytes);
    if (to) convert(&c, to);
    return to;
}

typedef struct {
    vlp_product p;
    const vlp_product_set *set;
    vlp_real *sums; /* may be C itself */
    int64_t ld;
} epilogue;

static void finish_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const epilogue *e = ctx;
    for (int64_t row = begin; row < end; row++)
        e->set->finish(&e->p, &(vlp_patch){row, 0, 1, e->p.n}, 0, e->sums + row * e->ld);
}

void vlp_product_openblas(const vlp_product *p, bool parallel) {
    const vlp_product_set *set = vlp_product_set_of(vlp_isa_chosen(), p->bf16, false);
    int64_t lda, ldb, ldc = p->c.ld;
    const vlp_real *a = real_operand(p, &p->a, p->m, p->k, VLP_SCRATCH_BLOCK, parallel, &lda);
    const vlp_real *b = real_operand(p, &p->b, p->k, p->n, VLP_SCRATCH_B, parallel, &ldb);
    vlp_real *c = p->c.data;
    if (p->c.dtype != VLP_REAL) {
        c = vlp_product_scratch(VLP_SCRATCH_PARTIAL, p->m * p->n * (int64_t)sizeof *c);
        ldc = p->n;
    }
    if (!a || !b || !c) {
        vlp_product_own(set, p, parallel); /* which needs no memory */
        return;
    }
    (parallel ? vlp_gemm : vlp_gemm_serial)(p->a.transposed, p->b.transposed, p->m, p->n, p->k,
                                            p->alpha, a, lda, b, ldb, p->beta, c, ldc);
    if (c == p->c.data && !p->bias && !p->pre.data && p->act == VLP_ACT_NONE) return;
    epilogue e = {*p, set, c, ldc};
    e.p.alpha = 1; /* both are in the sums already */
    e.p.beta = 0;
    run_rows(p->m, finish_rows, &e, parallel);
}
