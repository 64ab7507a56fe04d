/* Patch embedding: patches laid out as rows (im2col), then one product.
 *
 *     pixels [B, C, H, W]  ->  columns [B P, C p p] (workspace)  ->  y = columns w^T + bias
 *
 * Backward lays the patches out again rather than keeping them: it costs one pass over the pixels.
 */
#include "core/gemm.h"
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/threads.h"

typedef struct {
    int64_t batch, channels, height, width, patch;
    int64_t across, patches, inner, out; /* patches in a row; P; C p p; D */
    vlp_real *columns;
    const vlp_real *pixels;
    vlp_real *dpixels;
    bool fresh;
} patching;

static patching describe(const vlp_node *node) {
    const vlp_tensor *pixels = node->in[0];
    int64_t patch = *(const int64_t *)node->attr;
    patching p = {.batch = pixels->shape[0],
                  .channels = pixels->shape[1],
                  .height = pixels->shape[2],
                  .width = pixels->shape[3],
                  .patch = patch,
                  .across = pixels->shape[3] / patch,
                  .out = node->in[1]->shape[0],
                  .columns = node->work,
                  .pixels = vlp_real_data(pixels)};
    p.patches = p.height / patch * p.across;
    p.inner = p.channels * patch * patch;
    return p;
}

/* Offset of the first pixel of row y in channel c of the patch with number `at` in the batch. */
static int64_t pixel_offset(const patching *p, int64_t at, int64_t c, int64_t y) {
    int64_t b = at / p->patches, n = at % p->patches;
    int64_t row = n / p->across * p->patch + y, column = n % p->across * p->patch;
    return ((b * p->channels + c) * p->height + row) * p->width + column;
}

static void to_columns(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const patching *p = ctx;
    vlp_real *to = p->columns + begin * p->inner;
    for (int64_t at = begin; at < end; at++)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t y = 0; y < p->patch; y++, to += p->patch)
                vlp_put(true, p->patch, p->pixels + pixel_offset(p, at, c, y), to);
}

static void from_columns(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const patching *p = ctx;
    const vlp_real *from = p->columns + begin * p->inner;
    for (int64_t at = begin; at < end; at++)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t y = 0; y < p->patch; y++, from += p->patch)
                vlp_put(p->fresh, p->patch, from, p->dpixels + pixel_offset(p, at, c, y));
}

typedef struct {
    int64_t cols;
    const vlp_real *bias;
    vlp_real *y;
} bias_pass;

static void bias_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const bias_pass *p = ctx;
    vlp_real *y = p->y + begin * p->cols;
    vlp_kernels_get()->bias_act(end - begin, p->cols, p->bias, VLP_ACT_NONE, y, y);
}

static void patch_forward(vlp_node *node) {
    patching p = describe(node);
    int64_t rows = p.batch * p.patches;
    bias_pass bias = {.cols = p.out, .y = vlp_real_data(node->out[0])};
    vlp_parallel_for(rows, 1, to_columns, &p);
    vlp_gemm(false, true, rows, p.out, p.inner, 1, p.columns, p.inner, vlp_real_data(node->in[1]),
             p.inner, 0, bias.y, p.out);
    if (!node->in[2]) return;
    bias.bias = vlp_real_data(node->in[2]);
    vlp_parallel_for(rows, 16, bias_rows, &bias);
}

static void pixel_gradient(vlp_node *node, patching *p) {
    vlp_tensor *pixels = node->in[0];
    p->dpixels = vlp_grad_write(pixels, &p->fresh);
    if (!p->dpixels) return;
    int64_t rows = p->batch * p->patches;
    vlp_gemm(false, false, rows, p->inner, p->out, 1, node->out[0]->grad, p->out,
             vlp_real_data(node->in[1]), p->inner, 0, p->columns, p->inner);
    vlp_parallel_for(rows, 1, from_columns, p);
}

static void patch_backward(vlp_node *node) {
    vlp_tensor *w = node->in[1], *bias = node->in[2];
    const vlp_real *dy = node->out[0]->grad;
    patching p = describe(node);
    int64_t rows = p.batch * p.patches;
    bool fresh = false;
    vlp_real *dw = vlp_grad_write(w, &fresh);
    if (dw) {
        vlp_parallel_for(rows, 1, to_columns, &p);
        vlp_gemm(true, false, p.out, p.inner, rows, 1, dy, p.out, p.columns, p.inner, fresh ? 0 : 1,
                 dw, p.inner);
    }
    vlp_real *dbias = bias ? vlp_grad_add(bias) : NULL;
    if (dbias) vlp_flow_columns(rows, p.out, p.out, dy, dbias);
    pixel_gradient(node, &p);
}

static size_t patch_workspace(const vlp_node *node) {
    return (size_t)vlp_numel(node->in[0]) * sizeof(vlp_real);
}

const vlp_op vlp_op_patch_embed = {"patch_embed", patch_forward, patch_backward, patch_workspace};

vlp_tensor *vlp_patch_embed(vlp_tape *tape, vlp_tensor *pixels, vlp_tensor *w, vlp_tensor *bias,
                            int64_t patch) {
    if (vlp_tape_status(tape) != VLP_OK) return NULL;
    VLP_ASSERT(pixels && pixels->ndim == 4, "patch_embed: pixels are not [B, C, H, W]");
    const int64_t *size = pixels->shape;
    VLP_ASSERT(patch > 0 && size[2] % patch == 0 && size[3] % patch == 0,
               "patch_embed: %lld x %lld pixels are no multiple of the patch %lld",
               (long long)size[2], (long long)size[3], (long long)patch);
    VLP_ASSERT(w && w->ndim >= 1 && vlp_numel(w) == w->shape[0] * size[1] * patch * patch,
               "patch_embed: w does not fit %lld channels and patch %lld", (long long)size[1],
               (long long)patch);
    VLP_ASSERT(!bias || vlp_numel(bias) == w->shape[0], "patch_embed: bias has %lld elements",
               (long long)vlp_numel(bias));
    vlp_node *node = vlp_tape_node(tape, &vlp_op_patch_embed, (vlp_tensor *[]){pixels, w, bias}, 3,
                                   2, &patch, sizeof patch);
    if (!node) return NULL;
    int64_t shape[] = {size[0], (size[2] / patch) * (size[3] / patch), w->shape[0]};
    vlp_node_output(tape, node, VLP_REAL, 3, shape);
    node->flops = 2.0 * (double)(shape[0] * shape[1]) * (double)vlp_numel(w);
    return vlp_tape_run(tape, node);
}
