/* Multi-head attention, forward: one tile of queries at a time, S = scale Q K^T + bias,
 * P = softmax(S), Y = dropout(P) V. Only the log-sum-exp of each row of S is kept. */
#include "core/op_attention.h"

#include "core/gemm.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

/* A tile of scores should stay in the cache of one core, backward's two tiles included. Causal
 * tiles are low because keys that none of a tile's queries sees are left out. */
enum { TILE_ELEMENTS = 1 << 16, TILE_ROWS_LEAST = 64, TILE_ROWS_CAUSAL = 48, LD_ALIGN = 16 };

static int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* How many keys query i sees. */
static int64_t visible(const vlp_attention_attr *attr, int64_t i) {
    if (!attr->causal) return attr->keys;
    int64_t n = i + attr->keys - attr->queries + 1;
    return n < 0 ? 0 : at_most(n, attr->keys);
}

vlp_attention_tile vlp_attention_tile_at(const vlp_attention_attr *attr, int64_t sample,
                                         int64_t head, int64_t index) {
    vlp_attention_tile tile = {.sample = sample, .kv_row = sample, .head = head};
    if (attr->kv_index) tile.kv_row = attr->kv_index[sample];
    tile.first = index * attr->tile_rows;
    tile.rows = at_most(attr->tile_rows, attr->queries - tile.first);
    tile.cols = visible(attr, tile.first + tile.rows - 1);
    return tile;
}

vlp_real *vlp_attention_at(const vlp_node *node, const vlp_attention_tile *tile, int input,
                           vlp_real *base) {
    const vlp_attention_attr *attr = node->attr;
    int64_t row = input == VLP_ATTENTION_Q ? tile->sample * attr->queries + tile->first
                                           : tile->kv_row * attr->keys;
    return base + row * vlp_col_count(node->in[input]) + attr->offset[input] +
           tile->head * attr->width;
}

vlp_real *vlp_attention_output_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                                  vlp_real *base) {
    int64_t row = tile->sample * attr->queries + tile->first;
    return base + (row * attr->heads + tile->head) * attr->width;
}

vlp_real *vlp_attention_bias_at(const vlp_node *node, const vlp_attention_tile *tile,
                                vlp_real *base) {
    const vlp_attention_attr *attr = node->attr;
    const int64_t *shape = node->in[VLP_ATTENTION_BIAS]->shape;
    int64_t sample = shape[0] == 1 ? 0 : tile->sample, head = shape[1] == 1 ? 0 : tile->head;
    return base + ((sample * shape[1] + head) * attr->queries + tile->first) * attr->keys;
}

/* Elements before the tile in a [B, H, Lq] array. */
static int64_t row_number(const vlp_attention_attr *attr, const vlp_attention_tile *tile) {
    return (tile->sample * attr->heads + tile->head) * attr->queries + tile->first;
}

static const uint8_t *mask_of(const vlp_attention_attr *attr, const vlp_attention_tile *tile) {
    if (!attr->key_mask) return NULL;
    int64_t row = attr->mask_by_query_batch ? tile->sample : tile->kv_row;
    return attr->key_mask + row * attr->keys;
}

void vlp_attention_scores(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *s) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *q = node->in[VLP_ATTENTION_Q], *k = node->in[VLP_ATTENTION_K];
    const vlp_tensor *bias = node->in[VLP_ATTENTION_BIAS];
    vlp_gemm_serial(false, true, tile->rows, tile->cols, attr->width, attr->scale,
                    vlp_attention_at(node, tile, VLP_ATTENTION_Q, vlp_real_data(q)),
                    vlp_col_count(q),
                    vlp_attention_at(node, tile, VLP_ATTENTION_K, vlp_real_data(k)),
                    vlp_col_count(k), 0, s, attr->tile_ld);
    if (!bias) return;
    const vlp_real *b = vlp_attention_bias_at(node, tile, vlp_real_data(bias));
    for (int64_t i = 0; i < tile->rows; i++)
        vlp_kernels_get()->add(tile->cols, b + i * attr->keys, s + i * attr->tile_ld);
}

void vlp_attention_softmax(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *s) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_kernels *kernels = vlp_kernels_get();
    const uint8_t *mask = mask_of(attr, tile);
    vlp_real *lse = (vlp_real *)node->saved[0] + row_number(attr, tile);
    if (!attr->causal) {
        kernels->softmax(tile->rows, tile->cols, attr->tile_ld, s, mask, 1, lse);
        return;
    }
    for (int64_t i = 0; i < tile->rows; i++) {
        int64_t n = visible(attr, tile->first + i);
        kernels->softmax(1, n, attr->tile_ld, s + i * attr->tile_ld, mask, 1, lse + i);
        kernels->fill(tile->cols - n, 0, s + i * attr->tile_ld + n);
    }
}

