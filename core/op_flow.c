#include "core/op_flow.h"

#include "core/kernels.h"
#include "core/threads.h"

#include <string.h>

enum { ELEMENT_GRAIN = 4096, ROW_GRAIN = 16, COLUMN_GRAIN = 16 };

void vlp_put(bool fresh, int64_t n, const vlp_real *from, vlp_real *to) {
    if (n == 0) return;
    if (fresh)
        memcpy(to, from, (size_t)n * sizeof(vlp_real));
    else
        vlp_kernels_get()->add(n, from, to);
}

#ifdef VLP_REAL_DOUBLE
void vlp_widen(int64_t n, const uint16_t *from, vlp_real *to) {
    for (int64_t i = 0; i < n; i++) {
        float value;
        vlp_kernels_get()->from_bf16(1, from + i, &value);
        to[i] = (vlp_real)value;
    }
}

void vlp_narrow(int64_t n, const vlp_real *from, uint16_t *to) {
    for (int64_t i = 0; i < n; i++) {
        float value = (float)from[i];
        vlp_kernels_get()->to_bf16(1, &value, to + i);
    }
}
#else
void vlp_widen(int64_t n, const uint16_t *from, vlp_real *to) {
    vlp_kernels_get()->from_bf16(n, from, to);
}

void vlp_narrow(int64_t n, const vlp_real *from, uint16_t *to) {
    vlp_kernels_get()->to_bf16(n, from, to);
}
#endif

void vlp_put_gradient(bool fresh, int64_t n, const vlp_real *from, vlp_gradient grad, int64_t at) {
    if (grad.dtype == VLP_BF16)
        vlp_narrow(n, from, (uint16_t *)grad.data + at);
    else
        vlp_put(fresh, n, from, (vlp_real *)grad.data + at);
}

const vlp_real *vlp_real_gradient(vlp_gradient grad, int64_t at, int64_t n, vlp_real *wide) {
    if (grad.dtype != VLP_BF16) return (const vlp_real *)grad.data + at;
    vlp_widen(n, (const uint16_t *)grad.data + at, wide);
    return wide;
}

typedef struct {
    int64_t count, cols, ld, n, skip;
    const int32_t *index;
    bool fresh;
    const vlp_real *from;
    vlp_real *to;
} flow;

static void put_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const flow *f = ctx;
    vlp_put(f->fresh, end - begin, f->from + begin, f->to + begin);
}

void vlp_flow(vlp_tensor *to, const vlp_real *grad) {
    flow f = {.from = grad};
    f.to = vlp_grad_write(to, &f.fresh);
    if (f.to) vlp_parallel_for(vlp_numel(to), ELEMENT_GRAIN, put_range, &f);
}

static void column_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const flow *f = ctx;
    vlp_kernels_get()->column_sum(f->count, end - begin, f->from + begin, f->ld, f->to + begin);
}

void vlp_flow_columns(int64_t rows, int64_t cols, int64_t ld, const vlp_real *x, vlp_real *out) {
    flow f = {.count = rows, .ld = ld, .from = x, .to = out};
    vlp_parallel_for(cols, COLUMN_GRAIN, column_range, &f);
}

typedef struct {
    int64_t rows, cols;
    const uint16_t *x;
    vlp_real *out;
} half_columns;

/* Columns [begin, end) of blocks of rows are widened and summed. */
static void half_column_range(int64_t begin, int64_t end, int thread, void *ctx) {
    enum { ROWS = 64, COLS = 64 };
    (void)thread;
    const half_columns *h = ctx;
    vlp_real wide[ROWS * COLS];
    for (int64_t col = begin; col < end; col += COLS) {
        int64_t width = end - col < COLS ? end - col : COLS;
        for (int64_t row = 0; row < h->rows; row += ROWS) {
            int64_t rows = h->rows - row < ROWS ? h->rows - row : ROWS;
            for (int64_t i = 0; i < rows; i++)
                vlp_widen(width, h->x + (row + i) * h->cols + col, wide + i * COLS);
            vlp_kernels_get()->column_sum(rows, width, wide, COLS, h->out + col);
        }
    }
}

void vlp_gradient_columns(int64_t rows, int64_t cols, vlp_gradient x, vlp_real *out) {
    if (x.dtype != VLP_BF16) {
        vlp_flow_columns(rows, cols, cols, x.data, out);
        return;
    }
    half_columns h = {rows, cols, x.data, out};
    vlp_parallel_for(cols, COLUMN_GRAIN, half_column_range, &h);
}

static int64_t checked(const flow *f, int64_t r) {
    int64_t at = f->index[r];
    VLP_ASSERT(at >= 0 && at < f->n, "row index %lld at %lld is outside [0, %lld)", (long long)at,
               (long long)r, (long long)f->n);
    return at;
}

static void take_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const flow *f = ctx;
    for (int64_t r = begin; r < end; r++)
        vlp_put(f->fresh, f->cols, f->from + checked(f, r) * f->cols, f->to + r * f->cols);
}

void vlp_rows_take(int64_t count, int64_t cols, int64_t n, const int32_t *index, bool fresh,
                   const vlp_real *from, vlp_real *to) {
    flow f = {.cols = cols, .n = n, .index = index, .fresh = fresh, .from = from, .to = to};
    vlp_parallel_for(count, ROW_GRAIN, take_range, &f);
}

static void spread_columns(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const flow *f = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t r = 0; r < f->count; r++) {
        int64_t at = checked(f, r);
        if (at == f->skip) continue;
        k->add(end - begin, f->from + r * f->cols + begin, f->to + at * f->cols + begin);
    }
}

void vlp_rows_spread(int64_t count, int64_t cols, int64_t n, const int32_t *index, int64_t skip,
                     const vlp_real *from, vlp_real *to) {
    flow f = {
        .count = count, .cols = cols, .n = n, .skip = skip, .index = index, .from = from, .to = to};
    vlp_parallel_for(cols, COLUMN_GRAIN, spread_columns, &f);
}
