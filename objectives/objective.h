/* Training objectives: one file each with its own head and state, one registry table.
 *
 * An objective declares its head's parameters under "objective.NAME.", and gives a scalar loss from
 * the step's shared encodings. Random choices (masks, negatives) depend on (seed, epoch, sample).
 */
#ifndef VLP_OBJECTIVES_OBJECTIVE_H
#define VLP_OBJECTIVES_OBJECTIVE_H

#include "objectives/encodings.h"
#include "text/tokenizer.h"

/* How masked patches are hidden from the encoder. */
typedef enum {
    VLP_MIM_TOKEN,   /* by a mask token: SimMIM, Xie et al., 2022 */
    VLP_MIM_VISIBLE, /* it sees the others alone, a light decoder fills in: MAE, He et al., 2022 */
} vlp_mim_kind;

/* Weight 0 switches an objective off: it then declares no parameters and costs nothing. */
typedef struct {
    double itc_weight, itm_weight, mlm_weight, mim_weight, lm_weight;
    double itm_share, mlm_share,
        mim_share; /* of the batch that each works on: less work, more noise */
    double sigmoid_weight, sigmoid_bias; /* and the initial bias of its logits */
    double itc_label_smoothing;
    double momentum_decay;       /* of the twin; 0 = no twin */
    int64_t momentum_queue;      /* candidates kept of earlier batches, for each direction */
    double itc_alpha, mlm_alpha; /* the twin's share of these losses' targets */
    double mlm_probability;      /* share of tokens to predict (0.15) */
    double mlm_mask, mlm_random; /* of those: replaced by [MASK] (0.8), by a random token (0.1) */
    bool mlm_whole_words;        /* all pieces of a word together */
    double mim_ratio;            /* share of patches that are masked */
    int mim_kind;                /* vlp_mim_kind */
    int64_t mim_decoder_width, mim_decoder_depth; /* of VLP_MIM_VISIBLE; width 0 = half */
    bool mim_standardised; /* each patch's pixels less their mean, over their deviation */
    double lm_share, lm_label_smoothing;
    bool lm_answers; /* what comes after the first end token is written: answers to questions */
    int mim_loss;    /* vlp_regression */
} vlp_objective_options;

/* What an objective is built from; borrowed. */
typedef struct {
    const vlp_model *model;
    const vlp_tokenizer *tokenizer; /* NULL: what is random is given with every batch */
    const vlp_objective_options *options;
} vlp_objective_setup;

typedef struct {
    const char *name; /* the key in logs and recipes */
    const char *help;
    size_t weight_offset; /* of its weight in vlp_objective_options */
    bool needs_fusion;
    bool contrastive; /* a function of the image and text embeddings alone */
    vlp_status (*create)(void **state, const vlp_objective_setup *setup);
    /* The loss of a batch, a scalar; NULL when the tape has failed. */
    vlp_tensor *(*loss)(void *state, vlp_encodings *e);
    /* How many items loss is the mean over, for these pairs: needed where the number differs from
     * one micro-batch to the next, so that their mean counts every item alike; else NULL. */
    int64_t (*count)(const void *state, const vlp_pairs *pairs);
    /* The loss of a model that has learnt nothing, on the last batch. */
    double (*chance)(const void *state);
    void (*destroy)(void *state);
} vlp_objective_kind;

extern const vlp_objective_kind *const vlp_objective_kinds[];
extern const int vlp_objective_kind_count;

/* The enabled objectives of a run. */
enum { VLP_MAX_OBJECTIVES = 8 };
typedef struct {
    int count;
    struct {
        const vlp_objective_kind *kind;
        void *state;
        double weight;
        int64_t items; /* of the whole step, by vlp_objectives_count */
        double scale;  /* of this micro-batch's loss: 1, or by vlp_objectives_share */
    } items[VLP_MAX_OBJECTIVES];
    vlp_momentum *momentum; /* owned; NULL = none */
} vlp_objectives;

/* Declares the heads of all objectives with weight > 0; none is VLP_ERR_USAGE. */
vlp_status vlp_objectives_create(vlp_objectives *out, const vlp_objective_setup *setup);
/* Accumulation over micro-batches gives the gradient of the one large batch: count all of a step
 * (first = forget the last step's), then before the loss of each call share. */
bool vlp_objectives_counted(const vlp_objectives *objectives); /* whether any needs it */
void vlp_objectives_count(vlp_objectives *objectives, const vlp_pairs *pairs, bool first);
void vlp_objectives_share(vlp_objectives *objectives, const vlp_pairs *pairs,
                          int64_t micro_batches);
void vlp_objectives_destroy(vlp_objectives *objectives);
/* When the parameters have their values. */
void vlp_objectives_start(vlp_objectives *objectives, uint64_t seed);
/* At the beginning of an optimizer step: the temperature is clamped, the twin follows. `ramp`,
 * 0..1, scales every alpha. */
void vlp_objectives_before_step(vlp_objectives *objectives, vlp_model *model, double ramp);
/* After the backward pass of a batch: its features join the queues. */
void vlp_objectives_after_batch(vlp_objectives *objectives, const vlp_pairs *pairs);

/* terms[i]: the loss of item i, NULL for a contrastive one whose gradients are given. Returns the
 * weighted sum, of which those gradients are a part. */
vlp_tensor *vlp_objectives_loss(vlp_objectives *objectives, vlp_encodings *e, vlp_tensor **terms);

double vlp_objective_weight(const vlp_objective_kind *kind, const vlp_objective_options *options);

#endif
