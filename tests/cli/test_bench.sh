#!/bin/sh
# The measurements run and their JSON has the fields that tools rely on.
. "$(dirname "$0")/lib.sh"
small="--set image_size=32 --set patch=16 --set width=32 --set heads=2 --set vision_depth=1
    --set text_depth=1 --set fusion_depth=1 --set embedding=16"

# shellcheck disable=SC2086 # the options are several words
exits 0 bench train vlp --size nano $small --batch 4 --steps 1 --vocab 200 --json --profile
for field in pairs_per_s gflops gemm_gflops utilisation peak_rss_mb precision threads; do
    says "\"$field\":"
done
[ "$(wc -l <"$out")" -eq 1 ] || fail "stdout has more than the JSON"
warns '^  linear '
# shellcheck disable=SC2086
exits 0 bench encode clip --size nano $small --set fusion_depth=0 --batch 4 --seconds 0.05 --json
says '"images_per_s":'
exits 0 bench load "$work/pairs.db" --image-size 32 --batch 8 --seconds 0.05 --json
says '"images_per_s":'
exits 0 bench search --rows 1000 --dim 16 --queries 3 --json
says '^{"ms":.*,"gb_per_s":.*}$'

exits 0 bench gemm --size nano --batch 2 --json
says '"layer":"image qkv","pass":"to weight",.*"gflops":.*"fma_gflops":'

exits 2 bench trian
warns 'did you mean "train"'
exits 2 bench train vlp --sixe nano
warns 'did you mean "--size"'
exits 2 bench train vpl
warns 'did you mean "vlp"'
exits 2 bench train vlp --precision half
