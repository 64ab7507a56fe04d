/* What the commands that train share. */
#ifndef VLP_APPS_TRAINING_H
#define VLP_APPS_TRAINING_H

#include "apps/cli.h"

/* Rows of the table of flags of such a command. */
#define TRAINING_FLAGS                                                                             \
    {"--steps", 0, "N", "optimizer steps"},                                                        \
        {"--epochs", 0, "N", "passes over the training split"},                                    \
        {"--max-minutes", 0, "M", "trains for so long, schedule included"},                        \
        {"--batch", 'b', "N", "pairs a micro-batch"}, {"--seed", 0, "N", "of everything random"},  \
        {"--precision", 0, "P", "auto, fp32 or bf16"},                                             \
        {"--recompute", 0, NULL, "less memory: blocks are computed a second time"}, {              \
        "--resume", 0, NULL, "continues RUN from its last checkpoint"                              \
    }

/* A run, or with --plan its plan, of a recipe (a built-in name or a file) with the keys that the
 * flags of `vlp pretrain` give; from the model folder `init`, or NULL. */
int training_run(const cli_args *args, const char *recipe, const char *init);

#endif
