/* Our own kernels of the products (core/product.h), one set for each way of computing: operands are
 * packed into panels, a tile of C is summed in registers, and its epilogue follows at once.
 *
 * A panel holds `width` lanes (rows of op(A) or columns of op(B)) side by side, term after term of
 * the sum: [groups][width][group]. A group is one term, or a pair of bfloat16 terms that one
 * instruction multiplies and adds. Lanes and terms that are missing at the edges are zero. */
#ifndef VLP_CORE_PRODUCT_SETS_H
#define VLP_CORE_PRODUCT_SETS_H

#include "core/product.h"

enum { VLP_TILE_ALIGN = 64, VLP_TILE_ELEMENTS = 16 * 64, VLP_GROUP_MAX = 2 };

/* Lanes [lane, lane + lanes) and terms [term, term + terms) of an operand, for panels of `each`
 * lanes: one after the other, since a line of memory may hold lanes of several. */
typedef struct {
    const vlp_operand *x;
    bool terms_contiguous; /* a lane's terms are neighbours in memory, not a term's lanes */
    int64_t lane, lanes, term, terms;
    int each, width; /* lanes taken and lanes wide */
} vlp_panel_source;

typedef struct {
    int64_t row, col, rows, cols;
} vlp_patch;

typedef struct {
    const char *name;
    int rows, cols; /* of a tile of C; panels of A are a_width >= rows lanes wide, of B cols */
    int a_width, group;
    size_t element; /* bytes of one packed term of one lane */

    /* panels [ceil(lanes / each)][ceil(terms / group)][width][group], 64-byte aligned */
    void (*pack)(const vlp_panel_source *from, void *panels);
    /* sums [rows, set->cols] = a b, or += where `add`; columns beyond cols hold anything. 64-byte
     * aligned: sums and both panels. */
    void (*tile)(int rows, int cols, int64_t groups, const void *a, const void *b, bool add,
                 vlp_real *sums);
    /* The epilogue of p for a patch of C; overwrites its sums, which are a tile (ld = cols) or one
     * row anywhere (ld = 0). */
    void (*finish)(const vlp_product *p, const vlp_patch *at, int64_t ld, vlp_real *sums);
    double (*burn)(int64_t rounds); /* multiply-adds between registers; returns FLOPs */
} vlp_product_set;

/* The sets of a build; NULL where its target lacks them. bf16: packing rounds to bfloat16. */
const vlp_product_set *vlp_product_set_plain(bool bf16);
const vlp_product_set *vlp_product_set_avx2(bool bf16);
const vlp_product_set *vlp_product_set_avx512(bool bf16);
const vlp_product_set *vlp_product_set_avx512_bf16(void); /* products of bfloat16 pairs */

/* The best set up to isa that this CPU has; dots: with products of bfloat16 pairs. Never NULL. */
const vlp_product_set *vlp_product_set_of(vlp_isa isa, bool bf16, bool dots);

/* One product by one set. */
void vlp_product_own(const vlp_product_set *set, const vlp_product *p, bool parallel);

#endif
