#!/bin/bash
# check_format.sh ROOT [-i]: every C file that git tracks is as clang-format writes it; -i rewrites
# them. Exit 77 (skipped) without git or clang-format 14: other versions break some lines elsewhere.
set -euo pipefail
cd "$1"

skip() {
    printf 'skipped: %s\n' "$*" >&2
    exit 77
}

tool=$(command -v clang-format-14 || command -v clang-format) ||
    skip "no clang-format; apt-get install clang-format"
[[ $("$tool" --version) == *" version 14."* ]] || skip "$tool is not version 14"
git rev-parse --git-dir >/dev/null 2>&1 || skip "not a git checkout"

mapfile -d '' files < <(git ls-files -z -- '*.[ch]' '*.inc')
[[ ${#files[@]} -gt 0 ]] || skip "git tracks no C file here"
if [[ ${2:-} == -i ]]; then
    exec "$tool" -i "${files[@]}"
fi
"$tool" --dry-run -Werror "${files[@]}"
printf '%d files are formatted\n' "${#files[@]}"
