/* Processes that train together: what they exchange. One interface; a communicator of one process,
 * and ranks that are threads of this process, which is how several ranks are tested.
 *
 *     vlp_comm_group *group;
 *     VLP_TRY(vlp_comm_group_new(&group, 2));
 *     ... on the thread of rank r: vlp_comm *comm = vlp_comm_group_rank(group, r);
 *     vlp_comm_group_free(group);            after the threads have ended
 *
 * Every rank must call the same exchanges in the same order with the same sizes. A failure is
 * sticky: later exchanges do nothing and return it, so that it may be asked once a step. */
#ifndef VLP_CORE_COMM_H
#define VLP_CORE_COMM_H

#include "core/real.h"
#include "core/status.h"

#include <stdint.h>

typedef struct vlp_comm vlp_comm;

/* How one kind of communicator exchanges. */
typedef struct {
    vlp_status (*all_gather)(vlp_comm *comm, const vlp_real *mine, int64_t n, vlp_real *all);
    vlp_status (*all_reduce)(vlp_comm *comm, vlp_real *values, int64_t n);
    void (*abandon)(vlp_comm *comm);
} vlp_comm_kind;

struct vlp_comm {
    const vlp_comm_kind *kind;
    int rank, size;
    vlp_status status; /* of all exchanges so far */
    void *state;
};

/* The only rank of one. */
vlp_comm *vlp_comm_single(void);

/* mine [n] of every rank, in the order of ranks -> all [size n] */
vlp_status vlp_comm_all_gather(vlp_comm *comm, const vlp_real *mine, int64_t n, vlp_real *all);
/* values [n] become the sum over ranks, added in the order of ranks: the same bits on each. */
vlp_status vlp_comm_all_reduce(vlp_comm *comm, vlp_real *values, int64_t n);
/* This rank gives up; the others' exchanges fail instead of waiting for it. */
void vlp_comm_abandon(vlp_comm *comm);

typedef struct vlp_comm_group vlp_comm_group;
vlp_status vlp_comm_group_new(vlp_comm_group **out, int size);
void vlp_comm_group_free(vlp_comm_group *group);
vlp_comm *vlp_comm_group_rank(vlp_comm_group *group, int rank);

#endif
