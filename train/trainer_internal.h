/* The trainer's parts, shared by its files: trainer.c (life cycle, loop), trainer_open.c
 * (assembly), trainer_step.c (one optimizer step), trainer_state.c (checkpoints),
 * trainer_guard.c (which weights are kept), metrics.c. */
#ifndef VLP_TRAIN_TRAINER_INTERNAL_H
#define VLP_TRAIN_TRAINER_INTERNAL_H

#include "datasets/loader.h"
#include "train/contrast.h"
#include "train/ema.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/trainer.h"

enum {
    VLP_TRAINER_SLOTS = 4, /* batches that the loader prepares ahead */
    VLP_TRAINER_SHOWN = 8, /* images that a message names */
};

struct vlp_trainer {
    vlp_recipe recipe;
    vlp_train_options options;
    char *data, *out; /* owned copies of the paths */
    int lock;         /* on the run folder: one process trains in it */

    vlp_index *index;
    vlp_tokenizer *tokenizer;
    vlp_transform transform;
    vlp_model *model;
    vlp_objectives objectives;
    vlp_optimizer *optimizer;
    vlp_ema *ema; /* NULL = off */
    vlp_loader *loader;
    vlp_embedder *embedder; /* around the model, for evaluation */
    vlp_tape *tape;
    vlp_contrast *contrast;    /* over all micro-batches of a step; NULL = over each */
    const vlp_batch **batches; /* [accumulate]: those of the step, where all are looked at before
                                  the first backward pass; else NULL */
    vlp_metrics *metrics;
    bool *has_grad;    /* [parameters] in this step */
    uint64_t *keys;    /* [B] */
    int32_t *ids;      /* [B, L]: the batch's tokens, trimmed */
    uint8_t *ids_mask; /* [B, L] */
    int64_t last_image_ids[VLP_TRAINER_SHOWN];
    int last_images; /* in the last micro-batch */

    vlp_real *start, *aside; /* [params->total]: what the run started from, and room; or NULL */
    bool keep_best;          /* of the evaluations */
    bool settled;            /* the model's values are the best ones, for good */
    int64_t best_step, evaluated; /* -1 = none yet; the last step that was evaluated */
    double best_score;
    bool from_model;                   /* the run starts from a trained model's weights */
    int64_t step, cursor, total_steps; /* total 0 = bounded by time */
    double seconds_before;             /* of earlier sessions of this run */
    double waited_before;              /* seconds of them spent waiting for data */
    int64_t rows_before;               /* rows of the data then; 0 = a new run */
    double started;                    /* clock at the start of this session */
    double last_checkpoint;
    int64_t steps_here;   /* of this session */
    size_t program_bytes; /* resident before anything was built */
    double flops;
    vlp_train_progress now;
};

/* Batches that the loader holds: some ahead, and those of a step where it holds them. */
int vlp_trainer_slots(const vlp_trainer *t);

double vlp_clock(void); /* seconds, monotonic */

/* Seconds trained so far, and the share of the run that is done (0..1). */
double vlp_trainer_seconds(const vlp_trainer *t);
double vlp_trainer_waited(const vlp_trainer *t); /* of them for data */
double vlp_trainer_progress_share(const vlp_trainer *t);

vlp_rows_kind vlp_trainer_rows(const vlp_recipe *recipe); /* of the data */
/* trainer_open.c: writes the run folder and opens its log; nothing before this touches the disk. */
vlp_status vlp_trainer_prepare(vlp_trainer *t);

/* trainer_step.c: forward, backward, update. Fills t->now. */
vlp_status vlp_trainer_step(vlp_trainer *t);
/* Rehearses a step and reserves its memory. */
vlp_status vlp_trainer_rehearse(vlp_trainer *t);

/* trainer_towers.c: the sizes of encoders to start from, into the recipe; their weights. */
vlp_status vlp_trainer_take_towers(vlp_trainer *t);
vlp_status vlp_trainer_load_towers(vlp_trainer *t);

/* The loss of a batch, of the validation split; nothing is learnt. */
vlp_status vlp_trainer_loss(vlp_trainer *t, const vlp_batch *batch, double *loss);

/* trainer_held_out.c: whether writing is all that is learnt: evaluations are then the mean loss,
 * not retrieval. */
bool vlp_trainer_only_writes(const vlp_trainer *t);
vlp_status vlp_trainer_held_out(vlp_trainer *t, double *loss);

/* trainer_guard.c */
/* Before training: what is kept, and a copy of the start; then of a new run its file. */
vlp_status vlp_trainer_guard(vlp_trainer *t);
vlp_status vlp_trainer_save_guard(const vlp_trainer *t, vlp_buf *path);
/* The weights that people get in the place of those that are trained, and back. */
void vlp_trainer_show(vlp_trainer *t);
void vlp_trainer_hide(vlp_trainer *t);
/* An evaluation of them; more is better. */
vlp_status vlp_trainer_consider(vlp_trainer *t, double score);
/* model.safetensors; then the files of earlier bests go; and, after training, the model in memory
 * becomes the one that is kept. */
vlp_status vlp_trainer_write_model(vlp_trainer *t);
void vlp_trainer_forget_best(const vlp_trainer *t, vlp_buf *path);
vlp_status vlp_trainer_settle(vlp_trainer *t);

/* trainer_state.c */
/* What a resumed run starts from before its first checkpoint; nothing unless there are initial
 * weights. */
vlp_status vlp_trainer_save_start(vlp_trainer *t);
vlp_status vlp_trainer_save(vlp_trainer *t); /* state folder, pointer, model */
vlp_status
vlp_trainer_save_folder(const vlp_trainer *t); /* config, tokenizer, preprocessor, recipe */
vlp_status vlp_trainer_load(vlp_trainer *t);
vlp_status vlp_trainer_read_recipe(vlp_recipe *out, const char *folder);

#endif
