/* Products by our own kernels.
 *
 * op(B) is packed once, whole or by chunks of columns, by all threads together. C is cut into a
 * grid of parts, one a thread; a part walks over blocks of its rows: a block of op(A) is packed
 * into the second-level cache, and each panel of op(B) meets all panels of the block. Long sums go
 * by blocks of terms; their sums wait between blocks, tile by tile. Weight gradients are small and
 * sum over all tokens: there the sum is cut over threads too, and partial sums are added in order.
 */
#include "core/kernels.h"
#include "core/memory.h"
#include "core/packed_form.h"
#include "core/product_scratch.h"
#include "core/product_sets.h"
#include "core/threads.h"

#include <string.h>

/* BLOCK_BYTES of op(A) stay in the second-level cache. A part below MIN_WORK multiply-adds costs
 * less than waking a thread. PACK_COST: of copying an element of op(A) into a panel, in
 * multiply-adds; REDUCE_COST: of adding an element of a partial sum. CHUNK_BYTES: of op(B) packed
 * at a time. */
enum {
    BLOCK_BYTES = 384 << 10,
    BLOCK_TERMS = 2048,       /* the longest sum in one go */
    BLOCK_TERMS_ACROSS = 384, /* where op(A)'s rows are columns in memory: blocks of many rows, so
                                 that long stretches of memory are read */
    CHUNK_BYTES = 16 << 20,
    MIN_WORK = 1 << 20,
    PACK_COST = 12,
    REDUCE_COST = 16,
    MIN_DEPTH = 512, /* terms of a part, where the sum is cut */
    SMALL_TERMS = 64 /* of a tile without memory for panels */
};

typedef struct {
    int64_t begin, end;
} span;

typedef struct {
    const vlp_product *p;
    const vlp_product_set *set;
    int64_t terms, blocks; /* a block of terms, and how many */
    int64_t rows;          /* a block of rows */
    span cols;             /* the chunk of columns whose panels are at b */
    const char *b;         /* NULL = no memory for panels */
    int64_t grid_rows, grid_cols, depth, tile_rows, tile_cols, tile_blocks;
    vlp_real *partial; /* [depth,m,n], with depth > 1 */
} job;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

static int64_t ceil_to(int64_t n, int64_t unit) {
    return parts_of(n, unit) * unit;
}

static span part_of(int64_t index, int64_t size, int64_t n) {
    return (span){least(index * size, n), least((index + 1) * size, n)};
}

/* bytes of `terms` terms of so many lanes */
static int64_t panel_bytes(const job *j, int64_t lanes, int64_t terms) {
    return lanes * ceil_to(terms, j->set->group) * (int64_t)j->set->element;
}

static span terms_of(const job *j, int64_t block) {
    return part_of(block, j->terms, j->p->k);
}

static int64_t groups_of(const job *j, span terms) {
    return parts_of(terms.end - terms.begin, j->set->group);
}

/* where a panel of the chunk of op(B) lies: by blocks of terms, then by panels */
static int64_t b_offset(const job *j, int64_t panel, int64_t block) {
    int64_t panels = parts_of(j->cols.end - j->cols.begin, j->set->cols);
    span t = terms_of(j, block);
    return panel_bytes(j, j->set->cols, j->terms) * panels * block +
           panel_bytes(j, j->set->cols, t.end - t.begin) * panel;
}

/* panels [begin, end) of one block after the other */
static void pack_b_panels(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const job *j = ctx;
    const vlp_product_set *set = j->set;
    int64_t panels = parts_of(j->cols.end - j->cols.begin, set->cols);
    while (begin < end) {
        int64_t block = begin / panels, panel = begin % panels;
        int64_t last = least(panels, panel + end - begin), col = j->cols.begin + panel * set->cols;
        span t = terms_of(j, block);
        vlp_panel_source from = {.x = &j->p->b,
                                 .terms_contiguous = j->p->b.transposed,
                                 .lane = col,
                                 .lanes = least((last - panel) * set->cols, j->cols.end - col),
                                 .term = t.begin,
                                 .terms = t.end - t.begin,
                                 .each = set->cols,
                                 .width = set->cols};
        set->pack(&from, (char *)j->b + b_offset(j, panel, block));
        begin += last - panel;
    }
}

enum { PACK_GRAIN = 1 << 16 }; /* elements */

static void pack_b(job *j, bool parallel) {
    int64_t n = parts_of(j->cols.end - j->cols.begin, j->set->cols) * j->blocks;
    int64_t grain = parts_of(PACK_GRAIN, j->set->cols * (j->terms + 1));
    if (parallel)
        vlp_parallel_for(n, grain, pack_b_panels, j);
    else
        pack_b_panels(0, n, 0, j);
}

