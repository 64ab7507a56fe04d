#!/bin/bash
# What each objective does to retrieval of held-out drawings: trains the quick start's recipe without
# one objective after the other, three seeds each, and prints recall beside the full recipe's.
#
# usage: tests/ablation.sh CORPUS.db OUT [STEPS] [SEEDS]      (an index made by apps/quickstart.sh)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ $# -ge 2 ]] || { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
db=$1 out=$2 steps=${3:-400} seeds=${4:-3}
mkdir -p "$out"

variants=(
    "all four:"
    "without MIM:--set mim.weight=0"
    "without MLM:--set mlm.weight=0"
    "without ITM:--set itm.weight=0"
    "ITC alone:--set mim.weight=0 --set mlm.weight=0 --set itm.weight=0 --set fusion_depth=0"
    "without ITC:--set itc.weight=0"
)

# recall SUMMARY DIRECTION LEVEL: one figure of a run's summary.json
recall() {
    tr -d ' \n' <"$1" | sed "s/.*\"$2\":{[^}]*\"R@$3\":\([0-9.e-]*\).*/\1/"
}

printf '%-12s %5s %8s %8s %8s %8s\n' variant seed i2t@1 i2t@10 t2i@1 t2i@10
for variant in "${variants[@]}"; do
    for ((seed = 0; seed < seeds; seed++)); do
        run=$out/${variant%%:*}-$seed
        run=${run// /-}
        [[ -e $run/summary.json ]] || {
            rm -rf "$run"
            # shellcheck disable=SC2086 # the options are several words
            "$root/build/vlp" pretrain "$root/apps/quickstart.json" --data "$db" --out "$run" \
                --steps "$steps" --seed "$seed" --set data.mixture=drawings=1 \
                --set eval_every=1000000 ${variant#*:} -q
        }
        s=$run/summary.json
        printf '%-12s %5d' "${variant%%:*}" "$seed"
        for key in "image_to_text 1" "image_to_text 10" "text_to_image 1" "text_to_image 10"; do
            # shellcheck disable=SC2086
            printf ' %8.3f' "$(recall "$s" $key)"
        done
        printf '\n'
    done
done
