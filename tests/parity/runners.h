/* One function a system: computes everything that its cases expect and hands it to the report. A
 * failure status means that the case could not be run to its end. */
#ifndef VLP_TESTS_PARITY_RUNNERS_H
#define VLP_TESTS_PARITY_RUNNERS_H

#include "parity/report.h"

typedef vlp_status parity_runner(const parity_case *c, parity_report *report);

parity_runner parity_run_optimizer;
parity_runner parity_run_vit;
parity_runner parity_run_mae;
parity_runner parity_run_bert;
parity_runner parity_run_clip;
parity_runner parity_run_ranks;
parity_runner parity_run_simclr;
parity_runner parity_run_zeroshot;
parity_runner parity_run_blip;
parity_runner parity_run_albef;
parity_runner parity_run_albef_entailment;
parity_runner parity_run_albef_ranking;
parity_runner parity_run_tokenizer;
parity_runner parity_run_image;

#endif