static int64_t b_bytes(const job *j, int64_t cols) {
    return panel_bytes(j, ceil_to(cols, j->set->cols), ceil_to(j->p->k, j->set->group));
}

typedef struct {
    job *j;
    bool parallel;
} packing;

static void make_form(void *ctx, void *to) {
    packing *pack = ctx;
    pack->j->b = to;
    pack_b(pack->j, pack->parallel);
}

/* The packed form of all columns, kept by the operand; false where there is none to keep it. */
static bool borrow_b(job *j, bool parallel) {
    vlp_packed *kept = j->p->b.packed;
    if (!kept) return false;
    vlp_packed_key key = {.x = j->p->b, .k = j->p->k, .n = j->p->n, .maker = j->set};
    packing pack = {j, parallel};
    j->cols = (span){0, j->p->n};
    j->b = vlp_packed_form(kept, &key, (size_t)b_bytes(j, j->p->n), make_form, &pack);
    return j->b != NULL;
}

static void pack_a(const job *j, span rows, span t, char *to) {
    vlp_panel_source from = {.x = &j->p->a,
                             .terms_contiguous = !j->p->a.transposed,
                             .lane = rows.begin,
                             .lanes = rows.end - rows.begin,
                             .term = t.begin,
                             .terms = t.end - t.begin,
                             .each = j->set->rows,
                             .width = j->set->a_width};
    j->set->pack(&from, to);
}

/* What a part computes: rows and columns of C from blocks of terms, into the product's C. */
typedef struct {
    span rows, cols, blocks;
    const vlp_product *into;
} part;

/* One panel of op(B) against all panels of a block of rows. sums: NULL, or where the tiles' sums
 * wait between blocks of terms. */
static void multiply_panel(const job *j, const part *x, span rows, int64_t block, int64_t col,
                           const char *a, vlp_real *sums) {
    _Alignas(VLP_TILE_ALIGN) vlp_real tile[VLP_TILE_ELEMENTS];
    const vlp_product_set *set = j->set;
    span t = terms_of(j, block);
    bool first = block == x->blocks.begin, last = block + 1 == x->blocks.end;
    const char *b = j->b + b_offset(j, (col - j->cols.begin) / set->cols, block);
    int64_t bytes = panel_bytes(j, set->a_width, t.end - t.begin);
    int cols = (int)least(set->cols, x->cols.end - col);
    for (int64_t row = rows.begin; row < rows.end; row += set->rows, a += bytes) {
        int height = (int)least(set->rows, rows.end - row);
        vlp_real *s = sums ? sums + (row - rows.begin) / set->rows * set->rows * set->cols : tile;
        set->tile(height, cols, groups_of(j, t), a, b, !first, s);
        if (last) set->finish(x->into, &(vlp_patch){row, col, height, cols}, set->cols, s);
    }
}

static void multiply_rows(const job *j, const part *x, span rows, char *space) {
    const vlp_product_set *set = j->set;
    int64_t height = ceil_to(rows.end - rows.begin, set->rows);
    int64_t a_bytes = panel_bytes(j, height / set->rows * set->a_width, j->terms);
    vlp_real *sums = NULL;
    if (x->blocks.end - x->blocks.begin > 1)
        sums = (vlp_real *)(void *)(space + ceil_to(a_bytes, 64));
    for (int64_t block = x->blocks.begin; block < x->blocks.end; block++) {
        pack_a(j, rows, terms_of(j, block), space);
        for (int64_t col = x->cols.begin; col < x->cols.end; col += set->cols)
            multiply_panel(j, x, rows, block, col, space,
                           sums ? sums + (col - x->cols.begin) * height : NULL);
    }
}

