#!/bin/sh
# fixture.sh WORK: thirty pictures, an index and a model trained for a few steps, for the other
# scripts. VLP and MAKE_PICTURES name the programs.
set -eu
work=$1
rm -rf "$work"
mkdir -p "$work"
"$MAKE_PICTURES" "$work" 30 48
"$VLP" index "$work/pairs.db" "$work/pictures.jsonl" --quiet
"$VLP" pretrain clip --size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2 \
    --set vision_depth=1 --set text_depth=1 --set embedding=16 --steps 3 --batch 8 --vocab 200 \
    --data "$work/pairs.db" --out "$work/run" --quiet --threads 2
test -f "$work/run/model.safetensors"
