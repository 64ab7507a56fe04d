/* Attention, backward. With P computed again from the kept log-sum-exp:
 *   dV += dropout(P)^T dY      dP = dropout(dY V^T)      dS = P o (dP - delta)
 *   dQ += scale dS K           dK += scale dS^T Q        dbias += dS
 * where delta, the row sums of P o dP, are those of dY o Y: so many keys need no second look.
 * Queries before the first and after the last with a gradient (padding; all but one under a pooled
 * token) are left out. A unit of work is one row of keys and one head: it alone adds to those
 * columns of dK and dV, and to dQ of the samples that attend to the row, so the order of additions
 * never depends on threads. Units that share a part of the bias go to the same thread where that
 * leaves enough threads busy; otherwise a second loop, over the tiles of the bias, computes dS once
 * more. */
#include "core/op_attention.h"

#include "core/kernels.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

typedef struct {
    vlp_node *node;
    vlp_gradient grad[3]; /* data NULL = not wanted */
    bool fresh[3];        /* the gradient holds nothing yet: it is written, not added to */
    vlp_real *bias_grad;
    bool bias_inside;         /* units add to the bias themselves, without a second loop */
    bool heads_slowest;       /* order of the units */
    int64_t grain;            /* units that stay together */
    int64_t *start, *samples; /* samples[start[r] .. start[r + 1]) attend to key row r */
    vlp_real *scratch;
    int64_t part; /* scratch of one part */
} backward_pass;

static void *part_scratch(const backward_pass *pass, int part, vlp_attention_scratch *w) {
    vlp_attention_scratch_at(pass->node, true, pass->scratch + part * pass->part, w);
    return w;
}

/* The tile's queries and gradients of outputs; a query without keys has P = 0 by lse = inf. */
static void pack_tile(const vlp_node *node, const vlp_attention_tile *tile,
                      vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *q = node->in[VLP_ATTENTION_Q], *y = node->out[0];
    int64_t cols = vlp_col_count(q), y_cols = attr->heads * attr->width;
    size_t size = vlp_dtype_size(q->dtype);
    vlp_attention_pack_queries(attr, tile,
                               vlp_attention_at(attr, tile, VLP_ATTENTION_Q, q->data, cols, size),
                               q->dtype, cols, w->q_turned, w->q_stack, w);
    vlp_gradient dy = vlp_grad_read(y);
    dy.data = vlp_attention_output_at(attr, tile, dy.data, vlp_dtype_size(dy.dtype));
    vlp_attention_pack_queries(attr, tile, dy.data, dy.dtype, y_cols, w->dy_turned, w->dy_stack, w);
    memset(w->lse, 0, (size_t)w->ld * sizeof *w->lse);
    if (tile->keys > VLP_ATTENTION_KEYS) {
        memset(w->delta, 0, (size_t)w->ld * sizeof *w->delta);
        w->kernels->row_dots(tile->rows, attr->width, dy.data, dy.dtype,
                             vlp_attention_output_at(attr, tile, y->data, size), y->dtype, y_cols,
                             w->delta);
    }
    const vlp_real *lse = (const vlp_real *)node->saved[0] + vlp_attention_row_number(attr, tile);
    for (int64_t i = 0; i < tile->rows; i++)
        w->lse[i] = lse[i] == -VLP_R(INFINITY) ? VLP_R(INFINITY) : lse[i];
}

/* For a block of keys: w->s = dropout(P)^T, w->dp = dS^T */
static void score_gradient(const vlp_node *node, const vlp_attention_tile *tile, int64_t first,
                           int64_t n, vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_attention_kernels *k = w->kernels;
    vlp_real factor = vlp_attention_scores(node, tile, first, n, w);
    k->product(n, w->tile_vectors, (attr->width + k->pair - 1) / k->pair,
               w->v_rows + first * w->row_ld, w->row_ld, 1, w->dy_turned, w->ld, w->dp, w->ld,
               false);
    const vlp_real *drop = vlp_attention_dropout(node, tile, first, n, w);
    k->gradient(n, w->tile_vectors, w->ld, w->s, w->dp, factor, w->lse,
                tile->keys > VLP_ATTENTION_KEYS ? w->delta : NULL, drop);
}

