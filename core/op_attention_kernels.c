#include "core/op_attention_kernels.h"

static const vlp_attention_kernels *set_of(vlp_isa isa, vlp_dtype dtype) {
    const vlp_attention_kernels *pairs = NULL;
    switch (isa) {
    case VLP_ISA_AVX512:
        if (dtype == VLP_BF16 && vlp_cpu()->avx512_bf16) pairs = vlp_attention_set_bf16();
        return pairs ? pairs : vlp_attention_set_avx512();
    case VLP_ISA_AVX2:
        return vlp_attention_set_avx2();
    default:
        return vlp_attention_set_plain();
    }
}

const vlp_attention_kernels *vlp_attention_kernels_for(vlp_dtype dtype) {
    const vlp_attention_kernels *set = NULL;
    for (int isa = (int)vlp_isa_chosen(); !set; isa--) set = set_of((vlp_isa)isa, dtype);
    return set;
}
