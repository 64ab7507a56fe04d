#!/bin/bash
# From a fresh Debian 12 to a passed test suite: packages, build, every test. The last line is
# ctest's count. Options go to ctest, for instance: tests/run.sh -R text
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
source tools/packages.sh

install_packages "${vlp_build_packages[@]}" "${vlp_test_packages[@]}"

cmake --preset dev >/dev/null
cmake --build --preset dev
log=build-dev/tests.log
status=0
ctest --preset dev "$@" 2>&1 | tee "$log" || status=$?
grep 'tests passed' "$log" || say "no test ran; $log has ctest's words"
exit "$status"