void vlp_attention_softmax_again(const vlp_node *node, const vlp_attention_tile *tile,
                                 vlp_real *s) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_kernels *kernels = vlp_kernels_get();
    const uint8_t *mask = mask_of(attr, tile);
    const vlp_real *lse = (const vlp_real *)node->saved[0] + row_number(attr, tile);
    if (!attr->causal) kernels->exp_lse(tile->rows, tile->cols, attr->tile_ld, s, 1, lse, mask);
    for (int64_t i = 0; i < tile->rows; i++) {
        vlp_real *row = s + i * attr->tile_ld;
        int64_t n = lse[i] == -VLP_R(INFINITY) ? 0 : visible(attr, tile->first + i);
        if (attr->causal) kernels->exp_lse(1, n, attr->tile_ld, row, 1, lse + i, mask);
        kernels->fill(tile->cols - n, 0, row + n);
    }
}

void vlp_attention_dropout(const vlp_node *node, const vlp_attention_tile *tile, const vlp_real *x,
                           vlp_real *y) {
    const vlp_attention_attr *attr = node->attr;
    vlp_rng rng = vlp_rng_at(node->seed, VLP_RNG_DROPOUT, 0, 0);
    int64_t first = row_number(attr, tile) * attr->keys;
    for (int64_t i = 0; i < tile->rows; i++)
        vlp_kernels_get()->dropout(first + i * attr->keys, tile->cols, &rng, attr->dropout,
                                   x + i * attr->tile_ld, y + i * attr->tile_ld);
}

static void forward_tile(vlp_node *node, const vlp_attention_tile *tile, vlp_real *s) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *v = node->in[VLP_ATTENTION_V];
    vlp_attention_scores(node, tile, s);
    vlp_attention_softmax(node, tile, s);
    if (attr->dropout > 0) vlp_attention_dropout(node, tile, s, s);
    vlp_gemm_serial(false, false, tile->rows, attr->width, tile->cols, 1, s, attr->tile_ld,
                    vlp_attention_at(node, tile, VLP_ATTENTION_V, vlp_real_data(v)),
                    vlp_col_count(v), 0,
                    vlp_attention_output_at(attr, tile, vlp_real_data(node->out[0])),
                    attr->heads * attr->width);
}

static void forward_tiles(int64_t begin, int64_t end, int thread, void *ctx) {
    vlp_node *node = ctx;
    const vlp_attention_attr *attr = node->attr;
    vlp_real *s = (vlp_real *)node->work + thread * attr->tile_rows * attr->tile_ld;
    for (int64_t i = begin; i < end; i++) {
        int64_t unit = i / attr->tile_count;
        vlp_attention_tile tile = vlp_attention_tile_at(attr, unit / attr->heads,
                                                        unit % attr->heads, i % attr->tile_count);
        forward_tile(node, &tile, s);
    }
}

static int64_t forward_units(const vlp_attention_attr *attr) {
    return attr->batch * attr->heads * attr->tile_count;
}

static void forward(vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    for (int64_t b = 0; attr->kv_index && b < attr->batch; b++)
        VLP_ASSERT(attr->kv_index[b] >= 0 && attr->kv_index[b] < attr->kv_batch,
                   "attention: kv_index[%lld] is %d of %lld", (long long)b, attr->kv_index[b],
                   (long long)attr->kv_batch);
    vlp_parallel_for(forward_units(attr), 1, forward_tiles, node);
}

static size_t workspace(const vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    size_t tile = (size_t)(attr->tile_rows * attr->tile_ld) * sizeof(vlp_real);
    size_t bytes = (size_t)vlp_parallel_parts(forward_units(attr), 1) * tile;
    size_t backward = node->recorded ? vlp_attention_backward_bytes(node) : 0;
    return bytes > backward ? bytes : backward;
}

const vlp_op vlp_op_attention = {.name = "attention",
                                 .forward = forward,
                                 .backward = vlp_attention_backward,
                                 .workspace = workspace,
                                 .random = true};

static void set_tiles(vlp_attention_attr *attr) {
    attr->tile_ld = attr->keys / LD_ALIGN * LD_ALIGN + LD_ALIGN;
    int64_t rows = TILE_ELEMENTS / attr->tile_ld;
    if (rows < TILE_ROWS_LEAST) rows = TILE_ROWS_LEAST;
    if (attr->causal) rows = at_most(rows, TILE_ROWS_CAUSAL);
    attr->tile_rows = at_most(rows, attr->queries);
    attr->tile_count =
        attr->tile_rows ? (attr->queries + attr->tile_rows - 1) / attr->tile_rows : 0;
}