/* Without memory for panels: tile by tile, a few terms at a time, all on the stack. */
static void multiply_tile_small(const job *j, const part *x, int64_t row, int64_t col) {
    _Alignas(VLP_TILE_ALIGN) vlp_real sums[VLP_TILE_ELEMENTS];
    _Alignas(VLP_TILE_ALIGN) char a[SMALL_TERMS * 16 * 8], b[SMALL_TERMS * 64 * 8];
    const vlp_product *p = j->p;
    const vlp_product_set *set = j->set;
    int64_t height = least(set->rows, x->rows.end - row),
            width = least(set->cols, x->cols.end - col);
    int64_t begin = x->blocks.begin * j->terms, end = least(x->blocks.end * j->terms, p->k);
    int64_t t = begin;
    do {
        int64_t terms = least(SMALL_TERMS, end - t);
        vlp_panel_source from_a = {&p->a, !p->a.transposed, row,         height, t,
                                   terms, set->rows,        set->a_width};
        vlp_panel_source from_b = {&p->b, p->b.transposed, col,       width,
                                   t,     terms,           set->cols, set->cols};
        set->pack(&from_a, a);
        set->pack(&from_b, b);
        set->tile((int)height, (int)width, parts_of(terms, set->group), a, b, t > begin, sums);
        t += SMALL_TERMS;
    } while (t < end);
    set->finish(x->into, &(vlp_patch){row, col, height, width}, set->cols, sums);
}

static void multiply_small(const job *j, const part *x) {
    for (int64_t row = x->rows.begin; row < x->rows.end; row += j->set->rows)
        for (int64_t col = x->cols.begin; col < x->cols.end; col += j->set->cols)
            multiply_tile_small(j, x, row, col);
}

static void multiply_part(const job *j, const part *x) {
    const vlp_product_set *set = j->set;
    int64_t block_rows = least(j->rows, ceil_to(x->rows.end - x->rows.begin, set->rows));
    int64_t a_bytes = panel_bytes(j, block_rows / set->rows * set->a_width, j->terms);
    int64_t sums = x->blocks.end - x->blocks.begin > 1
                       ? block_rows * ceil_to(x->cols.end - x->cols.begin, set->cols)
                       : 0;
    char *space = j->b
                      ? vlp_product_scratch(VLP_SCRATCH_BLOCK,
                                            ceil_to(a_bytes, 64) + sums * (int64_t)sizeof(vlp_real))
                      : NULL;
    if (!space) {
        multiply_small(j, x);
        return;
    }
    for (int64_t row = x->rows.begin; row < x->rows.end; row += block_rows)
        multiply_rows(j, x, (span){row, least(row + block_rows, x->rows.end)}, space);
}

/* A product whose C is a layer of the partial sums */
static vlp_product layer_of(const job *j, int64_t layer) {
    vlp_product p = *j->p;
    p.c = (vlp_result){j->partial + layer * p.m * p.n, VLP_REAL, p.n};
    p.pre.data = NULL;
    p.bias = NULL;
    p.act = VLP_ACT_NONE;
    p.beta = 0;
    p.alpha = 1;
    return p;
}

static void multiply_parts(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const job *j = ctx;
    for (int64_t at = begin; at < end; at++) {
        int64_t layer = at / (j->grid_rows * j->grid_cols),
                cell = at % (j->grid_rows * j->grid_cols);
        vlp_product deep;
        part x = {.rows = part_of(cell / j->grid_cols, j->tile_rows, j->p->m),
                  .cols = part_of(cell % j->grid_cols, j->tile_cols, j->cols.end - j->cols.begin),
                  .blocks = part_of(layer, j->tile_blocks, j->blocks),
                  .into = j->p};
        x.cols.begin += j->cols.begin;
        x.cols.end += j->cols.begin;
        if (j->partial) {
            deep = layer_of(j, layer);
            x.into = &deep;
        }
        if (x.rows.begin < x.rows.end && x.cols.begin < x.cols.end) multiply_part(j, &x);
    }
}

/* rows [begin, end): partial sums in order, then the epilogue */
static void reduce_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const job *j = ctx;
    int64_t n = j->p->n, area = j->p->m * n;
    for (int64_t row = begin; row < end; row++) {
        vlp_real *sums = j->partial + row * n;
        for (int64_t layer = 1; layer < j->depth; layer++)
            vlp_kernels_get()->add(n, sums + layer * area, sums);
        j->set->finish(j->p, &(vlp_patch){row, 0, 1, n}, 0, sums);
    }
}

static void set_grid(job *j, int64_t rows, int64_t cols, int64_t depth) {
    int64_t n = j->cols.end - j->cols.begin;
    j->tile_rows = ceil_to(parts_of(j->p->m, rows), j->set->rows);
    j->tile_cols = ceil_to(parts_of(n, cols), j->set->cols);
    j->tile_blocks = parts_of(j->blocks, depth);
    j->grid_rows = parts_of(j->p->m, j->tile_rows);
    j->grid_cols = parts_of(n, j->tile_cols);
    j->depth = j->blocks ? parts_of(j->blocks, j->tile_blocks) : 1;
}

