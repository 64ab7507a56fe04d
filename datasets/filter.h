/* What people write behind --where, as SQL that cannot be anything but a filter.
 *
 *     split=test and width>=640 and folder=holiday/2023 and stars>3 and caption~beach
 *
 * A term is NAME OP VALUE with = != < <= > >= or ~ (contains, ignoring case). NAME is path, folder
 * (a part of the path: whole names), split, label, source, width, height, bytes, caption, or a
 * field that the source had. VALUE is a word, or quoted with ' or ". */
#ifndef VLP_DATASETS_FILTER_H
#define VLP_DATASETS_FILTER_H

#include "core/memory.h"
#include "datasets/db.h"

enum { VLP_FILTER_MAX = 32 };

typedef struct {
    vlp_buf sql;                   /* a condition on `images i`; parameters from `first` on */
    vlp_buf values;                /* the parameters' text, each with a NUL */
    size_t starts[VLP_FILTER_MAX]; /* [count] offsets into values */
    int count, first;
    vlp_buf fields; /* names that are no built-in column, each with a NUL */
} vlp_filter;

/* text NULL or blank: everything. first: number of the first parameter. */
vlp_status vlp_filter_parse(vlp_filter *out, const char *text, int first);
/* VLP_ERR_USAGE, with the nearest name, for a field that no image of the index has. */
vlp_status vlp_filter_check(const vlp_filter *filter, vlp_db *db);
void vlp_filter_bind(const vlp_filter *filter, vlp_stmt *stmt);
void vlp_filter_free(vlp_filter *filter);

#endif
