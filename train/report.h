/* An evaluation as one HTML page that needs nothing else: figures beside chance, a table of
 * classes, the confusion as a heat map, and pictures with what the model says of them. */
#ifndef VLP_TRAIN_REPORT_H
#define VLP_TRAIN_REPORT_H

#include "train/evaluate.h"

typedef struct {
    const char *title; /* the model */
    const char *data;  /* the index's path */
    const char *split, *source;
    const vlp_retrieval *retrieval;    /* NULL = not measured */
    const vlp_zero_shot *zero_shot;    /* NULL = not measured */
    const char *const *classes;        /* [zero_shot->classes] */
    const char *const *templates;      /* [zero_shot->templates] */
    const vlp_pixel_yardstick *pixels; /* NULL = not measured */
} vlp_report;

/* The protocols, in a line each. */
extern const char vlp_protocol_retrieval[], vlp_protocol_zero_shot[], vlp_protocol_pixels[];

/* A class's pictures and how many of them were answered with it. */
void vlp_class_recall(const vlp_zero_shot *z, int64_t class, int64_t *pictures, int64_t *right);

/* Appends the page. Example pictures are taken evenly from the set and compared with its classes,
 * or without classes with at most VLP_REPORT_CAPTIONS of its captions. */
enum { VLP_REPORT_PICTURES = 24, VLP_REPORT_CAPTIONS = 2000 };
vlp_status vlp_report_html(vlp_buf *page, const vlp_report *report, vlp_embedder *e,
                           const vlp_index *index, const vlp_eval_set *set);

/* true,picture count of every class by class predicted, as CSV with a header. */
vlp_status vlp_confusion_csv(vlp_buf *out, const vlp_zero_shot *z, const char *const *classes);
/* One field of CSV (RFC 4180). */
vlp_status vlp_csv_quote(vlp_buf *out, const char *text);

#endif
