/* Multi-head attention, forward: a tile of queries meets its keys block by block,
 * S = scale Q K^T + bias, with a running maximum and sum of exp(S) for each query:
 * Y = sum over blocks of dropout(P) V. Only the log-sum-exp of each row of S is kept. */
#include "core/op_attention.h"

#include "core/kernels.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

typedef struct {
    vlp_node *node;
    int64_t *start, *samples; /* by key row; NULL without kv_index */
    vlp_real *scratch;
    int64_t part; /* scratch of one part */
} forward_pass;

/* One block of keys joins the tile's output. */
static void forward_block(const vlp_node *node, const vlp_attention_tile *tile, int64_t first,
                          vlp_attention_scratch *w) {
    const vlp_attention_kernels *k = w->kernels;
    int64_t n = tile->keys - first < VLP_ATTENTION_KEYS ? tile->keys - first : VLP_ATTENTION_KEYS;
    vlp_real factor = vlp_attention_scores(node, tile, first, n, w);
    k->softmax(n, w->tile_vectors, w->ld, w->s, factor, w->most, w->total, w->grow);
    if (first > 0) k->scale_rows(tile->rows, w->vectors, w->out, w->wide, w->grow);
    const vlp_real *drop = vlp_attention_dropout(node, tile, first, n, w);
    if (drop) vlp_kernels_get()->mul(n * w->ld, drop, w->s, w->s);
    vlp_attention_operand p = vlp_attention_over_keys(w, w->s, n);
    k->product(tile->rows, w->vectors, p.steps, p.x, p.row, p.step,
               w->v_stack + first / k->pair * w->wide, w->wide, w->out, w->wide, first > 0);
}

static void forward_tile(vlp_node *node, const vlp_attention_tile *tile, vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *q = node->in[VLP_ATTENTION_Q], *y = node->out[0];
    size_t size = vlp_dtype_size(q->dtype);
    int64_t cols = vlp_col_count(q);
    vlp_attention_pack_queries(attr, tile,
                               vlp_attention_at(attr, tile, VLP_ATTENTION_Q, q->data, cols, size),
                               q->dtype, cols, w->q_turned, NULL, w);
    vlp_kernels_get()->fill(w->ld, -VLP_R(INFINITY), w->most);
    vlp_kernels_get()->fill(w->ld, 0, w->total);
    if (tile->keys == 0) vlp_kernels_get()->fill(tile->rows * w->wide, 0, w->out);
    for (int64_t first = 0; first < tile->keys; first += VLP_ATTENTION_KEYS)
        forward_block(node, tile, first, w);
    w->kernels->finish(w->tile_vectors, w->most, w->total, w->lse, w->grow);
    memcpy((vlp_real *)node->saved[0] + vlp_attention_row_number(attr, tile), w->lse,
           (size_t)tile->rows * sizeof(vlp_real));
    w->kernels->store(tile->rows, attr->width, w->out, w->wide, w->grow,
                      vlp_attention_output_at(attr, tile, y->data, size), y->dtype,
                      attr->heads * attr->width);
}

/* With shared keys, samples that share them follow each other, and heads vary slowest: keys are
 * packed once for a run of samples. */
static void forward_tiles(int64_t begin, int64_t end, int thread, void *ctx) {
    const forward_pass *pass = ctx;
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_attention_scratch w;
    vlp_attention_scratch_at(pass->node, false, pass->scratch + thread * pass->part, &w);
    for (int64_t i = begin; i < end; i++) {
        int64_t unit = i / attr->tile_count;
        int64_t sample = unit / attr->heads, head = unit % attr->heads;
        if (pass->samples) {
            sample = pass->samples[unit % attr->batch];
            head = unit / attr->batch;
        }
        vlp_attention_tile tile =
            vlp_attention_tile_at(attr, sample, head, 0, attr->queries, i % attr->tile_count);
        int64_t keys = vlp_attention_used_keys(attr, sample);
        vlp_attention_pack_keys(pass->node, &tile, keys, &w);
        forward_tile(pass->node, &tile, &w);
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
    if (forward_units(attr) == 0) return;
    forward_pass pass = {.node = node};
    vlp_attention_scratch w;
    pass.part = vlp_attention_scratch_at(node, false, NULL, &w);
    pass.scratch = (vlp_real *)((uint8_t *)node->work + vlp_attention_list_bytes(attr));
    vlp_attention_list_samples(node, &pass.start, &pass.samples);
    vlp_parallel_for(forward_units(attr), 1, forward_tiles, &pass);
}

static size_t workspace(const vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    vlp_attention_scratch w;
    int64_t part = vlp_attention_scratch_at(node, false, NULL, &w);
    size_t bytes = (size_t)(vlp_parallel_parts(forward_units(attr), 1) * part) * sizeof(vlp_real);
    bytes += vlp_attention_list_bytes(attr);
    size_t backward = node->recorded ? vlp_attention_backward_bytes(node) : 0;
    return bytes > backward ? bytes : backward;
}

const vlp_op vlp_op_attention = {.name = "attention",
                                 .forward = forward,
                                 .backward = vlp_attention_backward,
                                 .workspace = workspace,
                                 .random = true,
                                 .takes_bf16 = 1u << VLP_ATTENTION_Q | 1u << VLP_ATTENTION_K |
                                               1u << VLP_ATTENTION_V};

/* The three dimensions of an input; without the first there is one sample. */
static void check_columns(const vlp_attention_attr *attr, const vlp_tensor *x, int input,
                          int64_t batch, int64_t length) {
    VLP_ASSERT(x && (x->ndim == 2 || x->ndim == 3), "attention: input %d has %d dimensions", input,
               x ? x->ndim : -1);
    VLP_ASSERT(x->dtype == VLP_REAL || x->dtype == VLP_BF16,
               "attention: input %d has no real numbers", input);
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
    VLP_ASSERT(args->q->dtype == args->k->dtype && args->k->dtype == args->v->dtype,
               "attention: q, k and v are not of one type");
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
    attr.tile_count = vlp_attention_tile_count(attr.queries);
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
    vlp_node_output(tape, node, args->q->dtype, 3 - skip, shape + skip);
    vlp_node_save(tape, node, 0,
                  (size_t)(attr.batch * attr.heads * attr.queries) * sizeof(vlp_real));
    node->flops = 4.0 * (double)(attr.batch * attr.heads * attr.width) * (double)attr.queries *
                  (double)attr.keys;
    return vlp_tape_run(tape, node);
}
