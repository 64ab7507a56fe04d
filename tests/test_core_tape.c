#include "core/memory.h"
#include "core/ops.h"
#include "core/params.h"
#include "core/threads.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/valgrind.h"

/* Every allocation of the process, those of OpenBLAS and OpenMP included. Sanitizers have their own
 * malloc; there the library's count must do. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif
#endif

#if defined(__GLIBC__) && !defined(WITH_SANITIZER)
static atomic_long mallocs;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    atomic_fetch_add(&mallocs, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&mallocs, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t bytes) {
    atomic_fetch_add(&mallocs, 1);
    return __libc_realloc(pointer, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    atomic_fetch_add(&mallocs, 1);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    *out = memalign(alignment, bytes);
    return *out ? 0 : 12;
}

static int64_t allocations(void) {
    return atomic_load(&mallocs);
}
#else
static int64_t allocations(void) {
    return vlp_alloc_count();
}
#endif

/* A small language model: ids -> embedding -> LAYERS x (norm, gelu, linear, dropout) -> attention
 * -> loss. */
enum { BATCH = 5, LENGTH = 7, WIDTH = 48, VOCABULARY = 31, LAYERS = 3, N = BATCH * LENGTH };

typedef struct {
    vlp_tape *tape;
    vlp_params *params;
    vlp_tensor *table, *positions, *scale, *bias, *up, *up_bias, *down;
    int32_t ids[N], rows[N], targets[N];
} world;

static void declare(world *w) {
    vlp_init small = VLP_INIT_NORMAL(0.3), one = VLP_INIT_CONSTANT(1);
    int64_t d = WIDTH;
    w->table =
        vlp_params_add(w->params, "table", small, VLP_NO_DECAY, 2, (int64_t[]){VOCABULARY, d});
    w->positions =
        vlp_params_add(w->params, "positions", small, VLP_NO_DECAY, 2, (int64_t[]){LENGTH, d});
    w->scale = vlp_params_add(w->params, "scale", one, VLP_NO_DECAY, 1, &d);
    w->bias = vlp_params_add(w->params, "bias", small, VLP_NO_DECAY, 1, &d);
    w->up = vlp_params_add(w->params, "up", small, VLP_DECAY, 2, (int64_t[]){2 * d, d});
    w->up_bias = vlp_params_add(w->params, "up_bias", small, VLP_NO_DECAY, 1, (int64_t[]){2 * d});
    w->down = vlp_params_add(w->params, "down", small, VLP_DECAY, 2, (int64_t[]){d, 2 * d});
}

static int setup(void **state) {
    static world w;
    w = (world){0};
    *state = &w;
    if (vlp_tape_new(&w.tape) != VLP_OK || vlp_params_new(&w.params) != VLP_OK) return -1;
    declare(&w);
    if (vlp_params_allocate(w.params, true) != VLP_OK) return -1;
    vlp_params_init(w.params, 11);
    for (int i = 0; i < N; i++) {
        w.ids[i] = i * 7 % VOCABULARY;
        w.rows[i] = i * 3 % N;
        w.targets[i] = i % 4 ? i * 5 % VOCABULARY : -1;
    }
    vlp_tape_set_training(w.tape, true);
    return 0;
}

static int teardown(void **state) {
    world *w = *state;
    vlp_tape_free(w->tape);
    vlp_params_free(w->params);
    return vlp_threads_set(0) == VLP_OK ? 0 : -1;
}

static vlp_tensor *block(world *w, vlp_tensor *x, vlp_tensor **stream) {
    vlp_tensor *y = vlp_add_layer_norm(w->tape, x, *stream, w->scale, w->bias, 1e-5, stream);
    y = vlp_linear(w->tape, y, w->up, w->up_bias, VLP_ACT_GELU);
    return vlp_dropout(w->tape, vlp_linear(w->tape, y, w->down, NULL, VLP_ACT_NONE), 0.1);
}

