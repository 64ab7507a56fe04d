/* metrics.jsonl: one JSON object a line, as CLI documentation describes them. Writing allocates
 * nothing, so that a warm step stays free of malloc. */
#ifndef VLP_TRAIN_METRICS_H
#define VLP_TRAIN_METRICS_H

#include "train/trainer.h"

typedef struct vlp_metrics vlp_metrics;

/* Appends to path after dropping every line beyond `last_step` (a resumed run repeats them) and an
 * unfinished last line. last_step < 0 starts an empty file. */
vlp_status vlp_metrics_open(vlp_metrics **out, const char *path, int64_t last_step);
vlp_status vlp_metrics_step(vlp_metrics *metrics, const vlp_train_progress *progress);
/* {"step":N,"eval":{...}} */
vlp_status vlp_metrics_eval(vlp_metrics *metrics, int64_t step, const vlp_retrieval *result);
/* {"step":N,"eval":{"loss":x}} */
vlp_status vlp_metrics_eval_loss(vlp_metrics *metrics, int64_t step, double loss);
vlp_status vlp_metrics_sync(vlp_metrics *metrics); /* to the disk */
void vlp_metrics_close(vlp_metrics *metrics);      /* NULL is legal */

#endif
