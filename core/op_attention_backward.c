/* Attention, backward. With P computed again from the kept log-sum-exp:
 *   dV += dropout(P)^T dY      dP = dropout(dY V^T)      dS = P o (dP - rowsum(P o dP))
 *   dQ += scale dS K           dK += scale dS^T Q        dbias += dS
 * A unit of work is one row of keys and one head: it alone adds to those columns of dK and dV, and
 * to dQ of the samples that attend to the row, so the order of additions never depends on threads.
 * Units that share a part of the bias go to the same thread where that leaves enough threads busy;
 * otherwise a second loop, over the tiles of the bias, computes dS once more. */
#include "core/op_attention.h"

#include "core/gemm.h"
#include "core/kernels.h"
#include "core/threads.h"

#include <string.h>

typedef struct {
    vlp_node *node;
    vlp_real *grad[3]; /* NULL = not wanted */
    vlp_real beta[3];  /* 0: the unit's first product overwrites a fresh gradient */
    vlp_real *bias_grad;
    bool bias_inside;         /* units add to the bias themselves, without a second loop */
    bool heads_slowest;       /* order of the units */
    int64_t grain;            /* units that stay together */
    int64_t *start, *samples; /* samples[start[r] .. start[r + 1]) attend to key row r */
    vlp_real *tiles;          /* two for each part: P and dP */
} backward_pass;

static vlp_real *part_tiles(const backward_pass *pass, int part) {
    const vlp_attention_attr *attr = pass->node->attr;
    return pass->tiles + 2 * part * attr->tile_rows * attr->tile_ld;
}

/* From P: dp becomes dS. */
static void score_gradient(const vlp_node *node, const vlp_attention_tile *tile, const vlp_real *p,
                           vlp_real *dp) {
    const vlp_attention_attr *attr = node->attr;
    const vlp_tensor *v = node->in[VLP_ATTENTION_V];
    vlp_gemm_serial(false, true, tile->rows, tile->cols, attr->width, 1,
                    vlp_attention_output_at(attr, tile, node->out[0]->grad),
                    attr->heads * attr->width,
                    vlp_attention_at(node, tile, VLP_ATTENTION_V, vlp_real_data(v)),
                    vlp_col_count(v), 0, dp, attr->tile_ld);
    if (attr->dropout > 0) vlp_attention_dropout(node, tile, dp, dp);
    vlp_kernels_get()->softmax_backward(tile->rows, tile->cols, attr->tile_ld, p, dp, NULL, 1);
}

static void probabilities(const vlp_node *node, const vlp_attention_tile *tile, vlp_real *p) {
    vlp_attention_scores(node, tile, p);
    vlp_attention_softmax_again(node, tile, p);
}

/* dV = dropout(P)^T dY + beta dV; scratch is a second tile. */
static void value_gradient(const backward_pass *pass, const vlp_attention_tile *tile,
                           const vlp_real *p, vlp_real *scratch, vlp_real beta) {
    const vlp_node *node = pass->node;
    const vlp_attention_attr *attr = node->attr;
    if (attr->dropout > 0) vlp_attention_dropout(node, tile, p, scratch);
    vlp_gemm_serial(true, false, tile->cols, attr->width, tile->rows, 1,
                    attr->dropout > 0 ? scratch : p, attr->tile_ld,
                    vlp_attention_output_at(attr, tile, node->out[0]->grad),
                    attr->heads * attr->width, beta,
                    vlp_attention_at(node, tile, VLP_ATTENTION_V, pass->grad[VLP_ATTENTION_V]),
                    vlp_col_count(node->in[VLP_ATTENTION_V]));
}

/* dQ = scale dS K + beta dQ, or dK = scale dS^T Q + beta dK */
static void projection_gradient(const backward_pass *pass, const vlp_attention_tile *tile,
                                const vlp_real *ds, int input, vlp_real beta) {
    const vlp_node *node = pass->node;
    const vlp_attention_attr *attr = node->attr;
    bool keys = input == VLP_ATTENTION_K;
    int other = keys ? VLP_ATTENTION_Q : VLP_ATTENTION_K;
    const vlp_tensor *x = node->in[other];
    vlp_gemm_serial(keys, false, keys ? tile->cols : tile->rows, attr->width,
                    keys ? tile->rows : tile->cols, attr->scale, ds, attr->tile_ld,
                    vlp_attention_at(node, tile, other, vlp_real_data(x)), vlp_col_count(x), beta,
                    vlp_attention_at(node, tile, input, pass->grad[input]),
                    vlp_col_count(node->in[input]));
}

static void add_bias_gradient(const backward_pass *pass, const vlp_attention_tile *tile,
                              const vlp_real *ds) {
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_real *to = vlp_attention_bias_at(pass->node, tile, pass->bias_grad);
    for (int64_t i = 0; i < tile->rows; i++)
        vlp_kernels_get()->add(tile->cols, ds + i * attr->tile_ld, to + i * attr->keys);
}

/* `first` tells the first tile of the unit: nothing has been added to its keys yet. */
static void backward_tile(const backward_pass *pass, const vlp_attention_tile *tile, vlp_real *p,
                          vlp_real *dp, bool first) {
    vlp_real *const *grad = pass->grad;
    bool bias = pass->bias_grad && pass->bias_inside;
    probabilities(pass->node, tile, p);
    if (grad[VLP_ATTENTION_V])
        value_gradient(pass, tile, p, dp, first ? pass->beta[VLP_ATTENTION_V] : 1);
    if (!grad[VLP_ATTENTION_Q] && !grad[VLP_ATTENTION_K] && !bias) return;
    score_gradient(pass->node, tile, p, dp);
    if (grad[VLP_ATTENTION_Q])
        projection_gradient(pass, tile, dp, VLP_ATTENTION_Q, pass->beta[VLP_ATTENTION_Q]);
    if (grad[VLP_ATTENTION_K])
        projection_gradient(pass, tile, dp, VLP_ATTENTION_K,
                            first ? pass->beta[VLP_ATTENTION_K] : 1);
    if (bias) add_bias_gradient(pass, tile, dp);
}

