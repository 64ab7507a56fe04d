/* Learning rates: lr(t), a pure function of the number t of finished updates.
 *
 *     warm-up    t < warmup: lr x (t + 1) / warmup, so that the first update already moves
 *     cosine     floor + (lr - floor) (1 + cos(pi x)) / 2,  x = (t - warmup) / (total - warmup)
 *     linear     floor + (lr - floor) (1 - x)
 *     constant   lr
 *
 * x stays 1 after the end. With from_zero the convention is that of Hugging Face's
 * get_*_schedule_with_warmup: lr x t / warmup, so that the first update has rate 0, and the cosine
 * rises again after the end. */
#ifndef VLP_TRAIN_SCHEDULE_H
#define VLP_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* "cosine", "linear", "constant"; NULL-terminated, for option tables. */
extern const char *const vlp_schedule_kinds[];

typedef struct {
    int kind;              /* an index into vlp_schedule_kinds */
    double lr;             /* the peak */
    double floor;          /* the rate at the end */
    int64_t warmup, total; /* updates */
    bool from_zero;
} vlp_schedule;

double vlp_schedule_lr(const vlp_schedule *schedule, int64_t t);

#endif
