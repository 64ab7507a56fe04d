/* What the forward and the backward pass of attention share; private to core/op_attention*.c.
 *
 * Work is cut into tiles: `rows` consecutive queries of one sample and head against the first
 * `cols` keys of their key row. A tile's scores live in the scratch of one part of the parallel
 * loop only, so memory does not grow with the number of samples or heads. */
#ifndef VLP_CORE_OP_ATTENTION_H
#define VLP_CORE_OP_ATTENTION_H

#include "core/tape.h"

#include <stdint.h>

enum { VLP_ATTENTION_Q, VLP_ATTENTION_K, VLP_ATTENTION_V, VLP_ATTENTION_BIAS };

typedef struct {
    int64_t batch, kv_batch, queries, keys, heads, width;
    int64_t offset[3]; /* first columns of q, k, v */
    vlp_real scale;
    const uint8_t *key_mask;
    bool mask_by_query_batch, causal;
    const int32_t *kv_index;
    double dropout;     /* 0 outside training */
    int64_t tile_rows;  /* most queries of a tile */
    int64_t tile_ld;    /* elements between the rows of a tile */
    int64_t tile_count; /* tiles of one sample and head */
} vlp_attention_attr;

typedef struct {
    int64_t sample, kv_row, head;
    int64_t first, rows, cols;
} vlp_attention_tile;

/* Tile number `index` of a sample and head. */
vlp_attention_tile vlp_attention_tile_at(const vlp_attention_attr *attr, int64_t sample,
                                         int64_t head, int64_t index);

/* First element of the tile's rows and head in q (its queries) or in k, v (all keys); `base` is
 * the data or the gradient of that input. */
vlp_real *vlp_attention_at(const vlp_node *node, const vlp_attention_tile *tile, int input,
                           vlp_real *base);
/* The same in the output or its gradient, whose rows are heads * width apart. */
vlp_real *vlp_attention_output_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                                  vlp_real *base);
/* First element of the tile in the bias or its gradient; rows are `keys` apart. */
vlp_real *vlp_attention_bias_at(const vlp_node *node, const vlp_attention_tile *tile,
                                vlp_real *base);

/* s [rows, cols] = scale q k^T + bias */
void vlp_attention_scores(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *s);
/* s = softmax(s) over the allowed keys, writing the kept lse; or s = exp(s - lse), reading it. */
void vlp_attention_softmax(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *s);
void vlp_attention_softmax_again(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *s);
/* y = dropout(x) of a tile; y == x is legal. Forward and backward drop the same elements. */
void vlp_attention_dropout(const vlp_node *node, const vlp_attention_tile *tile, const vlp_real *x,
                           vlp_real *y);

void vlp_attention_backward(vlp_node *node);
/* Bytes of scratch that backward needs. */
size_t vlp_attention_backward_bytes(const vlp_node *node);

#endif
