#include "core/comm.h"

#include "core/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* One process -------------------------------------------------------------------------------- */

static vlp_status single_gather(vlp_comm *comm, const vlp_real *mine, int64_t n, vlp_real *all) {
    (void)comm;
    if (n) memcpy(all, mine, (size_t)n * sizeof *all);
    return VLP_OK;
}

static vlp_status single_reduce(vlp_comm *comm, vlp_real *values, int64_t n) {
    (void)comm;
    (void)values;
    (void)n;
    return VLP_OK;
}

static void single_abandon(vlp_comm *comm) {
    (void)comm;
}

vlp_comm *vlp_comm_single(void) {
    static const vlp_comm_kind kind = {single_gather, single_reduce, single_abandon};
    static _Thread_local vlp_comm comm;
    comm = (vlp_comm){.kind = &kind, .size = 1, .status = comm.status};
    return &comm;
}

/* Threads of this process -------------------------------------------------------------------- */

struct vlp_comm_group {
    int size;
    vlp_comm *ranks;
    const vlp_real **slots; /* [size]: what each rank shows the others */
    pthread_mutex_t lock;
    pthread_cond_t turned;
    int waiting;
    int64_t round;
    bool abandoned;
};

/* Waits until every rank is here. */
static vlp_status meet(vlp_comm_group *g) {
    pthread_mutex_lock(&g->lock);
    int64_t round = g->round;
    if (!g->abandoned && ++g->waiting == g->size) {
        g->waiting = 0;
        g->round++;
        pthread_cond_broadcast(&g->turned);
    }
    while (!g->abandoned && g->round == round) pthread_cond_wait(&g->turned, &g->lock);
    bool met = g->round != round;
    pthread_mutex_unlock(&g->lock);
    return met ? VLP_OK : VLP_FAIL(VLP_ERR_INTERRUPTED, "another rank has given up");
}

static vlp_status group_gather(vlp_comm *comm, const vlp_real *mine, int64_t n, vlp_real *all) {
    vlp_comm_group *g = comm->state;
    g->slots[comm->rank] = mine;
    VLP_TRY(meet(g));
    for (int r = 0; r < g->size; r++)
        if (n) memcpy(all + r * n, g->slots[r], (size_t)n * sizeof *all);
    return meet(g); /* nobody touches his slot while others read it */
}

static vlp_status group_reduce(vlp_comm *comm, vlp_real *values, int64_t n) {
    vlp_comm_group *g = comm->state;
    vlp_real *sum = vlp_alloc_zero((size_t)n, sizeof *sum);
    if (!sum) return VLP_ERR_MEMORY;
    g->slots[comm->rank] = values;
    vlp_status status = meet(g);
    for (int r = 0; status == VLP_OK && r < g->size; r++)
        for (int64_t i = 0; i < n; i++) sum[i] += g->slots[r][i];
    if (status == VLP_OK) status = meet(g);
    if (status == VLP_OK && n) memcpy(values, sum, (size_t)n * sizeof *sum);
    vlp_free(sum);
    return status;
}

static void group_abandon(vlp_comm *comm) {
    vlp_comm_group *g = comm->state;
    pthread_mutex_lock(&g->lock);
    g->abandoned = true;
    pthread_cond_broadcast(&g->turned);
    pthread_mutex_unlock(&g->lock);
}

vlp_status vlp_comm_group_new(vlp_comm_group **out, int size) {
    static const vlp_comm_kind kind = {group_gather, group_reduce, group_abandon};
    vlp_comm_group *g = *out = vlp_alloc_zero(1, sizeof *g);
    if (!g) return VLP_ERR_MEMORY;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->turned, NULL);
    g->size = size;
    g->ranks = vlp_alloc_zero((size_t)size, sizeof *g->ranks);
    g->slots = vlp_alloc_zero((size_t)size, sizeof *g->slots);
    if (!g->ranks || !g->slots) {
        vlp_comm_group_free(g);
        *out = NULL;
        return VLP_ERR_MEMORY;
    }
    for (int r = 0; r < size; r++)
        g->ranks[r] = (vlp_comm){.kind = &kind, .rank = r, .size = size, .state = g};
    return VLP_OK;
}

void vlp_comm_group_free(vlp_comm_group *g) {
    if (!g) return;
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->turned);
    vlp_free(g->ranks);
    vlp_free(g->slots);
    vlp_free(g);
}

vlp_comm *vlp_comm_group_rank(vlp_comm_group *g, int rank) {
    return &g->ranks[rank];
}

/* Either ------------------------------------------------------------------------------------- */

vlp_status vlp_comm_all_gather(vlp_comm *comm, const vlp_real *mine, int64_t n, vlp_real *all) {
    if (comm->status == VLP_OK) comm->status = comm->kind->all_gather(comm, mine, n, all);
    return comm->status;
}

vlp_status vlp_comm_all_reduce(vlp_comm *comm, vlp_real *values, int64_t n) {
    if (comm->status == VLP_OK) comm->status = comm->kind->all_reduce(comm, values, n);
    return comm->status;
}

void vlp_comm_abandon(vlp_comm *comm) {
    comm->kind->abandon(comm);
}