static vlp_tensor *build(world *w) {
    vlp_tensor *x = vlp_embedding(w->tape, w->table, w->ids, 2, (int64_t[]){BATCH, LENGTH}, 0);
    x = vlp_add_positions(w->tape, x, w->positions, 0);
    vlp_tensor *stream = x;
    for (int i = 0; i < LAYERS; i++) x = block(w, x, &stream);
    x = vlp_attention(w->tape, &(vlp_attention_args){.q = x,
                                                     .k = x,
                                                     .v = stream,
                                                     .heads = 4,
                                                     .head_width = WIDTH / 4,
                                                     .causal = true,
                                                     .dropout = 0.1});
    x = vlp_gather_rows(w->tape, x, w->rows, N);
    x = vlp_linear(w->tape, x, w->table, NULL, VLP_ACT_NONE);
    return vlp_cross_entropy(w->tape, x, w->targets, 0);
}

static void plan(world *w) {
    assert_int_equal(vlp_tape_plan(w->tape), VLP_OK);
    assert_int_equal(vlp_tape_backward(w->tape, build(w)), VLP_OK);
}

static vlp_real run_step(world *w, uint64_t step) {
    vlp_params_zero_grads(w->params);
    vlp_tape_begin(w->tape, 3, step);
    vlp_tensor *loss = build(w);
    vlp_status status = vlp_tape_backward(w->tape, loss);
    if (status != VLP_OK) fail_msg("%s", vlp_error());
    return vlp_real_data(loss)[0];
}

/* The step fits into what the rehearsal counted, and needs no less. */
static void test_core_tape__rehearsal_counts_what_the_step_uses(void **state) {
    world *w = *state;
    for (int reuse = 0; reuse < 2; reuse++) {
        vlp_tape_set_reuse(w->tape, reuse);
        plan(w);
        size_t planned = vlp_tape_bytes(w->tape);
        assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
        assert_int_equal(vlp_tape_bytes(w->tape), planned);
        for (uint64_t i = 0; i < 2; i++) {
            run_step(w, i);
            assert_int_equal(vlp_tape_used(w->tape), planned);
        }
        assert_null(vlp_tape_alloc(w->tape, planned + 4097));
        assert_int_equal(vlp_tape_status(w->tape), VLP_ERR_MEMORY);
    }
}

/* Backward passes what it is done with to gradients, so the peak is hardly above what forward
 * keeps; only scalars can be read afterwards. */
static void test_core_tape__backward_reuses_what_it_has_passed(void **state) {
    world *w = *state;
    size_t bytes = (size_t)w->params->total * sizeof(vlp_real), planned[2];
    vlp_real *grads = vlp_alloc(bytes), loss[2];
    for (int reuse = 0; reuse < 2; reuse++) {
        vlp_tape_set_reuse(w->tape, reuse);
        vlp_tape_set_poison(w->tape, reuse);
        plan(w);
        planned[reuse] = vlp_tape_bytes(w->tape);
        assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
        loss[reuse] = run_step(w, 1);
        if (reuse) assert_memory_equal(grads, w->params->grads, bytes);
        memcpy(grads, w->params->grads, bytes);
    }
    assert_true(loss[0] == loss[1]);
    assert_true(planned[1] < planned[0]);
    vlp_free(grads);
}

static void test_core_tape__forget_frees_what_backward_does_not_need(void **state) {
    world *w = *state;
    vlp_tape_set_reuse(w->tape, true);
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    vlp_tensor *sum = vlp_add(w->tape, w->positions, w->positions);
    vlp_tensor *twice = vlp_scale(w->tape, sum, 2);
    vlp_tape_forget(w->tape, sum);
    assert_null(sum->data);
    vlp_tensor *square = vlp_mul(w->tape, twice, twice); /* whose backward reads its inputs */
    vlp_tape_forget(w->tape, twice);
    assert_non_null(twice->data);
    vlp_tensor *view = vlp_reshape(w->tape, square, 1, (int64_t[]){LENGTH * WIDTH});
    vlp_tape_forget(w->tape, square);
    assert_ptr_equal(view->data, square->data);
    vlp_tape_set_grad(w->tape, false);
    vlp_tape_forget(w->tape, view);
    vlp_tape_forget(w->tape, NULL);
    assert_non_null(view->data);
}