static void add_bias_gradient(const backward_pass *pass, const vlp_attention_tile *tile,
                              int64_t first, int64_t n, vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_real *to = vlp_attention_bias_at(pass->node, tile, pass->bias_grad) + first;
    int64_t ld = (n + VLP_ATTENTION_PAD - 1) / VLP_ATTENTION_PAD * VLP_ATTENTION_PAD;
    w->kernels->transpose(n, tile->rows, w->dp, w->ld, w->untwisted, ld);
    w->kernels->add_to(tile->rows, n, w->untwisted, ld, 1, to, VLP_REAL, attr->keys, true);
}

/* dK[first + ..] += X^T B or the like of dV: X a block of scores, B the tile's stacked rows */
static void add_to_keys(const vlp_attention_scratch *w, const vlp_attention_tile *tile,
                        int64_t first, int64_t n, const vlp_real *x, const vlp_real *stacked,
                        vlp_real *to) {
    vlp_attention_operand a = vlp_attention_over_queries(w, x, n, tile->rows);
    w->kernels->product(n, w->vectors, a.steps, a.x, a.row, a.step, stacked, w->wide,
                        to + first * w->wide, w->wide, true);
}

static void backward_block(const backward_pass *pass, const vlp_attention_tile *tile, int64_t first,
                           vlp_attention_scratch *w) {
    const vlp_attention_kernels *k = w->kernels;
    int64_t n = tile->keys - first < VLP_ATTENTION_KEYS ? tile->keys - first : VLP_ATTENTION_KEYS;
    score_gradient(pass->node, tile, first, n, w);
    if (pass->grad[VLP_ATTENTION_V].data) add_to_keys(w, tile, first, n, w->s, w->dy_stack, w->dv);
    if (pass->grad[VLP_ATTENTION_K].data) add_to_keys(w, tile, first, n, w->dp, w->q_stack, w->dk);
    if (pass->grad[VLP_ATTENTION_Q].data) {
        vlp_attention_operand ds = vlp_attention_over_keys(w, w->dp, n);
        k->product(tile->rows, w->vectors, ds.steps, ds.x, ds.row, ds.step,
                   w->k_stack + first / k->pair * w->wide, w->wide, w->out, w->wide, first > 0);
    }
    if (pass->bias_grad && pass->bias_inside) add_bias_gradient(pass, tile, first, n, w);
}

/* Adds scratch [rows, width] to the tile's rows of the gradient of q, k or v. */
static void add_gradient(const backward_pass *pass, const vlp_attention_tile *tile, int input,
                         int64_t rows, const vlp_real *x, const vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = pass->node->attr;
    int64_t cols = vlp_col_count(pass->node->in[input]);
    vlp_gradient grad = pass->grad[input];
    void *to = vlp_attention_at(attr, tile, input, grad.data, cols, vlp_dtype_size(grad.dtype));
    w->kernels->add_to(rows, attr->width, x, w->wide, input == VLP_ATTENTION_V ? 1 : attr->scale,
                       to, grad.dtype, cols, !pass->fresh[input]);
}

static void backward_tile(const backward_pass *pass, const vlp_attention_tile *tile,
                          vlp_attention_scratch *w) {
    pack_tile(pass->node, tile, w);
    for (int64_t first = 0; first < tile->keys; first += VLP_ATTENTION_KEYS)
        backward_block(pass, tile, first, w);
    if (!pass->grad[VLP_ATTENTION_Q].data) return;
    if (tile->keys == 0) memset(w->out, 0, (size_t)(tile->rows * w->wide) * sizeof *w->out);
    add_gradient(pass, tile, VLP_ATTENTION_Q, tile->rows, w->out, w);
}

