#!/bin/bash
# Images a second through a ViT-B tower at 224 pixels here, in PyTorch and in ONNX Runtime (fp32), by
# turns in one run; prints the medians and the ratios to the faster of the two.
# PyTorch: Debian's python3-torch. ONNX Runtime: `npm install --ignore-scripts onnxruntime-node` in the
# folder that NODE_PATH's node_modules lies in.
#
# usage: tests/peers/encode.sh [PATCH:BATCH...] [-r ROUNDS]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vlp=${VLP:-$here/../../build/vlp}
python=${PYTHON:-/usr/bin/python3}
rounds=3 cases=()
while [[ $# -gt 0 ]]; do
    case $1 in
        -r) rounds=$2; shift ;;
        -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) cases+=("$1") ;;
    esac
    shift
done
[[ ${#cases[@]} -gt 0 ]] || cases=(32:1 32:32 16:1 16:32)
core=$("$vlp" doctor --json 2>/dev/null | grep -o '"core":"[^"]*"' | cut -d'"' -f4)
rate() { sed -n 's/.*"images_per_s": *\([0-9.e+-]*\).*/\1/p'; }
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%5s %5s %10s %10s %10s %7s\n' patch batch vlp torch onnx ratio
for one in "${cases[@]}"; do
    IFS=: read -r patch batch <<<"$one"
    rm -f "$work"/{vlp,torch,onnx}
    "$python" "$here/torch_encode.py" "$patch" "$batch" "$work/tower.onnx" >/dev/null 2>&1
    for ((i = 0; i < rounds; i++)); do
        "$vlp" bench encode clip --size base --set image_size=224 --set patch="$patch" --batch "$batch" \
            --seconds 5 --json 2>/dev/null | rate >>"$work/vlp"
        env ${core:+OPENBLAS_CORETYPE=$core} "$python" "$here/torch_encode.py" "$patch" "$batch" fp32 2>/dev/null |
            rate >>"$work/torch"
        node "$here/onnx_encode.js" "$work/tower.onnx" "$batch" | rate >>"$work/onnx"
    done
    v=$(median <"$work/vlp") t=$(median <"$work/torch") o=$(median <"$work/onnx")
    printf '%5d %5d %10.2f %10.2f %10.2f %7.2f\n' "$patch" "$batch" "$v" "$t" "$o" \
        "$(awk "BEGIN { print $v / ($t > $o ? $t : $o) }")"
done