/* Whichever op is the first to find the memory full, the step fails in order. */
static void test_core_tape__every_shortage_of_memory_is_reported(void **state) {
    world *w = *state;
    plan(w);
    size_t planned = vlp_tape_bytes(w->tape);
    int failures = 0, in_backward = 0;
    for (size_t bytes = 0; bytes <= planned; bytes += 1 + planned / 150) {
        vlp_tape_begin(w->tape, 0, 0);
        assert_int_equal(vlp_tape_plan(w->tape), VLP_OK);
        assert_int_equal(vlp_tape_open(w->tape, bytes), VLP_OK);
        vlp_tensor *loss = build(w);
        vlp_status built = vlp_tape_status(w->tape), status = vlp_tape_backward(w->tape, loss);
        assert_true((built == VLP_OK) == (loss != NULL));
        failures += built != VLP_OK;
        in_backward += built == VLP_OK && status != VLP_OK;
    }
    assert_true(failures > 20 && in_backward > 5);
    vlp_tape_begin(w->tape, 0, 0);
    assert_int_equal(vlp_tape_backward(w->tape, build(w)), VLP_OK);
}

static void test_core_tape__failure_is_sticky_until_the_next_step(void **state) {
    world *w = *state;
    plan(w);
    size_t planned = vlp_tape_bytes(w->tape);
    vlp_tape *tape = NULL;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    assert_int_equal(vlp_tape_open(tape, planned / 4), VLP_OK);
    vlp_tape *roomy = w->tape;
    w->tape = tape;
    assert_null(build(w));
    assert_int_equal(vlp_tape_status(tape), VLP_ERR_MEMORY);
    assert_non_null(strstr(vlp_error(), "a step needs more than"));
    assert_null(vlp_add(tape, w->table, w->table));
    vlp_tensor *sum = w->table;
    assert_null(vlp_add_layer_norm(tape, w->table, w->table, w->scale, NULL, 1e-5, &sum));
    assert_null(sum);
    assert_int_equal(vlp_tape_backward(tape, NULL), VLP_ERR_MEMORY);
    vlp_tape_begin(tape, 0, 0);
    assert_int_equal(vlp_tape_status(tape), VLP_OK);
    assert_non_null(vlp_scale(tape, w->positions, 2));
    w->tape = roomy;
    vlp_tape_free(tape);
}

static void test_core_tape__same_seed_and_threads_give_the_same_bits(void **state) {
    world *w = *state;
    size_t bytes = (size_t)w->params->total * sizeof(vlp_real);
    vlp_real *grads = vlp_alloc(bytes);
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        plan(w);
        assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
        vlp_real loss = run_step(w, 4);
        memcpy(grads, w->params->grads, bytes);
        assert_true(run_step(w, 5) != loss); /* other dropout */
        assert_true(run_step(w, 4) == loss);
        assert_memory_equal(grads, w->params->grads, bytes);
    }
    vlp_free(grads);
}

static void test_core_tape__warm_step_allocates_nothing(void **state) {
    world *w = *state;
    for (int threads = 1; threads <= 4; threads++) {
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        plan(w);
        assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
        run_step(w, 0);
        if (under_valgrind()) continue; /* it counts nothing there */
        int64_t before = allocations();
        vlp_free(vlp_alloc(1));
        assert_int_equal(allocations(), before + 1); /* the counter counts */
        run_step(w, 1);
        run_step(w, 2);
        assert_int_equal(allocations(), before + 1);
    }
}

/* A residual chain of wide and narrow gradients; returns the bytes that the backward pass adds. */
static size_t gradient_bytes(world *w, int layers) {
    assert_int_equal(vlp_tape_plan(w->tape), VLP_OK);
    vlp_tensor *x = vlp_embedding(w->tape, w->table, w->ids, 1, (int64_t[]){N}, -1);
    vlp_tensor *stream = x;
    for (int i = 0; i < layers; i++) x = block(w, x, &stream);
    x = vlp_linear(w->tape, vlp_add(w->tape, x, stream), w->table, NULL, VLP_ACT_NONE);
    vlp_tensor *loss = vlp_cross_entropy(w->tape, x, w->targets, 0);
    size_t forward = vlp_tape_bytes(w->tape);
    assert_int_equal(vlp_tape_backward(w->tape, loss), VLP_OK);
    return vlp_tape_bytes(w->tape) - forward;
}

