#!/bin/bash
# The unit tests under valgrind: no invalid access, no use of unset values, no leak. VLP_UNDER_VALGRIND
# tells the tests to be brief; programs that a test starts run outside.
#
# usage: tests/valgrind.sh [BUILD] [PATTERN]      (default: build-dev, all unit tests)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build-dev} pattern=${2:-.}
export VLP_UNDER_VALGRIND=1
# valgrind 3.19 knows no AVX-512.
export VLP_ISA=avx2 OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
passed=0 failed=0
for test in "$build"/tests/test_*; do
    name=${test##*/}
    [[ -x $test && ! -d $test && $name =~ $pattern ]] || continue
    if valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect "$test" >"$build/$name.valgrind" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: see %s\n' "$name" "$build/$name.valgrind"
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
