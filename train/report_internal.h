/* Inside train/ only: the part of a report that shows pictures. */
#ifndef VLP_TRAIN_REPORT_INTERNAL_H
#define VLP_TRAIN_REPORT_INTERNAL_H

#include "train/report.h"

vlp_status vlp_report_pictures(vlp_buf *page, const vlp_report *report, vlp_embedder *e,
                               const vlp_index *index, const vlp_eval_set *set);

#endif
