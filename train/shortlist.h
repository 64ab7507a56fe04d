/* The best K columns of every row of scores, and which of them are right. */
#ifndef VLP_TRAIN_SHORTLIST_H
#define VLP_TRAIN_SHORTLIST_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t rows, k;
    int32_t *at;    /* [rows, k] columns, the best first; -1 = none yet */
    float *score;   /* [rows, k] that chose them, then those that order them */
    uint8_t *right; /* [rows, k] */
} vlp_shortlist;

vlp_status vlp_shortlist_open(vlp_shortlist *list, int64_t rows, int64_t k);
void vlp_shortlist_close(vlp_shortlist *list);
/* Keeps the column if it is among the best of its row; of equals the first stays ahead. */
void vlp_shortlist_offer(vlp_shortlist *list, int64_t row, int32_t column, float score);
/* Wrong columns above, and level with, the best right one of a row; false if none is right. */
bool vlp_shortlist_rank(const vlp_shortlist *list, int64_t row, int64_t *above, int64_t *equal);

/* The places of a list by column: those of column c are slots[begin[c]] to slots[begin[c + 1] - 1].
 */
typedef struct {
    int64_t *begin; /* [columns + 1] */
    int64_t *slots; /* row * k + place */
} vlp_shortlist_columns;
vlp_status vlp_shortlist_by_column(vlp_shortlist_columns *out, const vlp_shortlist *list,
                                   int64_t columns);
void vlp_shortlist_columns_close(vlp_shortlist_columns *columns);

#endif
