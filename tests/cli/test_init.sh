#!/bin/sh
# vlp pretrain --init from models of others: CLIP in three layouts, SigLIP. The first evaluation is
# that of the model as it came; what comes out goes back into the layout that it came from.
cases=$(cd "$(dirname "$0")/../data/parity" && pwd)
. "$(dirname "$0")/lib.sh"
recalls() {
    sed 's/"chance".*//' "$1" | grep -o '"R@[0-9]*":[0-9.]*' | awk -F: '{ printf "%s %.4f ", $1, $2 }'
}

# begins RECIPE FOLDER RUN: two steps, and the evaluation before them
begins() {
    run 0 pretrain "$1" --init "$2" --data pairs.db --out "$3" --steps 2 --batch 8 --threads 2 \
        --set data.val=train --set warmup=0 --set keep_best=off
    complains "step 0, validation"
    grep '"step":0,"eval"' "$3/metrics.jsonl" >out || fail "no evaluation before the first step"
    first=$(recalls out)
    run 0 eval "$2" --data pairs.db --split train --json
    [ "$first" = "$(recalls out)" ] || fail "$2: the run begins with $first, not $(recalls out)"
}

mkdir hf
cp "$cases/clip-hf/config.json" "$cases/clip-hf/model.safetensors" hf
clip_files hf
begins clip hf from-hf
grep -q '"towers": "openai"' from-hf/recipe.json || fail "the towers are not those of the model"
run 0 eval from-hf --data pairs.db --split test --json
cp out trained
run 0 convert from-hf back --to hf
tensor_names hf | grep -v position_ids >want
tensor_names back | cmp -s - want || fail "other names than CLIPModel's"
run 0 eval back --data pairs.db --split test --json
cmp -s out trained || fail "the trained model changed on its way out"
cmp -s back/model.safetensors hf/model.safetensors && fail "nothing was learnt"

run 0 convert hf open --to openclip
begins clip open from-open
run 0 convert from-open open-again --to openclip
run 0 eval from-open --data pairs.db --split test --json
cmp -s out trained || fail "another layout of the same model trains otherwise"

# SigLIP's towers from nothing, out as SiglipModel, and on from there.
run 0 pretrain siglip --size nano --set towers=siglip --set image_size=32 --set patch=16 \
    --set width=32 --set heads=2 --set vision_depth=1 --set text_depth=1 --set embedding=32 \
    --set text_length=12 --batch 8 --steps 2 --vocab 200 --data pairs.db --out sig --threads 2 --quiet
run 0 convert sig siglip --to hf
grep -q SiglipModel siglip/config.json || fail "not a SiglipModel"
begins siglip siglip from-siglip
run 0 convert from-siglip siglip-again --to hf
tensor_names siglip >want
tensor_names siglip-again | cmp -s - want || fail "SigLIP's names"
run 0 convert sig sig-back --to vlp
run 0 convert siglip siglip-vlp --to vlp
cmp -s sig-back/model.safetensors siglip-vlp/model.safetensors || fail "SigLIP out and back"

# Towers by themselves.
run 2 pretrain vlp --size nano --init hf --init-image hf --data pairs.db --out never --steps 1
complains "leave --init-image and --init-text away"
run 2 pretrain vlp --size nano --set fusion_depth=9 --init-text "$cases/bert-mlm" --data pairs.db \
    --out never --steps 1
complains "wanted for the fusion"

# What does not go together.
run 2 pretrain vlp --init hf --data pairs.db --out never --steps 1
complains "two encoders without a fusion stack"
run 2 pretrain clip --size nano --set towers=clip --data pairs.db --out never --steps 1 --vocab 200
complains "give CLIP's tokenizer with --tokenizer"
run 2 pretrain clip --init "$cases/clip-openclip-custom" --data pairs.db --out never --steps 1
complains "cannot be trained further"
