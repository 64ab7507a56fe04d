/* The measurements of `vlp bench`, one a file: each reads its own flags and returns an exit code.
 * positional[0] is its name. */
#ifndef VLP_APPS_BENCH_H
#define VLP_APPS_BENCH_H

#include "apps/cli.h"

#include "core/json.h"
#include "train/recipe.h"

int bench_gemm(const cli_args *args);
int bench_attention(const cli_args *args);
int bench_train(const cli_args *args);
int bench_optimizer(const cli_args *args);
int bench_encode(const cli_args *args);
int bench_load(const cli_args *args);
int bench_search(const cli_args *args);

/* The recipe of positional[1] (vlp), with --size, --set, --batch and --precision. */
vlp_status bench_recipe(const cli_args *args, const char *size, vlp_recipe *out);

#endif