/* Tiles run from the last to the first: the last sees every key even when causal, so that it may
 * overwrite. */
static void backward_unit(const backward_pass *pass, int64_t kv_row, int64_t head, vlp_real *p,
                          vlp_real *dp) {
    const vlp_attention_attr *attr = pass->node->attr;
    int64_t begin = pass->start ? pass->start[kv_row] : kv_row;
    int64_t end = pass->start ? pass->start[kv_row + 1] : kv_row + 1;
    for (int64_t n = begin; n < end; n++)
        for (int64_t i = attr->tile_count - 1; i >= 0; i--) {
            int64_t sample = pass->samples ? pass->samples[n] : n;
            vlp_attention_tile tile = vlp_attention_tile_at(attr, sample, head, i);
            backward_tile(pass, &tile, p, dp, n == begin && i == attr->tile_count - 1);
        }
}

static void backward_units(int64_t begin, int64_t end, int thread, void *ctx) {
    const backward_pass *pass = ctx;
    const vlp_attention_attr *attr = pass->node->attr;
    vlp_real *p = part_tiles(pass, thread), *dp = p + attr->tile_rows * attr->tile_ld;
    for (int64_t i = begin; i < end; i++) {
        if (pass->heads_slowest)
            backward_unit(pass, i % attr->kv_batch, i / attr->kv_batch, p, dp);
        else
            backward_unit(pass, i / attr->heads, i % attr->heads, p, dp);
    }
}

/* One tile of a shared bias collects the tiles of all samples and heads that used it. */
static void bias_tiles(int64_t begin, int64_t end, int thread, void *ctx) {
    const backward_pass *pass = ctx;
    const vlp_attention_attr *attr = pass->node->attr;
    const int64_t *shape = pass->node->in[VLP_ATTENTION_BIAS]->shape;
    vlp_real *p = part_tiles(pass, thread), *dp = p + attr->tile_rows * attr->tile_ld;
    for (int64_t i = begin; i < end; i++) {
        int64_t slice = i / attr->tile_count;
        int64_t sample = slice / shape[1], head = slice % shape[1];
        int64_t last_sample = shape[0] == 1 ? attr->batch - 1 : sample;
        int64_t last_head = shape[1] == 1 ? attr->heads - 1 : head;
        for (int64_t b = sample; b <= last_sample; b++)
            for (int64_t h = head; h <= last_head; h++) {
                vlp_attention_tile tile = vlp_attention_tile_at(attr, b, h, i % attr->tile_count);
                probabilities(pass->node, &tile, p);
                score_gradient(pass->node, &tile, p, dp);
                add_bias_gradient(pass, &tile, dp);
            }
    }
}

/* Counting sort of the samples by key row. */
static void list_samples(backward_pass *pass) {
    const vlp_attention_attr *attr = pass->node->attr;
    if (!attr->kv_index) return;
    int64_t *start = pass->node->work;
    pass->start = start;
    pass->samples = start + attr->kv_batch + 2;
    memset(start, 0, (size_t)(attr->kv_batch + 2) * sizeof *start);
    /* Counts two places ahead: after the sums start[r + 1] is the next place of row r, and the
     * placing itself moves it to the end of the row. */
    for (int64_t b = 0; b < attr->batch; b++) start[attr->kv_index[b] + 2]++;
    for (int64_t r = 0; r < attr->kv_batch; r++) start[r + 2] += start[r + 1];
    for (int64_t b = 0; b < attr->batch; b++) pass->samples[start[attr->kv_index[b] + 1]++] = b;
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
        pass->beta[i] = 1;
        int earlier = 0;
        while (earlier < i && node->in[earlier] != node->in[i]) earlier++;
        if (earlier < i) {
            pass->grad[i] = pass->grad[earlier];
            pass->beta[i] = pass->beta[earlier];
        } else if (covers(node, node->in[i])) {
            bool fresh = false;
            pass->grad[i] = vlp_grad_write(node->in[i], &fresh);
            pass->beta[i] = fresh ? 0 : 1;
        } else {
            pass->grad[i] = vlp_grad_add(node->in[i]);
        }
    }
    if (node->in[VLP_ATTENTION_BIAS]) pass->bias_grad = vlp_grad_add(node->in[VLP_ATTENTION_BIAS]);
}

static size_t list_bytes(const vlp_attention_attr *attr) {
    if (!attr->kv_index) return 0;
    size_t bytes = (size_t)(attr->kv_batch + 2 + attr->batch) * sizeof(int64_t);
    return (bytes + 63) / 64 * 64;
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
    size_t tiles = (size_t)(2 * parts * attr->tile_rows * attr->tile_ld) * sizeof(vlp_real);
    return list_bytes(attr) + tiles;
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
    list_samples(&pass);
    pass.tiles = (vlp_real *)((uint8_t *)node->work + list_bytes(attr));
    order_units(&pass, units);
    bool inside = pass.bias_grad && pass.bias_inside;
    if (pass.grad[0] || pass.grad[1] || pass.grad[2] || inside)
        vlp_parallel_for(units, pass.grain, backward_units, &pass);
    if (pass.bias_grad && !inside) vlp_parallel_for(bias_units(node), 1, bias_tiles, &pass);
}
