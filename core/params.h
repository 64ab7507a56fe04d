/* The parameter store: every learnable tensor of a model as a named view into one flat block of
 * values, with one flat block of gradients beside it, so that one loop serves the optimizer, one
 * call the all-reduce and one write the checkpoint.
 *
 *     vlp_params_new(&params);
 *     vlp_params_push(params, "blocks.%d", i);
 *       layer->weight = vlp_params_add(params, "weight", VLP_INIT_NORMAL(0.02), VLP_DECAY, 2,
 * shape); vlp_params_pop(params); vlp_params_allocate(params, true); vlp_params_init(params, seed);
 *
 * Models declare first and allocate once; the tensors returned by add are valid (data = NULL) from
 * the start and stay at their address. */
#ifndef VLP_CORE_PARAMS_H
#define VLP_CORE_PARAMS_H

#include "core/tensor.h"

typedef struct {
    enum {
        VLP_INIT_KIND_CONSTANT,
        VLP_INIT_KIND_NORMAL,
        VLP_INIT_KIND_TRUNCATED,
        VLP_INIT_KIND_UNIFORM
    } kind;
    double value; /* the constant; the standard deviation; the bound of the uniform */
} vlp_init;

#define VLP_INIT_CONSTANT(value) ((vlp_init){VLP_INIT_KIND_CONSTANT, (value)})
#define VLP_INIT_NORMAL(std) ((vlp_init){VLP_INIT_KIND_NORMAL, (std)})
#define VLP_INIT_TRUNCATED(std) ((vlp_init){VLP_INIT_KIND_TRUNCATED, (std)}) /* at 2 deviations */
#define VLP_INIT_UNIFORM(bound) ((vlp_init){VLP_INIT_KIND_UNIFORM, (bound)})

/* Weight decay acts on the matrices of linear layers only: not on biases, norms, embeddings, class
 * and mask tokens or the temperature. */
typedef enum { VLP_NO_DECAY, VLP_DECAY } vlp_decay;

typedef struct {
    char *name;
    vlp_tensor tensor;
    vlp_init init;
    vlp_decay decay;
    int64_t offset; /* in elements from the start of both blocks; a multiple of 16 */
} vlp_param;

typedef struct {
    vlp_param **items;
    int count, capacity;
    int64_t total;            /* elements of a block, padding included */
    int64_t learnt;           /* elements without padding */
    vlp_real *values, *grads; /* padding stays zero; grads is NULL for inference */
    char prefix[256];
} vlp_params;

vlp_status vlp_params_new(vlp_params **out);
void vlp_params_free(vlp_params *params);

/* A level of names: "vision", then "blocks.3" gives "vision.blocks.3.". */
void vlp_params_push(vlp_params *params, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void vlp_params_pop(vlp_params *params);

/* Declares prefix + name. Never NULL: out of memory is reported by vlp_params_allocate. */
vlp_tensor *vlp_params_add(vlp_params *params, const char *name, vlp_init init, vlp_decay decay,
                           int ndim, const int64_t *shape);

/* Allocates both blocks (zeroed) and points the tensors into them. */
vlp_status vlp_params_allocate(vlp_params *params, bool with_grads);
/* Fills the values. A parameter's numbers depend on the seed and its name only. */
void vlp_params_init(vlp_params *params, uint64_t seed);
/* From now on products keep the matrices packed (core/packed.h) between changes of their values:
 * more memory, and worth it where they are used often or by few rows. */
vlp_status vlp_params_keep_packed(vlp_params *params);
/* Said by whoever has written to the values, before the next product. */
void vlp_params_changed(vlp_params *params);
void vlp_params_zero_grads(vlp_params *params);
/* out [count]: which parameters a backward pass has come to since vlp_params_zero_grads. The others
 * have no gradient at all, which is not the same as a gradient of zero: optimizers pass them over.
 */
void vlp_params_reached(const vlp_params *params, bool *out);

/* The parameter of that full name, or NULL. */
vlp_param *vlp_params_find(const vlp_params *params, const char *name);
/* Stops (or restarts) gradients into all parameters whose name starts with prefix; returns how
 * many. */
int vlp_params_freeze(vlp_params *params, const char *prefix, bool frozen);

#endif
