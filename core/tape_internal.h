/* The tape's own state, for core/tape*.c alone. */
#ifndef VLP_CORE_TAPE_INTERNAL_H
#define VLP_CORE_TAPE_INTERNAL_H

#include "core/pool.h"
#include "core/tape.h"

struct vlp_tape {
    vlp_arena graph; /* nodes, tensors, attributes */
    vlp_arena data;  /* values, saved state, gradients */
    vlp_pool pool;   /* what is free of it again */
    vlp_arena work;  /* one scratch block, reused by every op */
    vlp_node **nodes;
    int64_t n_nodes, max_nodes;
    int64_t random_number; /* of the next random op */
    uint64_t seed, step;
    size_t work_peak, planned; /* planned: 0 without a rehearsal */
    double flops;
    int stretches;           /* that backward is in: 0 or more */
    vlp_op_profile *profile; /* NULL = off */
    bool planning, grad, training, bf16, recompute, reuse, poison;
    vlp_status status;
    char message[512];
};

/* The bytes' place in the graph (zeroed) or in the step's data; NULL after a failure. */
void *vlp_tape_graph_alloc(vlp_tape *tape, size_t bytes);
/* Step memory comes back; while inference only counts on marks, it never does. */
void vlp_tape_give(vlp_tape *tape, void *data, size_t bytes);
void vlp_tape_give_saved(vlp_tape *tape, vlp_node *node);
/* Scratch for a call of the node's op; false without room. */
bool vlp_tape_prepare_work(vlp_tape *tape, vlp_node *node);
void vlp_tape_record(vlp_tape *tape, vlp_node *node);

#endif
