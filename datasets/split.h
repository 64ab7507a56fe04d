/* Splits by content: the same bytes always land in the same split. */
#ifndef VLP_DATASETS_SPLIT_H
#define VLP_DATASETS_SPLIT_H

#include "core/hash.h"
#include "core/status.h"

#include <stdbool.h>

typedef struct {
    bool used;
    double edge[2]; /* cumulative shares of train, and of train + val */
} vlp_split_shares;

/* "90,5,5" (train, val, test in per cent, together 100); NULL = unused. */
vlp_status vlp_split_parse(vlp_split_shares *out, const char *text);
/* "train", "val" or "test". */
const char *vlp_split_of(const vlp_split_shares *shares, vlp_hash hash);
/* Which split a group of duplicates takes: the highest rank among those asked for. */
int vlp_split_rank(const char *split);

#endif
