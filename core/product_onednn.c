/* Products by oneDNN (libdnnl 2.x or 3.x): the only door to its header. On CPUs with AMX it drives
 * the tiles. A primitive is made once for each shape on each thread, weights are reordered into the
 * layout that it likes, and its threads are OpenMP's, as ours are: inside vlp_parallel_for it runs
 * on the calling thread alone. */
#include "core/product_onednn.h"

#if defined(VLP_ONEDNN) && !defined(VLP_REAL_DOUBLE)

#include "core/cpu.h"
#include "core/memory.h"
#include "core/packed_form.h"
#include "core/product_scratch.h"
#include "core/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

/* ---- what differs between the versions ---- */

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t layout;
typedef const_dnnl_memory_desc_t layout_ref;

static layout_ref ref(const layout *x) {
    return *x;
}

static void drop(layout *x) {
    dnnl_memory_desc_destroy(*x);
}

static bool set_strides(layout *x, const dnnl_dims_t dims, dnnl_data_type_t type,
                        const dnnl_dims_t strides) {
    return dnnl_memory_desc_create_with_strides(x, 2, dims, type, strides) == dnnl_success;
}

static bool set_any(layout *x, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                    dnnl_format_tag_t tag) {
    return dnnl_memory_desc_create_with_tag(x, ndims, dims, type, tag) == dnnl_success;
}

static size_t bytes_of(layout_ref x) {
    return dnnl_memory_desc_get_size(x);
}

static bool append_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha) {
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, 0) == dnnl_success;
}

static bool append_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef) == dnnl_success;
}

static bool describe(dnnl_primitive_desc_t *to, dnnl_engine_t engine, layout_ref a, layout_ref b,
                     layout_ref bias, layout_ref c, dnnl_primitive_attr_t attr) {
    return dnnl_matmul_primitive_desc_create(to, engine, a, b, bias, c, attr) == dnnl_success;
}

/* what tells two layouts of the same size apart */
static void digest(layout_ref x, int64_t *words, int count) {
    static const dnnl_query_t asked[] = {dnnl_query_strides, dnnl_query_inner_blks,
                                         dnnl_query_inner_idxs};
    static const int64_t factors[] = {31, 7, 1};
    for (int i = 0; i < count; i++) words[i] = 0;
    for (size_t q = 0; q < VLP_COUNT(asked); q++) {
        const dnnl_dims_t *answer = NULL;
        if (dnnl_memory_desc_query(x, asked[q], &answer) != dnnl_success || !answer) continue;
        for (int i = 0; i < count; i++) words[i] += factors[q] * (*answer)[i];
    }
}

#else

typedef dnnl_memory_desc_t layout;
typedef const dnnl_memory_desc_t *layout_ref;

static layout_ref ref(const layout *x) {
    return x;
}

static void drop(layout *x) {
    (void)x;
}

static bool set_strides(layout *x, const dnnl_dims_t dims, dnnl_data_type_t type,
                        const dnnl_dims_t strides) {
    return dnnl_memory_desc_init_by_strides(x, 2, dims, type, strides) == dnnl_success;
}

static bool set_any(layout *x, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                    dnnl_format_tag_t tag) {
    return dnnl_memory_desc_init_by_tag(x, ndims, dims, type, tag) == dnnl_success;
}

static size_t bytes_of(layout_ref x) {
    return dnnl_memory_desc_get_size(x);
}

static bool append_act(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha) {
    return dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, 0) == dnnl_success;
}

static bool append_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1) == dnnl_success;
}

static bool describe(dnnl_primitive_desc_t *to, dnnl_engine_t engine, layout_ref a, layout_ref b,
                     layout_ref bias, layout_ref c, dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t matmul;
    return dnnl_matmul_desc_init(&matmul, a, b, bias, c) == dnnl_success &&
           dnnl_primitive_desc_create(to, &matmul, attr, engine, NULL) == dnnl_success;
}

