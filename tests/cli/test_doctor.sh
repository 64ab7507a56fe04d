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