/* Work of the largest part, packing included, and of adding up the partial sums */
static double cost_of(const job *j, int64_t threads) {
    double m = (double)j->tile_rows, n = (double)j->tile_cols;
    double k = j->depth > 1 ? (double)(j->tile_blocks * j->terms) : (double)j->p->k;
    double reduce = j->depth > 1 ? (double)j->p->m * (double)j->p->n * (double)(j->depth + 1) : 0;
    return (m * n + PACK_COST * m) * k + REDUCE_COST * reduce / (double)threads;
}

/* Blocks of terms as equal as groups allow; shorter ones where each of `depth` needs its own. */
static void set_terms(job *j, int64_t depth) {
    bool across = j->p->a.transposed && !j->p->b.packed; /* kept forms have one block size */
    int64_t k = j->p->k,
            most = least(across ? BLOCK_TERMS_ACROSS : BLOCK_TERMS, k ? parts_of(k, depth) : 1);
    j->blocks = k ? parts_of(k, most) : 1;
    j->terms = k ? ceil_to(parts_of(k, j->blocks), VLP_GROUP_MAX) : VLP_GROUP_MAX;
    j->blocks = k ? parts_of(k, j->terms) : 1;
    int64_t panel = panel_bytes(j, j->set->a_width, j->terms);
    j->rows = j->set->rows * (BLOCK_BYTES > panel ? BLOCK_BYTES / panel : 1);
}

static void choose_grid(job *j, bool parallel, int64_t deepest) {
    int64_t threads = parallel ? vlp_threads_get() : 1;
    double work = (double)j->p->m * (double)(j->cols.end - j->cols.begin) * (double)j->p->k;
    if (work < (double)threads * MIN_WORK) threads = 1 + (int64_t)(work / MIN_WORK);
    double lowest = 0;
    int64_t best[3] = {1, 1, 1};
    for (int64_t depth = 1; depth <= least(threads, deepest); depth *= 2) {
        if (depth > 1 && j->p->k / depth < MIN_DEPTH) break;
        set_terms(j, depth);
        for (int64_t rows = 1; rows <= threads / depth; rows++) {
            set_grid(j, rows, threads / depth / rows, depth);
            double cost = cost_of(j, threads);
            if (lowest > 0 && cost >= lowest) continue;
            lowest = cost;
            best[0] = rows, best[1] = threads / depth / rows, best[2] = depth;
        }
    }
    set_terms(j, best[2]);
    set_grid(j, best[0], best[1], best[2]);
}

static void multiply_grid(job *j, bool parallel) {
    int64_t parts = j->grid_rows * j->grid_cols * j->depth;
    if (parallel && parts > 1)
        vlp_parallel_for(parts, 1, multiply_parts, j);
    else
        multiply_parts(0, parts, 0, j);
}

/* Sums cut over threads; false without memory for them */
static bool multiply_deep(job *j) {
    int64_t bytes = j->depth * j->p->m * j->p->n * (int64_t)sizeof(vlp_real);
    j->partial = vlp_product_scratch(VLP_SCRATCH_PARTIAL, bytes);
    if (!j->partial) return false;
    multiply_grid(j, true);
    vlp_parallel_for(j->p->m, 16, reduce_rows, j);
    return true;
}

/* Without a packed form that is kept: chunks of columns, packed one after the other */
static void multiply_chunks(job *j, bool parallel) {
    int64_t n = j->p->n, unit = j->set->cols, panel = b_bytes(j, unit) + 1;
    int64_t chunk = CHUNK_BYTES > panel ? CHUNK_BYTES / panel * unit : unit;
    chunk = ceil_to(parts_of(n, parts_of(n, chunk)), unit);
    for (int64_t col = 0; col < n; col += chunk) {
        j->cols = (span){col, least(col + chunk, n)};
        choose_grid(j, parallel, chunk < n ? 1 : INT64_MAX);
        j->b = vlp_product_scratch(VLP_SCRATCH_B, b_bytes(j, j->cols.end - col));
        if (j->b) pack_b(j, parallel);
        if (j->depth > 1 && multiply_deep(j)) continue;
        if (j->depth > 1) set_grid(j, 1, 1, 1);
        j->depth = 1;
        multiply_grid(j, parallel);
    }
}

void vlp_product_own(const vlp_product_set *set, const vlp_product *p, bool parallel) {
    job j = {.p = p, .set = set, .cols = {0, p->n}};
    set_terms(&j, 1);
    if (borrow_b(&j, parallel)) {
        choose_grid(&j, parallel, 1);
        multiply_grid(&j, parallel);
    } else {
        multiply_chunks(&j, parallel);
    }
}
