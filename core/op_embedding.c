/* Tables of vectors: token and position embeddings, class tokens, the mask token. */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

#include <string.h>

enum { ROW_GRAIN = 16, COLUMN_GRAIN = 16 };

/* y[n] = table[ids[n]];  dtable[ids[n]] += dy[n] unless ids[n] is the padding --------------------
 */

typedef struct {
    const int32_t *ids;
    int32_t padding_idx;
} embedding_attr;

static void embedding_forward(vlp_node *node) {
    const vlp_tensor *table = node->in[0];
    const embedding_attr *attr = node->attr;
    vlp_rows_take(vlp_row_count(node->out[0]), table->shape[1], table->shape[0], attr->ids, true,
                  vlp_real_data(table), vlp_real_data(node->out[0]));
}

static void embedding_backward(vlp_node *node) {
    vlp_tensor *table = node->in[0];
    const embedding_attr *attr = node->attr;
    vlp_real *dtable = vlp_grad_add(table);
    if (dtable)
        vlp_rows_spread(vlp_row_count(node->out[0]), table->shape[1], table->shape[0], attr->ids,
                        attr->padding_idx, node->out[0]->grad, dtable);
}

const vlp_op vlp_op_embedding = {.name = "embedding",
                                 .forward = embedding_forward,
                                 .backward = embedding_backward,
                                 .gradient_only = true,
                                 .picks = 1};

vlp_tensor *vlp_embedding(vlp_tape *tape, vlp_tensor *table, const int32_t *ids, int ndim,
                          const int64_t *leading, int32_t padding_idx) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(table && table->ndim == 2, "embedding: the table is not a matrix");
    VLP_ASSERT(ndim >= 0 && ndim < VLP_MAX_DIMS, "embedding: %d leading dimensions", ndim);
    embedding_attr attr = {ids, padding_idx};
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_embedding, (vlp_tensor *[]){table}, 1, 1, &attr, sizeof attr);
    if (!node) return NULL;
    int64_t shape[VLP_MAX_DIMS];
    for (int i = 0; i < ndim; i++) shape[i] = leading[i];
    shape[ndim] = table->shape[1];
    vlp_node_output(tape, node, VLP_REAL, ndim + 1, shape);
    return vlp_tape_run(tape, node);
}

/* y[b, l] = x[b, l] + table[l + offset];  dtable[l + offset] += sum_b dy[b, l] -------------------
 */

typedef struct {
    int64_t cols, sample; /* D; L D */
    const vlp_real *x, *table;
    vlp_real *y;
} positions;

static void positions_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const positions *p = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    size_t bytes = (size_t)p->cols * sizeof(vlp_real);
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * p->cols;
        memcpy(p->y + at, p->x + at, bytes);
        k->add(p->cols, p->table + at % p->sample, p->y + at);
    }
}

static void positions_forward(vlp_node *node) {
    const vlp_tensor *x = node->in[0];
    int64_t cols = vlp_col_count(x), offset = *(const int64_t *)node->attr;
    positions pass = {.cols = cols,
                      .sample = x->shape[1] * cols,
                      .x = vlp_real_data(x),
                      .table = vlp_real_data(node->in[1]) + offset * cols,
                      .y = vlp_real_data(node->out[0])};
    vlp_parallel_for(vlp_row_count(x), ROW_GRAIN, positions_rows, &pass);
}

static void positions_backward(vlp_node *node) {
    vlp_tensor *x = node->in[0], *table = node->in[1];
    const vlp_real *dy = node->out[0]->grad;
    int64_t cols = vlp_col_count(x), sample = x->shape[1] * cols;
    vlp_flow(x, dy);
    vlp_real *dtable = vlp_grad_add(table);
    int64_t offset = *(const int64_t *)node->attr;
    if (dtable) vlp_flow_columns(x->shape[0], sample, sample, dy, dtable + offset * cols);
}

const vlp_op vlp_op_add_positions = {.name = "add_positions",
                                     .forward = positions_forward,
                                     .backward = positions_backward,
                                     .gradient_only = true};

vlp_tensor *vlp_add_positions(vlp_tape *tape, vlp_tensor *x, vlp_tensor *table, int64_t offset) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim == 3, "add_positions: x is not [B, L, D]");
    VLP_ASSERT(table && table->ndim == 2 && table->shape[1] == x->shape[2] && offset >= 0 &&
                   x->shape[1] + offset <= table->shape[0],
               "add_positions: %lld positions of width %lld from %lld do not fit the table",
               (long long)x->shape[1], (long long)x->shape[2], (long long)offset);
    vlp_node *node = vlp_tape_node(tape, &vlp_op_add_positions, (vlp_tensor *[]){x, table}, 2, 2,
                                   &offset, sizeof offset);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    return vlp_tape_run(tape, node);
}

/* y[b] = [tokens; x[b]];  dtokens += sum_b of the first rows of dy[b] ----------------------------
 */

typedef struct {
    int64_t head, body; /* n D; P D */
    const vlp_real *tokens, *x, *dy;
    vlp_real *y, *dx;
    bool fresh;
} prepend;

static prepend prepend_sizes(const vlp_node *node) {
    const vlp_tensor *x = node->in[1];
    return (prepend){.head = vlp_numel(node->in[0]), .body = x->shape[1] * x->shape[2]};
}

static void prepend_samples(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const prepend *p = ctx;
    for (int64_t b = begin; b < end; b++) {
        vlp_real *y = p->y + b * (p->head + p->body);
        vlp_put(true, p->head, p->tokens, y);
        vlp_put(true, p->body, p->x + b * p->body, y + p->head);
    }
}

