/* What the runners of model cases share: a model is declared, filled from the case's checkpoint,
 * built on a tape twice (rehearsal and run) and compared; then the gradients are. */
#ifndef VLP_TESTS_PARITY_MODEL_H
#define VLP_TESTS_PARITY_MODEL_H

#include "core/checkpoint.h"
#include "core/tape.h"
#include "parity/report.h"

typedef struct parity_model parity_model;

/* Builds the model's outputs on m->tape, naming them with parity_output and the like, and returns
 * the loss, or NULL where the case gives cotangents (inputs "cot/<output>"). */
typedef vlp_tensor *parity_build(parity_model *m, void *ctx);

typedef struct {
    char name[64];
    vlp_tensor *tensor;
    bool grad; /* its gradient is what is expected, not its values */
} parity_named;

enum { PARITY_OUTPUTS = 160, PARITY_BUFFERS = 64 };

struct parity_model {
    const parity_case *c;
    parity_report *report;
    vlp_params *params;
    bool borrowed; /* the parameters */
    vlp_name_map map;
    vlp_tape *tape;
    parity_named named[PARITY_OUTPUTS];
    int count;
    void *buffers[PARITY_BUFFERS]; /* inputs in host memory */
    int buffer_count;
};

/* m->params is empty then: declare into it. close is legal after a failure. */
vlp_status parity_model_open(parity_model *m, const parity_case *c, parity_report *report);
void parity_model_close(parity_model *m);
/* Takes the parameters of a model that has its own instead of m->params. */
void parity_model_borrow(parity_model *m, vlp_params *params);

/* Inputs in memory that lives until close; optional ones are NULL when the case lacks them. */
vlp_status parity_model_reals(parity_model *m, const char *name, const vlp_real **out);
vlp_status parity_model_ids(parity_model *m, const char *name, bool optional, const int32_t **out);
vlp_status parity_model_mask(parity_model *m, const char *name, bool optional, const uint8_t **out);
/* The values of a finished pass, whatever their type; they live until close. */
const vlp_real *parity_values(parity_model *m, const vlp_tensor *tensor);
/* Memory that lives until close, or NULL. */
void *parity_model_room(parity_model *m, size_t bytes);
/* Dimension d of an input. */
vlp_status parity_model_dim(const parity_model *m, const char *name, int d, int64_t *out);

/* The first tensor of the checkpoint that is this parameter of ours, by m->map; NULL if none. */
const vlp_safetensor *parity_checkpoint_find(const parity_model *m, const char *ours);

/* Fills the parameters through m->map, rehearses, runs, and compares every named output, the loss,
 * grad/... and grad_input/... */
vlp_status parity_model_run(parity_model *m, parity_build *build, void *ctx);
/* Its two halves, for models that need something in between. Names (ours) that begin with
 * `optional` may be left over or missing; NULL = none. */
vlp_status parity_model_load(parity_model *m, const char *optional);
vlp_status parity_model_compute(parity_model *m, parity_build *build, void *ctx);

/* Compares a block laid out like params->values with the expected <prefix><name of theirs>. */
vlp_status parity_expect_params(parity_model *m, const char *prefix, const vlp_name_map *map,
                                const vlp_params *params, vlp_real *block);

/* For build. */
void parity_output(parity_model *m, vlp_tensor *tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* hidden[0 .. depth] under format (which holds one %d), counted from `first`. */
void parity_hidden(parity_model *m, vlp_tensor *const *hidden, int64_t depth, int first,
                   const char *format);
/* An input tensor of the graph whose gradient may be expected: "grad_input/<name>". */
vlp_tensor *parity_graph_input(parity_model *m, const char *name, const vlp_real *data);

/* Compares softmax(q k^T / sqrt(K)) of a layer, q and k read from the projected rows
 * qkv [B, L, 3 H K] of the finished run, under `name`. */
vlp_status parity_expect_attention(parity_model *m, const char *name, const vlp_tensor *qkv,
                                   int64_t heads);
/* The same for the rows of logits [R, C]. */
vlp_status parity_expect_softmax(parity_model *m, const char *name, const vlp_tensor *logits);

#endif
