/* What is inside a file or folder, as one JSON object that `vlp info` prints or puts into words. */
#ifndef VLP_APPS_INFO_H
#define VLP_APPS_INFO_H

#include "core/json.h"

/* *out has "kind": "run", "model", "tokenizer", "weights", "recipe" or "index", "path", and what
 * there is of "model" {vision,text,fusion,...}, "weights" {parameters,bytes,dtypes,parts,heads},
 * "tokenizer", "preprocessing", "training", "recipe", "stats"; with `tensors`, every tensor in
 * weights.tensors. A part of a folder that is damaged is told in "problems". */
vlp_status cli_info_collect(const char *path, bool tensors, vlp_json **out);

#endif
