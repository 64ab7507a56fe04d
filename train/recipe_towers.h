/* The kinds of towers that a recipe can have: which norms, activations and poolings. */
#ifndef VLP_TRAIN_RECIPE_TOWERS_H
#define VLP_TRAIN_RECIPE_TOWERS_H

#include "fusion/model.h"

/* The names for the key "towers", NULL-terminated. */
extern const char *const vlp_tower_names[];

/* Makes a model's towers, given as a ViT and a BERT of the recipe's sizes, those of kind i. */
void vlp_towers_apply(int i, vlp_model_config *model);
/* The kind of a model's towers; -1 when there is no such kind. */
int vlp_towers_of(const vlp_model_config *model);

#endif
