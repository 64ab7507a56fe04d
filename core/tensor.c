#include "core/tensor.h"

#include "core/threads.h"

#include <string.h>

enum { ZERO_GRAIN = 1 << 16 }; /* bytes */

size_t vlp_dtype_size(vlp_dtype dtype) {
    static const size_t sizes[] = {
        [VLP_REAL] = sizeof(vlp_real), [VLP_BF16] = 2, [VLP_I32] = 4, [VLP_U8] = 1};
    return sizes[dtype];
}

int64_t vlp_numel(const vlp_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i < tensor->ndim; i++) n *= tensor->shape[i];
    return n;
}

size_t vlp_tensor_bytes(const vlp_tensor *tensor) {
    return (size_t)vlp_numel(tensor) * vlp_dtype_size(tensor->dtype);
}

int64_t vlp_col_count(const vlp_tensor *tensor) {
    return tensor->ndim ? tensor->shape[tensor->ndim - 1] : 1;
}

int64_t vlp_row_count(const vlp_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i + 1 < tensor->ndim; i++) n *= tensor->shape[i];
    return n;
}

bool vlp_same_shape(const vlp_tensor *a, const vlp_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

vlp_real *vlp_real_data(const vlp_tensor *tensor) {
    VLP_ASSERT(tensor->dtype == VLP_REAL, "a real tensor is wanted, dtype is %d", tensor->dtype);
    return tensor->data;
}

uint16_t *vlp_bf16_data(const vlp_tensor *tensor) {
    VLP_ASSERT(tensor->dtype == VLP_BF16, "a bf16 tensor is wanted, dtype is %d", tensor->dtype);
    return tensor->data;
}

const int32_t *vlp_i32_data(const vlp_tensor *tensor) {
    VLP_ASSERT(tensor->dtype == VLP_I32, "an i32 tensor is wanted, dtype is %d", tensor->dtype);
    return tensor->data;
}

const uint8_t *vlp_u8_data(const vlp_tensor *tensor) {
    VLP_ASSERT(tensor->dtype == VLP_U8, "a u8 tensor is wanted, dtype is %d", tensor->dtype);
    return tensor->data;
}

static void zero_range(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    memset((char *)ctx + begin, 0, (size_t)(end - begin));
}

vlp_gradient vlp_grad_read(const vlp_tensor *tensor) {
    if (tensor->half_grad) return (vlp_gradient){tensor->half_grad, VLP_BF16};
    return (vlp_gradient){tensor->grad, VLP_REAL};
}

vlp_gradient vlp_grad_store(vlp_tensor *tensor, bool *fresh) {
    if (!tensor->needs_grad) return (vlp_gradient){NULL, VLP_REAL};
    *fresh = tensor->grad_fresh;
    tensor->grad_fresh = false;
    return vlp_grad_read(tensor);
}

vlp_real *vlp_grad_write(vlp_tensor *tensor, bool *fresh) {
    VLP_ASSERT(!tensor->half_grad, "an op takes a bf16 tensor and not its gradient");
    return vlp_grad_store(tensor, fresh).data;
}

void vlp_grad_settle(vlp_tensor *tensor) {
    bool fresh = false;
    vlp_gradient grad = vlp_grad_store(tensor, &fresh);
    int64_t bytes = vlp_numel(tensor) * (int64_t)vlp_dtype_size(grad.dtype);
    if (grad.data && fresh) vlp_parallel_for(bytes, ZERO_GRAIN, zero_range, grad.data);
}

vlp_real *vlp_grad_add(vlp_tensor *tensor) {
    VLP_ASSERT(!tensor->half_grad, "an op takes a bf16 tensor and not its gradient");
    vlp_grad_settle(tensor);
    return tensor->needs_grad ? tensor->grad : NULL;
}
