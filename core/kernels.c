#include "core/kernels.h"
#include "core/kernels_sets.h"

const vlp_kernel_set *vlp_kernel_set_of(vlp_isa isa) {
    static const vlp_kernel_set *(*const sets[VLP_ISA_COUNT])(void) = {
        [VLP_ISA_PLAIN] = vlp_kernel_set_plain,
        [VLP_ISA_AVX2] = vlp_kernel_set_avx2,
        [VLP_ISA_AVX512] = vlp_kernel_set_avx512,
    };
    return (unsigned)isa < VLP_ISA_COUNT && isa <= vlp_isa_best() ? sets[isa]() : NULL;
}

const vlp_kernels *vlp_kernels_of(vlp_isa isa) {
    const vlp_kernel_set *set = vlp_kernel_set_of(isa);
    return set ? &set->kernels : NULL;
}

/* The environment is read once; every thread finds the same answer. */
const vlp_kernels *vlp_kernels_get(void) {
    static const vlp_kernels *_Atomic chosen;
    const vlp_kernels *kernels = chosen;
    if (kernels) return kernels;
    for (int isa = (int)vlp_isa_chosen(); !kernels; isa--) kernels = vlp_kernels_of((vlp_isa)isa);
    chosen = kernels;
    return kernels;
}
