/* Tiles of attention: where they are, how they are packed, their scores. */
#include "core/op_attention.h"

#include "core/kernels.h"

#include <math.h>
#include <string.h>

static int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t padded(int64_t n) {
    return (n + VLP_ATTENTION_PAD - 1) / VLP_ATTENTION_PAD * VLP_ATTENTION_PAD;
}

int64_t vlp_attention_kv_row(const vlp_attention_attr *attr, int64_t sample) {
    return attr->kv_index ? attr->kv_index[sample] : sample;
}

static const uint8_t *mask_of(const vlp_attention_attr *attr, int64_t sample) {
    if (!attr->key_mask) return NULL;
    int64_t row = attr->mask_by_query_batch ? sample : vlp_attention_kv_row(attr, sample);
    return attr->key_mask + row * attr->keys;
}

int64_t vlp_attention_used_keys(const vlp_attention_attr *attr, int64_t sample) {
    const uint8_t *mask = mask_of(attr, sample);
    int64_t keys = attr->keys;
    while (mask && keys > 0 && !mask[keys - 1]) keys--;
    return keys;
}

/* Tiles are cut at whole vectors, as evenly as these allow. */
int64_t vlp_attention_tile_count(int64_t rows) {
    return (rows + VLP_ATTENTION_QUERIES - 1) / VLP_ATTENTION_QUERIES;
}

vlp_attention_tile vlp_attention_tile_at(const vlp_attention_attr *attr, int64_t sample,
                                         int64_t head, int64_t first, int64_t rows, int64_t index) {
    int64_t count = vlp_attention_tile_count(rows), units = padded(rows) / VLP_ATTENTION_PAD;
    int64_t begin = index * units / count * VLP_ATTENTION_PAD;
    int64_t end = at_most((index + 1) * units / count * VLP_ATTENTION_PAD, rows);
    vlp_attention_tile tile = {.sample = sample,
                               .kv_row = vlp_attention_kv_row(attr, sample),
                               .head = head,
                               .first = first + begin,
                               .rows = end - begin,
                               .keys = vlp_attention_used_keys(attr, sample)};
    const uint8_t *mask = mask_of(attr, sample);
    if (mask && memchr(mask, 0, (size_t)tile.keys)) tile.mask = mask;
    int64_t visible = first + end + attr->keys - attr->queries;
    if (attr->causal) tile.keys = at_most(tile.keys, visible < 0 ? 0 : visible);
    return tile;
}

void *vlp_attention_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile, int input,
                       void *data, int64_t cols, size_t size) {
    int64_t row = input == VLP_ATTENTION_Q ? tile->sample * attr->queries + tile->first
                                           : tile->kv_row * attr->keys;
    int64_t index = row * cols + attr->offset[input] + tile->head * attr->width;
    return (uint8_t *)data + index * (int64_t)size;
}

void *vlp_attention_output_at(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                              void *data, size_t size) {
    int64_t row = tile->sample * attr->queries + tile->first;
    return (uint8_t *)data + (row * attr->heads + tile->head) * attr->width * (int64_t)size;
}

vlp_real *vlp_attention_bias_at(const vlp_node *node, const vlp_attention_tile *tile,
                                vlp_real *base) {
    const vlp_attention_attr *attr = node->attr;
    const int64_t *shape = node->in[VLP_ATTENTION_BIAS]->shape;
    int64_t sample = shape[0] == 1 ? 0 : tile->sample, head = shape[1] == 1 ? 0 : tile->head;
    return base + ((sample * shape[1] + head) * attr->queries + tile->first) * attr->keys;
}

int64_t vlp_attention_row_number(const vlp_attention_attr *attr, const vlp_attention_tile *tile) {
    return (tile->sample * attr->heads + tile->head) * attr->queries + tile->first;
}

/* Scratch -------------------------------------------------------------------------------------- */

typedef struct {
    vlp_real *base;
    int64_t used;
} bump;

static vlp_real *take(bump *b, int64_t n) {
    vlp_real *at = b->base ? b->base + b->used : NULL;
    b->used += padded(n);
    return at;
}

static void lay_out_keys(const vlp_attention_attr *attr, bool backward, bump *b,
                         vlp_attention_scratch *w) {
    int64_t keys = padded(attr->keys), rows = keys * w->row_ld;
    int64_t stack = keys / w->kernels->pair * w->wide;
    bool same = w->kernels->pair == 1;
    w->k_rows = take(b, rows);
    if (same || backward) w->v_rows = take(b, rows);
    w->k_stack = same ? w->k_rows : backward ? take(b, stack) : NULL;
    w->v_stack = same ? w->v_rows : backward ? NULL : take(b, stack);
    if (!backward) return;
    w->dk = take(b, keys * w->wide);
    w->dv = take(b, keys * w->wide);
}

