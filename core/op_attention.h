/* What the forward and the backward pass of attention share; private to core/op_attention*.c.
 *
 * Work is cut into tiles: at most 64 consecutive queries of one sample and head. A tile meets its
 * keys in blocks of at most 128 and keeps a running softmax over them (Dao et al., 2022), so the
 * scratch of one part of the parallel loop is a fixed block of scores and, packed, the keys and
 * values of one head. */
#ifndef VLP_CORE_OP_ATTENTION_H
#define VLP_CORE_OP_ATTENTION_H

#include "core/op_attention_kernels.h"
#include "core/tape.h"

enum { VLP_ATTENTION_Q, VLP_ATTENTION_K, VLP_ATTENTION_V, VLP_ATTENTION_BIAS };

typedef struct {
    int64_t batch, kv_batch, queries, keys, heads, width;
    int64_t offset[3]; /* first columns of q, k, v */
    vlp_real scale;
    const uint8_t *key_mask;
    bool mask_by_query_batch, causal;
    const int32_t *kv_index;
    double dropout;     /* 0 outside training */
    int64_t tile_count; /* tiles of one sample and head */
} vlp_attention_attr;

typedef struct {
    int64_t sample, kv_row, head;
    int64_t first, rows; /* queries */
    int64_t keys;        /* those behind it, masked or in the causal future, are left out */
    const uint8_t *mask; /* of the keys; NULL = all are allowed */
} vlp_attention_tile;

/* Sample b's row of keys, and how many of its keys come before the masked end. */
int64_t vlp_attention_kv_row(const vlp_attention_attr *attr, int64_t sample);
int64_t vlp_attention_used_keys(const vlp_attention_attr *attr, int64_t sample);

/* How many tiles hold that many queries, and tile `index` of the queries [first, first + rows). */
int64_t vlp_attention_tile_count(int64_t rows);
vlp_attention_tile vlp_attention_tile_at(const vlp_attention_attr *attr, int64_t sample,
                                         int64_t head, int64_t first, int64_t rows, int64_t index);

/* The tile's first element in x, whose rows are `cols` apart; `data` is a tensor's data or
 * gradient, `size` that of an element. */
void *vlp_attention_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile, int input,
                       void *data, int64_t cols, size_t size);
void *vlp_attention_output_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                              void *data, size_t size);
/* First element of the tile in the bias or its gradient; rows are `keys` apart. */
vlp_real *vlp_attention_bias_at(const vlp_node *node, const vlp_attention_tile *tile,
                                vlp_real *base);
/* Elements before the tile in a [B, H, Lq] array. */
int64_t vlp_attention_row_number(const vlp_attention_attr *attr, const vlp_attention_tile *tile);

/* The scratch of one part. Row lengths: `wide` is the padded head width in numbers, row_ld the same
 * in elements; tiles of scores have ld numbers a row. NULL = not needed. */
typedef struct {
    const vlp_attention_kernels *kernels;
    int64_t wide, row_ld, vectors;                 /* vectors of the head width */
    int64_t ld, tile_vectors;                      /* of the present tile */
    vlp_real *k_rows, *k_stack, *v_rows, *v_stack; /* all keys of one head */
    int64_t kv_row, head, packed;                  /* whose: kv_row -1 = nobody's */
    vlp_real *stage;                               /* a tile's queries, by rows */
    vlp_real *q_turned, *q_stack, *dy_turned, *dy_stack;
    vlp_real *s, *dp, *elements;       /* blocks of scores [keys, ld] */
    vlp_real *drop, *bias, *untwisted; /* likewise; the last [queries, keys] */
    vlp_real *out, *dk, *dv;           /* [queries, wide], [all keys, wide] */
    vlp_real *most, *total, *grow, *lse, *delta;
} vlp_attention_scratch;

/* Lays the scratch out from `base` on; returns its size in vlp_real. base NULL only counts. */
int64_t vlp_attention_scratch_at(const vlp_node *node, bool backward, vlp_real *base,
                                 vlp_attention_scratch *out);

/* Makes the scratch hold the first `keys` keys and values of the tile's head. */
void vlp_attention_pack_keys(const vlp_node *node, const vlp_attention_tile *tile, int64_t keys,
                             vlp_attention_scratch *w);
/* A tile's rows of x, turned for products with keys and, where asked for, stacked. */
void vlp_attention_pack_queries(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                                const void *x, vlp_dtype dtype, int64_t cols, vlp_real *turned,
                                vlp_real *stacked, vlp_attention_scratch *w);

/* s = S^T of keys [first, first + n), raw or, when there is a bias, scaled and with the bias;
 * returns the factor that is still missing. Forbidden pairs become scores of -infinity. */
vlp_real vlp_attention_scores(const vlp_node *node, const vlp_attention_tile *tile, int64_t first,
                              int64_t n, vlp_attention_scratch *w);
/* The factors of dropout for the block, NULL without. Forward and backward drop the same. */
const vlp_real *vlp_attention_dropout(const vlp_node *node, const vlp_attention_tile *tile,
                                      int64_t first, int64_t n, vlp_attention_scratch *w);

/* A block [n, ld] as the left operand of a product over its keys or over the tile's queries. */
typedef struct {
    const vlp_real *x;
    int64_t row, step, steps;
} vlp_attention_operand;
vlp_attention_operand vlp_attention_over_keys(const vlp_attention_scratch *w, const vlp_real *x,
                                              int64_t n);
vlp_attention_operand vlp_attention_over_queries(const vlp_attention_scratch *w, const vlp_real *x,
                                                 int64_t n, int64_t rows);

/* Samples in the order of their key rows: samples[start[r] .. start[r + 1]) attend to row r. Both
 * live in the first bytes of the workspace; NULL without kv_index. */
size_t vlp_attention_list_bytes(const vlp_attention_attr *attr);
void vlp_attention_list_samples(const vlp_node *node, int64_t **start, int64_t **samples);

void vlp_attention_backward(vlp_node *node);
/* Bytes of workspace that backward needs. */
size_t vlp_attention_backward_bytes(const vlp_node *node);

#endif