/* what tells two layouts of the same size apart */
static void digest(layout_ref x, int64_t *words, int count) {
    const dnnl_blocking_desc_t *b = &x->format_desc.blocking;
    for (int i = 0; i < count; i++)
        words[i] = b->strides[i] * 31 + b->inner_blks[i] * 7 + b->inner_idxs[i];
}

#endif

/* ---- one primitive a shape ---- */

/* Zeroed before it is filled, so that keys compare as bytes. */
typedef struct {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t threads, act;
    bool bf16, ta, tb, reordered, c_half, bias, sum;
} shape;

typedef struct {
    shape key;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c, bias, space;
    size_t b_bytes, space_bytes;
    const void *b_maker; /* of the layout of b, where it is reordered */
} matmul;

enum { SHAPES = 128, DIGEST_WORDS = 6 };

typedef struct {
    matmul made[SHAPES];
    int count, next;
    dnnl_stream_t stream;
} cache;

static _Thread_local cache *mine;
static dnnl_engine_t engine;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(matmul *x) {
    dnnl_memory_t memories[] = {x->a, x->b, x->c, x->bias, x->space};
    for (size_t i = 0; i < VLP_COUNT(memories); i++)
        if (memories[i]) dnnl_memory_destroy(memories[i]);
    if (x->primitive) dnnl_primitive_destroy(x->primitive);
    if (x->description) dnnl_primitive_desc_destroy(x->description);
    memset(x, 0, sizeof *x);
}

static void release(void *owned) {
    cache *c = owned;
    for (int i = 0; i < c->count; i++) forget(&c->made[i]);
    if (c->stream) dnnl_stream_destroy(c->stream);
    vlp_free(c);
}

static void start(void) {
    static const dnnl_cpu_isa_t most[VLP_ISA_AVX512] = {
        [VLP_ISA_PLAIN] = dnnl_cpu_isa_sse41,
        [VLP_ISA_AVX2] = dnnl_cpu_isa_avx2,
    };
    vlp_isa isa = vlp_isa_chosen();
    if (isa < VLP_ISA_AVX512) dnnl_set_max_cpu_isa(most[isa]);
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
    (void)pthread_key_create(&at_exit, release);
}

static cache *my_cache(void) {
    if (mine) return mine;
    pthread_once(&once, start);
    cache *c = engine ? vlp_alloc_zero(1, sizeof *c) : NULL;
    if (!c) return NULL;
    if (dnnl_stream_create(&c->stream, engine, dnnl_stream_default_flags) != dnnl_success) {
        vlp_free(c);
        return NULL;
    }
    pthread_setspecific(at_exit, c);
    return mine = c;
}

/* Activations that oneDNN computes by the same formula */
static const struct {
    dnnl_alg_kind_t kind;
    float alpha;
} acts[VLP_ACT_COUNT] = {
    [VLP_ACT_GELU] = {dnnl_eltwise_gelu_erf, 0},
    [VLP_ACT_GELU_TANH] = {dnnl_eltwise_gelu_tanh, 0},
    [VLP_ACT_QUICK_GELU] = {dnnl_eltwise_swish, 1.702F},
    [VLP_ACT_RELU] = {dnnl_eltwise_relu, 0},
    [VLP_ACT_SILU] = {dnnl_eltwise_swish, 1},
    [VLP_ACT_TANH] = {dnnl_eltwise_tanh, 0},
    [VLP_ACT_SIGMOID] = {dnnl_eltwise_logistic, 0},
};

static bool set_matrix(layout *x, int64_t rows, int64_t cols, int64_t ld, bool transposed,
                       bool half) {
    const dnnl_dims_t dims = {rows, cols}, strides = {transposed ? 1 : ld, transposed ? ld : 1};
    return set_strides(x, dims, half ? dnnl_bf16 : dnnl_f32, strides);
}

static bool set_reordered(layout *x, const shape *s) {
    const dnnl_dims_t dims = {s->k, s->n};
    return set_any(x, 2, dims, s->bf16 ? dnnl_bf16 : dnnl_f32, dnnl_format_tag_any);
}

