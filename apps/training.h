/* What the commands that train share. */
#ifndef VLP_APPS_TRAINING_H
#define VLP_APPS_TRAINING_H

#include "apps/cli.h"

/* A run, or with --plan its plan, of a recipe (a built-in name or a file) with the keys that the
 * flags of `vlp pretrain` give; from the model folder `init`, or NULL. */
int training_run(const cli_args *args, const char *recipe, const char *init);

#endif
