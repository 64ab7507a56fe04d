/* Momentum encoders and queues (MoCo, He et al., 2020; ALBEF, Li et al., 2021, sections 3.2, 3.3).
 * A twin of the encoders follows the model as a moving average,
 *     twin = d twin + (1 - d) model,
 * and encodes each batch without gradients. Its features are candidates of the contrast, together
 * with those of earlier batches, which queues keep; its predictions soften targets.
 *
 *     vlp_momentum_new(&m, model, &options);       declares and allocates the twin
 *     vlp_momentum_start(m, seed);                 twin = model; queues hold random unit vectors
 *     each step:
 *       vlp_momentum_update(m);                    before its first micro-batch
 *       the losses, through vlp_encodings_*
 *       vlp_momentum_enqueue(m, pairs);            after each micro-batch's backward
 *     vlp_momentum_save(m, path);                  part of the state of a run */
#ifndef VLP_OBJECTIVES_MOMENTUM_H
#define VLP_OBJECTIVES_MOMENTUM_H

#include "fusion/model.h"
#include "objectives/pairs.h"

typedef struct {
    double decay;  /* d */
    int64_t queue; /* Q */
    bool mlm;      /* the twin has a masked language head: "objective.mlm." */
} vlp_momentum_options;

/* No queue entry has these groups: it is nobody's positive. */
#define VLP_MOMENTUM_NOBODY INT64_MIN

typedef struct {
    vlp_momentum_options options;
    const vlp_model *model; /* borrowed */
    vlp_model *twin;        /* encoders, projections, fusion stack; no gradients */
    vlp_mlm_head mlm;       /* of the twin */
    double ramp;            /* 0..1: how much of their alpha the losses use now */
    /* Candidates [room + Q, E]: a batch of B fills rows room - B .. room - 1, the queue follows. */
    vlp_real *images, *texts;
    int64_t *image_groups, *caption_groups; /* [room + Q] */
    int64_t room, next;                     /* next: the queue's row that is written next */
} vlp_momentum;

vlp_status vlp_momentum_new(vlp_momentum **out, const vlp_model *model,
                            const vlp_momentum_options *options);
void vlp_momentum_free(vlp_momentum *m); /* NULL is legal */
size_t vlp_momentum_bytes(const vlp_momentum *m);

/* When the model's parameters have their values. */
void vlp_momentum_start(vlp_momentum *m, uint64_t seed);
/* The twin and, where they have the same size, the queues of a checkpoint whose names are known;
 * what it lacks stays. *found = whether it holds a twin at all. */
vlp_status vlp_momentum_import(vlp_momentum *m, const vlp_safetensors *file, bool *found);

void vlp_momentum_update(vlp_momentum *m);
/* The same for any two stores: every parameter of the twin after the model's of that name. */
void vlp_momentum_follow(vlp_params *twin, const vlp_params *model, double decay);

/* Puts the batch's features [B, E] in front of the queues; what the images and texts of this batch
 * are compared with is then the rows from vlp_momentum_first on. Not while rehearsing. */
vlp_status vlp_momentum_reserve(vlp_momentum *m, int64_t batch);
void vlp_momentum_put(vlp_momentum *m, const vlp_pairs *pairs, const vlp_real *images,
                      const vlp_real *texts);
int64_t vlp_momentum_first(const vlp_momentum *m, int64_t batch);
/* Moves the batch's features into the queues, over the oldest. */
void vlp_momentum_enqueue(vlp_momentum *m, const vlp_pairs *pairs);

vlp_status vlp_momentum_save(const vlp_momentum *m, const char *path);
vlp_status vlp_momentum_load(vlp_momentum *m, const char *path);

#endif