static void lay_out_blocks(const vlp_node *node, bool backward, int64_t queries, bump *b,
                           vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    bool bias = node->in[VLP_ATTENTION_BIAS] != NULL, drop = attr->dropout > 0;
    int64_t block = padded(at_most(attr->keys, VLP_ATTENTION_KEYS)) * queries;
    w->s = take(b, block);
    if (backward) w->dp = take(b, block);
    if (w->kernels->pair > 1) w->elements = take(b, block / w->kernels->pair);
    if (drop) w->drop = take(b, block);
    if (bias) w->bias = take(b, block);
    if (bias || drop) w->untwisted = take(b, block);
}

int64_t vlp_attention_scratch_at(const vlp_node *node, bool backward, vlp_real *base,
                                 vlp_attention_scratch *out) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_attention_kernels *k = vlp_attention_kernels_for(node->in[VLP_ATTENTION_Q]->dtype);
    int64_t wide = padded(attr->width);
    *out = (vlp_attention_scratch){.kernels = k,
                                   .wide = wide,
                                   .row_ld = wide / k->pair,
                                   .vectors = (attr->width + k->lanes - 1) / k->lanes,
                                   .kv_row = -1};
    vlp_attention_scratch *w = out;
    bump b = {base, 0};
    int64_t queries = padded(at_most(attr->queries, VLP_ATTENTION_QUERIES));
    lay_out_keys(attr, backward, &b, w);
    lay_out_blocks(node, backward, queries, &b, w);
    int64_t rows = queries * w->row_ld;
    w->stage =
        take(&b, rows > VLP_ATTENTION_PAD * w->row_ld ? rows : VLP_ATTENTION_PAD * w->row_ld);
    w->q_turned = take(&b, rows);
    w->out = take(&b, queries * wide);
    vlp_real **vectors[] = {&w->most, &w->total, &w->grow, &w->lse, &w->delta};
    for (size_t i = 0; i < VLP_COUNT(vectors); i++) *vectors[i] = take(&b, queries);
    if (!backward) return b.used;
    w->q_stack = take(&b, queries / k->pair * wide);
    w->dy_turned = take(&b, rows);
    w->dy_stack = take(&b, queries / k->pair * wide);
    return b.used;
}

/* Packing -------------------------------------------------------------------------------------- */

/* Rows [first, n) of x: by rows into rows, if given, and stacked; a few at a time where the stage
 * is all there is for the rows. */
static void pack(const vlp_attention_scratch *w, int64_t n, int64_t width, const void *x,
                 vlp_dtype dtype, int64_t ld, vlp_real *rows, vlp_real *stacked) {
    const vlp_attention_kernels *k = w->kernels;
    if (k->pair == 1) {
        k->load(n, width, x, dtype, ld, rows ? rows : stacked, w->row_ld, n);
        return;
    }
    int64_t step = rows ? n : VLP_ATTENTION_PAD;
    for (int64_t i = 0; i < n; i += step) {
        int64_t count = at_most(step, n - i);
        vlp_real *to = rows ? rows : w->stage;
        const uint8_t *from = (const uint8_t *)x + i * ld * (int64_t)vlp_dtype_size(dtype);
        k->load(count, width, from, dtype, ld, to, w->row_ld, count);
        if (stacked) k->stack(count, w->wide, to, w->row_ld, stacked + i / k->pair * w->wide);
    }
}

void vlp_attention_pack_keys(const vlp_node *node, const vlp_attention_tile *tile, int64_t keys,
                             vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    if (w->kv_row == tile->kv_row && w->head == tile->head && w->packed >= keys) return;
    for (int input = VLP_ATTENTION_K; input <= VLP_ATTENTION_V; input++) {
        const vlp_tensor *x = node->in[input];
        int64_t cols = vlp_col_count(x);
        const void *from =
            vlp_attention_at(attr, tile, input, x->data, cols, vlp_dtype_size(x->dtype));
        bool k = input == VLP_ATTENTION_K;
        pack(w, keys, attr->width, from, x->dtype, cols, k ? w->k_rows : w->v_rows,
             k ? w->k_stack : w->v_stack);
    }
    w->kv_row = tile->kv_row;
    w->head = tile->head;
    w->packed = keys;
}

void vlp_attention_pack_queries(const vlp_attention_attr *attr, const vlp_attention_tile *tile,
                                const void *x, vlp_dtype dtype, int64_t cols, vlp_real *turned,
                                vlp_real *stacked, vlp_attention_scratch *w) {
    const vlp_attention_kernels *k = w->kernels;
    vlp_real *rows = stacked && k->pair == 1 ? stacked : w->stage;
    w->ld = padded(tile->rows);
    w->tile_vectors = (tile->rows + k->lanes - 1) / k->lanes;
    k->load(tile->rows, attr->width, x, dtype, cols, rows, w->row_ld, w->ld);
    k->transpose(tile->rows, (attr->width + k->pair - 1) / k->pair, rows, w->row_ld, turned, w->ld);
    if (stacked && k->pair > 1) k->stack(tile->rows, w->wide, rows, w->row_ld, stacked);
}

/* Scores --------------------------------------------------------------------------------------- */

static void fill(vlp_real *x, int64_t n, vlp_real value) {
    for (int64_t i = 0; i < n; i++) x[i] = value;
}