static void test_core_tape__gradients_of_a_deep_chain_are_reused(void **state) {
    world *w = *state;
    size_t shallow = gradient_bytes(w, 2), deep = gradient_bytes(w, 50);
    assert_true(shallow > 0);
    assert_int_equal(deep, shallow);
    assert_in_range(deep, 0, 8 * N * WIDTH * sizeof(vlp_real));
}

/* One layer of inference on ids, repeated, with the layers' memory released or not. */
static vlp_tensor *infer(world *w, int layers, bool release) {
    vlp_tensor *x = vlp_embedding(w->tape, w->table, w->ids, 1, (int64_t[]){N}, -1);
    for (int i = 0; i < layers; i++) {
        size_t mark = vlp_tape_mark(w->tape);
        vlp_tensor *stream = NULL;
        x = block(w, x, &stream);
        if (release) x = vlp_tape_release(w->tape, mark, x);
    }
    return x;
}

static size_t inference_bytes(world *w, int layers) {
    assert_int_equal(vlp_tape_plan(w->tape), VLP_OK);
    assert_non_null(infer(w, layers, true));
    return vlp_tape_bytes(w->tape);
}

static void test_core_tape__release_drops_intermediates_of_inference(void **state) {
    world *w = *state;
    vlp_tape_set_grad(w->tape, false);
    size_t one = inference_bytes(w, 1), many = inference_bytes(w, 20);
    /* Each layer's result stays; everything between is dropped. */
    assert_in_range(many, one, one + 20 * N * WIDTH * sizeof(vlp_real));
    assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
    vlp_tensor *x = infer(w, 20, true);
    assert_non_null(x);
    vlp_real kept[N * WIDTH];
    memcpy(kept, x->data, sizeof kept);
    assert_int_equal(vlp_tape_open(w->tape, 20 * many), VLP_OK);
    assert_memory_equal(vlp_real_data(infer(w, 20, false)), kept, sizeof kept);
}

static void test_core_tape__release_keeps_all_when_gradients_are_on(void **state) {
    world *w = *state;
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    size_t mark = vlp_tape_mark(w->tape);
    vlp_tensor *x = vlp_scale(w->tape, vlp_scale(w->tape, w->positions, 2), 3);
    void *data = x->data;
    size_t used = vlp_tape_mark(w->tape);
    assert_ptr_equal(vlp_tape_release(w->tape, mark, x), x);
    assert_ptr_equal(x->data, data);
    assert_int_equal(vlp_tape_mark(w->tape), used);
}

static void test_core_tape__release_leaves_older_tensors_alone(void **state) {
    world *w = *state;
    vlp_tape_set_grad(w->tape, false);
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    void *data = w->positions->data;
    vlp_tensor *x = vlp_scale(w->tape, w->positions, 2);
    void *older = x->data;
    size_t mark = vlp_tape_mark(w->tape);
    vlp_scale(w->tape, x, 2);
    assert_ptr_equal(vlp_tape_release(w->tape, mark, w->positions), w->positions);
    assert_ptr_equal(w->positions->data, data);
    assert_ptr_equal(vlp_tape_release(w->tape, mark, x), x);
    assert_ptr_equal(x->data, older);
    assert_int_equal(vlp_tape_mark(w->tape), mark);
}

static void forward_nothing(vlp_node *node) {
    (void)node;
}

static const vlp_op blocking = {
    .name = "blocking", .forward = forward_nothing, .backward = forward_nothing};

static size_t some_scratch(const vlp_node *node) {
    (void)node;
    return 1000;
}

static bool scratch_was_nan;
static size_t scratch_reach;
static void use_scratch(vlp_node *node) {
    volatile uint8_t *work = node->work;
    scratch_was_nan = isnan(((vlp_real *)node->work)[0]) && isnan(((vlp_real *)node->work)[100]);
    work[scratch_reach] = 1;
}

static const vlp_op scribbling = {.name = "scribbling",
                                  .forward = use_scratch,
                                  .backward = forward_nothing,
                                  .workspace = some_scratch};

static vlp_node *scribbler(world *w) {
    vlp_tensor *x = vlp_scale(w->tape, w->positions, 2);
    vlp_node *node = vlp_tape_node(w->tape, &scribbling, &x, 1, 1, NULL, 0);
    vlp_node_view(w->tape, node, 2, x->shape, x->data);
    return node;
}

