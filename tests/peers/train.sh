#!/bin/bash
# The training step of the vlp recipe here and in PyTorch (Debian: python3-torch), by turns in one
# run, since shared machines drift: prints pairs/s, memory and the ratio of the medians.
#
# usage: tests/peers/train.sh [SIZE:BATCH:PRECISION...] [-r ROUNDS]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vlp=${VLP:-$here/../../build/vlp}
python=${PYTHON:-/usr/bin/python3}
rounds=3 cases=()
while [[ $# -gt 0 ]]; do
    case $1 in
        -r) rounds=$2; shift ;;
        -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) cases+=("$1") ;;
    esac
    shift
done
[[ ${#cases[@]} -gt 0 ]] || cases=(nano:256:bf16 nano:256:fp32 small:32:bf16 small:32:fp32 base:8:bf16 base:8:fp32)
"$python" -c 'import torch' 2>/dev/null || { echo "no PyTorch; apt-get install python3-torch" >&2; exit 1; }

# An older OpenBLAS does not know a newer processor; PyTorch gets the same cure as vlp.
core=$("$vlp" doctor --json 2>/dev/null | grep -o '"core":"[^"]*"' | cut -d'"' -f4)
number() { sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p" "$1" | head -1; }
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-6s %5s %-5s %12s %12s %7s %10s %10s\n' size batch type vlp torch ratio vlp_mb torch_mb
for one in "${cases[@]}"; do
    IFS=: read -r size batch precision <<<"$one"
    : >"$work/vlp" && : >"$work/torch"
    for ((i = 0; i < rounds; i++)); do
        "$vlp" bench train vlp --size "$size" --batch "$batch" --steps 1 --precision "$precision" --json \
            >"$work/v.json" 2>/dev/null
        ${core:+env OPENBLAS_CORETYPE=$core} "$python" "$here/torch_step.py" "$size" "$batch" "$precision" 1 \
            >"$work/t.json" 2>/dev/null
        number "$work/v.json" pairs_per_s >>"$work/vlp"
        number "$work/t.json" pairs_per_s >>"$work/torch"
    done
    v=$(median <"$work/vlp") t=$(median <"$work/torch")
    printf '%-6s %5d %-5s %12.3f %12.3f %7.2f %10.0f %10.0f\n' "$size" "$batch" "$precision" "$v" "$t" \
        "$(awk "BEGIN { print $v / $t }")" "$(number "$work/v.json" peak_rss_mb)" "$(number "$work/t.json" peak_rss_mb)"
done
