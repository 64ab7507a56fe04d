#!/bin/sh
# vlp pretrain siglip: the sigmoid loss falls, the bias and the attending head are in the folder.
. "$(dirname "$0")/lib.sh"
run 0 pretrain siglip --size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2 \
    --set vision_depth=1 --set text_depth=1 --set embedding=16 --set warmup=0 --set lr=0.01 \
    --steps 30 --batch 8 --vocab 200 --data pairs.db --out siglip --threads 2
grep -q '"sigmoid":' siglip/metrics.jsonl || fail "no sigmoid loss in metrics.jsonl"
first=$(sed -n 1p siglip/metrics.jsonl | sed 's/.*"loss":\([0-9.]*\).*/\1/')
last=$(grep '"loss":' siglip/metrics.jsonl | tail -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/')
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || fail "the loss went from $first to $last"
run 0 info siglip --tensors
matches '^F32    logit_bias \[\]$'
matches '^F32    vision.pool.queries \[1, 32\]$'
run 0 classify siglip pictures/000.png --classes red,green,blue
lines 1