/* Scratch ends, rounded up to 64 bytes, at a page that nobody may touch. */
static void test_core_tape__scratch_is_poisoned_and_guarded(void **state) {
    world *w = *state;
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    vlp_tape_set_poison(w->tape, true);
    vlp_node *node = scribbler(w), *beyond = scribbler(w);
    scratch_reach = 999;
    vlp_tape_run(w->tape, node);
    assert_true(scratch_was_nan);
    scratch_reach = 1024;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* the test library's handler would go on in the child */
        vlp_tape_run(w->tape, beyond);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); /* sanitizers exit */
    vlp_tape_set_poison(w->tape, false);
}

/* (seed, step) key dropout: both matter, and nothing else does. */
static void test_core_tape__dropout_follows_seed_and_step(void **state) {
    world *w = *state;
    enum { DRAWS = 4 };
    static const uint64_t keys[DRAWS][2] = {{3, 4}, {3, 5}, {4, 4}, {3, 4}};
    vlp_real kept[DRAWS][LENGTH * WIDTH];
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    vlp_tape_set_training(w->tape, true);
    for (int i = 0; i < DRAWS; i++) {
        vlp_tape_begin(w->tape, keys[i][0], keys[i][1]);
        vlp_tensor *x = vlp_dropout(w->tape, w->positions, 0.5);
        assert_int_equal(vlp_numel(x), LENGTH * WIDTH);
        memcpy(kept[i], vlp_real_data(x), sizeof kept[i]);
    }
    assert_memory_not_equal(kept[0], kept[1], sizeof kept[0]);
    assert_memory_not_equal(kept[0], kept[2], sizeof kept[0]);
    assert_memory_not_equal(kept[1], kept[2], sizeof kept[0]);
    assert_memory_equal(kept[0], kept[3], sizeof kept[0]);
}

/* An op that adds nothing to its input's gradient leaves zero there, not the memory's old content.
 */
static void test_core_tape__unwritten_gradient_is_zero(void **state) {
    world *w = *state;
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    memset(vlp_tape_alloc(w->tape, 1 << 19), 0xff, 1 << 19);
    vlp_tape_begin(w->tape, 0, 0);
    vlp_params_zero_grads(w->params);
    vlp_tensor *x = vlp_scale(w->tape, w->positions, 2);
    vlp_node *node = vlp_tape_node(w->tape, &blocking, &x, 1, 1, NULL, 0);
    vlp_tensor *y = vlp_node_view(w->tape, node, 2, x->shape, x->data);
    vlp_tape_run(w->tape, node);
    vlp_tape_seed(w->tape, y, vlp_real_data(w->positions));
    assert_int_equal(vlp_tape_backward(w->tape, NULL), VLP_OK);
    for (int64_t i = 0; i < w->params->total; i++) assert_true(w->params->grads[i] == 0);
}

/* A product's bfloat16 output, seen as another shape, has the product's values. */
static void test_core_tape__narrow_outputs_keep_their_values_in_other_shapes(void **state) {
    world *w = *state;
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    vlp_tape_set_precision(w->tape, VLP_BF16);
    vlp_tape_begin(w->tape, 0, 0);
    vlp_tensor *x = vlp_linear(w->tape, w->positions, w->up, NULL, VLP_ACT_NONE);
    vlp_tensor *y = vlp_reshape(w->tape, x, 2, (int64_t[]){2 * LENGTH, WIDTH});
    assert_int_equal(x->dtype, VLP_BF16);
    const vlp_real *values = vlp_real_data(vlp_to_real(w->tape, x));
    assert_int_equal(vlp_tape_status(w->tape), VLP_OK);
    for (int i = 0; i < 2 * LENGTH * WIDTH; i++) assert_true(vlp_real_data(y)[i] == values[i]);
}

static void test_core_tape__frozen_parameters_get_no_gradient(void **state) {
    world *w = *state;
    assert_int_equal(vlp_params_freeze(w->params, "up", true), 2);
    plan(w);
    assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
    run_step(w, 0);
    for (int i = 0; i < w->params->count; i++) {
        const vlp_param *p = w->params->items[i];
        double squares = vlp_kernels_get()->sum_squares(vlp_numel(&p->tensor), p->tensor.grad);
        if (strncmp(p->name, "up", 2) == 0)
            assert_true(squares == 0);
        else
            assert_true(squares > 0);
    }
}

