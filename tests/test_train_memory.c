/* A warm step of a whole run allocates nothing, and the memory that the rehearsal reserved is
 * enough for every batch. */
#include "tests/fixture_corpus.h"

#include "core/tape.h"
#include "core/threads.h"
#include "tests/valgrind.h"
#include "train/trainer_internal.h"

#include <malloc.h>

/* Every allocation of a thread, those of OpenBLAS and OpenMP included. Sanitizers have their own
 * malloc; there the library's count must do. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif
#endif

#if defined(__GLIBC__) && !defined(WITH_SANITIZER)
static _Thread_local long in_thread;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static void count(void) {
    in_thread++;
}

void *malloc(size_t bytes) {
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size) {
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *pointer, size_t bytes) {
    count();
    return __libc_realloc(pointer, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    count();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    *out = memalign(alignment, bytes);
    return *out ? 0 : 12;
}

static int64_t thread_allocations(void) {
    return in_thread;
}
#else
static int64_t thread_allocations(void) {
    return 0; /* the library's count does not know threads */
}
#endif

enum { PICTURES = 12, WARM = 30, STEPS = 80 };

typedef struct {
    int64_t library_warm, thread_first, library_last, thread_last;
} watch;

static void on_step(const vlp_train_progress *p, void *user) {
    watch *w = user;
    w->library_last = vlp_alloc_count();
    w->thread_last = thread_allocations();
    if (p->step == 1) w->thread_first = w->thread_last;
    if (p->step == WARM) w->library_warm = w->library_last;
}

/* The trainer's thread allocates nothing after the first step. The loader's threads decode pictures
 * in the first epochs; when all lie in the cache, only SQLite allocates there.
 * One thread: of several, one may come to its first sample, and to its buffers, at any step. */
static watch run_watched(const char *recipe_name, const char *keys) {
    corpus c;
    watch w = {0};
    char all[256];
    vlp_recipe recipe;
    fixture_run run;
    vlp_trainer *t;
    vlp_train_summary summary;
    fixture_open(&c, PICTURES);
    snprintf(all, sizeof all,
             "steps=%d eval_every=1000000 checkpoint_minutes=0 data.test=none "
             "loader.threads=1 %s",
             under_valgrind() ? 4 : STEPS, keys);
    assert_int_equal(fixture_recipe(&recipe, recipe_name, all), VLP_OK);
    vlp_train_options *options = fixture_options(&run, &c, "run");
    options->on_step = on_step;
    options->user = &w;
    if (vlp_trainer_open(&t, &recipe, options) != VLP_OK || vlp_trainer_run(t, &summary) != VLP_OK)
        fail_msg("%s", vlp_error());
    vlp_trainer_free(t);
    corpus_close(&c);
    return w;
}

/* valgrind's allocator is not counted, and so few steps do not fill the cache. */
static void assert_nothing_allocated(const watch *w) {
    if (under_valgrind()) return;
    assert_int_equal(w->thread_last - w->thread_first, 0);
    assert_int_equal(w->library_last - w->library_warm, 0);
}

static void test_train_memory__warm_steps_allocate_nothing(void **state) {
    (void)state;
    watch w = run_watched("vlp", "ema=0.9 accumulate=2 dropout=0.1 drop_path=0.1 "
                                 "mlm.whole_words=true augment.jitter=0.2");
    assert_nothing_allocated(&w);
}

static void test_train_memory__warm_steps_of_clip_allocate_nothing(void **state) {
    (void)state;
    watch w = run_watched("clip", "");
    assert_nothing_allocated(&w);
}

/* Captions from nothing but special tokens to more tokens than fit. */
static void open_uneven(corpus *c) {
    static const char *const captions[] = {
        "[SEP]", "x", "[MASK] [MASK] [PAD]", "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "a b",
    };
    vlp_buf rows = {0};
    corpus_open(c);
    for (int i = 0; i < 40; i++) {
        char name[64];
        fixture_name(name, sizeof name, i);
        fixture_picture(c, name, i);
        fixture_row(&rows, name, i, "train", captions[i % (int)VLP_COUNT(captions)]);
    }
    fixture_index(c, &rows);
    vlp_buf_free(&rows);
}

static void test_train_memory__rehearsed_memory_is_enough_for_uneven_captions(void **state) {
    (void)state;
    static const char *const keys[] = {
        "steps=200 batch=3 eval_every=1000",
        "steps=60 batch=3 eval_every=1000 mlm.probability=1",
        "steps=60 batch=5 eval_every=1000 mlm.whole_words=true mim.ratio=1 dropout=0.1",
        "steps=60 batch=2 eval_every=1000 mim.ratio=0",
        "steps=60 batch=4 eval_every=1000 itm.share=0.5 mlm.share=0.5 mim.share=0.25",
    };
    corpus c;
    open_uneven(&c);
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        char out[16];
        char all[200];
        snprintf(out, sizeof out, "run%zu", i);
        snprintf(all, sizeof all, "%s%s", keys[i], under_valgrind() ? " steps=6" : "");
        if (fixture_train(&c, "vlp", out, all) != VLP_OK) fail_msg("%s: %s", keys[i], vlp_error());
    }
    corpus_close(&c);
}

static void test_train_memory__captions_without_ordinary_tokens_train(void **state) {
    (void)state;
    corpus c;
    fixture_open_captioned(&c, 10, "[SEP]");
    if (fixture_train(&c, "vlp", "run", "steps=6") != VLP_OK) fail_msg("%s", vlp_error());
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_memory__warm_steps_allocate_nothing),
        cmocka_unit_test(test_train_memory__warm_steps_of_clip_allocate_nothing),
        cmocka_unit_test(test_train_memory__rehearsed_memory_is_enough_for_uneven_captions),
        cmocka_unit_test(test_train_memory__captions_without_ordinary_tokens_train),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