/* Queries from the first to the last whose output has a gradient other than 0 */
typedef struct {
    int64_t first, rows;
} range;

static bool any(const vlp_gradient *x, int64_t at, int64_t n) {
    if (x->dtype == VLP_BF16) {
        const uint16_t *half = (const uint16_t *)x->data + at;
        for (int64_t i = 0; i < n; i++)
            if (half[i] & 0x7fff) return true;
        return false;
    }
    const vlp_real *real = (const vlp_real *)x->data + at;
    for (int64_t i = 0; i < n; i++)
        if (real[i] != 0) return true;
    return false;
}

static range wanted_rows(const vlp_node *node, int64_t sample, int64_t head) {
    const vlp_attention_attr *attr = node->attr;
    int64_t cols = attr->heads * attr->width, first = 0, end = attr->queries;
    int64_t at = (sample * attr->queries * attr->heads + head) * attr->width;
    const vlp_gradient dy = vlp_grad_read(node->out[0]);
    while (end > 0 && !any(&dy, at + (end - 1) * cols, attr->width)) end--;
    while (first < end && !any(&dy, at + first * cols, attr->width)) first++;
    return (range){first, end - first};
}

/* Queries [first, first + rows) get no gradient through this op. */
static void zero_queries(const backward_pass *pass, int64_t sample, int64_t head, int64_t first,
                         int64_t rows) {
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_gradient dq = pass->grad[VLP_ATTENTION_Q];
    if (!dq.data || !pass->fresh[VLP_ATTENTION_Q]) return;
    vlp_attention_tile tile = {.sample = sample, .head = head, .first = first};
    int64_t cols = vlp_col_count(pass->node->in[VLP_ATTENTION_Q]);
    size_t size = vlp_dtype_size(dq.dtype);
    char *to = vlp_attention_at(attr, &tile, VLP_ATTENTION_Q, dq.data, cols, size);
    for (int64_t i = 0; i < rows; i++)
        memset(to + (size_t)(i * cols) * size, 0, (size_t)attr->width * size);
}

static void backward_sample(const backward_pass *pass, int64_t sample, int64_t head, int64_t keys,
                            vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = pass->node->attr;
    range rows = wanted_rows(pass->node, sample, head);
    int64_t end = rows.first + rows.rows;
    zero_queries(pass, sample, head, 0, rows.first);
    zero_queries(pass, sample, head, end, attr->queries - end);
    for (int64_t i = 0; i < vlp_attention_tile_count(rows.rows); i++) {
        vlp_attention_tile tile =
            vlp_attention_tile_at(attr, sample, head, rows.first, rows.rows, i);
        vlp_attention_pack_keys(pass->node, &tile, keys, w);
        backward_tile(pass, &tile, w);
    }
}

static void backward_unit(const backward_pass *pass, int64_t kv_row, int64_t head,
                          vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = pass->node->attr;
    int64_t begin = pass->start ? pass->start[kv_row] : kv_row;
    int64_t end = pass->start ? pass->start[kv_row + 1] : kv_row + 1;
    int64_t keys = 0;
    for (int64_t n = begin; n < end; n++) {
        int64_t used = vlp_attention_used_keys(attr, pass->samples ? pass->samples[n] : n);
        keys = used > keys ? used : keys;
    }
    size_t bytes = (size_t)(attr->keys * w->wide) * sizeof *w->dk;
    if (pass->grad[VLP_ATTENTION_K].data) memset(w->dk, 0, bytes);
    if (pass->grad[VLP_ATTENTION_V].data) memset(w->dv, 0, bytes);
    for (int64_t n = begin; n < end; n++)
        backward_sample(pass, pass->samples ? pass->samples[n] : n, head, keys, w);
    vlp_attention_tile all = {.kv_row = kv_row, .head = head};
    for (int input = VLP_ATTENTION_K; input <= VLP_ATTENTION_V; input++)
        if (pass->grad[input].data)
            add_gradient(pass, &all, input, pass->fresh[input] ? attr->keys : keys,
                         input == VLP_ATTENTION_K ? w->dk : w->dv, w);
}

