/* The optimizer's insides, shared by its step and its state file. */
#ifndef VLP_TRAIN_OPTIMIZER_INTERNAL_H
#define VLP_TRAIN_OPTIMIZER_INTERNAL_H

#include "core/kernels.h"
#include "train/optimizer.h"

/* A stretch of one parameter: the unit of parallel work and of summation. */
typedef struct {
    int param;
    int64_t offset, n; /* elements in the blocks */
} vlp_segment;

/* What this step does to one parameter. */
typedef struct {
    vlp_adamw step;
    bool active;
    bool adapt;  /* the trust ratio applies */
    double rate; /* lr x trust ratio, once it is known */
} vlp_update;

struct vlp_optimizer {
    vlp_optimizer_options options;
    vlp_params *params;
    vlp_real *exp_avg, *exp_avg_sq;
    int64_t *steps;        /* [params->count] updates made */
    vlp_update *updates;   /* [params->count], this step's */
    vlp_segment *segments; /* [segment_count] in the order of the blocks */
    double (*sums)[2];     /* [segment_count] partial sums of squares */
    int64_t segment_count;
};

#endif