/* Every op's time and operations land in its row, and the rows' operations sum up to the step's. */
static void test_core_tape__profile_accounts_for_every_op(void **state) {
    world *w = *state;
    static vlp_op_profile profile;
    profile = (vlp_op_profile){0};
    vlp_tape_set_profile(w->tape, &profile);
    plan(w);
    assert_int_equal(profile.count, 0); /* a rehearsal takes no time */
    assert_int_equal(vlp_tape_open(w->tape, 0), VLP_OK);
    vlp_real with = run_step(w, 1);
    double flops = 0;
    for (int i = 0; i < profile.count; i++) {
        const vlp_op_row *row = &profile.rows[i];
        flops += row->forward.flops + row->backward.flops;
        assert_true(row->forward.seconds > 0 && row->backward.seconds > 0);
    }
    assert_true(flops > 0 && flops == vlp_tape_flops(w->tape));
    assert_int_equal(vlp_op_profile_row(&profile, "linear")->forward.calls, 2 * LAYERS + 1);
    assert_int_equal(vlp_op_profile_row(&profile, "linear")->backward.calls, 2 * LAYERS + 1);
    vlp_tape_set_profile(w->tape, NULL);
    assert_true(run_step(w, 1) == with);
    assert_int_equal(vlp_op_profile_row(&profile, "linear")->forward.calls, 2 * LAYERS + 1);
}

/* Ten rows of a table are picked, doubled by adding them to themselves, and seen in another
 * shape. */
static void test_core_tape__profile_counts_what_passes_move(void **state) {
    world *w = *state;
    enum { PICKED = 10 };
    static vlp_op_profile profile;
    profile = (vlp_op_profile){0};
    double block = PICKED * WIDTH * sizeof(vlp_real);
    assert_int_equal(vlp_tape_open(w->tape, 1 << 20), VLP_OK);
    vlp_tape_set_profile(w->tape, &profile);
    vlp_tape_begin(w->tape, 0, 0);
    vlp_tensor *x = vlp_gather_rows(w->tape, w->table, w->rows, PICKED);
    vlp_tensor *y = vlp_add(w->tape, x, x);
    y = vlp_reshape(w->tape, y, 2, (int64_t[]){2 * PICKED, WIDTH / 2});
    vlp_tape_seed(w->tape, y, w->params->values);
    assert_int_equal(vlp_tape_backward(w->tape, NULL), VLP_OK);
    const struct {
        const char *op;
        double forward, backward; /* blocks */
    } want[] = {
        {"gather_rows", 2, 3}, /* its table's gradient is there already: read and written */
        {"add", 2, 2},         /* one input, though twice */
        {"reshape", 0, 2},
    };
    for (size_t i = 0; i < VLP_COUNT(want); i++) {
        const vlp_op_row *row = vlp_op_profile_row(&profile, want[i].op);
        assert_true(fabs(row->forward.bytes / block - want[i].forward) < 1e-9);
        assert_true(fabs(row->backward.bytes / block - want[i].backward) < 1e-9);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_core_tape__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rehearsal_counts_what_the_step_uses),
        TEST(backward_reuses_what_it_has_passed),
        TEST(forget_frees_what_backward_does_not_need),
        TEST(every_shortage_of_memory_is_reported),
        TEST(failure_is_sticky_until_the_next_step),
        TEST(same_seed_and_threads_give_the_same_bits),
        TEST(warm_step_allocates_nothing),
        TEST(scratch_is_poisoned_and_guarded),
        TEST(dropout_follows_seed_and_step),
        TEST(gradients_of_a_deep_chain_are_reused),
        TEST(release_drops_intermediates_of_inference),
        TEST(release_keeps_all_when_gradients_are_on),
        TEST(release_leaves_older_tensors_alone),
        TEST(unwritten_gradient_is_zero),
        TEST(frozen_parameters_get_no_gradient),
        TEST(narrow_outputs_keep_their_values_in_other_shapes),
        TEST(profile_accounts_for_every_op),
        TEST(profile_counts_what_passes_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
