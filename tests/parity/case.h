/* A reference case: a folder with case.json, config.json, model, inputs and expected values. */
#ifndef VLP_TESTS_PARITY_CASE_H
#define VLP_TESTS_PARITY_CASE_H

#include "core/json.h"
#include "core/safetensors.h"
#include "core/tensor.h"

typedef struct {
    const char *folder;                         /* borrowed */
    const char *system, *mode;                  /* from case.json, "" if absent */
    vlp_dtype precision;                        /* VLP_REAL; VLP_BF16: forward values alone */
    vlp_json *json;                             /* case.json */
    vlp_json *config;                           /* config.json, or NULL */
    vlp_safetensors *model, *inputs, *expected; /* NULL where the file is absent */
} parity_case;

/* Zeroes *c first, so that close is legal after a failure. */
vlp_status parity_case_open(parity_case *c, const char *folder);
void parity_case_close(parity_case *c);

/* "FOLDER/name" into buf. */
vlp_status parity_path(const parity_case *c, const char *name, vlp_buf *buf);

/* An input tensor and its values in fresh memory, which the caller frees by vlp_free. */
vlp_status parity_input(const parity_case *c, const char *name, const vlp_safetensor **out);
vlp_status parity_input_real(const parity_case *c, const char *name, vlp_real **out);
vlp_status parity_input_i32(const parity_case *c, const char *name, int32_t **out);
bool parity_has_input(const parity_case *c, const char *name);

#endif
