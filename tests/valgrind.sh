#!/bin/bash
# The unit tests under valgrind: no invalid access, no use of unset values, no leak. Tests that start
# programs, count allocations or train for long are left to the sanitizers.
#
# usage: tests/valgrind.sh [BUILD] [PATTERN]      (default: build-dev, all unit tests)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build-dev} pattern=${2:-.}
left_out='test_train_|test_core_tape|test_core_threads|test_core_gemm|test_datasets_import|parity|test_grad_objectives'
# valgrind 3.19 knows no AVX-512.
export VLP_ISA=avx2 OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
passed=0 failed=0
for test in "$build"/tests/test_*; do
    name=${test##*/}
    [[ -x $test && ! -d $test && $name =~ $pattern && ! $name =~ $left_out ]] || continue
    if valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite "$test" >"$build/$name.valgrind" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: see %s\n' "$name" "$build/$name.valgrind"
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
