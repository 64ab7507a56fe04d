#include "core/pool.h"
#include "core/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 1 << 20, BLOCKS = 64 };

typedef struct {
    vlp_arena arena;
    vlp_pool pool;
} world;

static void open_world(world *w) {
    assert_int_equal(vlp_arena_open(&w->arena, BYTES), VLP_OK);
    assert_int_equal(vlp_pool_open(&w->pool, &w->arena), VLP_OK);
}

static void close_world(world *w) {
    vlp_pool_close(&w->pool);
    vlp_arena_close(&w->arena);
}

static void test_core_pool__the_best_hole_is_filled(void **state) {
    (void)state;
    world w;
    open_world(&w);
    uint8_t *x[6];
    static const size_t sizes[] = {640, 64, 128, 64, 192, 64};
    for (int i = 0; i < 6; i++) x[i] = vlp_pool_take(&w.pool, sizes[i]);
    vlp_pool_give(&w.pool, x[0], 640);
    vlp_pool_give(&w.pool, x[4], 192);
    vlp_pool_give(&w.pool, x[2], 128);
    assert_ptr_equal(vlp_pool_take(&w.pool, 150), x[4]);
    assert_ptr_equal(vlp_pool_take(&w.pool, 1), x[2]);
    assert_ptr_equal(vlp_pool_take(&w.pool, 64), x[2] + 64);
    assert_ptr_equal(vlp_pool_take(&w.pool, 64), x[0]);
    close_world(&w);
}

static void test_core_pool__neighbours_join_and_the_end_comes_back(void **state) {
    (void)state;
    world w;
    open_world(&w);
    uint8_t *x[4];
    for (int i = 0; i < 4; i++) x[i] = vlp_pool_take(&w.pool, 100);
    vlp_pool_give(&w.pool, x[0], 100);
    vlp_pool_give(&w.pool, x[2], 100);
    assert_int_equal(w.pool.count, 2);
    vlp_pool_give(&w.pool, x[1], 100);
    assert_int_equal(w.pool.count, 1);
    assert_int_equal(w.arena.used, 4 * 128);
    vlp_pool_give(&w.pool, x[3], 100);
    assert_int_equal(w.pool.count, 0);
    assert_int_equal(w.arena.used, 0);
    assert_int_equal(w.arena.peak, 4 * 128);
    assert_null(vlp_pool_take(&w.pool, BYTES + 8192));
    assert_null(vlp_pool_take(&w.pool, SIZE_MAX));
    close_world(&w);
}

/* Blocks that live at the same time never overlap, whatever the order. */
static void test_core_pool__living_blocks_keep_their_bytes(void **state) {
    (void)state;
    world w;
    uint8_t *x[BLOCKS] = {0};
    size_t bytes[BLOCKS] = {0};
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_TEST, 0, 0);
    open_world(&w);
    for (int round = 0; round < 20000; round++) {
        int i = (int)vlp_rng_below(&rng, BLOCKS);
        if (x[i]) {
            for (size_t j = 0; j < bytes[i]; j++) assert_int_equal(x[i][j], i);
            vlp_pool_give(&w.pool, x[i], bytes[i]);
            x[i] = NULL;
        } else {
            bytes[i] = vlp_rng_below(&rng, 2000);
            x[i] = vlp_pool_take(&w.pool, bytes[i]);
            assert_non_null(x[i]);
            memset(x[i], i, bytes[i]);
        }
    }
    for (int i = 0; i < BLOCKS; i++)
        if (x[i]) vlp_pool_give(&w.pool, x[i], bytes[i]);
    assert_int_equal(w.arena.used, 0);
    assert_int_equal(w.pool.count, 0);
    assert_true(w.arena.peak < 2 * BLOCKS * 1000);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_pool__the_best_hole_is_filled),
        cmocka_unit_test(test_core_pool__neighbours_join_and_the_end_comes_back),
        cmocka_unit_test(test_core_pool__living_blocks_keep_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
