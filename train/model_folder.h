/* A model folder opened for use: the model without gradients, its tokenizer, its preprocessing.
 *
 *     vlp_model_folder folder;
 *     VLP_TRY(vlp_model_folder_open(&folder, "run/"));
 *     vlp_model_folder_close(&folder); */
#ifndef VLP_TRAIN_MODEL_FOLDER_H
#define VLP_TRAIN_MODEL_FOLDER_H

#include "fusion/model.h"
#include "text/tokenizer.h"
#include "vision/transform.h"

typedef struct {
    vlp_model *model;
    vlp_tokenizer *tokenizer;
    vlp_transform transform;
} vlp_model_folder;

/* Reads config.json, model.safetensors, the tokenizer's files and preprocessor_config.json, and
 * sees that they agree. On failure *out is empty; closing it is legal. */
vlp_status vlp_model_folder_open(vlp_model_folder *out, const char *path);
void vlp_model_folder_close(vlp_model_folder *folder);

/* The preprocessing alone, of a folder whose model has this configuration. VLP_ERR_NOT_FOUND: it
 * does not say, and its reference has none in code. */
vlp_status vlp_model_folder_transform(vlp_transform *out, const char *folder,
                                      const vlp_model_config *config);

#endif
