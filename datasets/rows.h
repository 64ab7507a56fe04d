/* Which rows of the index a loader walks: ids in an order that depends on content alone, so that
 * unusable rows and the order of importing change nothing. 8 bytes a row. */
#ifndef VLP_DATASETS_ROWS_H
#define VLP_DATASETS_ROWS_H

#include "datasets/index.h"

typedef enum {
    VLP_ROWS_PAIRS,     /* good images with a caption: one row an image */
    VLP_ROWS_IMAGES,    /* good images: one row an image */
    VLP_ROWS_CAPTIONS,  /* the same images, one row a caption */
    VLP_ROWS_TEXTS,     /* captions of good images, and texts: one row a caption */
    VLP_ROWS_QUESTIONS, /* answered questions about good images: one row a question */
} vlp_rows_kind;

/* Beyond a million ids lie in an unlinked file, mapped: their pages may leave memory. */
typedef struct {
    int64_t *ids; /* of images, or of captions */
    int64_t count;
    size_t mapped; /* bytes of the mapping; 0 = ordinary memory */
} vlp_rows;

/* split NULL = all; source NULL = all, else a source's name. Images that were not verified, an
 * unknown split or source and an empty result are errors that say what to do. */
vlp_status vlp_rows_open(vlp_rows *out, const vlp_index *index, vlp_rows_kind kind,
                         const char *split, const char *source);
/* The same in order of place (path, offset), for reading from slow disks. */
vlp_status vlp_rows_open_by_place(vlp_rows *out, const vlp_index *index, vlp_rows_kind kind,
                                  const char *split, const char *source);
void vlp_rows_close(vlp_rows *rows);
/* Appends the first column of all that stmt yields. */
vlp_status vlp_rows_collect(vlp_rows *out, vlp_stmt *stmt);

#endif
