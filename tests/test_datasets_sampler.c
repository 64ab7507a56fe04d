#include "datasets/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void test_datasets_sampler__permutation_hits_every_row_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 4096, 65537};
    for (size_t s = 0; s < VLP_COUNT(sizes); s++) {
        int64_t n = sizes[s];
        char *seen = calloc((size_t)n, 1);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = vlp_permute(123, n, i);
            assert_true(at >= 0 && at < n);
            assert_int_equal(seen[at]++, 0);
        }
        free(seen);
    }
}

static void test_datasets_sampler__large_domains_work(void **state) {
    (void)state;
    int64_t n = (int64_t)1 << 40;
    assert_true(vlp_permute(1, n, 0) != vlp_permute(1, n, 1));
    assert_true(vlp_permute(1, n, n - 1) < n);
}

/* Blocks of 7 rows, 3 at a time: each row once, and neighbours of the order lie near each other. */
static void test_datasets_sampler__blocks_are_complete_and_near(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 6, 7, 8, 21, 22, 100, 1000};
    for (size_t k = 0; k < VLP_COUNT(sizes); k++) {
        vlp_pool pool = {sizes[k], 1};
        vlp_sampler *s;
        assert_int_equal(vlp_sampler_new(&s, 4, &pool, 1), VLP_OK);
        vlp_sampler_set_blocks(s, 7, 3);
        char seen[2][1000] = {{0}};
        bool differs = false, moved = false;
        for (int64_t i = 0; i < 2 * sizes[k]; i++) {
            vlp_sample a = vlp_sampler_at(s, i), b = vlp_sampler_at(s, (i + sizes[k]));
            assert_in_range(a.row, 0, sizes[k] - 1);
            assert_int_equal(seen[i / sizes[k]][a.row]++, 0);
            differs |= a.row != b.row;
            moved |= a.row != i % sizes[k];
        }
        int64_t blocks[143] = {0}, n = 0;
        for (int64_t i = 0; i < 21 && sizes[k] == 1000; i++)
            n += blocks[vlp_sampler_at(s, i).row / 7]++ == 0;
        if (sizes[k] == 1000) assert_int_equal(n, 3);
        if (sizes[k] > 20) assert_true(differs && moved);
        vlp_sampler_free(s);
    }
}

/* Rows of the first half should fall evenly over the order, and keys should give other orders. */
static void test_datasets_sampler__order_looks_random(void **state) {
    (void)state;
    enum { N = 10000 };
    int low = 0, same = 0, steps = 0;
    for (int64_t i = 0; i < N; i++) {
        int64_t at = vlp_permute(5, N, i);
        low += i < N / 2 && at < N / 2;
        same += at == vlp_permute(6, N, i);
        steps += i > 0 && at > vlp_permute(5, N, i - 1);
    }
    assert_in_range(low, N / 4 - 150, N / 4 + 150);
    assert_in_range(steps, N / 2 - 200, N / 2 + 200);
    assert_in_range(same, 0, 10);
}

static void test_datasets_sampler__each_epoch_is_complete_and_differs(void **state) {
    (void)state;
    enum { N = 37, PASSES = 5 };
    vlp_pool pool = {N, 1};
    vlp_sampler *s;
    assert_int_equal(vlp_sampler_new(&s, 9, &pool, 1), VLP_OK);
    int64_t order[PASSES][N];
    for (int64_t pass = 0; pass < PASSES; pass++) {
        int seen[N] = {0};
        for (int64_t i = 0; i < N; i++) {
            vlp_sample sample = vlp_sampler_at(s, pass * N + i);
            assert_int_equal(sample.pass, pass);
            seen[sample.row]++;
            order[pass][i] = sample.row;
        }
        for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
        if (pass) assert_memory_not_equal(order[pass], order[pass - 1], sizeof order[0]);
    }
    assert_int_equal(vlp_sampler_epoch_size(s), N);
    vlp_sampler_free(s);
}

static void test_datasets_sampler__mixture_keeps_shares_and_walks_each_pool(void **state) {
    (void)state;
    vlp_pool pools[] = {{5, 1}, {60, 2}, {3, 1e-9}};
    vlp_sampler *s;
    assert_int_equal(vlp_sampler_new(&s, 9, pools, 3), VLP_OK);
    enum { N = 4096 * 3 };
    int64_t counts[3] = {0}, rows[3][60] = {{0}};
    for (int64_t i = 0; i < N; i++) {
        vlp_sample sample = vlp_sampler_at(s, i);
        counts[sample.pool]++;
        assert_true(sample.row < pools[sample.pool].rows);
        rows[sample.pool][sample.row]++;
    }
    assert_int_equal(counts[2], 3); /* the least share: one in a block */
    assert_in_range(counts[0], N / 3 - 6, N / 3 + 6);
    for (int p = 0; p < 2; p++)
        for (int64_t r = 1; r < pools[p].rows; r++)
            assert_in_range(rows[p][r] - rows[p][0] + 1, 0, 2);
    vlp_sampler_free(s);
}

static void test_datasets_sampler__empty_pools_are_refused(void **state) {
    (void)state;
    vlp_sampler *s;
    vlp_pool empty = {0, 1}, weightless = {5, 0};
    assert_int_equal(vlp_sampler_new(&s, 1, &empty, 1), VLP_ERR_USAGE);
    assert_int_equal(vlp_sampler_new(&s, 1, &weightless, 1), VLP_ERR_USAGE);
    assert_int_equal(vlp_sampler_new(&s, 1, &empty, 0), VLP_ERR_USAGE);
    vlp_sampler_free(NULL);
}

/* Runs of one pool, and still each row once a pass. */
static void test_datasets_sampler__runs_come_from_one_pool(void **state) {
    (void)state;
    enum { RUN = 8, POSITIONS = RUN * 4096 };
    vlp_pool pools[] = {{1000, 3}, {500, 1}};
    vlp_sampler *s;
    assert_int_equal(vlp_sampler_new(&s, 4, pools, 2), VLP_OK);
    vlp_sampler_set_run(s, RUN);
    static int seen[2][1000];
    int64_t from_second = 0;
    for (int64_t i = 0; i < POSITIONS; i++) {
        vlp_sample sample = vlp_sampler_at(s, i);
        assert_int_equal(sample.pool, vlp_sampler_at(s, i / RUN * RUN).pool);
        if (sample.pass == 0) seen[sample.pool][sample.row]++;
        from_second += sample.pool;
    }
    for (int p = 0; p < 2; p++)
        for (int64_t r = 0; r < pools[p].rows; r++) assert_int_equal(seen[p][r], 1);
    assert_int_equal(from_second, POSITIONS / 4);
    vlp_sampler_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_sampler__permutation_hits_every_row_once),
        cmocka_unit_test(test_datasets_sampler__large_domains_work),
        cmocka_unit_test(test_datasets_sampler__blocks_are_complete_and_near),
        cmocka_unit_test(test_datasets_sampler__order_looks_random),
        cmocka_unit_test(test_datasets_sampler__each_epoch_is_complete_and_differs),
        cmocka_unit_test(test_datasets_sampler__mixture_keeps_shares_and_walks_each_pool),
        cmocka_unit_test(test_datasets_sampler__empty_pools_are_refused),
        cmocka_unit_test(test_datasets_sampler__runs_come_from_one_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