static void backward_units(int64_t begin, int64_t end, int thread, void *ctx) {
    const backward_pass *pass = ctx;
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_attention_scratch w;
    part_scratch(pass, thread, &w);
    for (int64_t i = begin; i < end; i++) {
        if (pass->heads_slowest)
            backward_unit(pass, i % attr->kv_batch, i / attr->kv_batch, &w);
        else
            backward_unit(pass, i / attr->heads, i % attr->heads, &w);
    }
}

static void bias_tile(const backward_pass *pass, int64_t sample, int64_t head, int64_t index,
                      vlp_attention_scratch *w) {
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_attention_tile tile = vlp_attention_tile_at(attr, sample, head, 0, attr->queries, index);
    vlp_attention_pack_keys(pass->node, &tile, vlp_attention_used_keys(attr, sample), w);
    pack_tile(pass->node, &tile, w);
    for (int64_t first = 0; first < tile.keys; first += VLP_ATTENTION_KEYS) {
        int64_t n = tile.keys - first < VLP_ATTENTION_KEYS ? tile.keys - first : VLP_ATTENTION_KEYS;
        score_gradient(pass->node, &tile, first, n, w);
        add_bias_gradient(pass, &tile, first, n, w);
    }
}

/* One tile of a shared bias collects the tiles of all samples and heads that used it. */
static void bias_tiles(int64_t begin, int64_t end, int thread, void *ctx) {
    const backward_pass *pass = ctx;
    const vlp_attention_attr *attr = pass->node->attr;
    const int64_t *shape = pass->node->in[VLP_ATTENTION_BIAS]->shape;
    vlp_attention_scratch w;
    part_scratch(pass, thread, &w);
    for (int64_t i = begin; i < end; i++) {
        int64_t slice = i / attr->tile_count;
        int64_t sample = slice / shape[1], head = slice % shape[1];
        int64_t last_sample = shape[0] == 1 ? attr->batch - 1 : sample;
        int64_t last_head = shape[1] == 1 ? attr->heads - 1 : head;
        for (int64_t b = sample; b <= last_sample; b++)
            for (int64_t h = head; h <= last_head; h++)
                bias_tile(pass, b, h, i % attr->tile_count, &w);
    }
}

static bool overlap(const vlp_node *node, int a, int b) {
    const vlp_attention_attr *attr = node->attr;
    int64_t between = attr->offset[a] - attr->offset[b], width = attr->heads * attr->width;
    return node->in[a] == node->in[b] && between < width && -between < width;
}

/* Whether two units could add to the same place: q, k or v share columns of one tensor other than
 * head by head in the same sample. */
static bool units_collide(const vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < a; b++)
            if (overlap(node, a, b) && (attr->kv_index || attr->offset[a] != attr->offset[b]))
                return true;
    return false;
}

/* Whether the pass writes every element of the tensor's gradient, and each by one input only. */
static bool covers(const vlp_node *node, const vlp_tensor *x) {
    const vlp_attention_attr *attr = node->attr;
    int64_t cols = 0;
    for (int a = 0; a < 3; a++) {
        if (node->in[a] != x) continue;
        if (a != VLP_ATTENTION_Q && attr->kv_index) return false;
        for (int b = 0; b < a; b++)
            if (overlap(node, a, b)) return false;
        cols += attr->heads * attr->width;
    }
    return attr->queries > 0 && attr->keys > 0 && cols == vlp_col_count(x);
}

