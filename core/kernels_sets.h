/* The kernel sets of this build, behind core/kernels.h and core/ceiling.h. */
#ifndef VLP_CORE_KERNELS_SETS_H
#define VLP_CORE_KERNELS_SETS_H

#include "core/kernels.h"
#include "core/status.h"

typedef struct {
    vlp_kernels kernels;
    double (*multiply_adds)(int64_t rounds); /* does nothing useful at full speed; returns FLOPs */
} vlp_kernel_set;

/* NULL where the build's target lacks the set */
const vlp_kernel_set *vlp_kernel_set_plain(void);
const vlp_kernel_set *vlp_kernel_set_avx2(void);
const vlp_kernel_set *vlp_kernel_set_avx512(void);

const vlp_kernel_set *vlp_kernel_set_of(vlp_isa isa); /* NULL where the CPU lacks it, too */

#endif
