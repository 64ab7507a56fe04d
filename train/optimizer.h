/* Optimizers over the flat parameter store: one pass over values, gradients and moments.
 *
 *     vlp_optimizer *optimizer;
 *     vlp_optimizer_options options = vlp_optimizer_defaults();
 *     VLP_TRY(vlp_optimizer_new(&optimizer, params, &options));
 *     ...
 *     VLP_TRY(vlp_optimizer_step(optimizer, lr, 1, NULL, &grad_norm));
 *     vlp_params_zero_grads(params);
 *
 * The kinds, with m and v the moving averages of g and g^2, b1 = 1 - beta1^t, b2 = 1 - beta2^t:
 *
 *     adamw            p = (1 - lr wd) p - lr (m/b1) / (sqrt(v/b2) + eps)
 *                      Loshchilov and Hutter, "Decoupled weight decay regularization", 2019
 *     adamw-hf         p = p - lr (m/b1) sqrt(b2) / (sqrt(v) + eps); then p = (1 - lr wd) p
 *     adamw-hf-nobias  the same with b1 = b2 = 1, as BERT was trained
 *     lamb             u = m / (sqrt(v) + eps) + wd p; p = p - lr min(|p|, 10) / |u| u
 *                      You et al., "Large batch optimization for deep learning", 2020
 *     lamb-nv          u = (m/b1) / (sqrt(v/b2) + eps) + wd p; p = p - lr |p| / |u| u, the ratio
 *                      only where there is decay; t counts the steps of all parameters together
 *
 * The decay wd acts where vlp_param.decay says so. A parameter that takes no gradient (frozen, or
 * not reached in this step) is skipped: neither decay nor moments nor its own t change.
 *
 * Results do not depend on the number of threads: sums run over fixed segments, in order. */
#ifndef VLP_TRAIN_OPTIMIZER_H
#define VLP_TRAIN_OPTIMIZER_H

#include "core/params.h"
#include "core/safetensors.h"

/* The kinds' names, NULL-terminated, for option tables. */
extern const char *const vlp_optimizer_kinds[];

typedef struct {
    int kind; /* an index into vlp_optimizer_kinds */
    double beta1, beta2, eps, weight_decay;
    double max_grad_norm; /* gradients are scaled down to this global L2 norm; 0 = never */
    bool always_adapt;    /* lamb-nv: the trust ratio everywhere */
    bool trust_clip;      /* lamb-nv: the trust ratio is at most 1 */
} vlp_optimizer_options;

/* adamw, 0.9, 0.999, 1e-8, 0.01, 1 */
vlp_optimizer_options vlp_optimizer_defaults(void);

typedef struct vlp_optimizer vlp_optimizer;

/* Two blocks as large as params->values, zeroed. params is borrowed and must be allocated with
 * gradients. VLP_ERR_USAGE for options out of range. */
vlp_status vlp_optimizer_new(vlp_optimizer **out, vlp_params *params,
                             const vlp_optimizer_options *options);
void vlp_optimizer_free(vlp_optimizer *optimizer); /* NULL is legal */

/* Bytes that vlp_optimizer_new will take for these parameters, for plans. */
int64_t vlp_optimizer_bytes(const vlp_params *params);

/* Bytes that an update of all parameters reads and writes, the sums for clipping included. */
double vlp_optimizer_traffic(const vlp_optimizer *optimizer);

/* One update with learning rate lr. The gradients count grad_scale times (1/n after summing n
 * micro-batches). has_grad [params->count]: which parameters have a gradient; NULL = all that are
 * not frozen. *grad_norm (may be NULL) = the global norm of the scaled gradients before clipping.
 * A gradient that is not finite is VLP_ERR_NUMERIC, names the first such parameter and changes
 * nothing. Allocates nothing. */
vlp_status vlp_optimizer_step(vlp_optimizer *optimizer, double lr, double grad_scale,
                              const bool *has_grad, double *grad_norm);

/* The state as tensors "step.<name>" (I64), "exp_avg.<name>", "exp_avg_sq.<name>" (F32), written
 * atomically; a run continues from it bit for bit. Loading wants the same kind and parameters;
 * after a failed load the state is undefined. */
vlp_status vlp_optimizer_save(const vlp_optimizer *optimizer, const char *path);
vlp_status vlp_optimizer_load(vlp_optimizer *optimizer, const char *path);

/* The moments, laid out like params->values, and the steps taken by parameter i; borrowed. */
const vlp_real *vlp_optimizer_exp_avg(const vlp_optimizer *optimizer);
const vlp_real *vlp_optimizer_exp_avg_sq(const vlp_optimizer *optimizer);
int64_t vlp_optimizer_steps(const vlp_optimizer *optimizer, int i);

#endif
