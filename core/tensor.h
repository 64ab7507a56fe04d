/* A tensor: a typed, dense, row-major block that somebody else owns (the tape's arena, the
 * parameter store, or the caller). `grad` has the same number of elements and is of type vlp_real;
 * a bfloat16 tensor that one op reads has `half_grad` in its place. */
#ifndef VLP_CORE_TENSOR_H
#define VLP_CORE_TENSOR_H

#include "core/real.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    VLP_REAL, /* vlp_real: f32, or f64 in the gradient-check build */
    VLP_BF16,
    VLP_I32,
    VLP_U8,
} vlp_dtype;

enum { VLP_MAX_DIMS = 4 };

typedef struct vlp_tensor {
    vlp_dtype dtype;
    int ndim; /* 0 = scalar */
    int64_t shape[VLP_MAX_DIMS];
    void *data;
    vlp_real *grad; /* NULL until a backward pass reaches the tensor; leaves keep theirs */
    uint16_t *half_grad;
    int readers;               /* ops that read it and have a backward pass; 2 stands for more */
    bool needs_grad;           /* whether gradients flow into it */
    bool grad_fresh;           /* grad is allocated but holds no value yet */
    struct vlp_packed *packed; /* keeps a parameter packed for its products, or NULL */
    bool parameter;            /* of a parameter store */
    struct vlp_node *maker;    /* whose step memory the data are; NULL for leaves and views */
    bool shared;               /* views use the data too */
    bool awaited;              /* backward will read the data */
    bool copy;                 /* made for one reader */
    bool forgotten;            /* the data are gone until they are computed again */
    bool reached; /* a parameter that a backward pass came to since gradients were zeroed */
} vlp_tensor;

size_t vlp_dtype_size(vlp_dtype dtype);

size_t vlp_tensor_bytes(const vlp_tensor *tensor); /* of its data */
/* Number of elements; 1 for a scalar. */
int64_t vlp_numel(const vlp_tensor *tensor);
/* The last dimension, and the product of all others ("rows"). */
int64_t vlp_col_count(const vlp_tensor *tensor);
int64_t vlp_row_count(const vlp_tensor *tensor);
bool vlp_same_shape(const vlp_tensor *a, const vlp_tensor *b);

/* Typed access; a wrong dtype is a programming error. */
vlp_real *vlp_real_data(const vlp_tensor *tensor);
uint16_t *vlp_bf16_data(const vlp_tensor *tensor);
const int32_t *vlp_i32_data(const vlp_tensor *tensor);
const uint8_t *vlp_u8_data(const vlp_tensor *tensor);

/* For the backward functions of ops. Both return NULL when no gradient is wanted.
 * vlp_grad_add: a buffer to add into (zeroed at its first use).
 * vlp_grad_write: the same without the zeroing: *fresh says that its content is garbage and must be
 * overwritten, which lets a product use beta = 0. */
vlp_real *vlp_grad_add(vlp_tensor *tensor);
vlp_real *vlp_grad_write(vlp_tensor *tensor, bool *fresh);

/* A gradient of either type, for ops that take or give VLP_BF16; data NULL = none. What
 * vlp_grad_store gives may be VLP_BF16 where the tensor is; that is always fresh. */
typedef struct {
    void *data;
    vlp_dtype dtype;
} vlp_gradient;

vlp_gradient vlp_grad_read(const vlp_tensor *tensor);
vlp_gradient vlp_grad_store(vlp_tensor *tensor, bool *fresh);
/* Zeroes a gradient to which nothing was written. */
void vlp_grad_settle(vlp_tensor *tensor);

#endif
