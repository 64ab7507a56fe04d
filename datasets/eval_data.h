/* What evaluation compares: the good images of a split that have captions, in the loader's order,
 * with all their captions, groups and labels. Texts are kept in one block. */
#ifndef VLP_DATASETS_EVAL_DATA_H
#define VLP_DATASETS_EVAL_DATA_H

#include "datasets/rows.h"

typedef struct {
    int64_t n_images, n_captions;
    int64_t *image_ids;      /* [n_images] */
    int64_t *image_groups;   /* [n_images]; byte-identical images share one */
    const char **labels;     /* [n_images]; NULL = the row has no label */
    const char **captions;   /* [n_captions], ordered by image */
    int64_t *caption_images; /* [n_captions]: position of the image */
    int64_t *caption_groups; /* [n_captions]; equal up to case and final punctuation share one */
    char *text;              /* the block */
    vlp_rows rows;           /* what image_ids belongs to */
} vlp_eval_data;

/* source NULL = all; max_images 0 = all, else the first so many. VLP_ERR_NOT_FOUND when the split
 * holds nothing. */
vlp_status vlp_eval_data_open(vlp_eval_data *out, const vlp_index *index, const char *split,
                              const char *source, int64_t max_images);
void vlp_eval_data_close(vlp_eval_data *data);

#endif
