/* Ranks that are threads of one process. */
#include "core/comm.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 3, N = 4 };

typedef struct {
    vlp_comm *comm;
    vlp_real all[RANKS * N], sum[N];
    bool gives_up;
    vlp_status status;
} rank_state;

static void *exchange(void *ctx) {
    rank_state *r = ctx;
    vlp_real mine[N];
    if (r->gives_up) {
        vlp_comm_abandon(r->comm);
        return NULL;
    }
    for (int i = 0; i < N; i++) r->sum[i] = mine[i] = (vlp_real)(10 * r->comm->rank + i);
    for (int round = 0; round < 100; round++) vlp_comm_all_gather(r->comm, mine, N, r->all);
    r->status = vlp_comm_all_reduce(r->comm, r->sum, N);
    return NULL;
}

static void run(rank_state *ranks, vlp_comm_group *group) {
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++) {
        ranks[i].comm = vlp_comm_group_rank(group, i);
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
}

static void test_core_comm__every_rank_gets_all_rows_and_the_sum(void **state) {
    (void)state;
    vlp_comm_group *group;
    rank_state ranks[RANKS] = {0};
    assert_int_equal(vlp_comm_group_new(&group, RANKS), VLP_OK);
    run(ranks, group);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].status, VLP_OK);
        for (int i = 0; i < RANKS * N; i++)
            assert_true(ranks[r].all[i] == (vlp_real)(i / N * 10 + i % N));
        for (int i = 0; i < N; i++) assert_true(ranks[r].sum[i] == (vlp_real)(30 + 3 * i));
    }
    vlp_comm_group_free(group);
}

static void test_core_comm__a_rank_that_gives_up_stops_the_others(void **state) {
    (void)state;
    vlp_comm_group *group;
    rank_state ranks[RANKS] = {[1] = {.gives_up = true}};
    assert_int_equal(vlp_comm_group_new(&group, RANKS), VLP_OK);
    run(ranks, group);
    assert_int_equal(ranks[0].status, VLP_ERR_INTERRUPTED);
    assert_int_equal(ranks[2].status, VLP_ERR_INTERRUPTED);
    vlp_comm_group_free(group);
}

static void test_core_comm__one_process_exchanges_with_itself(void **state) {
    (void)state;
    vlp_real mine[] = {1, 2}, all[2] = {0};
    vlp_comm *comm = vlp_comm_single();
    assert_int_equal(vlp_comm_all_gather(comm, mine, 2, all), VLP_OK);
    assert_int_equal(vlp_comm_all_reduce(comm, mine, 2), VLP_OK);
    assert_true(all[0] == 1 && all[1] == 2 && mine[0] == 1 && mine[1] == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_comm__every_rank_gets_all_rows_and_the_sum),
        cmocka_unit_test(test_core_comm__a_rank_that_gives_up_stops_the_others),
        cmocka_unit_test(test_core_comm__one_process_exchanges_with_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
