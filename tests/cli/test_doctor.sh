#!/bin/sh
# The doctor runs, names kernels and libraries, and sees what the environment lowers.
. "$(dirname "$0")/lib.sh"

run 0 doctor
matches '^products    OpenBLAS .*self-test passed'
matches 'left alone the library takes'
matches '^            layers: fp32 by .*, bf16 by '
matches '^libraries   libpng .*, libjpeg-turbo .*, sqlite .*, utf8proc .*, jansson '
run 0 doctor --json
matches '"gemm":{"library":"OpenBLAS'
matches '"verdicts":\[{'

export VLP_GEMM=own
run 0 doctor
matches '^            layers: fp32 by own .*, bf16 by own .*, VLP_GEMM=own'
export VLP_GEMM=mkl
run 2 doctor
complains 'VLP_GEMM="mkl" is unknown; use auto, own, openblas or onednn'
unset VLP_GEMM

export VLP_ISA=plain
run 0 doctor --threads 1
matches '^kernels     plain of .*VLP_ISA=plain'
matches '^threads     1 of'
run 2 doctor --jsn
complains 'did you mean "--json"'

# wrong kernels stop every command but this one, which names the cure
export VLP_GEMM_DISTRUST=SapphireRapids,Cooperlake,SkylakeX,Zen,Haswell,Sandybridge,Prescott
run 2 doctor
matches 'SELF-TEST FAILED'
matches '^->  .*OPENBLAS_CORETYPE'
run 2 stats pairs.db
complains 'compute wrong products'

run 2 doctor --gemm --json
complains "--json and --gemm contradict each other"
