#include "train/shortlist.h"

#include "core/memory.h"

#include <string.h>

vlp_status vlp_shortlist_open(vlp_shortlist *list, int64_t rows, int64_t k) {
    size_t cells = (size_t)(rows * k);
    *list = (vlp_shortlist){.rows = rows, .k = k};
    list->at = vlp_alloc(cells * sizeof *list->at);
    list->score = vlp_alloc(cells * sizeof *list->score);
    list->right = vlp_alloc_zero(cells, 1);
    if (!list->at || !list->score || !list->right) return VLP_ERR_MEMORY;
    for (size_t i = 0; i < cells; i++) list->at[i] = -1;
    return VLP_OK;
}

void vlp_shortlist_close(vlp_shortlist *list) {
    vlp_free(list->at);
    vlp_free(list->score);
    vlp_free(list->right);
    *list = (vlp_shortlist){0};
}

void vlp_shortlist_offer(vlp_shortlist *list, int64_t row, int32_t column, float score) {
    int32_t *at = list->at + row * list->k;
    float *scores = list->score + row * list->k;
    int64_t place = list->k;
    while (place > 0 && (at[place - 1] < 0 || score > scores[place - 1])) place--;
    if (place == list->k) return;
    size_t rest = (size_t)(list->k - 1 - place);
    memmove(at + place + 1, at + place, rest * sizeof *at);
    memmove(scores + place + 1, scores + place, rest * sizeof *scores);
    at[place] = column;
    scores[place] = score;
}

bool vlp_shortlist_rank(const vlp_shortlist *list, int64_t row, int64_t *above, int64_t *equal) {
    const int64_t from = row * list->k;
    int64_t best = -1;
    for (int64_t i = from; i < from + list->k && list->at[i] >= 0; i++)
        if (list->right[i] && (best < 0 || list->score[i] > list->score[best])) best = i;
    if (best < 0) return false;
    *above = *equal = 0;
    for (int64_t i = from; i < from + list->k && list->at[i] >= 0; i++) {
        *above += !list->right[i] && !(list->score[i] <= list->score[best]); /* NaN is a miss */
        *equal += !list->right[i] && list->score[i] == list->score[best];
    }
    return true;
}

vlp_status vlp_shortlist_by_column(vlp_shortlist_columns *out, const vlp_shortlist *list,
                                   int64_t columns) {
    int64_t cells = list->rows * list->k;
    out->begin = vlp_alloc_zero((size_t)columns + 2, sizeof *out->begin);
    out->slots = vlp_alloc((size_t)cells * sizeof *out->slots);
    if (!out->begin || !out->slots) return VLP_ERR_MEMORY;
    int64_t *next = out->begin + 1; /* counts, then where the column's next slot goes */
    for (int64_t i = 0; i < cells; i++)
        if (list->at[i] >= 0) next[list->at[i] + 1]++;
    for (int64_t c = 1; c <= columns; c++) next[c] += next[c - 1];
    for (int64_t i = 0; i < cells; i++)
        if (list->at[i] >= 0) out->slots[next[list->at[i]]++] = i;
    return VLP_OK;
}

void vlp_shortlist_columns_close(vlp_shortlist_columns *columns) {
    vlp_free(columns->begin);
    vlp_free(columns->slots);
    *columns = (vlp_shortlist_columns){0};
}