static bool set_attributes(dnnl_primitive_attr_t attr, const shape *s) {
    dnnl_post_ops_t ops = NULL;
    bool good =
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
        dnnl_post_ops_create(&ops) == dnnl_success;
    if (good && s->sum) good = append_sum(ops);
    if (good && s->act != VLP_ACT_NONE)
        good = append_act(ops, acts[s->act].kind, acts[s->act].alpha);
    if (good) good = dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    if (ops) dnnl_post_ops_destroy(ops);
    return good;
}

static bool describe_shape(matmul *x, const shape *s) {
    const dnnl_dims_t bias_dims = {1, s->n};
    layout a, b, c, bias;
    dnnl_primitive_attr_t attr = NULL;
    bool has[4] = {0};
    bool good = (has[0] = set_matrix(&a, s->m, s->k, s->lda, s->ta, s->bf16)) &&
                (has[1] = s->reordered ? set_reordered(&b, s)
                                       : set_matrix(&b, s->k, s->n, s->ldb, s->tb, s->bf16)) &&
                (has[2] = set_matrix(&c, s->m, s->n, s->ldc, false, s->c_half)) &&
                (has[3] = set_any(&bias, 2, bias_dims, dnnl_f32, dnnl_ab)) &&
                dnnl_primitive_attr_create(&attr) == dnnl_success && set_attributes(attr, s) &&
                describe(&x->description, engine, ref(&a), ref(&b), s->bias ? ref(&bias) : NULL,
                         ref(&c), attr);
    layout *all[] = {&a, &b, &c, &bias};
    for (int i = 0; i < 4; i++)
        if (has[i]) drop(all[i]);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return good;
}

static layout_ref layout_in(const matmul *x, dnnl_query_t what, int index) {
    return dnnl_primitive_desc_query_md(x->description, what, index);
}

