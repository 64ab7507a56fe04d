#!/bin/sh
# The doctor runs, names kernels and libraries, and sees what the environment lowers.
. "$(dirname "$0")/lib.sh"

exits 0 doctor
says '^products    OpenBLAS .*self-test passed'
says 'left alone the library takes'
says '^libraries   libpng .*, libjpeg-turbo .*, sqlite .*, utf8proc .*, jansson '
exits 0 doctor --json
says '"gemm":{"library":"OpenBLAS'
says '"verdicts":\[{'

export VLP_ISA=plain
exits 0 doctor --threads 1
says '^kernels     plain of .*VLP_ISA=plain'
says '^threads     1 of'
exits 2 doctor --jsn
warns 'did you mean "--json"'

# wrong kernels stop every command but this one, which names the cure
export VLP_GEMM_DISTRUST=SapphireRapids,Cooperlake,SkylakeX,Zen,Haswell,Sandybridge,Prescott
exits 2 doctor
says 'SELF-TEST FAILED'
says '^->  .*OPENBLAS_CORETYPE'
exits 2 stats "$work/pairs.db"
warns 'compute wrong products'