static void prepend_forward(vlp_node *node) {
    prepend pass = prepend_sizes(node);
    pass.tokens = vlp_real_data(node->in[0]);
    pass.x = vlp_real_data(node->in[1]);
    pass.y = vlp_real_data(node->out[0]);
    vlp_parallel_for(node->in[1]->shape[0], 1, prepend_samples, &pass);
}

static void prepend_backward_samples(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const prepend *p = ctx;
    for (int64_t b = begin; b < end; b++)
        vlp_put(p->fresh, p->body, p->dy + b * (p->head + p->body) + p->head, p->dx + b * p->body);
}

static void prepend_backward(vlp_node *node) {
    vlp_tensor *tokens = node->in[0], *x = node->in[1];
    prepend pass = prepend_sizes(node);
    pass.dy = node->out[0]->grad;
    pass.dx = vlp_grad_write(x, &pass.fresh);
    if (pass.dx) vlp_parallel_for(x->shape[0], 1, prepend_backward_samples, &pass);
    vlp_real *dtokens = vlp_grad_add(tokens);
    if (dtokens) vlp_flow_columns(x->shape[0], pass.head, pass.head + pass.body, pass.dy, dtokens);
}

const vlp_op vlp_op_prepend_tokens = {.name = "prepend_tokens",
                                      .forward = prepend_forward,
                                      .backward = prepend_backward,
                                      .gradient_only = true};

vlp_tensor *vlp_prepend_tokens(vlp_tape *tape, vlp_tensor *tokens, vlp_tensor *x) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && x->ndim == 3, "prepend_tokens: x is not [B, P, D]");
    VLP_ASSERT(tokens && vlp_col_count(tokens) == x->shape[2],
               "prepend_tokens: widths %lld and %lld", (long long)vlp_col_count(tokens),
               (long long)x->shape[2]);
    vlp_node *node =
        vlp_tape_node(tape, &vlp_op_prepend_tokens, (vlp_tensor *[]){tokens, x}, 2, 2, NULL, 0);
    if (!node) return NULL;
    int64_t shape[] = {x->shape[0], vlp_row_count(tokens) + x->shape[1], x->shape[2]};
    vlp_node_output(tape, node, VLP_REAL, 3, shape);
    return vlp_tape_run(tape, node);
}

/* y[n] = mask[n] ? token : x[n];  dtoken += sum over masked n of dy[n] ---------------------------
 */

typedef struct {
    int64_t rows, cols;
    const uint8_t *mask;
    const vlp_real *x, *token, *dy;
    vlp_real *y, *dx, *dtoken;
    bool fresh;
} masking;

static void mask_forward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const masking *m = ctx;
    for (int64_t r = begin; r < end; r++)
        vlp_put(true, m->cols, m->mask[r] ? m->token : m->x + r * m->cols, m->y + r * m->cols);
}

static masking mask_pass(const vlp_node *node) {
    return (masking){.rows = vlp_row_count(node->in[0]),
                     .cols = vlp_col_count(node->in[0]),
                     .mask = *(const uint8_t *const *)node->attr};
}

static void mask_forward(vlp_node *node) {
    masking pass = mask_pass(node);
    pass.x = vlp_real_data(node->in[0]);
    pass.token = vlp_real_data(node->in[1]);
    pass.y = vlp_real_data(node->out[0]);
    vlp_parallel_for(pass.rows, ROW_GRAIN, mask_forward_rows, &pass);
}

static void mask_backward_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const masking *m = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t r = begin; r < end; r++) {
        vlp_real *dx = m->dx + r * m->cols;
        if (!m->mask[r])
            vlp_put(m->fresh, m->cols, m->dy + r * m->cols, dx);
        else if (m->fresh)
            k->fill(m->cols, 0, dx);
    }
}

static void mask_backward_columns(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const masking *m = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    for (int64_t r = 0; r < m->rows; r++)
        if (m->mask[r]) k->add(end - begin, m->dy + r * m->cols + begin, m->dtoken + begin);
}

static void mask_backward(vlp_node *node) {
    masking pass = mask_pass(node);
    pass.dy = node->out[0]->grad;
    pass.dx = vlp_grad_write(node->in[0], &pass.fresh);
    if (pass.dx) vlp_parallel_for(pass.rows, ROW_GRAIN, mask_backward_rows, &pass);
    pass.dtoken = vlp_grad_add(node->in[1]);
    if (pass.dtoken) vlp_parallel_for(pass.cols, COLUMN_GRAIN, mask_backward_columns, &pass);
}

const vlp_op vlp_op_mask_rows = {
    .name = "mask_rows", .forward = mask_forward, .backward = mask_backward, .gradient_only = true};

vlp_tensor *vlp_mask_rows(vlp_tape *tape, vlp_tensor *x, vlp_tensor *token, const uint8_t *mask) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(x && token && vlp_numel(token) == vlp_col_count(x),
               "mask_rows: the token has %lld elements, x %lld columns",
               token ? (long long)vlp_numel(token) : -1, x ? (long long)vlp_col_count(x) : -1);
    vlp_node *node = vlp_tape_node(tape, &vlp_op_mask_rows, (vlp_tensor *[]){x, token}, 2, 2, &mask,
                                   sizeof mask);
    if (!node) return NULL;
    vlp_node_output(tape, node, VLP_REAL, x->ndim, x->shape);
    return vlp_tape_run(tape, node);
}
