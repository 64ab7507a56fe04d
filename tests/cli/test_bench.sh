#!/bin/sh
# The measurements run and their JSON has the fields that tools rely on.
. "$(dirname "$0")/lib.sh"
small="--set image_size=32 --set patch=16 --set width=32 --set heads=2 --set vision_depth=1
    --set text_depth=1 --set fusion_depth=1 --set embedding=16"

# shellcheck disable=SC2086 # the options are several words
run 0 bench train vlp --size nano $small --batch 4 --steps 1 --vocab 200 --json --profile
for field in pairs_per_s gflops gemm_gflops utilisation peak_rss_mb precision threads; do
    matches "\"$field\":"
done
lines 1
matches '"op":"linear","pass":"backward","ms":.*"bytes":.*"flops":.*"gb_per_s":.*"roofline":'
matches '"op":"(update)","ms"'
matches '"bytes":[1-9]'
matches '"memory_gb_per_s":'
# shellcheck disable=SC2086
run 0 bench train vlp --size nano $small --batch 4 --steps 1 --vocab 200 --profile
matches "of the registers' peak"
matches '^between registers: fp32 .*; memory reads at .* GB/s$'
matches '^  attention            backward '
matches '^  (between ops) '
# shellcheck disable=SC2086
run 0 bench optimizer vlp --size nano $small --seconds 0.001 --json
lines 7
matches '^{"update":"adamw","parameters":.*"gb_per_s":.*"memory_gb_per_s":'
matches '"update":"gradients to zero"'
# shellcheck disable=SC2086
run 0 bench optimizer clip --size nano $small --set fusion_depth=0 --seconds 0.001
matches '^  lamb '
matches 'memory reads at'
# shellcheck disable=SC2086
run 0 bench encode clip --size nano $small --set fusion_depth=0 --batch 4 --seconds 0.05 --json
matches '"images_per_s":.*"images_gflops":[0-9.]*,.*"fma_gflops":'
run 0 bench load pairs.db --image-size 32 --batch 8 --seconds 0.05 --json
matches '"images_per_s":'
run 0 bench search --rows 1000 --dim 16 --queries 3 --json
matches '^{"ms":.*,"gb_per_s":.*,"memory_gb_per_s":.*}$'

run 0 bench gemm --size nano --batch 2 --json
matches '"layer":"image qkv","pass":"to weight",.*"backend":"own","gflops":.*"fma_gflops":'
matches '"precision":"bf16","backend":"openblas"'

run 0 bench attention --batch 2 --seconds 0.001 --json
matches '"shape":"image 224 px","precision":"bf16",.*"forward_gflops":.*"fma_gflops":'
lines 20
run 0 bench attention --batch 1 --seconds 0.001 --precision fp32
lines 13
run 2 bench attention --precision fp16
complains 'fp32 or bf16'
run 2 bench encode vlp --size nano --precision auto
complains 'bench encode: --precision is fp32 or bf16'

run 2 bench trian
complains 'did you mean "train"'
run 2 bench train vlp --sixe nano
complains 'did you mean "--size"'
run 2 bench train vpl
complains 'did you mean "vlp"'
run 2 bench train vlp --precision half

run 2 bench search --batch 4
complains "search takes no --batch, which is for train, encode, gemm, load"