/* Keys that the mask forbids, and queries that come before a key. */
static void forbid(const vlp_attention_attr *attr, const vlp_attention_tile *tile, int64_t first,
                   int64_t n, vlp_real value, vlp_attention_scratch *w) {
    for (int64_t j = 0; tile->mask && j < n; j++)
        if (!tile->mask[first + j]) fill(w->s + j * w->ld, w->ld, value);
    int64_t shift = attr->keys - attr->queries + tile->first;
    for (int64_t j = 0; attr->causal && j < n; j++)
        fill(w->s + j * w->ld, at_most(first + j - shift, w->ld), value);
}

/* s = scale s + bias^T */
static void add_bias(const vlp_node *node, const vlp_attention_tile *tile, int64_t first, int64_t n,
                     vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_kernels *kernels = vlp_kernels_get();
    vlp_real *bias = vlp_real_data(node->in[VLP_ATTENTION_BIAS]);
    w->kernels->load_real(tile->rows, n, vlp_attention_bias_at(node, tile, bias) + first, VLP_REAL,
                          attr->keys, w->untwisted, padded(n), w->ld);
    w->kernels->transpose(tile->rows, n, w->untwisted, padded(n), w->bias, w->ld);
    kernels->scale(n * w->ld, attr->scale, w->s);
    for (int64_t j = 0; j < n; j++) kernels->add(tile->rows, w->bias + j * w->ld, w->s + j * w->ld);
}

vlp_real vlp_attention_scores(const vlp_node *node, const vlp_attention_tile *tile, int64_t first,
                              int64_t n, vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    w->kernels->product(n, w->tile_vectors, (attr->width + w->kernels->pair - 1) / w->kernels->pair,
                        w->k_rows + first * w->row_ld, w->row_ld, 1, w->q_turned, w->ld, w->s,
                        w->ld, false);
    vlp_real factor = attr->scale;
    if (node->in[VLP_ATTENTION_BIAS]) {
        add_bias(node, tile, first, n, w);
        factor = 1;
    }
    forbid(attr, tile, first, n, factor < 0 ? VLP_R(INFINITY) : -VLP_R(INFINITY), w);
    return factor;
}

const vlp_real *vlp_attention_dropout(const vlp_node *node, const vlp_attention_tile *tile,
                                      int64_t first, int64_t n, vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    if (attr->dropout <= 0) return NULL;
    const vlp_kernels *kernels = vlp_kernels_get();
    vlp_rng rng = vlp_rng_at(node->seed, VLP_RNG_DROPOUT, 0, 0);
    int64_t ld = padded(n), at = vlp_attention_row_number(attr, tile) * attr->keys + first;
    kernels->fill(ld * w->ld, 1, w->untwisted);
    for (int64_t i = 0; i < tile->rows; i++, at += attr->keys)
        kernels->dropout(at, n, &rng, attr->dropout, w->untwisted + i * ld, w->untwisted + i * ld);
    w->kernels->transpose(tile->rows, n, w->untwisted, ld, w->drop, w->ld);
    return w->drop;
}

vlp_attention_operand vlp_attention_over_keys(const vlp_attention_scratch *w, const vlp_real *x,
                                              int64_t n) {
    if (w->kernels->pair == 1) return (vlp_attention_operand){x, 1, w->ld, n};
    w->kernels->pair_keys(n, w->ld, x, w->elements);
    return (vlp_attention_operand){w->elements, 1, w->ld, (n + 1) / 2};
}

vlp_attention_operand vlp_attention_over_queries(const vlp_attention_scratch *w, const vlp_real *x,
                                                 int64_t n, int64_t rows) {
    if (w->kernels->pair == 1) return (vlp_attention_operand){x, w->ld, 1, rows};
    w->kernels->pair_queries(n, w->ld, x, w->elements);
    return (vlp_attention_operand){w->elements, w->ld / 2, 1, (rows + 1) / 2};
}

/* Samples by key row --------------------------------------------------------------------------- */

size_t vlp_attention_list_bytes(const vlp_attention_attr *attr) {
    if (!attr->kv_index) return 0;
    size_t bytes = (size_t)(attr->kv_batch + 2 + attr->batch) * sizeof(int64_t);
    return (bytes + 63) / 64 * 64;
}

/* A counting sort. */
void vlp_attention_list_samples(const vlp_node *node, int64_t **start, int64_t **samples) {
    const vlp_attention_attr *attr = node->attr;
    *start = *samples = NULL;
    if (!attr->kv_index) return;
    int64_t *first = node->work, *list = first + attr->kv_batch + 2;
    memset(first, 0, (size_t)(attr->kv_batch + 2) * sizeof *first);
    /* Counts two places ahead: after the sums first[r + 1] is the next place of row r, and the
     * placing itself moves it to the end of the row. */
    for (int64_t b = 0; b < attr->batch; b++) first[attr->kv_index[b] + 2]++;
    for (int64_t r = 0; r < attr->kv_batch; r++) first[r + 2] += first[r + 1];
    for (int64_t b = 0; b < attr->batch; b++) list[first[attr->kv_index[b] + 1]++] = b;
    *start = first;
    *samples = list;
}
