#!/bin/bash
# From a fresh Debian 12 to a passed test suite: packages, build, every test, the slow ones too. The
# last line is ctest's count. Options go to ctest, for instance: tests/run.sh -R text, or -LE slow.
# VLP_FUZZ_SECONDS bounds the run of one fuzz target (60).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
source tools/packages.sh

install_packages "${vlp_build_packages[@]}" "${vlp_test_packages[@]}"

# The optimised build sees warnings that the one with tests does not.
cmake --preset release >/dev/null
cmake --build --preset release
cmake --preset dev -DVLP_SLOW_TESTS=ON -DVLP_FUZZ_SECONDS="${VLP_FUZZ_SECONDS:-60}" >/dev/null
cmake --build --preset dev
log=build-dev/tests.log
status=0
ctest --preset dev --parallel "$(nproc)" "$@" 2>&1 | tee "$log" || status=$?
grep 'tests passed' "$log" || say "no test ran; $log has ctest's words"
exit "$status"