static bool make_memory(dnnl_memory_t *to, layout_ref like) {
    return dnnl_memory_create(to, like, engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static bool make(matmul *x, const shape *s) {
    x->key = *s;
    if (!describe_shape(x, s)) return false;
    layout_ref b = layout_in(x, dnnl_query_weights_md, 0);
    layout_ref space = layout_in(x, dnnl_query_scratchpad_md, 0);
    int64_t words[DIGEST_WORDS];
    digest(b, words, DIGEST_WORDS);
    uintptr_t maker = 1;
    for (int i = 0; i < DIGEST_WORDS; i++) maker = maker * 1000003 + (uintptr_t)words[i];
    x->b_maker = (const void *)maker;
    x->b_bytes = bytes_of(b);
    x->space_bytes = bytes_of(space);
    return dnnl_primitive_create(&x->primitive, x->description) == dnnl_success &&
           make_memory(&x->a, layout_in(x, dnnl_query_src_md, 0)) && make_memory(&x->b, b) &&
           make_memory(&x->c, layout_in(x, dnnl_query_dst_md, 0)) &&
           make_memory(&x->space, space) &&
           (!s->bias || make_memory(&x->bias, layout_in(x, dnnl_query_weights_md, 1)));
}

/* NULL where oneDNN has no primitive of the kind. */
static matmul *find(cache *c, const shape *s) {
    for (int i = 0; i < c->count; i++)
        if (memcmp(&c->made[i].key, s, sizeof *s) == 0) return &c->made[i];
    matmul *x = &c->made[c->count < SHAPES ? c->count++ : c->next++ % SHAPES];
    forget(x);
    if (make(x, s)) return x;
    forget(x);
    return NULL;
}

/* ---- operands ---- */

typedef struct {
    const vlp_operand *x;
    int64_t rows, cols; /* as stored */
    uint16_t *to;       /* dense */
} halving;

static void halve_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const halving *h = ctx;
    for (int64_t i = begin; i < end; i++)
        vlp_kernels_get()->to_bf16(h->cols, (const float *)h->x->data + i * h->x->ld,
                                   h->to + i * h->cols);
}

/* op(A) in the product's type: its own memory, or rounded into scratch. NULL without memory. */
static const void *ready_a(const vlp_product *p, bool parallel) {
    if ((p->a.dtype == VLP_BF16) == p->bf16) return p->a.data;
    halving h = {&p->a, p->a.transposed ? p->k : p->m, p->a.transposed ? p->m : p->k, NULL};
    h.to = vlp_product_scratch(VLP_SCRATCH_PARTIAL, h.rows * h.cols * 2);
    if (!h.to) return NULL;
    if (parallel)
        vlp_parallel_for(h.rows, 16, halve_rows, &h);
    else
        halve_rows(0, h.rows, 0, &h);
    return h.to;
}

typedef struct {
    const vlp_product *p;
    const matmul *x;
    cache *c;
    bool good;
} reordering;

static bool run_reorder(const reordering *r, layout_ref from, void *to) {
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t source = NULL, target = NULL;
    layout_ref like = layout_in(r->x, dnnl_query_weights_md, 0);
    bool good = dnnl_reorder_primitive_desc_create(&description, from, engine, like, engine,
                                                   NULL) == dnnl_success &&
                dnnl_primitive_create(&primitive, description) == dnnl_success &&
                dnnl_memory_create(&source, from, engine, (void *)(uintptr_t)r->p->b.data) ==
                    dnnl_success &&
                dnnl_memory_create(&target, like, engine, to) == dnnl_success;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    good = good && dnnl_primitive_execute(primitive, r->c->stream, 2, args) == dnnl_success &&
           dnnl_stream_wait(r->c->stream) == dnnl_success;
    if (source) dnnl_memory_destroy(source);
    if (target) dnnl_memory_destroy(target);
    if (primitive) dnnl_primitive_destroy(primitive);
    if (description) dnnl_primitive_desc_destroy(description);
    return good;
}

static void reorder(void *ctx, void *to) {
    reordering *r = ctx;
    const vlp_operand *b = &r->p->b;
    layout from;
    r->good = set_matrix(&from, r->p->k, r->p->n, b->ld, b->transposed, b->dtype == VLP_BF16);
    if (!r->good) return;
    r->good = run_reorder(r, ref(&from), to);
    drop(&from);
}

/* op(B) in the primitive's layout: its own memory, kept, or scratch. NULL where it fails. */
static const void *ready_b(const vlp_product *p, const matmul *x, cache *c) {
    if (!x->key.reordered) return p->b.data;
    reordering r = {p, x, c, true};
    if (p->b.packed) {
        vlp_packed_key key = {
            .x = p->b, .k = p->k, .n = p->n, .bf16 = p->bf16, .maker = x->b_maker};
        const void *kept = vlp_packed_form(p->b.packed, &key, x->b_bytes, reorder, &r);
        if (!r.good) vlp_packed_stale(p->b.packed);
        return r.good ? kept : NULL;
    }
    void *to = vlp_product_scratch(VLP_SCRATCH_B, (int64_t)x->b_bytes);
    if (to) reorder(&r, to);
    return r.good ? to : NULL;
}

/* ---- the product ---- */

static shape shape_of(const vlp_product *p, const vlp_result *to, int threads) {
    shape s;
    memset(&s, 0, sizeof s);
    bool a_ready = (p->a.dtype == VLP_BF16) == p->bf16;
    s.m = p->m, s.n = p->n, s.k = p->k;
    s.ta = p->a.transposed, s.tb = p->b.transposed;
    s.lda = a_ready ? p->a.ld : s.ta ? p->m : p->k;
    s.ldc = to->ld;
    s.threads = threads;
    s.act = p->pre.data ? VLP_ACT_NONE : (int32_t)p->act;
    s.bf16 = p->bf16;
    s.reordered = p->b.packed || (p->b.dtype == VLP_BF16) != p->bf16;
    s.ldb = s.reordered ? 0 : p->b.ld;
    s.c_half = to->dtype == VLP_BF16;
    s.bias = p->bias != NULL;
    s.sum = p->beta != 0;
    return s;
}

static bool execute(const vlp_product *p, const vlp_result *to, bool parallel, int threads) {
    cache *c = my_cache();
    if (!c) return false;
    shape s = shape_of(p, to, threads);
    matmul *x = find(c, &s);
    const void *a = x ? ready_a(p, parallel) : NULL, *b = a ? ready_b(p, x, c) : NULL;
    void *space = b ? vlp_product_scratch(VLP_SCRATCH_BLOCK, (int64_t)x->space_bytes) : NULL;
    if (!space) return false;
    dnnl_memory_set_data_handle(x->a, (void *)(uintptr_t)a);
    dnnl_memory_set_data_handle(x->b, (void *)(uintptr_t)b);
    dnnl_memory_set_data_handle(x->c, to->data);
    dnnl_memory_set_data_handle(x->space, space);
    if (x->bias) dnnl_memory_set_data_handle(x->bias, (void *)(uintptr_t)p->bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x->a},
                                    {DNNL_ARG_WEIGHTS, x->b},
                                    {DNNL_ARG_DST, x->c},
                                    {DNNL_ARG_SCRATCHPAD, x->space},
                                    {DNNL_ARG_BIAS, x->bias}};
    return dnnl_primitive_execute(x->primitive, c->stream, x->bias ? 5 : 4, args) == dnnl_success &&
           dnnl_stream_wait(c->stream) == dnnl_success;
}