/* The three dimensions of an input; without the first there is one sample. */
static void check_columns(const vlp_attention_attr *attr, const vlp_tensor *x, int input,
                          int64_t batch, int64_t length) {
    VLP_ASSERT(x && (x->ndim == 2 || x->ndim == 3), "attention: input %d has %d dimensions", input,
               x ? x->ndim : -1);
    VLP_ASSERT((x->ndim == 3 ? x->shape[0] : 1) == batch && x->shape[x->ndim - 2] == length,
               "attention: input %d is not [%lld, %lld, ...]", input, (long long)batch,
               (long long)length);
    int64_t offset = attr->offset[input];
    VLP_ASSERT(offset >= 0 && offset + attr->heads * attr->width <= vlp_col_count(x),
               "attention: input %d has %lld columns, %lld x %lld wanted from %lld on", input,
               (long long)vlp_col_count(x), (long long)attr->heads, (long long)attr->width,
               (long long)offset);
}

static void check(const vlp_attention_attr *attr, const vlp_attention_args *args) {
    VLP_ASSERT(attr->heads > 0 && attr->width > 0, "attention: %lld heads of width %lld",
               (long long)attr->heads, (long long)attr->width);
    check_columns(attr, args->q, VLP_ATTENTION_Q, attr->batch, attr->queries);
    check_columns(attr, args->k, VLP_ATTENTION_K, attr->kv_batch, attr->keys);
    check_columns(attr, args->v, VLP_ATTENTION_V, attr->kv_batch, attr->keys);
    VLP_ASSERT(args->kv_index || attr->kv_batch == attr->batch,
               "attention: %lld key rows for %lld samples", (long long)attr->kv_batch,
               (long long)attr->batch);
    VLP_ASSERT(args->dropout >= 0 && args->dropout < 1, "attention: dropout %g", args->dropout);
    const vlp_tensor *bias = args->bias;
    if (!bias) return;
    VLP_ASSERT(bias->ndim == 4 && (bias->shape[0] == 1 || bias->shape[0] == attr->batch) &&
                   (bias->shape[1] == 1 || bias->shape[1] == attr->heads) &&
                   bias->shape[2] == attr->queries && bias->shape[3] == attr->keys,
               "attention: the bias is not [1 or %lld, 1 or %lld, %lld, %lld]",
               (long long)attr->batch, (long long)attr->heads, (long long)attr->queries,
               (long long)attr->keys);
}

static vlp_attention_attr make_attr(const vlp_tape *tape, const vlp_attention_args *args) {
    const vlp_tensor *q = args->q, *k = args->k;
    VLP_ASSERT(q && k && q->ndim >= 2 && k->ndim >= 2, "attention: q or k is missing");
    vlp_attention_attr attr = {
        .batch = q->ndim == 3 ? q->shape[0] : 1,
        .kv_batch = k->ndim == 3 ? k->shape[0] : 1,
        .queries = q->shape[q->ndim - 2],
        .keys = k->shape[k->ndim - 2],
        .heads = args->heads,
        .width = args->head_width,
        .offset = {args->q_offset, args->k_offset, args->v_offset},
        .key_mask = args->key_mask,
        .mask_by_query_batch = args->mask_by_query_batch,
        .causal = args->causal,
        .kv_index = args->kv_index,
        .dropout = vlp_tape_training(tape) ? args->dropout : 0,
    };
    check(&attr, args);
    double scale = args->scale;
    attr.scale = VLP_R(scale > 0 || scale < 0 ? scale : 1 / sqrt((double)attr.width));
    set_tiles(&attr);
    return attr;
}

vlp_tensor *vlp_attention(vlp_tape *tape, const vlp_attention_args *args) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    vlp_attention_attr attr = make_attr(tape, args);
    vlp_node *node = vlp_tape_node(tape, &vlp_op_attention,
                                   (vlp_tensor *[]){args->q, args->k, args->v, args->bias}, 4, 3,
                                   &attr, sizeof attr);
    if (!node) return NULL;
    int64_t shape[3] = {attr.batch, attr.queries, attr.heads * attr.width};
    int skip = args->q->ndim == 3 ? 0 : 1;
    vlp_node_output(tape, node, VLP_REAL, 3 - skip, shape + skip);
    vlp_node_save(tape, node, 0,
                  (size_t)(attr.batch * attr.heads * attr.queries) * sizeof(vlp_real));
    node->flops = 4.0 * (double)(attr.batch * attr.heads * attr.width) * (double)attr.queries *
                  (double)attr.keys;
    return vlp_tape_run(tape, node);
}
