/* Patch embedding: patches laid out as rows (im2col), then one product.
 *
 *     pixels [B, C, H, W]  ->  columns [B P, C p p] (workspace)  ->  y = columns w^T + bias
 *
 * Backward lays the patches out again rather than keeping them: it costs one pass over the pixels.
 */
#include "core/op_flow.h"
#include "core/op_table.h"
#include "core/ops.h"
#include "core/product.h"
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

static vlp_operand columns_of(const patching *p) {
    return (vlp_operand){.data = p->columns, .dtype = VLP_REAL, .ld = p->inner};
}

static void patch_forward(vlp_node *node) {
    patching p = describe(node);
    const vlp_tensor *w = node->in[1], *bias = node->in[2];
    int64_t rows = p.batch * p.patches;
    vlp_parallel_for(rows, 1, to_columns, &p);
    vlp_multiply(&(vlp_product){
        .m = rows,
        .n = p.out,
        .k = p.inner,
        .a = columns_of(&p),
        .b = {.data = vlp_real_data(w), .dtype = VLP_REAL, .ld = p.inner, .transposed = true},
        .c = {vlp_real_data(node->out[0]), VLP_REAL, p.out},
        .bias = bias ? vlp_real_data(bias) : NULL,
        .bf16 = node->bf16});
}

static void pixel_gradient(vlp_node *node, patching *p) {
    vlp_tensor *pixels = node->in[0];
    p->dpixels = vlp_grad_write(pixels, &p->fresh);
    if (!p->dpixels) return;
    int64_t rows = p->batch * p->patches;
    vlp_multiply(
        &(vlp_product){.m = rows,
                       .n = p->inner,
                       .k = p->out,
                       .a = {.data = node->out[0]->grad, .dtype = VLP_REAL, .ld = p->out},
                       .b = {.data = vlp_real_data(node->in[1]), .dtype = VLP_REAL, .ld = p->inner},
                       .c = {p->columns, VLP_REAL, p->inner},
                       .bf16 = node->bf16});
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
        vlp_multiply(
            &(vlp_product){.m = p.out,
                           .n = p.inner,
                           .k = rows,
                           .a = {.data = dy, .dtype = VLP_REAL, .ld = p.out, .transposed = true},
                           .b = columns_of(&p),
                           .c = {dw, VLP_REAL, p.inner},
                           .beta = fresh ? 0 : 1,
                           .bf16 = node->bf16});
    }
    vlp_real *dbias = bias ? vlp_grad_add(bias) : NULL;
    if (dbias) vlp_flow_columns(rows, p.out, p.out, dy, dbias);
    pixel_gradient(node, &p);
}

static size_t patch_workspace(const vlp_node *node) {
    return (size_t)vlp_numel(node->in[0]) * sizeof(vlp_real);
}

const vlp_op vlp_op_patch_embed = {.name = "patch_embed",
                                   .forward = patch_forward,
                                   .backward = patch_backward,
                                   .workspace = patch_workspace,
                                   .spent = 1};

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