enum { CHUNK = 256 };

static void load(const vlp_result *from, int64_t at, int64_t n, float *x) {
    if (from->dtype == VLP_BF16)
        vlp_kernels_get()->from_bf16(n, (const uint16_t *)from->data + at, x);
    else
        memcpy(x, (const float *)from->data + at, (size_t)n * sizeof *x);
}

static void store(const vlp_result *to, int64_t at, int64_t n, const float *x) {
    if (to->dtype == VLP_BF16)
        vlp_kernels_get()->to_bf16(n, x, (uint16_t *)to->data + at);
    else
        memcpy((float *)to->data + at, x, (size_t)n * sizeof *x);
}

/* C = act(pre), as pre was stored */
static void activate_rows(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    const vlp_product *p = ctx;
    const vlp_kernels *k = vlp_kernels_get();
    float x[CHUNK];
    for (int64_t row = begin; row < end; row++)
        for (int64_t col = 0; col < p->n; col += CHUNK) {
            int64_t n = p->n - col < CHUNK ? p->n - col : CHUNK;
            load(&p->pre, row * p->pre.ld + col, n, x);
            (p->c.dtype == VLP_BF16 ? k->act_half : k->act)(n, p->act, x, x);
            store(&p->c, row * p->c.ld + col, n, x);
        }
}

static bool supports(const vlp_product *p) {
    bool a_fits = p->bf16 || p->a.dtype == VLP_REAL, b_fits = p->bf16 || p->b.dtype == VLP_REAL;
    bool kept = !p->pre.data || p->pre.dtype == VLP_REAL || p->c.dtype == VLP_BF16;
    return p->k > 0 && p->alpha == 1 && a_fits && b_fits && kept;
}

bool vlp_product_onednn(const vlp_product *p, bool parallel) {
    if (!supports(p)) return false;
    bool inside = omp_in_parallel();
    int threads = parallel && !inside ? vlp_threads_get() : 1;
    if (!inside && omp_get_max_threads() != threads) omp_set_num_threads(threads);
    const vlp_result *to = p->pre.data ? &p->pre : &p->c;
    if (!execute(p, to, parallel, threads)) return false;
    if (!p->pre.data) return true;
    if (parallel)
        vlp_parallel_for(p->m, 16, activate_rows, (void *)(uintptr_t)p);
    else
        activate_rows(0, p->m, 0, (void *)(uintptr_t)p);
    return true;
}

const char *vlp_onednn_version(void) {
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

#else

bool vlp_product_onednn(const vlp_product *p, bool parallel) {
    (void)p;
    (void)parallel;
    return false;
}

const char *vlp_onednn_version(void) {
    return NULL;
}

#endif