static void take_gradients(backward_pass *pass) {
    vlp_node *node = pass->node;
    for (int i = 0; i < 3; i++) {
        int earlier = 0;
        while (earlier < i && node->in[earlier] != node->in[i]) earlier++;
        if (earlier < i) {
            pass->grad[i] = pass->grad[earlier];
            pass->fresh[i] = pass->fresh[earlier];
        } else if (covers(node, node->in[i])) {
            pass->grad[i] = vlp_grad_store(node->in[i], &pass->fresh[i]);
        } else {
            bool fresh = false;
            vlp_grad_settle(node->in[i]);
            pass->grad[i] = vlp_grad_store(node->in[i], &fresh);
        }
    }
    if (node->in[VLP_ATTENTION_BIAS]) pass->bias_grad = vlp_grad_add(node->in[VLP_ATTENTION_BIAS]);
}

static int64_t bias_units(const vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *bias = node->in[VLP_ATTENTION_BIAS];
    return bias ? bias->shape[0] * bias->shape[1] * attr->tile_count : 0;
}

size_t vlp_attention_backward_bytes(const vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    int parts = vlp_parallel_parts(attr->kv_batch * attr->heads, 1);
    int bias_parts = vlp_parallel_parts(bias_units(node), 1);
    if (bias_parts > parts) parts = bias_parts;
    vlp_attention_scratch w;
    int64_t part = vlp_attention_scratch_at(node, true, NULL, &w);
    return vlp_attention_list_bytes(attr) + (size_t)(parts * part) * sizeof(vlp_real);
}

/* How many units, one after the other, share a part of the bias; more than 1 in the order that
 * heads_slowest asks for. */
static int64_t units_of_bias(const vlp_node *node, bool *heads_slowest) {
    const vlp_attention_attr *attr = node->attr;
    const int64_t *shape = node->in[VLP_ATTENTION_BIAS]->shape;
    bool samples = shape[0] != attr->batch, heads = shape[1] != attr->heads;
    if (samples) *heads_slowest = true;
    if (heads && !samples) *heads_slowest = false;
    return (samples ? attr->kv_batch : 1) * (heads ? attr->heads : 1);
}

/* With shared keys, rows may have very different numbers of samples: heads vary slowest, so that
 * each part gets many rows. The second loop over a shared bias makes the pass 1.6 times as long;
 * fewer busy threads are better than that. */
static void order_units(backward_pass *pass, int64_t units) {
    const vlp_node *node = pass->node;
    const vlp_attention_attr *attr = node->attr;
    pass->heads_slowest = attr->kv_index != NULL;
    pass->grain = units_collide(node) ? units : 1;
    pass->bias_inside = pass->grain == units;
    if (!pass->bias_grad || pass->bias_inside) return;
    bool heads_slowest = pass->heads_slowest;
    int64_t together = units_of_bias(node, &heads_slowest);
    if (8 * vlp_parallel_parts(units, together) < 5 * vlp_parallel_parts(units, 1)) return;
    pass->bias_inside = true;
    pass->grain = together;
    pass->heads_slowest = heads_slowest;
}

void vlp_attention_backward(vlp_node *node) {
    const vlp_attention_attr *attr = node->attr;
    backward_pass pass = {.node = node};
    take_gradients(&pass);
    int64_t units = attr->kv_batch * attr->heads;
    if (!node->work || units == 0) return;
    vlp_attention_list_samples(node, &pass.start, &pass.samples);
    vlp_attention_scratch w;
    pass.part = vlp_attention_scratch_at(node, true, NULL, &w);
    pass.scratch = (vlp_real *)((uint8_t *)node->work + vlp_attention_list_bytes(attr));
    order_units(&pass, units);
    bool inside = pass.bias_grad && pass.bias_inside;
    if (pass.grad[0].data || pass.grad[1].data || pass.grad[2].data || inside)
        vlp_parallel_for(units, pass.grain, backward_units, &pass);
    if (pass.bias_grad && !inside) vlp_parallel_for(bias_units(node), 1, bias_tiles, &pass);
}
